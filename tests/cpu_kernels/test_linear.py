"""Matrix products on every instruction set this machine can run."""

import numpy as np
import pytest

from halfbyte.cpu_kernels.instruction import FEW
from halfbyte.quant import FORMATS
from tests.cpu_kernels.kernel_sets import DETECTED, ISAS_HERE, families_on
from tests.cpu_kernels.products import COLUMNS, ROWS, TOKENS, Product, expected, random_weight

# Relative L2 error against float64 on the same rounded activations. Measured: 1.7e-7 to 2.4e-7, and 6.5e-7 where 1280
# float32 products are added one by one.
BUDGET = dict.fromkeys(("f16", "bf16", "f32"), 3e-6)
QUANTIZED = 1.2e-6
FORMAT_OF = {"iq2": "iq2_xs"}
CASES = [(isa_name, family) for isa_name in ISAS_HERE for family in families_on(isa_name)]


class Case:
    """One family on one instruction set, with one thread and with two."""

    def __init__(self, isa_name, family):
        self.family = family
        rng = np.random.default_rng(3)
        self.weight = random_weight(FORMAT_OF.get(family, family), ROWS, COLUMNS)
        self.x = rng.standard_normal((TOKENS, COLUMNS)).astype(np.float32)
        self.product = Product(self.weight, self.x, isa_name=isa_name)
        self.by_two = Product(self.weight, self.x, isa_name=isa_name, threads=2)
        self.whole = self.product(range(TOKENS)).copy()


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request):
    made = Case(*request.param)
    assert made.product.executable.info()["kernels"] == made.family
    yield made
    made.product.close()
    made.by_two.close()


def distance(a, b):
    return np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b)


def test_products_are_within_budget_of_double_precision(case):
    assert distance(case.whole, expected(case.weight, case.x)) < BUDGET.get(case.family, QUANTIZED)


def test_any_number_of_tokens_gives_the_same_bits(case):
    for count in range(1, TOKENS):
        start = count * 5 % (TOKENS - count + 1)
        assert np.array_equal(case.product(range(start, start + count)), case.whole[start : start + count])


def test_the_same_token_gives_the_same_bits_in_every_place(case):
    assert (case.product([9] * TOKENS) == case.whole[9]).all()


@pytest.mark.parametrize("count", [1, 2, 7, TOKENS])
def test_two_threads_give_the_same_bits(case, count):
    assert np.array_equal(case.by_two(range(count)), case.whole[:count])


@pytest.mark.parametrize("family", ["q4_1", "q6_k"])
@pytest.mark.parametrize("count", [FEW + 1, FEW + 15])
def test_more_tokens_than_are_few_give_the_same_bits(family, count, rng):
    """Of weights unpacked many groups at a time, some tokens still take a few at a time."""
    x = rng.standard_normal((count, COLUMNS)).astype(np.float32)
    product = Product(random_weight(family, 90, COLUMNS), x)
    whole = product(range(count)).copy()
    for token in (0, FEW, count - 1):
        assert np.array_equal(product([token])[0], whole[token])
    assert np.array_equal(product(range(FEW, count)), whole[FEW:])
    product.close()


@pytest.mark.parametrize("family", families_on("other"))
def test_instruction_sets_agree_to_rounding(family, rng):
    x = rng.standard_normal((TOKENS, COLUMNS)).astype(np.float32)
    weight = random_weight(FORMAT_OF.get(family, family), ROWS, COLUMNS)
    first, *others = (one_product(weight, x, isa_name=name) for name in ISAS_HERE if family in families_on(name))
    for other in others:  # today they are equal to the bit
        assert distance(other, first) < BUDGET.get(family, QUANTIZED)


def one_product(weight, x, **options):
    product = Product(weight, x, **options)
    result = product(range(len(x))).copy()
    product.close()
    return result


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 31, 48])
@pytest.mark.parametrize("name", ["q4_0", "q4_k", "q8_0", "f16"])
def test_any_number_of_rows(name, rows, rng):
    x = rng.standard_normal((rows, 256)).astype(np.float32)
    weight = random_weight(name, rows, 256)
    assert distance(one_product(weight, x), expected(weight, x)) < BUDGET.get(name, QUANTIZED)


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in families_on(DETECTED)])
def test_a_format_without_kernels_of_its_own_goes_through_another_or_floats(name, rng):
    x = rng.standard_normal((5, 256)).astype(np.float32)
    weight = random_weight(name, 40, 256)
    assert distance(one_product(weight, x), expected(weight, x)) < BUDGET["f32"]


@pytest.mark.parametrize("name", ["q4_1", "q6_k", "f32"])
def test_bias_and_the_sum_behind_are_added_in_float32(name, rng):
    x = rng.standard_normal((TOKENS, 256)).astype(np.float32)
    weight, other = random_weight(name, 77, 256), random_weight(name, 77, 256, seed=1)
    bias = rng.standard_normal(77).astype(np.float32)
    plain, summand = one_product(weight, x), one_product(other, x)
    assert np.array_equal(one_product(weight, x, bias=bias), plain + bias)
    assert np.array_equal(one_product(weight, x, bias=bias, other=other), (plain + bias) + summand)
    assert np.array_equal(one_product(weight, x, bias=bias, other=other, threads=2), (plain + bias) + summand)
