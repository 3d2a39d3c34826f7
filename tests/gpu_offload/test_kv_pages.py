"""Pages on the device: their size, and copies of whole pages."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.gpu_offload.kv_layout import head_bytes, kv_layout
from halfbyte.gpu_offload.kv_pages import KvPages
from halfbyte.model.kv_types import KV_TYPES, KvTypes
from halfbyte.model.program import KvLayer

LAYERS = (KvLayer(2, 64, 64), KvLayer(1, 0, 40, 3, exact=True), KvLayer(3, 20, 12))


@pytest.mark.parametrize("keys", KV_TYPES)
@pytest.mark.parametrize("values", KV_TYPES)
def test_parts_follow_each_other_aligned(keys, values):
    layout = kv_layout(LAYERS, KvTypes(keys, values))
    at = 0
    for layer, place in zip(LAYERS, layout.places, strict=True):
        assert place.keys == at
        at += layer.kv_heads * head_bytes(place.types.keys, layer.key_size)
        assert place.values == at
        at += layer.kv_heads * head_bytes(place.types.values, layer.value_size)
        assert place.keys % 16 == place.values % 16 == 0
    assert layout.page_bytes == at
    assert layout.places[1].types.values in ("f16", "f32")


def test_halves_take_what_they_take():
    assert kv_layout((KvLayer(8, 128, 128),), KvTypes()).page_bytes == 16 * 8 * 256 * 2


def test_pages_are_copied_whole(device):
    pages = KvPages(device, LAYERS, 4, KvTypes("q8_0", "f16"))
    assert pages.n_bytes == 4 * pages.page_bytes
    rng = np.random.default_rng(1)
    written = rng.integers(0, 256, (4, pages.page_bytes), np.uint8)
    for page, content in enumerate(written):
        pages.write(page, content)
    pages.copy(1, 3)
    found = np.empty_like(written)
    for page in range(4):
        pages.read(page, found[page])
    np.testing.assert_array_equal(found, written[[0, 1, 2, 1]])
