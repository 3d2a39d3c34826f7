"""i8 i16 i32 i64: plain signed numbers, rounded to single precision where they do not fit it."""

import numpy as np

from .block import BlockFormat, Bytes, Floats


def _integer(name: str, ggml_id: int, size: int) -> BlockFormat:
    def decode(blocks: Bytes) -> Floats:
        return blocks.view(f"<i{size}").astype(np.float32)

    return BlockFormat(name, ggml_id, 1, size, decode_blocks=decode)


I8 = _integer("i8", 24, 1)
I16 = _integer("i16", 25, 2)
I32 = _integer("i32", 26, 4)
I64 = _integer("i64", 27, 8)
