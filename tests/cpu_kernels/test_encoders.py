"""Encoders: near the NumPy reference, and a text has the same bits in any company."""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.programs import IDS, MIXED, N_PAGES, PAGE_LEN, build, distance, poison
from tests.model.batches import run_all, step
from tests.model.tiny import make_tiny_gguf
from tests.model.tiny_traits import ENCODERS

CLOSE = 1e-5
"""Relative L2; nothing is rounded, so nothing tips."""
EXACT = KvTypes("f32", "f32")
LENGTHS = (30, 1, 16, 23)
TEXTS = np.split(IDS, np.cumsum(LENGTHS)[:-1])
PAGES = ([0, 1], [2], [3], [4, 5])


@pytest.fixture(params=ENCODERS)
def model(request, tmp_path):
    def made(**choices):
        return bind(open_gguf(make_tiny_gguf(tmp_path / "model.gguf", request.param, **choices)))

    return made


def states(runner, model, order=(0, 1, 2, 3)):
    """Of each text, all in one step in this order."""
    width = model.program.widths[model.program.logits]
    rows = run_all(runner, [step([(TEXTS[i], 0, PAGES[i]) for i in order], PAGE_LEN)], width)
    parts = np.split(rows, np.cumsum([LENGTHS[i] for i in order])[:-1])
    return dict(zip(order, parts, strict=True))


def test_float_weights(model):
    bound = model()
    runner = build(bound, kv=EXACT, threads=2)
    poison(runner)
    found = states(runner, bound)
    runner.close()
    reference = ReferenceExecutable(bound.program, bound.weights, n_pages=N_PAGES, page_len=PAGE_LEN, kv=EXACT)
    wanted = states(reference, bound)
    assert all(distance(found[i], wanted[i]) < CLOSE for i in wanted)


@pytest.mark.parametrize("choices", [{}, MIXED], ids=["f32", "mixed"])
def test_a_text_has_the_same_bits_in_any_company(model, choices):
    bound = model(**choices)
    found = []
    for threads in (1, 2):
        runner = build(bound, threads=threads)
        poison(runner)
        alone = {i: states(runner, bound, [i])[i] for i in range(len(TEXTS))}
        found += [alone, states(runner, bound), states(runner, bound, [3, 1, 0, 2])]
        runner.close()
    assert all(np.array_equal(each[i], found[0][i]) for each in found for i in found[0])
