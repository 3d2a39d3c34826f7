"""The largest of each 16 logits."""

import numpy as np
import pytest

from halfbyte.formats import open_gguf
from halfbyte.model import bind
from tests.cpu_kernels.programs import IDS, PAGE_LEN, VOCAB
from tests.gpu_offload.arrays import download, run, upload
from tests.gpu_offload.programs import build
from tests.model.batches import step
from tests.model.tiny import tiny_model

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


def test_a_step_leaves_the_peaks_of_its_logits(device, tmp_path):
    """Of few tokens, of many, of both in one step, and of none."""
    runner = build(device, bind(open_gguf(tiny_model(tmp_path, weights="q8_0", n_layers=1))))
    few, many = (IDS[:3], 0, [0]), (IDS[:50], 0, [1, 2, 3, 4])
    for sequences, rows in (([few], None), ([many], [3, 49]), ([many, few], [0, 51, 7]), ([few], [])):
        batch = step(sequences, PAGE_LEN, rows)
        logits = np.empty((len(batch.logit_rows), VOCAB), np.float32)
        runner.run(batch, logits)
        peaks = runner.peaks
        assert peaks.shape == (len(logits), 32)
        assert peaks.flags.c_contiguous
        whole = np.pad(logits, ((0, 0), (0, 4)), constant_values=-np.inf).reshape(len(logits), 19, 16)
        assert np.array_equal(peaks[:, :19], whole.max(axis=2))
    runner.close()
