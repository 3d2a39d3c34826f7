"""`halfbyte perplexity`: how well a model predicts a text, alone or beside the model it was made from."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from . import terminal
from .command import Command, Option
from .json_text import json_text
from .model import locate
from .options import FILE, GPU, JSON, MODEL, THREADS, WINDOW, on_gpu
from .parser import UsageError
from .progress import Bar
from .text_file import read_text

if TYPE_CHECKING:
    from ..runtime.gpu_layers import GpuOptions
    from ..tools.quality.figures import Figures

BASE = Option("--base", str, "Measure the divergence from this model too", "model", otherwise="none")
KV = Option("--kv", str, "Types of its keys and values: f16, q8_0, q4_0, or two with a /", "type", otherwise="f16")
CHUNKS = Option("--chunks", int, "Score the first windows only", "windows", low=1, otherwise="all")


def run(values: Namespace) -> int:
    """Measure and print."""
    if values.file is None:
        raise UsageError(f"--file missing; for example: {COMMAND.example}")
    text = read_text(values.file)
    model = locate(values.model)
    base = None if values.base is None else locate(values.base)
    figures = measured(values, text, model, base, values.chunks, values.kv or "f16", on_gpu(values))
    if values.json:
        terminal.line(json_text(as_json(figures)))
    else:
        _show(figures, values.window)
    return 0


def measured(
    values: Namespace,
    text: str,
    model: Path,
    base: Path | None,
    most_windows: int | None = None,
    kv: str = "f16",
    gpu: GpuOptions | None = None,
) -> Figures:
    """The figures of one file beside another, in windows and with threads as `values` say.

    The base has no part in `kv` and `gpu`.
    """
    from ..runtime.bare import BareModel
    from ..tools.quality.measure import measure

    with ExitStack() as stack:
        bar = stack.enter_context(Bar())

        def load(path: Path, kv: str = "f16", gpu: GpuOptions | None = None) -> BareModel:
            options: GpuOptions = gpu or {}
            return stack.enter_context(
                BareModel(path, window=values.window, threads=values.threads, kv=kv, progress=bar, **options)
            )

        own = load(model, kv, gpu)
        other = None if base is None else load(base)
        return measure(own, text, base=other, most_windows=most_windows, progress=bar)


def as_json(figures: Figures) -> dict[str, float]:
    """The figures by the names they have in JSON; those that need a base are there where there is one."""
    named: dict[str, float] = {
        "tokens": figures.tokens,
        "windows": figures.windows,
        "perplexity": figures.perplexity,
        "perplexity_se": figures.perplexity_se,
    }
    far = figures.divergence
    if far is not None:
        names = ("base_perplexity", "mean_kld", "mean_kld_se", "median_kld", "p99_kld", "max_kld", "top1")
        named |= {name: getattr(far, name) for name in names}
    return named


def _show(figures: Figures, window: int) -> None:
    terminal.line(f"{figures.tokens} tokens scored, the second halves of {figures.windows} windows of {window}")
    _line("perplexity", figures.perplexity, 4, f"+- {figures.perplexity_se:.4f}")
    far = figures.divergence
    if far is None:
        return
    _line("base perplexity", far.base_perplexity, 4, f"+- {far.base_perplexity_se:.4f}")
    _line("mean KL divergence", far.mean_kld, 6, f"+- {far.mean_kld_se:.6f} nats a token")
    _line("median", far.median_kld, 6, "nats")
    _line("99th percentile", far.p99_kld, 6, "nats")
    _line("maximum", far.max_kld, 6, "nats")
    _line("same likeliest token", 100 * far.top1, 2, "% of tokens")


def _line(name: str, value: float, digits: int, unit: str) -> None:
    # Points stand below each other whatever number of digits follows.
    shown = f"{value:>{8 + digits}.{digits}f}"
    terminal.line(f"{name:<20} {shown:<14}  {unit}")


COMMAND = Command(
    "perplexity",
    about="Measure how well a model predicts a text (perplexity: lower is better) and, with --base, how far its "
    "probabilities are from those of the model it was quantized from (KL divergence: 0 is the same). Every window is "
    "read from an empty context and its second half is scored.",
    example="halfbyte perplexity smollm2-135m --file README.md --window 256",
    run=run,
    arguments=(MODEL,),
    options=(FILE, BASE, WINDOW, CHUNKS, KV, THREADS, JSON),
    gpu=GPU,
)
