"""Packed weights whose codes stand for the levels of a table or grid; functions as in `formats.py`."""

from __future__ import annotations

from .fields import add_1_bit_at_2, nibbles, table, take_2_bits
from .jit import helper
from .ops import fma, load_bits_as_f32, load_e8m0, load_f16, load_i8_as_f32, load_ue4m3, mul, same
from .packed import IQ1, IQ2, IQ3_XXS, IQ4, MXFP4
from .scales import symmetric, symmetric_halves

iq4_levels = table("iq4_levels", IQ4.above_least)
mxfp4_levels = table("mxfp4_levels", MXFP4.above_least)
iq3_xxs_levels = table("iq3_xxs_levels", IQ3_XXS.above_least)
iq2_levels = table("iq2_levels", IQ2.above_least)
iq1_levels = table("iq1_levels", IQ1.above_least)
IQ4_LEAST, MXFP4_LEAST, IQ3_LEAST, IQ2_LEAST, IQ1_LEAST = (
    float(-levels.least) for levels in (IQ4, MXFP4, IQ3_XXS, IQ2, IQ1)
)


@helper
def iq4_nl_chunks(w, group):
    return iq4_levels(nibbles(w + 32))


@helper
def iq4_nl_scales(w, group):
    return symmetric(load_f16(w), IQ4_LEAST)


@helper
def iq4_xs_chunks(w, group):
    return iq4_levels(nibbles(w + 160 + 256 * group))


@helper
def iq4_xs_scales(w, group):
    return symmetric(mul(load_f16(w), load_i8_as_f32(w + 32 + 16 * group)), IQ4_LEAST)


@helper
def mxfp4_chunks(w, group):
    return mxfp4_levels(nibbles(w + 16))


@helper
def mxfp4_scales(w, group):
    return symmetric(load_e8m0(w), MXFP4_LEAST)


@helper
def nvfp4_chunks(w, group):
    return mxfp4_levels(nibbles(w + 64 + 256 * group))


@helper
def nvfp4_scales(w, group):
    return symmetric_halves(load_ue4m3(w + 32 * group), load_ue4m3(w + 32 * group + 16), MXFP4_LEAST)


# --- grids, unpacked: each weight's level by itself; scales are odd multiples of a fraction of one half ---------------


@helper
def _odd_scale(w, address, shift, width, unit):
    """The half of a block times `2 * scale + 1` of a scale of few bits, times `unit`; exact."""
    odd = fma(load_bits_as_f32(address, shift, width), same(2.0 * unit), same(unit))
    return mul(load_f16(w), odd)


@helper
def iq3_s_chunks(w, group):
    return nibbles(w + 160 + 256 * group)


@helper
def iq3_s_scales(w, group):
    return symmetric(_odd_scale(w, w + 32 + 16 * group, 0, 4, 2.0), 7.5)


@helper
def iq3_xxs_chunks(w, group):
    return iq3_xxs_levels(nibbles(w + 160 + 256 * group))


@helper
def iq3_xxs_scales(w, group):
    return symmetric(_odd_scale(w, w + 32 + 16 * group, 0, 4, 0.25), IQ3_LEAST)


@helper
def _three_bits(w, group):
    return add_1_bit_at_2(take_2_bits(w + 672 + 512 * (group // 4), 2 * (group % 4)), w + 160, group)


@helper
def _two_odd_scales(w, group, least):
    first = _odd_scale(w, w + 32 + 16 * group, 0, 4, 0.125)
    return symmetric_halves(first, _odd_scale(w, w + 32 + 16 * group, 4, 4, 0.125), least)


@helper
def iq2_chunks(w, group):
    return iq2_levels(_three_bits(w, group))


@helper
def iq2_scales(w, group):
    return _two_odd_scales(w, group, IQ2_LEAST)


@helper
def iq1_m_chunks(w, group):
    return iq1_levels(_three_bits(w, group))


@helper
def iq1_m_scales(w, group):
    return _two_odd_scales(w, group, IQ1_LEAST)


@helper
def iq1_s_chunks(w, group):
    return take_2_bits(w + 160 + 512 * (group // 4), 2 * (group % 4))


@helper
def iq1_s_scales(w, group):
    """Codes stand 1 above their value; bit 3 of the scale's byte says that values are an eighth less, not more."""
    scale = _odd_scale(w, w + 32 + 16 * group, 0, 3, 1.0)
    return scale, mul(scale, fma(load_bits_as_f32(w + 32 + 16 * group, 3, 1), same(-0.25), same(-0.875)))
