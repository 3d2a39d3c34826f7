"""Prefill and decode times of halfbyte. Run by `bench.peers` in a process of its own.

What a caller of `generate` sees is timed: scheduling, sampling and text included.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import halfbyte

PROMPT_START = 4  # shorter than a page, so that no repeat finds its prompt in the prefix cache


def lasting_start(llm: Any, job: dict[str, Any]) -> list[int]:
    """A short prompt whose greedy continuation does not end before the asked-for length."""
    for i in range(0, len(job["ids"]) - PROMPT_START, PROMPT_START):
        start = job["ids"][i : i + PROMPT_START]
        if llm.generate(start, max_tokens=job["decode"] + 1).finish_reason == "length":
            return list(start)
    raise SystemExit("no start was found that decodes to the asked-for length")


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Tokens a second, one figure a repeat; the first round is for warming up and is dropped."""
    prompt, decode = job["prompt"], job["decode"]
    context = prompt + decode + PROMPT_START + 1
    prefill, decoded = [], []
    options = {"context": context, "threads": job["threads"], "max_num_batched_tokens": prompt, "speculation": "off"}
    with halfbyte.load(job["model"], **options) as llm:
        start = lasting_start(llm, job)
        for i in range(job["repeats"] + 1):
            # Another first token each time: the prefix cache must not answer.
            ids = [job["ids"][i], *job["ids"][1:prompt]]
            prefill.append(llm.generate(ids, max_tokens=1).timings.prefill_tok_s)
            decoded.append(llm.generate(start, max_tokens=decode + 1).timings.decode_tok_s)
    version = f"halfbyte {halfbyte.__version__}"
    return {"engine": version, "prefill_tok_s": prefill[1:], "decode_tok_s": decoded[1:]}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
