"""A short filter over what the last tokens left in the pages, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import KvLayer, KvWrite, ShortConv
from tests.gpu_offload.attention_cases import tokens
from tests.gpu_offload.kv_stage import Stage, random_values

WIDTHS = {"v": 300, "o": 300}


@pytest.mark.parametrize("prompt", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("taps", [2, 3, 5])
@pytest.mark.parametrize("kind", ["f16", "f32", "q4_0"])
def test_as_the_reference(device, taps, prompt, kind):
    rng = np.random.default_rng(2)
    ops = [KvWrite(None, "v", 0), ShortConv("w", "o", 0, taps)]
    layer = KvLayer(1, 0, 300, taps, exact=True)
    weights = {"w": rng.standard_normal((300, taps))}
    stage = Stage(device, ops, WIDTHS, [layer], types=KvTypes(kind, kind), weights=weights)
    for starts in ({0: (0, 15), 2: (0, 3)}, {0: (15, 4), 1: (0, 2), 2: (3, 1)}):
        batch = tokens(starts)
        values = random_values(rng, batch, {"v": 300})
        found = stage.run(batch, values, prompt=prompt, bucket=20)["o"]
        np.testing.assert_allclose(found, stage.expected(batch, values)["o"], rtol=1e-6, atol=1e-6)
