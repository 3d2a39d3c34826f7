"""`halfbyte bench`: speed and memory with one model, beside what the memory of the machine can do."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from ..errors import ResourceError
from . import terminal
from .command import Command, Option
from .json_text import json_text
from .model import locate
from .options import GPU, JSON, MODEL, THREADS, gpu_words, on_gpu
from .progress import Bar
from .resident import ResidentPeak

if TYPE_CHECKING:
    from ..runtime.llm import LLM

RUNS = Option("--runs", int, "Measurements of each kind; the median counts", "runs", low=1, high=1000, default=5)
PREFILL = Option("--prefill", int, "Length of the measured prompt", "tokens", low=1, default=512)
DECODE = Option("--decode", int, "Length of the measured answer", "tokens", low=2, default=64)
TRACE = Option(
    "--trace", str, "Measure once more and write when which op ran, for ui.perfetto.dev", "path", otherwise="none"
)

UNITS = {
    "read_gb_s": "GB/s, the most that reading memory gave",
    "decode_tok_s": "tokens/s",
    "decode_gb_s": "GB/s of packed weights",
    "prefill_tok_s": "tokens/s",
    "load_s": "s",
    "first_token_s": "s from the start of a new process",
    "peak_rss_mb": "MB, mapped file pages not counted",
}


def run(values: Namespace) -> int:
    """Measure and print."""
    figures = measure(values, locate(values.model))
    if values.json:
        terminal.line(json_text(figures))
    else:
        for name, value in figures.items():
            shown = f"{value:.3f}" if isinstance(value, float) else str(value)
            terminal.line(f"{name:<14} {shown:>14}  {UNITS.get(name, '')}".rstrip())
    return 0


def measure(values: Namespace, path: Path) -> dict[str, float | int | str]:
    """Every figure by its name. Bandwidth is the better of one before and one after: other programs only lower it."""
    import halfbyte

    from ..cpu_kernels.bandwidth import read_gb_s

    gpu = on_gpu(values)
    # Compiles what is missing, so that the second load shows what every later start costs.
    with Bar() as bar, halfbyte.load(path, context=512, threads=values.threads, progress=bar, **gpu) as llm:
        threads = int(llm.info()["threads"])
    before = read_gb_s(threads)
    with ResidentPeak() as peak:
        started = time.perf_counter()
        # A token of speculation does not read all weights.
        context = values.prefill + values.decode + 64
        llm = halfbyte.load(path, context=context, threads=threads, speculation="off", **gpu)
        load_s = time.perf_counter() - started
        with llm:
            info = llm.info()
            decode = _median(values.runs, lambda run: _decode(llm, values.decode, run))
            prefill = _median(values.runs, lambda run: _prefill(llm, values.prefill, run))
            if values.trace is not None:
                with llm.trace(values.trace):
                    _prefill(llm, values.prefill, values.runs)
                    _decode(llm, values.decode, values.runs)
    return {
        "model": path.name,
        "read_gb_s": max(before, read_gb_s(threads)),
        "decode_tok_s": decode,
        "decode_gb_s": int(info["packed_bytes"]) * decode / 1e9,
        "prefill_tok_s": prefill,
        "load_s": load_s,
        "first_token_s": _median(min(values.runs, 5), lambda run: _first_token(path, threads, gpu_words(values))),
        "peak_rss_mb": peak.bytes / 1e6,
        "threads": threads,
        "isa": str(info["isa"]),
        "kernels": str(info["kernels"]),
        **{name: info[name] for name in ("gpu", "gpu_layers") if name in info},
    }


def _median(runs: int, once: Callable[[int], float]) -> float:
    return median(once(run) for run in range(runs))


def _decode(llm: LLM, n_tokens: int, run: int) -> float:
    """Tokens a second after the first; end tokens would cut it short, so drawing goes on with another prompt."""
    tokens, seconds = 0, 0.0
    for attempt in range(64):
        prompt = _prompt(llm, 16, seed=1000 * run + attempt)
        timings = llm.generate(prompt, max_tokens=n_tokens - tokens + 1, temperature=0.0).timings
        tokens += max(timings.completion_tokens - 1, 0)
        seconds += timings.decode_s
        if tokens >= n_tokens:
            break
    return tokens / seconds if seconds else 0.0


def _prefill(llm: LLM, n_tokens: int, run: int) -> float:
    return llm.generate(_prompt(llm, n_tokens, seed=10**6 + run), max_tokens=1, temperature=0.0).timings.prefill_tok_s


def _prompt(llm: LLM, n_tokens: int, seed: int) -> list[int]:
    """Ids that no earlier prompt began with, so that no cache helps."""
    draw = random.Random(seed)
    ids: list[int] = []
    while len(ids) < n_tokens:
        ids += llm.tokenize(" ".join(str(draw.randrange(1 << 30)) for _ in range(n_tokens)), bos=not ids)
    return ids[:n_tokens]


def _first_token(path: Path, threads: int, more: Sequence[str] = ()) -> float:
    """Seconds from starting a new interpreter to the first byte of an answer."""
    words = ["generate", "--max-tokens", "1", "--threads", str(threads), *more, "--", str(path), "Hello"]
    started = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "halfbyte", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    first = child.stdout.read(1)
    seconds = time.perf_counter() - started
    _, messages = child.communicate()
    if child.returncode or not first:
        raise ResourceError(f"a new process could not answer: {messages.decode('utf-8', 'replace').strip()}")
    return seconds


COMMAND = Command(
    "bench",
    about="Measure speed and memory with a model. The read bandwidth is the ceiling of decode_gb_s.",
    example="halfbyte bench smollm2-135m",
    run=run,
    arguments=(MODEL,),
    options=(RUNS, PREFILL, DECODE, TRACE, THREADS, JSON),
    gpu=GPU,
)
