"""`halfbyte plan`: what a model will take and give, before it is loaded."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from . import terminal
from .command import Command, Option
from .json_text import json_text
from .loading import loading, rows
from .model import locate
from .options import CONTEXT, JSON, LOAD, MODEL, THREADS
from .size import size_text

if TYPE_CHECKING:
    from ..runtime.memory_plan import MemoryPlan

MEMORY = Option("--memory", str, "Say what fits this much", "size, as in 8GB", otherwise="what is free now")
BANDWIDTH = Option(
    "--bandwidth", float, "Rate at which memory is read, for the speed", "GB/s", low=0.1, otherwise="measured, in 1 s"
)


def run(values: Namespace) -> int:
    """Print a plan; the exit code says whether the model fits."""
    import halfbyte

    path = locate(values.model)
    options: dict[str, Any] = {**loading(values.load or []), "context": values.context, "threads": values.threads}
    plan = halfbyte.plan(path, memory=values.memory, **options)
    figures = figures_of(plan, read_gb_s(values))
    if values.json:
        terminal.line(json_text({"model": path.name, **figures}))
    else:
        for line in lines_of(path.name, plan, figures):
            terminal.line(line)
    return 0 if plan.fits else 1


def read_gb_s(values: Namespace) -> float:
    """As given, else measured."""
    from ..cpu_kernels.bandwidth import read_gb_s as measured

    return float(values.bandwidth or measured(values.threads))


def figures_of(plan: MemoryPlan, gb_s: float) -> dict[str, Any]:
    """The plan's figures by their names; bytes, and tokens a second of one answer at the beginning and the end."""
    return {
        "architecture": plan.architecture,
        "parameters": plan.parameters,
        "file_bytes": plan.file_bytes,
        "context": plan.context,
        "weight_bytes": plan.weights,
        "kv_bytes": plan.kv,
        "buffer_bytes": plan.buffers,
        "rest_bytes": plan.rest,
        "total_bytes": plan.total,
        "memory_bytes": plan.memory,
        "fits": plan.fits,
        "longest_context": plan.longest_context,
        "read_gb_s": gb_s,
        "decode_tok_s": plan.tokens_per_second(gb_s),
        "decode_tok_s_at_end": plan.tokens_per_second(gb_s, plan.context),
    }


def lines_of(name: str, plan: MemoryPlan, figures: dict[str, Any]) -> list[str]:
    """The same for people."""
    lines = [
        f"{name}: {plan.architecture}, {plan.parameters / 1e6:.0f} M weights, {size_text(plan.file_bytes)} on disk",
        f"  weights  {size_text(plan.weights):>10}",
        f"  KV       {size_text(plan.kv):>10}  for {plan.context} tokens of context",
        f"  buffers  {size_text(plan.buffers):>10}",
        f"  rest     {size_text(plan.rest):>10}  Python, libraries, tokenizer",
        f"  total    {size_text(plan.total):>10}",
        f"decode about {figures['decode_tok_s']:.0f} tokens/s, {figures['decode_tok_s_at_end']:.0f} in a full context, "
        f"at {figures['read_gb_s']:.1f} GB/s",
    ]
    if plan.memory is None or plan.longest_context is None:
        return lines
    if plan.longest_context == 0:
        most = plan.memory - plan.buffers - plan.rest
        bits = max(most, 0) * 8 * 0.95 / plan.parameters
        hint = f"; at {bits:.1f} bits a weight it would, see `halfbyte quantize --help`" if bits > 1.5 else ""
        return [*lines, f"does not fit {size_text(plan.memory)}, with any context{hint}"]
    verdict = "fits" if plan.fits else "does not fit"
    return [*lines, f"{verdict} {size_text(plan.memory)}, where a context of up to {plan.longest_context} does"]


COMMAND = Command(
    "plan",
    about="Tell what a model will take of memory and how fast it will be, from the file's header alone.",
    example="halfbyte plan smollm2-135m --context 8192 --memory 2GB",
    run=run,
    arguments=(MODEL,),
    options=(CONTEXT, MEMORY, BANDWIDTH, THREADS, LOAD, JSON),
    loading=rows,
)
