"""How fast is the product with each block format? `python -m bench.kernels [FORMAT ...] [--isa ISA] [--threads N]`

One token: packed bytes read a second from a stream of 4096-column weights larger than the cache, beside the read
bandwidth measured between the formats. Many tokens: multiply-adds a second. Weights are encoded normal numbers: of
random bytes some formats make subnormal products, which processors are slow at.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from halfbyte.cpu_kernels import executable
from halfbyte.cpu_kernels.bandwidth import read_gb_s
from halfbyte.cpu_kernels.encoding import CompiledSearch
from halfbyte.cpu_kernels.packed import FAMILY_OF, PACKED
from halfbyte.model.backend import Weight
from halfbyte.model.program import Embed, Linear, Program, StepBatch, TakeRows
from halfbyte.quant import FORMATS
from halfbyte.quant.encode_rows import encode_rows

COLUMNS = 4096
STREAM = 192 << 20
"""Bytes of packed weights, several times a large last cache's share."""
MANY = 512
MATRIX_ROWS = 4096
RUNS = 7


def weight_of(name: str, rows: int, rng: np.random.Generator) -> Weight:
    """A matrix of sixteen different rows."""
    values = (rng.standard_normal((16, COLUMNS)) * 0.02).astype(np.float32)
    format = FORMATS[name]
    few = format.encode(values) if format.encoder is None else encode_rows(format, values, None, CompiledSearch())
    return Weight("w", format, (rows, COLUMNS), np.tile(few, (-(-rows // 16), 1))[:rows])


def product(weight: Weight, tokens: int, isa: str | None, threads: int | None) -> executable.CpuExecutable:
    """An executable that does nothing but multiply the embedding's rows by a matrix."""
    rows = weight.shape[0]
    ops = (Embed("table", "x"), TakeRows("x", "asked"), Linear("asked", "w", "y"))
    program = Program(ops, {"x": COLUMNS, "asked": COLUMNS, "y": rows}, (), "y", rows)
    values = np.random.default_rng(1).standard_normal((tokens, COLUMNS)).astype(np.float32)
    table = Weight("table", FORMATS["f32"], values.shape, values.view(np.uint8))
    weights = {"table": table, "w": weight}
    return executable.build(program, weights, n_pages=1, max_tokens=tokens, threads=threads, isa=isa)


def batch_of(tokens: int) -> StepBatch:
    """Tokens 0 to `tokens - 1`, all asked for."""
    ids, none = np.arange(tokens, dtype=np.int32), np.zeros(tokens, np.int32)
    return StepBatch(ids, none, none, none, np.zeros((1, 1), np.int32), none[:1], ids)


def seconds(work: Callable[[], object]) -> float:
    """Median of several runs after one to warm up."""
    work()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def gigabytes(name: str, isa: str | None, threads: int | None, rng: np.random.Generator) -> tuple[float, int]:
    """Packed GB/s with one token, and the number of threads."""
    family = PACKED[FAMILY_OF[name]]
    rows = STREAM // family.tile_bytes(COLUMNS) * 16
    made = product(weight_of(name, rows, rng), 1, isa, threads)
    out, batch = np.empty((1, rows), np.float32), batch_of(1)
    taken = seconds(lambda: made.run(batch, out))
    info = made.info()
    made.close()
    return int(info["packed_bytes"]) / taken / 1e9, int(info["threads"])


def gigamacs(name: str, isa: str | None, threads: int | None, rng: np.random.Generator) -> float:
    """Billions of multiply-adds a second with many tokens."""
    made = product(weight_of(name, MATRIX_ROWS, rng), MANY, isa, threads)
    out, batch = np.empty((MANY, MATRIX_ROWS), np.float32), batch_of(MANY)
    taken = seconds(lambda: made.run(batch, out))
    made.close()
    return MATRIX_ROWS * COLUMNS * MANY / taken / 1e9


@dataclass(frozen=True)
class Row:
    """One format: bits a weight in the file and packed, GB/s of packed bytes, read bandwidth, GMAC/s."""

    format: str
    bits_in_file: float
    bits_packed: float
    gb_s: float
    read_gb_s: float
    gmac_s: float

    def line(self) -> str:
        """The row for people."""
        in_file = self.gb_s * self.bits_in_file / self.bits_packed
        return (
            f"{self.format:<8} {self.bits_in_file:>12.5g} {self.bits_packed:>7.5g} {self.gb_s:>6.1f} "
            f"{self.gb_s / self.read_gb_s:>8.0%} {in_file:>10.1f} {self.gmac_s:>7.0f}"
        )


HEAD = f"{'format':<8} {'bits in file':>12} {'packed':>7} {'GB/s':>6} {'of read':>8} {'file GB/s':>10} {'GMAC/s':>7}"


def measure(name: str, isa: str | None, threads: int | None, rng: np.random.Generator) -> Row:
    """Both figures of a format, and the read bandwidth right between them."""
    family = PACKED[FAMILY_OF[name]]
    speed, used = gigabytes(name, isa, threads, rng)
    return Row(
        name,
        FORMATS[name].bits_per_weight,
        8 * family.step_bytes / (16 * family.columns),
        speed,
        read_gb_s(used),
        gigamacs(name, isa, threads, rng),
    )


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="formats (default: all with kernels)")
    parser.add_argument("--isa", default=None, help="instruction set (default: the best this CPU has)")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: physical cores)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    if not args.json:
        print(HEAD)
    for name in args.formats or list(FAMILY_OF):
        row = measure(name, args.isa, args.threads, rng)
        print(json.dumps(asdict(row)) if args.json else row.line(), flush=True)


if __name__ == "__main__":
    main()
