import numpy as np
import pytest

from halfbyte.quant.bits import even_flips, flips, pack, unpack
from halfbyte.quant.k_scales import k_scales


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("run", [1, 4, 16, 32])
def test_unpack_takes_fields_run_by_run_and_pack_puts_them_back(width, run, rng):
    data = rng.integers(0, 256, (5, 64), dtype=np.uint8)
    fields = unpack(data, width, run)
    expected = [
        [
            int(row[start + i]) >> shift & (1 << width) - 1
            for start in range(0, 64, run)
            for shift in range(0, 8, width)
            for i in range(run)
        ]
        for row in data
    ]
    assert fields.tolist() == expected
    assert np.array_equal(pack(fields, width, run), data)


def test_flips_are_minus_one_for_set_bits_lowest_first():
    assert flips(np.uint8([[0b00000101, 0]])).tolist() == [[-1, 1, -1, 1, 1, 1, 1, 1] + [1] * 8]


def test_eighth_sign_makes_the_number_of_flips_even():
    signs = even_flips(np.arange(128, dtype=np.uint8)[:, None])
    assert (np.prod(signs, axis=1) == 1).all()
    assert np.array_equal(signs[:, :7], flips(np.arange(128, dtype=np.uint8)[:, None])[:, :7])


def test_k_scales_gather_six_bits_from_two_places():
    for i in range(8):
        packed = np.zeros((1, 12), dtype=np.uint8)
        packed[0, i] = 63
        low = np.concatenate(k_scales(packed), axis=1)[0]
        assert low[i if i < 4 else i + 4] == 63
        assert low.sum() == 63
        packed[0, i] = 0b11000000
        high = np.concatenate(k_scales(packed), axis=1)[0]
        assert high[i + 4 if i < 4 else i + 8] == 48
        assert high.sum() == 48
