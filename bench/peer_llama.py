"""Prefill and decode times of llama.cpp, through llama-cpp-python. Run by `bench.peers` in a process of its own.

Only calls to `llama_decode` are timed, so neither Python nor sampling counts against it. Needs no halfbyte.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any

import llama_cpp


def open_context(job: dict[str, Any]) -> tuple[Any, Any]:
    """Model and context: f16 KV, whole batch at once, flash attention as llama.cpp decides."""
    llama_cpp.llama_log_set(SILENT, None)
    llama_cpp.llama_backend_init()
    model_params = llama_cpp.llama_model_default_params()
    model_params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(job["model"].encode(), model_params)
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = job["prompt"] + job["decode"]
    params.n_batch = params.n_ubatch = job["prompt"]
    params.n_threads = params.n_threads_batch = job["threads"]
    return model, llama_cpp.llama_init_from_model(model, params)


@llama_cpp.llama_log_callback
def SILENT(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    """Keep llama.cpp's log out of the figures."""


def decode(context: Any, batch: Any, ids: list[int], position: int) -> float:
    """Seconds that one `llama_decode` of `ids` takes, logits of the last one included."""
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i] = token, position + i
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
        batch.logits[i] = i == len(ids) - 1
    start = time.perf_counter()
    status = llama_cpp.llama_decode(context, batch)
    llama_cpp.llama_synchronize(context)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"llama_decode returned {status}")
    return seconds


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Tokens a second, one figure a repeat; the first round is for warming up and is dropped."""
    model, context = open_context(job)
    memory = llama_cpp.llama_get_memory(context)
    batch = llama_cpp.llama_batch_init(job["prompt"], 0, 1)
    ids = job["ids"]
    prefill, decoded = [], []
    for _ in range(job["repeats"] + 1):
        llama_cpp.llama_memory_clear(memory, True)
        prefill.append(job["prompt"] / decode(context, batch, ids[: job["prompt"]], 0))
        llama_cpp.llama_memory_clear(memory, True)
        decode(context, batch, ids[:1], 0)
        steps = [decode(context, batch, [ids[i]], i) for i in range(1, job["decode"] + 1)]
        decoded.append(job["decode"] / sum(steps))
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    version = f"llama-cpp-python {llama_cpp.__version__}"
    return {"engine": version, "prefill_tok_s": prefill[1:], "decode_tok_s": decoded[1:]}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
