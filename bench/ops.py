"""How long do the ops between matrix products take? `python -m bench.ops [--threads N] [--json]`

Microseconds of each for one token and for 64, at the sizes of bert-base, of lfm2-1.2b and of gpt-oss-20b: medians of
what a trace records. Attention of one token, or of 64, looks at 960 tokens, in encoders at the 64.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from halfbyte.cpu_kernels import executable
from halfbyte.model.backend import WAIT, Weight
from halfbyte.model.check import check, weight_shapes
from halfbyte.model.program import (
    Act,
    Add,
    AddVector,
    Attention,
    Embed,
    EmbedPositions,
    GatedAct,
    KvLayer,
    KvWrite,
    LayerNorm,
    Linear,
    Mul,
    Op,
    Program,
    ShortConv,
    StepBatch,
    TakeRows,
)
from halfbyte.quant import FORMATS

PAGE_LEN, CONTEXT, MOST = 16, 960, 64
ROUNDS = 50
VOCABULARY = 64


def bert() -> Program:
    """Twelve heads that look ahead, layer norms, gelu behind a product."""
    ops: list[Op] = [Embed("table", "x"), EmbedPositions("places", "p", CONTEXT), AddVector("x", "kinds", "k")]
    ops += [Add("k", "p", "s"), LayerNorm("s", "norm", "n", 1e-12, "bias"), KvWrite("n", "n", 0)]
    ops += [Attention("n", "o", 0, 12, 12, 64, 64, 0.125, causal=False)]
    ops += [EmbedPositions("wide", "f", CONTEXT), Act("f", "g", "gelu"), Linear("g", "down", "y"), Add("y", "o", "z")]
    return _ended(ops, 768, {"f": 3072, "g": 3072}, KvLayer(12, 64, 64))


def lfm2() -> Program:
    """A filter of three taps between two products of numbers."""
    ops: list[Op] = [Embed("table", "b"), EmbedPositions("places", "c", CONTEXT), Mul("b", "c", "m")]
    ops += [KvWrite(None, "m", 0), ShortConv("filter", "o", 0, 3), Mul("c", "o", "y"), Linear("y", "down", "z")]
    return _ended(ops, 2048, {}, KvLayer(1, 0, 2048, 3, exact=True))


def gpt_oss(window: int | None) -> Program:
    """64 heads with sinks over eight, and the clamped gate."""
    ops: list[Op] = [Embed("table", "q"), EmbedPositions("places", "k", CONTEXT), KvWrite("k", "k", 0)]
    ops += [Attention("q", "o", 0, 64, 8, 64, 64, 0.125, window, sinks="sinks")]
    ops += [EmbedPositions("gates", "g", CONTEXT), EmbedPositions("ups", "u", CONTEXT)]
    ops += [GatedAct("g", "u", "a", "swiglu_oai"), Linear("a", "down", "y"), Add("y", "o", "z")]
    widths = {"k": 512} | dict.fromkeys(["g", "u", "a"], 2880)
    return _ended(ops, 4096, widths, KvLayer(8, 64, 64, window))


def _ended(ops: list[Op], width: int, widths: dict[str, int], layer: KvLayer) -> Program:
    ops += [TakeRows("z", "asked"), Linear("asked", "head", "logits")]
    widths = {name: width for op in ops for name in op.writes()} | widths | {"logits": VOCABULARY}
    looks_ahead = any(isinstance(op, Attention) and not op.causal for op in ops)
    program = Program(tuple(ops), widths, (layer,), "logits", VOCABULARY, looks_ahead)
    check(program)
    return program


def weights_of(program: Program) -> dict[str, Weight]:
    """Any numbers; what is made for the product behind is read as 16-bit integers."""
    rng, found = np.random.default_rng(0), {}
    for name, shape in weight_shapes(program).items():
        format = FORMATS["q8_0" if name == "down" else "f32"]
        data = format.encode(rng.standard_normal(shape).astype(np.float32) * 0.1).reshape(shape[0], -1)
        found[name] = Weight(name, format, shape, data)
    return found


def step(start: int, tokens: int) -> StepBatch:
    """The next tokens of a sequence."""
    positions = np.arange(start, start + tokens, dtype=np.int32)
    pages = np.arange(-(-CONTEXT // PAGE_LEN), dtype=np.int32)[None]
    end, last = (np.array([value], np.int32) for value in (start + tokens, tokens - 1))
    return StepBatch(positions % VOCABULARY, positions, positions * 0, positions, pages, end, last)


def microseconds(program: Program, tokens: int, threads: int | None) -> Iterator[tuple[str, float]]:
    """Each kernel that is no product, and how long it takes from the first thread's begin to the last one's end."""
    n_pages, weights = -(-CONTEXT // PAGE_LEN), weights_of(program)
    runner = executable.build(program, weights, n_pages=n_pages, max_tokens=MOST, threads=threads)
    logits = np.empty((1, VOCABULARY), np.float32)
    first = 0 if program.encoder else CONTEXT - tokens
    for start in range(0, first, MOST):
        runner.run(step(start, min(MOST, first - start)), logits)
    batch = step(first, tokens)
    runner.run(batch, logits)
    runner.trace(True)
    for _ in range(ROUNDS):
        runner.run(batch, logits)
    times: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for span in runner.spans():
        if span.name != WAIT and not span.name.startswith("linear"):
            times[span.name][span.step] += [span.start_s, span.end_s]
    for name, steps in times.items():
        yield name, float(np.median([max(ends) - min(ends) for ends in steps.values()])) * 1e6
    runner.close()


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.ops", description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=None, help="threads (default: physical cores)")
    parser.add_argument("--json", action="store_true", help="a JSON object")
    args = parser.parse_args()
    programs = {"bert-base": bert(), "lfm2-1.2b": lfm2(), "gpt-oss-20b": gpt_oss(None), "its windows": gpt_oss(128)}
    found = {
        name: {tokens: dict(microseconds(program, tokens, args.threads)) for tokens in (1, MOST)}
        for name, program in programs.items()
    }
    if args.json:
        print(json.dumps(found))
        return
    for name, by_tokens in found.items():
        print(f"{name:42}{'1 token':>10}{f'{MOST} tokens':>12}   microseconds")
        for kernel, one in by_tokens[1].items():
            print(f"  {kernel:40}{one:10.1f}{by_tokens[MOST][kernel]:12.1f}")


if __name__ == "__main__":
    main()
