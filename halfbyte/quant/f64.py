"""f64: IEEE double precision, rounded to single; beyond its range it gives infinity."""

import numpy as np

from .block import BlockFormat, Bytes, Floats


def _decode(blocks: Bytes) -> Floats:
    with np.errstate(over="ignore", under="ignore"):
        return blocks.view("<f8").astype(np.float32)


F64 = BlockFormat("f64", 28, 1, 8, decode_blocks=_decode)
