"""Activations become 16-bit integers in groups of 32: what that loses, and what it must survive."""

import numpy as np
import pytest

from tests.cpu_kernels.products import LARGEST, Product, expected, random_weight, rounded


def products_of(x, name):
    weight = random_weight(name, 64, x.shape[1])
    product = Product(weight, x)
    result = product(range(len(x))).astype(np.float64)
    product.close()
    return weight, result


def test_a_step_is_the_groups_largest_magnitude_over_32512(rng):
    x = rng.standard_normal((20, 256)).astype(np.float32)
    peak = np.abs(x.reshape(20, 8, 32)).max(axis=2).repeat(32, axis=1)
    assert (np.abs(rounded(x) - x) <= 0.51 * peak / LARGEST).all()
    assert LARGEST == 32512


@pytest.mark.parametrize("name", ["q4_1", "q8_0", "q6_k", "q2_k"])
def test_a_group_of_one_number_is_exact(name):
    """Every column alone, at both signs: its weights come out, each product and sum rounded."""
    x = np.concatenate([np.eye(32, 256), -2 * np.eye(32, 256, 224)]).astype(np.float32)
    weight, result = products_of(x, name)
    assert np.abs(result - x.astype(np.float64) @ weight.decode().T.astype(np.float64)).max() < 3e-5


@pytest.mark.parametrize("name", ["q4_0", "q4_1", "q8_0", "q6_k", "f16"])
def test_zeros_give_zeros(name):
    assert not products_of(np.zeros((17, 256), np.float32), name)[1].any()


@pytest.mark.parametrize("size", [1e-45, 1e-40, 1e-36, 1e-30, 1e-20, 1e20, 1e30])
@pytest.mark.parametrize("name", ["q4_1", "q8_0", "q6_k"])
def test_numbers_of_any_size(name, size, rng):
    x = (rng.uniform(-1, 1, (17, 256)) * size).astype(np.float32)
    x[:, :32] = rng.uniform(-1, 1, (17, 32))  # next to a group of usual size
    weight, result = products_of(x, name)
    exact = x.astype(np.float64) @ weight.decode().astype(np.float64).T
    assert np.linalg.norm(result - exact) <= 1e-4 * np.linalg.norm(exact)


def test_numbers_within_a_group_keep_their_ratio(rng):
    """One number a thousand times the others: they still count."""
    x = rng.uniform(-1, 1, (5, 256)).astype(np.float32)
    x[:, ::32] = 1000
    weight, result = products_of(x, "q4_1")
    assert np.linalg.norm(result - expected(weight, x)) <= 1e-6 * np.linalg.norm(result)
    assert np.linalg.norm(rounded(x) - x) <= 0.02 * np.linalg.norm(x[x != 1000])
