"""How fast is a model on a GPU? `python -m bench.gpu MODEL [--row NAME ...] [--json]`

Rows: decode (answers after 1,024 tokens, 1 to 16 at once, beside the memory's read rate), prompt (2,048 tokens, beside
the rate of large products of halves), half (half of the layers, beside the CPU alone and the GPU alone), start (a
process that loads a model, beside one that loads it for the CPU). Ceilings are measured on the same card in the same
run; rates count the bytes of packed weights and of keys and values, and the operations of matrices and attention.
`bench.big_model` makes a model of a real one's shape.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halfbyte
from bench.engine import together
from bench.subject import tokens
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.program import Attention, Linear

Figures = dict[str, Any]
BEFORE, ANSWER, PROMPT, CONTEXT = 1024, 96, 2048, 4096
BATCHES = (1, 2, 4, 8, 16)
READER = r"""
extern "C" __global__ void read_all(const uint4 *from, long long n, unsigned *out) {
    unsigned sum = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i + 3 * step < n; i += 4 * step) {
        const uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
        sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
    if (sum == 1) *out = sum;
}
"""


def ceilings() -> Figures:
    """Bytes a second that a kernel reads, and operations a second of a product of halves."""
    import cupy as cp
    from cupyx.profiler import benchmark

    memory = cp.random.randint(0, 1 << 31, 1 << 30, dtype=cp.int32)
    read, out = cp.RawKernel(READER, "read_all"), cp.zeros(1, cp.uint32)
    count = cp.cuda.Device().attributes["MultiProcessorCount"]
    timed = benchmark(read, ((16 * count,), (256,), (memory, memory.nbytes // 16, out)), n_repeat=20)
    read_bytes = memory.nbytes / statistics.median(timed.gpu_times[0])
    del memory
    a, b = (cp.random.standard_normal((8192, 8192), dtype=cp.float32).astype(cp.float16) for _ in range(2))
    product = benchmark(cp.matmul, (a, b), n_repeat=10)
    rate = 2 * 8192**3 / statistics.median(product.gpu_times[0])
    del a, b
    cp.get_default_memory_pool().free_all_blocks()
    return {"read_tb_s": read_bytes / 1e12, "halves_tflop_s": rate / 1e12}


def sizes(path: Path) -> Figures:
    """Of a token: bytes that its matrices are in the file, operations on them, and bytes and operations a position."""
    with open_gguf(path) as file:
        bound = bind(file)
        products = [bound.weights[op.weight] for op in bound.program.ops if isinstance(op, Linear)]
        seen = [op for op in bound.program.ops if isinstance(op, Attention)]
        return {
            "weight_bytes": sum(weight.data.nbytes for weight in products),
            "operations": 2 * sum(weight.shape[0] * weight.shape[1] for weight in products[:-1]),
            "kv_bytes": sum(2 * op.kv_heads * (op.key_size + op.value_size) for op in seen),
            "kv_operations": sum(2 * op.heads * (op.key_size + op.value_size) for op in seen),
        }


def load(path: Path, **options: Any) -> halfbyte.LLM:
    """Without an end before an answer has the length asked for, and without drafts, whose use depends on the text."""
    llm = halfbyte.load(path, context=CONTEXT, prefix_cache=False, speculation="off", **options)
    llm._engine._eog_ids = frozenset()
    return llm


def decode_s(llm: halfbyte.LLM, n: int, before: int = BEFORE, answer: int = ANSWER) -> float:
    """Seconds a step of `n` answers that go on together."""
    prompts = [tokens(before, seed) for seed in range(n)]
    rates = [together(llm.generate(prompts, max_tokens=answer)) for _ in range(3)]
    return n / statistics.median(rates)


def decode(path: Path) -> Figures:
    """Answers side by side."""
    size, top = sizes(path), ceilings()
    found: Figures = dict(top)
    with load(path, gpu_layers="all", kv_memory="6GB") as llm:
        for n in BATCHES:
            step = decode_s(llm, n)
            read = size["weight_bytes"] + n * size["kv_bytes"] * (BEFORE + ANSWER / 2)
            found[f"ms_{n}"], found[f"tok_s_{n}"] = 1e3 * step, n / step
            found[f"of_read_{n}"] = read / step / 1e12 / top["read_tb_s"]
    found["ratio_16"] = found["tok_s_16"] / found["tok_s_1"]
    return found


def prompt(path: Path) -> Figures:
    """A long prompt."""
    size, top = sizes(path), ceilings()
    with load(path, gpu_layers="all") as llm:
        waits = [llm.generate(tokens(PROMPT, seed), max_tokens=1).timings.first_token_s for seed in range(7)]
    wait = statistics.median(waits)
    operations = PROMPT * size["operations"] + PROMPT**2 / 2 * size["kv_operations"]
    rate = operations / wait / 1e12
    return {**top, "ms": 1e3 * wait, "tok_s": PROMPT / wait, "tflop_s": rate, "of_halves": rate / top["halves_tflop_s"]}


def half(path: Path) -> Figures:
    """Half of the layers on the GPU: beside half of the CPU's time and half of the GPU's."""
    layers = len(load_layers(path))
    times = {}
    for name, wish in (("cpu", 0), ("gpu", "all"), ("half", layers // 2)):
        with load(path, gpu_layers=wish) as llm:
            times[name] = decode_s(llm, 1, 64, 33)
    expected = (times["cpu"] + times["gpu"]) / 2
    return {f"{name}_ms": 1e3 * t for name, t in times.items()} | {"ratio_to_halves": times["half"] / expected}


def load_layers(path: Path) -> tuple[Any, ...]:
    """The model's layers."""
    with open_gguf(path) as file:
        return bind(file).spec.layers


def start(path: Path) -> Figures:
    """A new process that loads and answers one token, kernels cached."""
    code = (
        "import sys, time; t = time.perf_counter(); import halfbyte\n"
        "llm = halfbyte.load(sys.argv[1], context=4096, gpu_layers=int(sys.argv[2]) or 0)\n"
        "llm.generate('a', max_tokens=1); print(time.perf_counter() - t); llm.close()"
    )
    found = {}
    for name, layers in (("cpu", 0), ("gpu", 10_000)):
        runs = [
            float(
                subprocess.run([sys.executable, "-c", code, path, str(layers)], capture_output=True, check=True).stdout
            )
            for _ in range(4)
        ]
        found[f"{name}_s"] = statistics.median(runs[1:])  # the first one compiles
    return found | {"more_s": found["gpu_s"] - found["cpu_s"]}


ROWS: dict[str, Callable[[Path], Figures]] = {"decode": decode, "prompt": prompt, "half": half, "start": start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--row", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    print(datetime.date.today().isoformat(), card())
    for name in args.row:
        started = time.perf_counter()
        figures = ROWS[name](args.model)
        text = json.dumps(figures) if args.json else ", ".join(f"{k} {v:.4g}" for k, v in figures.items())
        print(f"{name} ({time.perf_counter() - started:.0f} s): {text}", flush=True)


def card() -> str:
    """Name and driver of the card."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()
