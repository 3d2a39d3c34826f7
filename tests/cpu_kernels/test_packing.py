import numpy as np
import pytest

from halfbyte.cpu_kernels.packed import FAMILY_OF, PACKED
from halfbyte.quant import FORMATS
from tests.cpu_kernels.products import Product, random_weight
from tests.cpu_kernels.unpack import UNPACK, unpacked

FLOATS = ("f32", "f16", "bf16")


def packed_values(weight, threads=1):
    """The family that a weight went to, and f32[whole tiles of rows, columns] read back from its packed bytes."""
    product = Product(weight, np.zeros((1, weight.shape[1])), threads=threads)
    try:
        packed, arena = product.executable._packed["w"], product.executable._weight_arena
        layout = PACKED[packed.family]
        shape = (-(-packed.rows // 16), packed.columns // layout.columns, layout.step_bytes)
        return packed, unpacked(packed.family, arena.view(packed.address, shape, np.uint8))
    finally:
        product.close()


def same_numbers(a, b):
    """Bit for bit, save that an offset of +0 makes -0 and +0 one."""
    return np.array_equal(a, b) and not np.isnan(a).any()


@pytest.mark.parametrize("name", list(FORMATS))
def test_packed_weights_are_the_files_to_the_bit(name):
    weight = random_weight(name, 50, 512)
    packed, values = packed_values(weight)
    assert same_numbers(values[:50], weight.decode())
    assert not values[50:].any()
    assert packed.family == FAMILY_OF.get(name, "f32")


@pytest.mark.parametrize("name", ["q4_k", "iq2_xs", "f16", "f64"])
def test_two_threads_pack_the_same(name):
    weight = random_weight(name, 200, 512)
    assert same_numbers(packed_values(weight, threads=2)[1][:200], weight.decode())


@pytest.mark.parametrize("columns", [48, 20, 1])
def test_rows_that_do_not_divide_into_groups_are_kept_as_floats(columns):
    weight = random_weight("i8", 50, columns)
    packed, values = packed_values(weight)
    assert packed.family == "f32"
    assert same_numbers(values[:50], weight.decode())


def test_every_family_can_be_read_back_here():
    assert set(UNPACK) == set(PACKED)


# Products need every weight's code by itself; these formats store several as one place in a grid, or five in a byte.
UNPACKED_BITS = {
    "iq3_s": 4.3125,
    "iq3_xxs": 4.3125,
    "iq2_xxs": 3.3125,
    "iq2_xs": 3.3125,
    "iq2_s": 3.3125,
    "iq1_m": 3.3125,
    "iq1_s": 2.3125,
    "tq1_0": 2.0625,
    "q3_k": 3.5625,
}


@pytest.mark.parametrize("name", FAMILY_OF)
def test_packed_bits_exceed_the_files_by_three_percent_at_most_or_as_written_down(name):
    family = PACKED[FAMILY_OF[name]]
    bits, in_file = 8 * family.step_bytes / (16 * family.columns), FORMATS[name].bits_per_weight
    assert bits == UNPACKED_BITS[name] if name in UNPACKED_BITS else in_file <= bits <= 1.03 * in_file
