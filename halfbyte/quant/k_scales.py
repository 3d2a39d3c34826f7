"""Eight scales and eight minima of 6 bits in 12 bytes, as q4_k and q5_k store them."""

from __future__ import annotations

import numpy as np

from .block import Bytes


def k_scales(packed: Bytes) -> tuple[Bytes, Bytes]:
    """u8[n, 12] to scales u8[n, 8] and minima u8[n, 8].

    The first four of each lie in the low 6 bits of bytes 0-3 and 4-7, whose top 2 bits are the top of the last four;
    the low 4 bits of those share bytes 8-11, scale below minimum.
    """
    scale, minimum, low = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    return (
        np.concatenate([scale & 63, low & 15 | scale >> 2 & 48], axis=1),
        np.concatenate([minimum & 63, low >> 4 | minimum >> 2 & 48], axis=1),
    )


def pack_k_scales(scales: Bytes, minima: Bytes) -> Bytes:
    """The inverse of `k_scales`."""
    first = [part[:, :4] | (part[:, 4:] & 48) << 2 for part in (scales, minima)]
    return np.concatenate([*first, scales[:, 4:] & 15 | minima[:, 4:] << 4], axis=1)
