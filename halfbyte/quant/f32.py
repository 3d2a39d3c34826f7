"""f32: IEEE single precision."""

from .block import BlockFormat, Bytes, Floats


def _decode(blocks: Bytes) -> Floats:
    return blocks.view("<f4")


def _encode(values: Floats) -> Bytes:
    return values.astype("<f4", copy=False).view("u1")


F32 = BlockFormat("f32", 0, 1, 4, decode_blocks=_decode, encode_blocks=_encode)
