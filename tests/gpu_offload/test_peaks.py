"""The largest of each 16 logits."""

import numpy as np
import pytest

from tests.gpu_offload.arrays import download, run, upload

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("vocab", [1, 15, 16, 300, 1111])
def test_peaks_are_of_numbers_alone(device, vocab):
    rows, stride, peak_stride = 3, -(-vocab // 64) * 64, -(-vocab // 256) * 16
    logits = np.full((rows, stride), np.inf, np.float32)
    logits[:, :vocab] = RNG.standard_normal((rows, vocab))
    logits[:, RNG.integers(0, vocab, 5)] = np.nan
    logits[1, :16] = np.nan
    peaks = device.allocate(4 * rows * peak_stride)
    arguments = upload(device, logits), stride, vocab, upload(device, np.array([2], np.int32)), peaks, peak_stride
    run(device, "logit_peaks", (rows, -(-vocab // 1024)), 256, *arguments)
    found, tiles = download(device, peaks, np.float32, (rows, peak_stride)), -(-vocab // 16)
    for row in range(2):
        for tile in range(tiles):
            numbers = logits[row, 16 * tile : min(16 * tile + 16, vocab)]
            assert found[row, tile] == np.fmax.reduce(numbers, initial=-np.inf)
    assert np.isnan(found[2]).all()
    assert np.isnan(found[:, tiles:]).all()
