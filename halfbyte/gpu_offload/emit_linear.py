"""Which kernels compute products: over packed bytes for few tokens, by a library over halves for many.

Fused: the sum behind a product, and products that read the same rows.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model import program as ir
from .calls import Call, Multiply, Operand, Packed, Ref, Scratch, Sizes, Stride, Vector
from .dequantize import dequantizing
from .linear_shape import SEGMENTS, THREADS
from .lower import Lowering
from .own_rows import own_norm, shape_of
from .together import together

FLOAT_TOKENS = (1, 4)
"""Tokens that a block of `linear_floats` takes."""
FLOAT_WARPS = 8


def _linear(low: Lowering, op: ir.Linear) -> None:
    if low.multiplies_halves(op):
        _by_library(low, op)
    elif low.multiplies_bytes(op):
        # Sums are added in the first alone.
        _by_bytes(low, together(low, op, SEGMENTS, lambda other: _residual_of(low, other) is None))
    else:
        _by_floats(low, op)


def _residual_of(low: Lowering, op: ir.Linear) -> ir.Add | None:
    """The sum that alone reads a product, if its other summand is there already."""
    add = low.only_reader(op.out)
    if not isinstance(add, ir.Add) or add.a == add.b or low.is_done(add):
        return None
    return add if low.written_before(_other(add, op), op) else None


def _other(add: ir.Add, op: ir.Linear) -> str:
    return add.b if add.a == op.out else add.a


def _bias(op: ir.Linear) -> Operand:
    return 0 if op.bias is None else Vector(op.bias)


def _by_bytes(low: Lowering, ops: list[ir.Linear]) -> None:
    first = ops[0]
    matrices = [low.packed[op.weight] for op in ops]
    add, norm = _residual_of(low, first), own_norm(low, first.x)
    outs = [op.out for op in ops]
    if add is not None:
        low.done(add)
        outs[0] = add.out
    operands: list[Operand] = []
    for i in range(SEGMENTS):
        if i < len(ops):
            operands += [Packed(ops[i].weight), matrices[i].rows, Ref(outs[i]), Stride(outs[i]), _bias(ops[i])]
        else:
            operands += [0, 0, 0, 0, 0]
    residual = None if add is None else _other(add, first)
    operands += [0 if residual is None else Ref(residual), Ref(first.x, "planes"), Ref(first.x, "records")]
    operands += [matrices[0].columns, low.count(first.x)]
    operands += [0, 0, 0.0] if norm is None else [Ref(norm.x), Vector(norm.weight), float(norm.eps)]
    shape, most = shape_of(low, matrices), low.target.shared_bytes

    def rows(sizes: Sizes) -> int:
        return low.most_rows(first.x, sizes)

    def normed(sizes: Sizes) -> bool:
        return norm is not None and rows(sizes) == 1

    def own(sizes: Sizes) -> int:
        return shape.own_bytes(most) if normed(sizes) else 0

    low.call(
        lambda sizes: shape.kernel("linear", rows(sizes), most, own(sizes), normed(sizes)),
        lambda sizes: shape.grid(rows(sizes), most),
        THREADS,
        operands,
        [first.x, *([] if residual is None else [residual]), *([] if norm is None else [norm.x])],
        outs,
        shared=lambda sizes: shape.shared(rows(sizes), most, own(sizes)),
    )


def _by_floats(low: Lowering, op: ir.Linear) -> None:
    matrix, add = low.packed[op.weight], _residual_of(low, op)
    out, residual = op.out, None
    if add is not None:
        low.done(add)
        out, residual = add.out, _other(add, op)
    operands = (
        *(Packed(op.weight), matrix.rows, matrix.columns),
        *(Ref(op.x), Stride(op.x), low.count(op.x)),
        *(Ref(out), Stride(out), _bias(op), 0 if residual is None else Ref(residual)),
    )

    def tokens(sizes: Sizes) -> int:
        return FLOAT_TOKENS[low.most_rows(op.x, sizes) > 1]

    low.call(
        lambda sizes: f"linear_floats<{matrix.family.name}, {tokens(sizes)}>",
        lambda sizes: (-(-matrix.rows // FLOAT_WARPS), -(-low.most_rows(op.x, sizes) // tokens(sizes)), 1),
        32 * FLOAT_WARPS,
        operands,
        [op.x, *([] if residual is None else [residual])],
        [out],
    )


def _by_library(low: Lowering, op: ir.Linear) -> None:
    """Weights become halves, whole numbers of the library's product floats, and what is left is done row by row."""
    matrix, add = low.packed[op.weight], _residual_of(low, op)
    out, residual = op.out, None
    if add is not None:
        low.done(add)
        out, residual = add.out, _other(add, op)
    halves = Scratch(lambda sizes: 2 * matrix.rows * matrix.columns, "halves")
    how = dequantizing(matrix.family, matrix.columns, 0, matrix.rows)
    low.call(
        how.kernel,
        lambda sizes: how.grid,
        how.threads,
        (Packed(op.weight), 0, halves, matrix.columns, 0, matrix.rows),
        [],
        [],
    )
    dense = low.program.widths[out] % 64 == 0
    product = Ref(out) if dense else Scratch(lambda sizes: 4 * sizes.tokens * matrix.rows, "product")
    low.calls.append(
        Multiply(Ref(op.x, "halves"), halves, product, matrix.columns, matrix.rows, (op.x,), (out,) if dense else ())
    )
    operands = (
        *(product, matrix.rows, Ref(op.x, "half_scales"), low.count(op.x), Ref(out), Stride(out)),
        *(_bias(op), 0 if residual is None else Ref(residual)),
    )
    reads = [op.x, *([out] if dense else []), *([] if residual is None else [residual])]
    low.call("finish_product", low.each_row(out), 256, operands, reads, [out])


EMIT_LINEAR: dict[type[ir.Op], Callable[..., None]] = {ir.Linear: _linear}
__all__ = ["EMIT_LINEAR", "Call"]
