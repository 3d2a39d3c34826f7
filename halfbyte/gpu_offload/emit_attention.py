"""Calls for attention: of few tokens a sequence over chunks of its pages, of many by tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UnsupportedError
from ..model import program as ir
from .calls import Operand, Pages, Ref, Scratch, Sizes, StepAt, Stride, Vector
from .kv_layout import CUDA_TYPES, KvLayout

if TYPE_CHECKING:
    from .lower import Lowering

MOST_SIZE = 256
"""Channels of a head that the registers of a warp hold."""
LOG2_E = 1.4426950408889634
NO_WINDOW = 1 << 30


def kv_of(low: Lowering) -> KvLayout:
    """Where KV layers lie in a page."""
    assert isinstance(low.target.kv, KvLayout), "pages have no layout"
    return low.target.kv


def _scoring(op: ir.Attention) -> tuple[float, float]:
    """Scale and soft cap that make exponents of two of scores; without a soft cap it is 0."""
    if op.softcap is None:
        return op.scale * LOG2_E, 0.0
    return op.scale / op.softcap, op.softcap * LOG2_E


def _least(size: int, each: int, known: tuple[int, ...]) -> int:
    return next(n for n in known if n * each >= size)


def most_chunks(groups: int) -> int:
    """Into how many chunks a token's positions are cut at most: with few groups more, to keep a card busy."""
    return 32 if groups >= 8 else 64


def chunk_room(op: ir.Attention, most: int, context: int) -> int:
    """Chunks that a token can have, made even; as `seen_by` in `kernels/attention_work.cuh` cuts them."""
    longest = min(context, op.window or context)
    room, length = 1, 64
    for end in range(64, longest + 64, 64):
        while length * most < end:
            length *= 2
        room = max(room, -(-end // length) + 1)
    return room + room % 2


def _whole_groups(op: ir.Attention) -> bool:
    """Whether groups of heads are whole units of 256 columns, of which planes are made."""
    shared_by = op.heads // op.kv_heads
    return all(heads * op.value_size % 256 == 0 for heads in (min(8, shared_by), shared_by % 8))


def _decode(low: Lowering, op: ir.Attention) -> None:
    """Chunks are dealt to blocks on the device; the last one of a token and a group of heads gathers."""
    at, shared_by = kv_of(low).places[op.layer], op.heads // op.kv_heads
    heads, groups = min(8, shared_by), op.kv_heads * -(-shared_by // 8)
    most = most_chunks(groups)
    room = chunk_room(op, most, low.target.max_context)
    k_units, v_units = _least(op.key_size, 32, (1, 2, 4, 8)), _least(op.value_size, 64, (1, 2, 4))
    record = 4 * room * heads * (-(-op.value_size // 4) * 4 + 2)
    rows, stride, planes, records, halves, half_scales = low.forms(op.out)
    together = bool(halves) or (bool(planes) and not _whole_groups(op))
    results = (Ref(op.out) if together else rows, stride, planes, records, halves, half_scales, int(together))
    operands: tuple[Operand, ...] = (
        *(StepAt(), Ref(op.q), Stride(op.q), Pages(), low.target.page_bytes, at.keys, at.values, *results),
        *(op.heads, op.kv_heads, op.key_size, op.value_size, *_scoring(op), op.window or NO_WINDOW),
        *(0 if op.sinks is None else Vector(op.sinks), int(op.causal), most, room),
        Scratch(lambda sizes: sizes.tokens * groups * record),
        Scratch(lambda sizes: 4 * sizes.tokens * (groups + 1), "attention counts"),
    )

    resident = 3 if k_units <= 2 and v_units == 1 else 2  # blocks of a multiprocessor, for which registers suffice

    def grid(sizes: Sizes) -> tuple[int, int, int]:
        return min(resident * low.target.multiprocessors, sizes.tokens * groups * room), 1, 1

    kernel = f"attention_decode<{CUDA_TYPES[at.types.keys]}, {CUDA_TYPES[at.types.values]}, {k_units}, {v_units}>"
    shared = 1024 * k_units + 2 * 4 * (4 * 8 * (64 * v_units + 6))
    shared = max(shared, 4 * low.program.widths[op.out])
    low.call(kernel, grid, 128, operands, (op.q,), (op.out,), shared=-(-shared // 16) * 16)


def prompt_tiles(k_size: int, v_size: int) -> tuple[int, int, int]:
    """Keys of a tile, warps of a block, and tiles of 16 queries a warp: as many as registers hold."""
    widest = max(k_size, v_size)
    return (64, 4, 2) if widest <= 64 else (32, 4, 2) if widest <= 128 else (32, 8, 1)


def _prompt(low: Lowering, op: ir.Attention) -> None:
    """A block a head and a range of queries, of the last tokens first."""
    at = kv_of(low).places[op.layer]
    k_size, v_size = -(-op.key_size // 16) * 16, -(-op.value_size // 16) * 16
    keys, warps, tiles = prompt_tiles(k_size, v_size)
    operands: tuple[Operand, ...] = (
        *(StepAt(), Ref(op.q), Stride(op.q), Pages(), low.target.page_bytes, at.keys, at.values),
        *(Ref(op.out), Stride(op.out), op.heads, op.kv_heads, op.key_size, op.value_size),
        *(*_scoring(op), op.window or NO_WINDOW, 0 if op.sinks is None else Vector(op.sinks), int(op.causal)),
    )
    types = f"{CUDA_TYPES[at.types.keys]}, {CUDA_TYPES[at.types.values]}"
    queries = 0 if tiles == 1 else warps * tiles * k_size * 32
    low.call(
        f"attention_prompt<{types}, {k_size}, {v_size}, {keys}, {warps}, {tiles}>",
        lambda sizes: (op.heads, sizes.tokens // (16 * warps * tiles) + sizes.sequences, 1),
        32 * warps,
        operands,
        (op.q,),
        (op.out,),
        shared=2 * keys * 2 * (k_size + 8 + v_size + 8) + queries,
    )


def attention(low: Lowering, op: ir.Attention) -> None:
    """The one or the other; raises `UnsupportedError` for heads that are too wide."""
    if max(op.key_size, op.value_size) > MOST_SIZE:
        raise UnsupportedError(
            f"heads of {max(op.key_size, op.value_size)} channels are too wide for the GPU, which takes {MOST_SIZE}; "
            "load with gpu_layers=0"
        )
    (_prompt if low.prompt else _decode)(low, op)
