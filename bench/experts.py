"""How fast is a mixture of experts? `python -m bench.experts [--experts N] [--used N] [--format F] [--threads N]`

One token: packed bytes that it reads a second of two layers, the experts others at every step, beside plain products
of as many bytes and the read bandwidth. A prompt: nanoseconds for each row that an expert gets through its three
matrices, beside as many rows through one expert's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from halfbyte.cpu_kernels import executable
from halfbyte.cpu_kernels.bandwidth import read_gb_s
from halfbyte.cpu_kernels.encoding import CompiledSearch
from halfbyte.model.backend import Weight
from halfbyte.model.check import weight_shapes
from halfbyte.model.program import (
    Combine,
    Dispatch,
    Embed,
    ExpertLinear,
    GatedAct,
    Linear,
    MoeRoute,
    Op,
    Program,
    StepBatch,
    TakeRows,
)
from halfbyte.quant import FORMATS
from halfbyte.quant.encode_rows import encode_rows

WIDTH, HIDDEN = 2048, 768
PROMPT = 256
ROUNDS, STEPS = 7, 12
VOCABULARY = 64
LAYERS = 2


@dataclass(frozen=True)
class Mixture:
    """What is measured."""

    experts: int
    used: int
    format: str
    threads: int | None

    def layer(self, at: int, x: str, out: str) -> list[Op]:
        """A mixture's feed-forward."""
        scores, route, dealt, gate, up, acted, down = (
            f"{at}.{part}" for part in ("scores", "route", "dealt", "gate", "up", "acted", "down")
        )
        return [
            Linear(x, f"{at}.router", scores),
            MoeRoute(scores, route, self.used, "softmax", normalise=True),
            Dispatch(x, route, dealt),
            ExpertLinear(dealt, route, f"{at}.w.gate", gate, self.experts),
            ExpertLinear(dealt, route, f"{at}.w.up", up, self.experts),
            GatedAct(gate, up, acted, "silu"),
            ExpertLinear(acted, route, f"{at}.w.down", down, self.experts),
            Combine(down, route, out),
        ]

    def program(self) -> Program:
        """Layer upon layer."""
        ops: list[Op] = [Embed("table", "x0")]
        widths = {"x0": WIDTH}
        for at in range(LAYERS):
            ops += self.layer(at, f"x{at}", f"x{at + 1}")
            widths |= {f"{at}.{part}": HIDDEN for part in ("gate", "up", "acted")}
            widths |= {f"{at}.dealt": WIDTH, f"{at}.down": WIDTH, f"x{at + 1}": WIDTH}
            widths |= {f"{at}.scores": self.experts, f"{at}.route": 2 * self.used}
        return _ended(ops, widths, LAYERS)


def plain(layers: int, hidden: int) -> Program:
    """The same without experts."""
    ops: list[Op] = [Embed("table", "x0")]
    widths = {"x0": WIDTH}
    for at in range(layers):
        gate, up, acted = f"{at}.gate", f"{at}.up", f"{at}.acted"
        ops += [Linear(f"x{at}", f"{at}.w.gate", gate), Linear(f"x{at}", f"{at}.w.up", up)]
        ops += [GatedAct(gate, up, acted, "silu"), Linear(acted, f"{at}.w.down", f"x{at + 1}")]
        widths |= {gate: hidden, up: hidden, acted: hidden, f"x{at + 1}": WIDTH}
    return _ended(ops, widths, layers)


def _ended(ops: list[Op], widths: dict[str, int], layers: int) -> Program:
    ops += [TakeRows(f"x{layers}", "asked"), Linear("asked", "head", "logits")]
    return Program(tuple(ops), widths | {"asked": WIDTH, "logits": VOCABULARY}, (), "logits", VOCABULARY)


def weights_of(program: Program, format_name: str, rng: np.random.Generator) -> dict[str, Weight]:
    """Matrices of sixteen different rows; the table, the head and routers are floats."""
    search, found = CompiledSearch(), {}
    for name, (rows, columns) in weight_shapes(program).items():
        format = FORMATS[format_name if ".w." in name else "f32"]
        few = (rng.standard_normal((16 if ".w." in name else rows, columns)) * columns**-0.5).astype(np.float32)
        data = encode_rows(format, few, None, search) if format.encoder else format.encode(few)
        found[name] = Weight(name, format, (rows, columns), np.tile(data, (-(-rows // len(data)), 1))[:rows])
    return found


class Timed:
    """A program that is run with some ids, and the median of its seconds."""

    def __init__(self, program: Program, format_name: str, tokens: int, threads: int | None) -> None:
        weights = weights_of(program, format_name, np.random.default_rng(0))
        self._executable = executable.build(program, weights, n_pages=1, max_tokens=tokens, threads=threads)
        self._logits = np.empty((1, VOCABULARY), np.float32)
        self.info = self._executable.info()

    def seconds(self, batches: Sequence[StepBatch]) -> float:
        """Of one step; each time another batch."""
        taken = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for batch in batches:
                self._executable.run(batch, self._logits)
            taken.append((time.perf_counter() - start) / len(batches))
        return float(np.median(taken))

    def close(self) -> None:
        """Free the memory."""
        self._executable.close()


def batch_of(ids: Sequence[int]) -> StepBatch:
    """Tokens of which the last is asked for."""
    none = np.zeros(len(ids), np.int32)
    last = np.array([len(ids) - 1], np.int32)
    return StepBatch(np.asarray(ids, np.int32), none, none, none, np.zeros((1, 1), np.int32), none[:1], last)


@dataclass(frozen=True)
class Row:
    """Decoding in GB/s of a mixture and of plain products, the read bandwidth; nanoseconds for a row of a prompt."""

    mixture_gb_s: float
    plain_gb_s: float
    read_gb_s: float
    mixture_row_ns: float
    plain_row_ns: float


def measure(mixture: Mixture) -> Row:
    """Decoding first, then a prompt."""
    tokens = [batch_of([i]) for i in range(STEPS)]
    many, few = mixture.program(), plain(LAYERS * mixture.experts // mixture.used // 4, mixture.used * HIDDEN)
    rates = []
    for program in (many, few):
        timed = Timed(program, mixture.format, 1, mixture.threads)
        rates.append(int(timed.info["packed_bytes"]) / timed.seconds(tokens) / 1e9)
        threads = int(timed.info["threads"])
        timed.close()
    read = read_gb_s(threads)
    ids = np.random.default_rng(1).integers(0, VOCABULARY, PROMPT * mixture.used)
    rows = []
    for program, count in ((many, PROMPT), (plain(LAYERS, HIDDEN), PROMPT * mixture.used)):
        timed = Timed(program, mixture.format, count, mixture.threads)
        rows.append(timed.seconds([batch_of(ids[:count])]) / (LAYERS * PROMPT * mixture.used) * 1e9)
        timed.close()
    return Row(*rates, read, *rows)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.experts", description=__doc__.splitlines()[0])
    parser.add_argument("--experts", type=int, default=64, help="experts of a layer (default: 64)")
    parser.add_argument("--used", type=int, default=8, help="experts of a token (default: 8)")
    parser.add_argument("--format", default="q4_k", help="block format of their matrices (default: q4_k)")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: physical cores)")
    parser.add_argument("--json", action="store_true", help="a JSON object")
    args = parser.parse_args()
    row = measure(Mixture(args.experts, args.used, args.format, args.threads))
    if args.json:
        print(json.dumps(asdict(row)))
        return
    print(f"one token: {row.mixture_gb_s:.1f} GB/s, plain products {row.plain_gb_s:.1f}, reading {row.read_gb_s:.1f}")
    print(f"{PROMPT} tokens: {row.mixture_row_ns:.0f} ns a row, plain products {row.plain_row_ns:.0f}")


if __name__ == "__main__":
    main()
