"""How much memory a page of tokens is counted for."""

import pytest

from halfbyte.model.program import Embed, KvLayer, Program
from halfbyte.runtime.backends import PAGE_LEN, Job
from halfbyte.runtime.config import LoadConfig

LAYERS = (KvLayer(2, 64, 32), KvLayer(1, 0, 96, 3, exact=True))


@pytest.mark.parametrize(
    ("kv", "n_bytes"),
    [
        ("f16", 2 * 192 + 192),
        ("f32", 2 * 384 + 384),
        ("q8_0", 2 * (96 + 6) + 192),
        ("q4_0/q8_0", 2 * (32 + 4 + 32 + 2) + 192),
    ],
)
def test_what_filters_look_back_at_counts_as_halves(kv, n_bytes):
    program = Program((Embed("table", "x"),), {"x": 96}, LAYERS, "x", 10)
    assert Job(program, {}, LoadConfig(kv=kv), None).page_bytes == PAGE_LEN * n_bytes
