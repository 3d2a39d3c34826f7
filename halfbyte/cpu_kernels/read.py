"""Read memory as fast as this machine can: the roofline of decoding."""

from __future__ import annotations

from .instruction import COUNTER, LAYOUTS
from .memory import atomic_add, load_i64, store_float
from .ops import add, load_f32, same, total

SOURCE, SIZE, SINK = LAYOUTS["read"].offsets()
CHUNK = 1 << 18


def read(instr, state, tid, nth):
    """Add up `size` bytes of floats; threads take chunks of 256 KiB."""
    size = load_i64(instr + SIZE)
    a = b = c = d = same(0.0)
    while True:
        begin = CHUNK * atomic_add(instr + COUNTER, 1)
        if begin >= size:
            break
        source = load_i64(instr + SOURCE) + begin
        for at in range(source, source + min(CHUNK, size - begin), 256):
            a, b = add(a, load_f32(at)), add(b, load_f32(at + 64))
            c, d = add(c, load_f32(at + 128)), add(d, load_f32(at + 192))
    store_float(load_i64(instr + SINK) + 64 * tid, total(add(add(a, b), add(c, d))))


KERNELS = {"read": read}
