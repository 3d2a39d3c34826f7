"""Encoding by search: the kernels of `quant/search.py`, a group in each of 16 lanes.

They give the same bits as NumPy there: each product and each sum is rounded by itself and in the same order, so none of
the files takes `fma` from the vocabulary.
"""

from . import search_affine, search_codes, search_moments, search_scale

KERNELS = {**search_scale.KERNELS, **search_affine.KERNELS, **search_codes.KERNELS, **search_moments.KERNELS}
