"""Calls for ops around KV pages: turning, storing, attending, and short filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..model import program as ir
from .calls import Data, Operand, Pages, Ref, Sizes, StepAt, Stride, Vector
from .emit_attention import MOST_SIZE, Turning, attention, decode, kv_of, unless_single
from .kv_layout import CUDA_TYPES
from .rope_table import turns_data

if TYPE_CHECKING:
    from .lower import Lowering

Source = tuple[str, str | None, float]
"""What a kernel reads heads from: the value, and weight and epsilon of the norm it does along."""
PART, WARPS = 256, 8
"""Channels of a head that a warp stores, and warps of a block, in `kernels/kv_write.cuh`."""


def normed_by_rope(low: Lowering, op: ir.RmsNorm) -> bool:
    """Whether the heads that `op` norms are only turned next: the kernel that turns them norms them as well."""
    reader = low.only_reader(op.out)
    return isinstance(reader, ir.Rope) and reader.heads == op.groups


def _source(low: Lowering, op: ir.Rope) -> Source:
    for earlier in low.program.ops:
        if isinstance(earlier, ir.RmsNorm) and earlier.out == op.x and normed_by_rope(low, earlier):
            return earlier.x, earlier.weight, earlier.eps
    return op.x, None, 0.0


def _heads(source: Source | None) -> tuple[Operand, ...]:
    if source is None:
        return (0, 0, 0, 0.0)
    value, weight, eps = source
    return (Ref(value), Stride(value), 0 if weight is None else Vector(weight), float(eps))


def _turn_and_store(
    low: Lowering,
    rope: ir.Rope | None,
    queries: ir.Rope | None,
    keys: Source | None,
    write: ir.KvWrite | None,
    *,
    several: bool = False,
) -> None:
    """One launch: turns `queries`, turns and stores `keys`, both as `rope` does, and stores the values of `write`.

    With `several` only where a sequence has several new tokens.
    """
    heads = 0 if queries is None else queries.heads
    layer, at = ir.KvLayer(0, 0, 0), kv_of(low).nowhere
    if queries is not None:
        layer = ir.KvLayer(0, low.program.widths[queries.out] // heads, 0)
    if write is not None:
        layer, at = low.program.kv_layers[write.layer], kv_of(low).places[write.layer]
    source = None if queries is None else _source(low, queries)
    pairs = 0 if rope is None else len(rope.table.inv_freq)
    warps = heads + layer.kv_heads * (-(-layer.key_size // PART) + -(-layer.value_size // PART))
    blocks = 1 if low.prompt else -(-warps // WARPS)
    operands: tuple[Operand, ...] = (
        StepAt(),
        *_heads(source),
        *((0, 0) if queries is None else (Ref(queries.out), Stride(queries.out))),
        *_heads(keys),
        *((0, 0) if write is None else (Ref(write.v), Stride(write.v))),
        *_table(rope),
        *(heads, layer.kv_heads, layer.key_size, layer.value_size),
        *(Pages(), low.target.page_bytes, at.keys, at.values),
    )
    reads = [value[0] for value in (source, keys) if value] + ([] if write is None else [write.v])
    writes = [] if queries is None else [queries.out]
    kernel = f"rope_and_store<{CUDA_TYPES[at.types.keys]}, {CUDA_TYPES[at.types.values]}>"

    def grid(sizes: Sizes) -> tuple[int, int, int]:
        return blocks, sizes.tokens, 1

    grid_of = unless_single(grid) if several else grid
    low.call(kernel, grid_of, 32 * WARPS, operands, reads, writes, shared=8 * pairs)


def _table(rope: ir.Rope | None) -> tuple[Operand, ...]:
    if rope is None:
        return 0, 0, 0, 1.0
    table = rope.table
    return Data(turns_data(table)), len(table.inv_freq), int(table.kind == "norm"), float(table.magnitude)


def _attends(low: Lowering, queries: ir.Rope, write: ir.KvWrite, following: ir.Op | None) -> bool:
    """Whether `following` reads the queries, alone, and what was written, and may do both along."""
    return (
        isinstance(following, ir.Attention)
        and not low.prompt
        and low.only_reader(queries.out) is following
        and following.layer == write.layer
        and following.causal
        and max(following.key_size, following.value_size) <= MOST_SIZE
    )


def _turning(low: Lowering, queries: ir.Rope, keys: Source, write: ir.KvWrite) -> Turning:
    q, q_weight, q_eps = _source(low, queries)
    weight: Operand = 0 if q_weight is None else Vector(q_weight)
    operands = (weight, float(q_eps), *_heads(keys), Ref(write.v), Stride(write.v), *_table(queries))
    return Turning(q, operands, (q, keys[0], write.v), 8 * len(queries.table.inv_freq))


def _rope(low: Lowering, op: ir.Rope) -> None:
    """Queries, together with keys and values where these are turned and stored right behind."""
    index = next(i for i, other in enumerate(low.program.ops) if other is op)
    keys, write, following = (*low.program.ops[index + 1 : index + 4], None, None, None)[:3]
    if (
        isinstance(keys, ir.Rope)
        and isinstance(write, ir.KvWrite)
        and keys.table == op.table
        and write.k == keys.out
        and low.only_reader(keys.out) is write
        and low.program.widths[op.out] // op.heads == low.program.kv_layers[write.layer].key_size
    ):
        source, along = _source(low, keys), _attends(low, op, write, following)
        _turn_and_store(low, op, op, source, write, several=along)
        low.done(keys)
        low.done(write)
        if along and isinstance(following, ir.Attention):
            decode(low, following, _turning(low, op, source, write))
            low.done(following)
    else:
        _turn_and_store(low, op, op, None, None)


def _kv_write(low: Lowering, op: ir.KvWrite) -> None:
    _turn_and_store(low, None, None, None if op.k is None else (op.k, None, 0.0), op)


def _short_conv(low: Lowering, op: ir.ShortConv) -> None:
    layer, at = low.program.kv_layers[op.layer], kv_of(low).places[op.layer]
    operands: tuple[Operand, ...] = (
        *(StepAt(), Vector(op.weight), op.taps, Pages(), low.target.page_bytes, at.values),
        *(layer.kv_heads, layer.value_size, *low.forms(op.out)),
    )
    kernel, shared = f"short_conv<{CUDA_TYPES[at.types.values]}>", 4 * low.program.widths[op.out]
    low.call(kernel, low.each_row(op.out), 256, operands, (), (op.out,), shared=-(-shared // 16) * 16)


EMIT_KV: dict[type[ir.Op], Callable[[Lowering, Any], None]] = {
    ir.Rope: _rope,
    ir.KvWrite: _kv_write,
    ir.Attention: attention,
    ir.ShortConv: _short_conv,
}
