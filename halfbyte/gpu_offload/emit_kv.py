"""Calls for ops around KV pages: turning, storing, attending, and short filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..model import program as ir
from .calls import Data, Operand, Pages, Ref, StepAt, Stride, Vector
from .emit_attention import attention, kv_of
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
    low: Lowering, rope: ir.Rope | None, queries: ir.Rope | None, keys: Source | None, write: ir.KvWrite | None
) -> None:
    """One launch: turns `queries`, turns and stores `keys`, both as `rope` does, and stores the values of `write`."""
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
        0 if rope is None else Data(turns_data(rope.table)),
        pairs,
        int(rope is not None and rope.table.kind == "norm"),
        1.0 if rope is None else float(rope.table.magnitude),
        *(heads, layer.kv_heads, layer.key_size, layer.value_size),
        *(Pages(), low.target.page_bytes, at.keys, at.values),
    )
    reads = [value[0] for value in (source, keys) if value] + ([] if write is None else [write.v])
    writes = [] if queries is None else [queries.out]
    kernel = f"rope_and_store<{CUDA_TYPES[at.types.keys]}, {CUDA_TYPES[at.types.values]}>"
    low.call(kernel, lambda sizes: (blocks, sizes.tokens, 1), 32 * WARPS, operands, reads, writes, shared=8 * pairs)


def _rope(low: Lowering, op: ir.Rope) -> None:
    """Queries, together with keys and values where these are turned and stored right behind."""
    index = next(i for i, other in enumerate(low.program.ops) if other is op)
    keys, write = (*low.program.ops[index + 1 : index + 3], None, None)[:2]
    if (
        isinstance(keys, ir.Rope)
        and isinstance(write, ir.KvWrite)
        and keys.table == op.table
        and write.k == keys.out
        and low.only_reader(keys.out) is write
        and low.program.widths[op.out] // op.heads == low.program.kv_layers[write.layer].key_size
    ):
        _turn_and_store(low, op, op, _source(low, keys), write)
        low.done(keys)
        low.done(write)
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
