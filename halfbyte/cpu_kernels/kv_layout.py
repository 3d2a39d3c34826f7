"""Bytes that keys and values take in a page of 16 tokens, by type.

Of a head's keys channel follows channel, 16 tokens each; of quantized ones, blocks of 32 channels (the last shorter)
begin with the 16 tokens' scales, and of q4_0 two channels share their bytes, the first in the lower halves.
Of a head's values token follows token, channels padded to whole vectors; quantized ones begin with the scales, 16 a
block, and of q4_0 a block's channel i shares its byte with channel i + 16.
"""

from __future__ import annotations

PAGE_LEN = 16
"""Tokens of a page: as many as a vector has lanes, since keys lie with the token innermost."""
FLOATS = ("f32", "f16")
"""Types without scales."""


def key_bytes(kind: str, size: int) -> int:
    """Bytes of a head's keys in a page."""
    scales = 0 if kind in FLOATS else 2 * PAGE_LEN * -(-size // 32)
    return scales + PAGE_LEN * {"f32": 4 * size, "f16": 2 * size, "q8_0": size, "q4_0": -(-size // 2)}[kind]


def value_bytes(kind: str, size: int) -> int:
    """Bytes of a head's values in a page."""
    vectors, blocks = -(-size // 16), -(-size // 32)
    scales = 0 if kind in FLOATS else 2 * PAGE_LEN * blocks
    per_token = {"f32": 64 * vectors, "f16": 32 * vectors, "q8_0": 16 * vectors, "q4_0": 16 * blocks}[kind]
    return scales + PAGE_LEN * per_token
