"""mxfp4: experts of 4-bit floats. `X_blocks` u8[E, N, M / 32, 16] and `X_scales` u8[E, N, M / 32] are `X` [E, N, M]."""

from __future__ import annotations

from ....model.checkpoint_config import CheckpointConfig
from .mxfp4_weight import mxfp4_weight
from .stored import Stored, wrong
from .weight import QuantizedWeight


def weights(stored: Stored, config: CheckpointConfig) -> list[QuantizedWeight]:
    """All pairs that are there; they stay as they are, as far as a file's order of nibbles allows."""
    found = []
    for stem in stored.stems("_blocks", "_scales"):
        packed = stored.want(stem, "_blocks", ("U8",))
        scale = stored.want(stem, "_scales", ("U8", "F8_E8M0"))
        if len(packed.shape) < 3 or packed.shape[-1] != 16:
            raise wrong(packed, f"has shape {list(packed.shape)}, whose last size should be 16 bytes of a block")
        found.append(mxfp4_weight(stored, stem, packed, scale))
    return found
