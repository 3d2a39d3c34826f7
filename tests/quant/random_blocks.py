"""Random blocks of any format, with weights as large as a model's."""

from __future__ import annotations

import numpy as np

# Byte of each half-precision scale, and how large it is against the first one: an offset centres the codes.
HALVES: dict[str, tuple[tuple[int, float], ...]] = {
    "q4_0": ((0, 1),),
    "q4_1": ((0, 1), (2, -7.5)),
    "q5_0": ((0, 1),),
    "q5_1": ((0, 1), (2, -15.5)),
    "q8_0": ((0, 1),),
    "q1_0": ((0, 1),),
    "q2_k": ((80, 1), (82, 1.5)),
    "q3_k": ((108, 1),),
    "q4_k": ((0, 1), (2, 7.5)),
    "q5_k": ((0, 1), (2, 15.5)),
    "q6_k": ((208, 1),),
    "iq1_s": ((0, 1),),
    "iq2_xxs": ((0, 1),),
    "iq2_xs": ((0, 1),),
    "iq2_s": ((0, 1),),
    "iq3_xxs": ((0, 1),),
    "iq3_s": ((0, 1),),
    "iq4_nl": ((0, 1),),
    "iq4_xs": ((0, 1),),
    "tq1_0": ((52, 1),),
    "tq2_0": ((64, 1),),
}
EXPONENTS = {"mxfp4": (slice(0, 1), 121, 125), "nvfp4": (slice(0, 4), 8, 32)}
NUMBERS = {"f32": "f4", "f16": "f2", "bf16": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}


def write_scales(format, blocks, scale):
    """Give each block of u8[n, block_bytes] the scale f32[n] (and the offset that goes with it), in place."""
    for at, ratio in HALVES.get(format.name, ()):
        blocks[:, at : at + 2] = (scale[:, None] * np.float32(ratio)).astype("<f2").view("u1")
    if format.name == "iq1_m":
        half = scale.astype("<f2").view("<u2")[:, None] >> np.arange(0, 16, 4, dtype=np.uint16)
        blocks[:, 49:56:2] = (blocks[:, 49:56:2] & 15) | ((half & 15) << 4).astype(np.uint8)


def random_blocks(format, n, rng):
    """u8[n, block_bytes]; the largest weight of a block lies between about 0.1 and 1."""
    if format.name in NUMBERS:
        weights = rng.uniform(-1, 1, (n, 1)) if format.name[0] in "bf" else rng.integers(-1, 2, (n, 1))
        raw = weights.astype("<" + NUMBERS[format.name]).view("u1")
        return np.ascontiguousarray(raw[:, 2:]) if format.name == "bf16" else raw
    blocks = rng.integers(0, 256, (n, format.block_bytes), dtype=np.uint8)
    if format.name in EXPONENTS:
        where, low, high = EXPONENTS[format.name]
        blocks[:, where] = rng.integers(low, high, blocks[:, where].shape, dtype=np.uint8)
        return blocks
    write_scales(format, blocks, np.ones(n, dtype=np.float32))
    peak = np.abs(format.decode(blocks)).max(axis=1)
    scale = rng.uniform(0.1, 1, n).astype(np.float32) / np.maximum(peak, 1)
    if len(HALVES.get(format.name, "d")) == 1:
        scale *= rng.choice(np.float32([-1, 1]), n)
    write_scales(format, blocks, scale)
    return blocks
