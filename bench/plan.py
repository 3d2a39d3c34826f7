"""Does a model take what `halfbyte plan` says? `python -m bench.plan MODEL... [--json]`

Each model is loaded in a process of its own with each setting and reads a prompt that fills its context; the process's
own memory at its highest (mapped pages of the file not counted) stands beside the plan's. The speed of decoding stands
beside the plan's too, for which nothing else may run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import halfbyte
from halfbyte.cli.resident import ResidentPeak
from halfbyte.cpu_kernels.bandwidth import read_gb_s

SETTINGS: list[dict[str, Any]] = [
    {"context": 512},
    {"context": 4096},
    {"context": 8192, "kv": "q8_0"},
    {"context": 2048, "max_num_batched_tokens": 2048},
    {"context": 2048, "max_num_batched_tokens": 32},
]


def measure(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """In this process: the most it took, and tokens a second at the beginning of a text."""
    with ResidentPeak() as peak, halfbyte.load(path, speculation="off", **options) as llm:
        short = llm.generate(list(range(100, 116)), max_tokens=64, temperature=0.0, logit_bias=_no_end(llm))
        ids = [100 + n % 200 for n in range(llm.context - 8)]
        llm.generate(ids, max_tokens=8, temperature=0.8)
        llm.chat([{"role": "user", "content": "Hello"}], max_tokens=8)
    return {"peak": peak.bytes, "tok_s": short.timings.decode_tok_s}


def _no_end(llm: halfbyte.LLM) -> dict[int, float]:
    return dict.fromkeys(llm.tokenizer.eog_ids, float("-inf"))


def beside_each_other(path: Path, options: dict[str, Any], gb_s: float) -> dict[str, Any]:
    """The plan and what came of it."""
    plan = halfbyte.plan(path, **options)
    words = [sys.executable, "-m", "bench.plan", str(path), "--once", json.dumps(options)]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {
        "model": path.name,
        **options,
        "planned_mb": plan.total / 1e6,
        "measured_mb": found["peak"] / 1e6,
        "off_percent": 100 * (plan.total / found["peak"] - 1),
        "planned_tok_s": plan.tokens_per_second(gb_s, 64),
        "measured_tok_s": found["tok_s"],
    }


def main() -> None:
    """Prints a line a model and setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(json.dumps(measure(str(given.models[0]), json.loads(given.once))))
        return
    gb_s, rows = read_gb_s(), []
    for path in given.models:
        for options in SETTINGS:
            rows.append(beside_each_other(path, options, gb_s))
            if not given.json:
                print(", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[-1].items()))
    if given.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
