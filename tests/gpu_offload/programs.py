"""Whole models on a device."""

from __future__ import annotations

import numpy as np

from halfbyte.gpu_offload import executable
from halfbyte.model.backend import Stage
from tests.cpu_kernels.programs import LENGTH, N_PAGES

MOST_SEQS = 16


def build(device, model, *, kv=None, max_tokens=LENGTH):
    """All of a model on a device, as one stage."""
    runner = executable.build(
        model.program,
        [Stage(0, len(model.program.ops))],
        model.weights,
        device=device,
        n_pages=N_PAGES,
        max_tokens=max_tokens,
        max_seqs=MOST_SEQS,
        context=16 * N_PAGES,
        kv=kv,
    )
    poison(runner)
    return runner


def poison(runner):
    """Fill every page with bytes that are NaN however they are read."""
    page = np.full(runner.page_bytes, 255, np.uint8)
    for number in range(runner.n_pages):
        runner.write_page(number, page)
