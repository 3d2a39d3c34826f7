"""From rows of tokens to rows of their experts: copies, in the forms that readers want."""

from __future__ import annotations

from .instruction import LAYOUTS
from .jit import helper
from .memory import load_i32, load_i64, load_word, store_word
from .ops import load_f32, store_f32

COUNT, X, X_QUANTIZED, X_SUMS, OUT, QUANTIZED, SUMS, SOURCES, WIDTH, STRIDE, Q_STRIDE = LAYOUTS["dispatch"].offsets()


@helper
def _copy(source, target, n_bytes):
    """Whole cache lines: rows have room for them."""
    for c in range(0, n_bytes, 64):
        store_f32(target + c, load_f32(source + c))


@helper
def _copy_words(source, target, n_bytes):
    """Records, which have none: the next row's may be another thread's."""
    for c in range(0, n_bytes, 8):
        store_word(target + c, load_word(source + c))


def dispatch(instr, state, tid, nth):
    """Rows are dealt out in turn."""
    width, stride, q_stride = load_i64(instr + WIDTH), load_i64(instr + STRIDE), load_i64(instr + Q_STRIDE)
    out, quantized = load_i64(instr + OUT), load_i64(instr + QUANTIZED)
    for row in range(tid, load_i64(load_i64(instr + COUNT)), nth):
        token = load_i32(load_i64(instr + SOURCES) + 4 * row)
        if out != 0:
            _copy(load_i64(instr + X) + token * stride, out + row * stride, 4 * width)
        if quantized != 0:
            _copy(load_i64(instr + X_QUANTIZED) + token * q_stride, quantized + row * q_stride, 2 * width)
            source = load_i64(instr + X_SUMS) + token * (q_stride // 4)
            _copy_words(source, load_i64(instr + SUMS) + row * (q_stride // 4), width // 2)


KERNELS = {"dispatch": dispatch}
