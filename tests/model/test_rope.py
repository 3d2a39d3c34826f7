"""Frequencies from metadata: plain, linear, by factors, and YaRN."""

import math

import numpy as np
import pytest

from halfbyte.errors import FormatError
from halfbyte.formats import Typed


def table(bound, arch="llama", **choices):
    return bound(arch, **choices).spec.layers[-1].rope


def test_kind_and_base(bound):
    plain = table(bound)
    assert plain.kind == "norm"
    assert plain.magnitude == 1
    assert plain.inv_freq == pytest.approx([10000 ** (-i / 8) for i in range(8)], rel=1e-12)
    assert table(bound, "qwen2").kind == table(bound, "gemma3").kind == "neox"
    assert table(bound, metadata={"llama.rope.freq_base": None}) == plain


def test_fewer_channels_than_a_head_has(bound):
    assert len(table(bound, metadata={"llama.rope.dimension_count": 6}).inv_freq) == 3


@pytest.mark.parametrize(
    "pairs",
    [
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
        {"rope.scaling.factor": 4.0},
        {"rope.scale_linear": 4.0},
    ],
)
def test_linear_scaling_slows_every_pair(bound, pairs):
    scaled = table(bound, metadata={f"llama.{key}": value for key, value in pairs.items()})
    assert np.allclose(np.array(scaled.inv_freq) * 4, table(bound).inv_freq, rtol=1e-12)


@pytest.mark.parametrize(
    "pairs", [{"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, {"rope.scaling.factor": 0.0}]
)
def test_no_scaling(bound, pairs):
    assert table(bound, metadata={f"llama.{key}": value for key, value in pairs.items()}) == table(bound)


def test_factors_divide_the_frequencies(bound):
    factors = np.array([1, 1, 2, 3, 4, 5, 6, 8], np.float32)
    scaled = table(bound, tensors={"rope_freqs.weight": factors})
    assert np.allclose(np.array(scaled.inv_freq) * factors, table(bound).inv_freq, rtol=1e-12)


@pytest.mark.parametrize("factors", [np.ones(7), np.zeros(8), np.full(8, np.nan)])
def test_impossible_factors_are_refused(bound, factors):
    with pytest.raises(FormatError, match=r"rope_freqs\.weight"):
        bound(tensors={"rope_freqs.weight": factors}, metadata={"llama.rope.dimension_count": 16})


def test_yarn_keeps_fast_pairs_and_interpolates_slow_ones(bound):
    yarn = {
        "qwen2.rope.scaling.type": "yarn",
        "qwen2.rope.scaling.factor": 4.0,
        "qwen2.rope.scaling.original_context_length": 4096,
    }
    plain = np.array(table(bound, "qwen2", head_size=64).inv_freq)
    scaled = table(bound, "qwen2", head_size=64, metadata=yarn)
    ratio = np.array(scaled.inv_freq) / plain
    turns = 4096 * plain / (2 * math.pi)
    assert np.allclose(ratio[turns > 40], 1)
    assert np.allclose(ratio[turns < 0.9], 1 / 4)
    assert np.all(np.diff(ratio) <= 1e-12)
    assert 1 / 4 < ratio[len(ratio[turns > 6])] < 1
    assert scaled.magnitude == pytest.approx(1 + 0.1 * math.log(4))


def test_yarn_of_the_paper_by_hand(bound):
    """32 turns or more within the trained context stay: pair 32 ln(L / 64 pi) / ln(base); one turn: ln(L / 2 pi)."""
    yarn = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 2.0, "llama.rope.scaling.attn_factor": 3.0}
    yarn |= {"llama.context_length": Typed(8192, "u32")}
    scaled = table(bound, head_size=64, metadata=yarn)
    low = math.floor(32 * math.log(8192 / (64 * math.pi)) / math.log(10000))
    high = math.ceil(32 * math.log(8192 / (2 * math.pi)) / math.log(10000))
    assert (low, high) == (12, 25)
    mixed = (18 - low) / (high - low)
    assert scaled.inv_freq[18] == pytest.approx(10000 ** (-18 / 32) * (1 - mixed + mixed / 2))
    assert scaled.inv_freq[12] == pytest.approx(10000 ** (-12 / 32))
    assert scaled.magnitude == pytest.approx(3 * (1 + 0.1 * math.log(2)))
