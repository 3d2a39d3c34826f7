"""What instructions and the step's state look like in memory: int64 words, named once for Python and for kernels.

An instruction starts with the kernel's address, a flag and a counter; operands follow in the order of its `Layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WORDS = 24
BYTES = 8 * WORDS
KERNEL, BARRIER, COUNTER, _FIRST = 0, 8, 16, 24
"""Byte offsets. BARRIER is not zero where the next instruction needs what is done so far; COUNTER hands out work."""


@dataclass(frozen=True)
class Layout:
    """Operands of one family of kernels, in order."""

    names: tuple[str, ...]

    def offsets(self) -> tuple[int, ...]:
        """Byte offset of each operand in its instruction."""
        return tuple(_FIRST + 8 * i for i in range(len(self.names)))

    def offset(self, name: str) -> int:
        """Byte offset of one operand."""
        return self.offsets()[self.names.index(name)]

    def words(self, operands: Mapping[str, int]) -> list[int]:
        """Operand values in order; every name must be given and no other."""
        assert set(operands) == set(self.names), set(operands) ^ set(self.names)
        assert len(self.names) + 3 <= WORDS
        return [operands[name] for name in self.names]


def _layout(names: str) -> Layout:
    return Layout(tuple(names.split()))


STATE = (
    *("tokens", "rows", "max_pages"),
    *("ids", "positions", "seq_of", "slots", "page_table", "seq_len", "logit_rows"),
    *("program", "length", "yielding", "clock", "clock_id", "stamps", "epoch", "arrived", "threads"),
)
"""Words of the state in order: T, R, the width of the page table, addresses of int32 arrays, then the executor's own.

`epoch` counts the steps begun, `arrived` the barrier arrivals of all threads, `yielding` is the address of a function
that lets other threads run. `stamps` is where threads write the time behind every instruction, or 0, as `clock` tells
it when asked for `clock_id`: see `clock.py`. `threads` is the first of eight words a thread, a cache line each:
barriers passed, asleep, to be woken, steps done.
"""


def state(name: str) -> int:
    """Byte offset of a word of the state."""
    return 8 * STATE.index(name)


STAMP, PASSED = 32, 16
"""Bytes of an instruction's stamps: two words when its kernel ended, and PASSED bytes on two when all threads had met.

A thread has one pair more in front, of which the second is when it began.
"""


LAYOUTS: dict[str, Layout] = {
    # `count` is the address of the number of tokens: T, or R behind TakeRows. A zero address means "none".
    "linear": _layout(
        "count weights x sums x_stride columns rows per_tile bias residual residual_stride out out_stride "
        "scratch scratch_bytes peaks"
    ),
    # As "linear", for the expert that the order says.
    "experts": _layout(
        "count weights x sums x_stride columns rows per_tile bias residual residual_stride out out_stride "
        "scratch scratch_bytes peaks order expert_bytes"
    ),
    "route": _layout("count x out used experts normalise scale stride out_stride order counters sources places"),
    "dispatch": _layout("count x x_quantized x_sums out quantized sums sources width stride q_stride"),
    "combine": _layout("count x route places used out width stride route_stride"),
    "embed": _layout("table row_bytes columns index scale out stride scratch scratch_bytes"),
    "norm": _layout(
        "count x residual add_out weight bias out quantized sums width groups eps stride out_stride q_stride"
    ),
    "quantize": _layout("count x quantized sums width stride q_stride"),
    "gated": _layout("count gate up out quantized sums width stride q_stride"),
    "angles": _layout("inv_freq pairs magnitude out"),
    "rope": _layout("x out angles pairs heads head_size stride"),
    "kv_write": _layout("k v keys values kv_heads key_size value_size k_stride v_stride key_bytes value_bytes"),
    "attention": _layout(
        "q keys values out heads kv_heads key_size value_size scale softcap window q_stride out_stride "
        "scratch scratch_bytes partials key_bytes value_bytes sinks ahead"
    ),
    "conv": _layout("weight values out kv_heads value_size value_bytes taps stride"),
    "elementwise": _layout("count a b b_stride factor out width stride"),
    "add_scaled": _layout("count scales b b_stride factor out width stride"),
    "take_rows": _layout("x out width stride out_stride"),
    "pack": _layout("source target rows columns row_bytes tile_bytes"),
    "top_k": _layout("logits size k ids values peaks tiles"),
    "read": _layout("source size sink"),
    "trial": _layout(
        "x w odd inverse groups length levels level_count first first_count second second_count pairs points values "
        "codes wrong dot square scratch"
    ),
    "search_scale": _layout("x w groups length candidates tries levels middles count mirrored scale scratch"),
    "search_affine": _layout("x w groups length top most candidates tries scale offset scratch"),
    "search_codes": _layout("x scale offset groups length levels middles count codes"),
    "search_moments": _layout("x w scale offset groups length levels middles count sums stride scratch"),
    "feedback": _layout(
        "targets anchors values codes stride rows columns forward forward_stride scales offsets group levels middles "
        "count scratch"
    ),
}
"""Strides are bytes from one token's row to the next, widths and sizes are elements, float operands are their bits."""

NO_WINDOW = 1 << 40
"""A window no sequence fills: attention to all that came before."""


ROWS = 8
"""Rows of the largest tile of attention."""
MOST_TILES = 8
"""Tiles that walk the keys together."""
RUN = 64
"""Keys that a tile of attention scores and softens together."""
PIECE = 256
"""Keys from one merging of records to the next: what a thread may take by itself."""
PARTIAL_BYTES = 1 << 20
"""Memory for each thread where pieces of the same rows wait for each other; what needs more is not cut into pieces."""
RUN_SCALES, RUN_WIDE = 64, 320
"""A thread's scratch: the pages of a run and of the next, scales of a page, keys and values as float32, the tiles."""
TILE_Q, TILE_OUT, TILE_ENDS, TILE_ROWS, TILE_SINKS, TILE_PEAKS, TILE_SHRINK = 0, 64, 128, 192, 224, 256, 320
TILE_WEIGHTS = 384
TILE_RECORDS = TILE_WEIGHTS + 4 * RUN * ROWS
"""Of the rows of a tile where query and result lie, and the position behind the last seen; how many; their sinks; the
largest scores of a run, and by what sums must shrink for these; weights; two sets of records; then the queries.
"""


PEAK_ROWS = 64
"""Rows of logits whose peaks are noted: more come only from those who read them all."""


def peaks_bytes(vocab_size: int) -> int:
    """Of the peaks of all rows: a float for each tile of 16, whole cache lines a row."""
    return PEAK_ROWS * (-(-vocab_size // 256) * 64)


def attention_scratch_bytes(key_size: int, value_size: int) -> int:
    """What a thread keeps of its tiles."""
    values, keys = (value_size + 15) // 16 * 16, (key_size + 1) // 2 * 2
    records = 64 + ROWS * (64 + 4 * values)
    return RUN_WIDE + 4 * RUN * (keys + values) + MOST_TILES * (TILE_RECORDS + 2 * records + 4 * ROWS * keys)


FEW, PART, BLOCK = 64, 4, 32
"""Groups of 32 columns that matrix work unpacks at a time: PART for up to FEW tokens, so that reading weights and
multiplying alternate; else BLOCK, half of a small first cache, so that activations are read in long runs.
"""
UNPACKED, SCALES = 768, 512
"""Bytes of an unpacked group: 512 of chunks, then up to four vectors of scales and offsets."""
PLACE = 2048
"""Bytes of the integer sums of 16 tokens x 16 rows in two planes."""
PLACES = BLOCK * UNPACKED
PARTIAL = PLACES + 4 * PLACE
"""Where a thread's scratch holds integer sums, of two groups with halves, and the partial sums of tokens."""
SIDE_BY_SIDE = 8
"""Tokens whose activations matrix registers take together where there are fewer than 16."""


def linear_scratch_bytes(tokens: int, columns: int) -> int:
    """What a thread keeps during matrix work: a block of unpacked groups, integer sums, the partial sums of 16 rows of
    all tokens, and up to 15 tokens side by side, activations with a record of 16 bytes for 32.
    """
    return PARTIAL + 64 * (tokens + SIDE_BY_SIDE) + 2 * SIDE_BY_SIDE * (2 * columns + columns // 2)
