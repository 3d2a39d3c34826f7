"""The vocabulary kernels are written in. Everything here is plain LLVM; the ops that differ by ISA are in `lowerings/`.

Addresses are int64. `load_*` widen to float32 where the name says so; nothing is assumed about alignment.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .lowerings import active
from .vec import F32, I32, LANES, MASK, call, op, pointer, splat

_i8, _i16, _i32, _i64 = (ir.IntType(n) for n in (8, 16, 32, 64))
_f16, _f32 = ir.HalfType(), ir.FloatType()
_ADDRESS = types.int64


def _vector(kind: ir.Type, lanes: int = LANES) -> ir.VectorType:
    return ir.VectorType(kind, lanes)


def _load(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.load(pointer(builder, address, kind), align=1)


def _same(kind: ir.VectorType, value: Any) -> Any:
    return ir.Constant(kind, [value] * kind.count)


@op(F32, _ADDRESS)
def load_f32(builder: Any, address: Any) -> Any:
    """16 float32."""
    return _load(builder, address, F32.llvm)


@op(F32, _ADDRESS)
def load_f16(builder: Any, address: Any) -> Any:
    """16 halves, widened."""
    return active.from_half(builder, _load(builder, address, _vector(_f16)))


@op(F32, _ADDRESS)
def load_bf16(builder: Any, address: Any) -> Any:
    """16 bfloat16, widened: they are the upper halves of float32."""
    wide = builder.zext(_load(builder, address, _vector(_i16)), I32.llvm)
    return builder.bitcast(builder.shl(wide, _same(I32.llvm, 16)), F32.llvm)


@op(F32, _ADDRESS)
def load_u8_as_f32(builder: Any, address: Any) -> Any:
    """16 bytes as floats."""
    return builder.uitofp(builder.zext(_load(builder, address, _vector(_i8)), I32.llvm), F32.llvm)


@op(F32, _ADDRESS)
def load_i8_as_f32(builder: Any, address: Any) -> Any:
    """16 signed bytes as floats."""
    return builder.sitofp(builder.sext(_load(builder, address, _vector(_i8)), I32.llvm), F32.llvm)


def _bytes_as_ints(builder: Any, address: Any) -> Any:
    return builder.zext(_load(builder, address, _vector(_i8)), I32.llvm)


@op(F32, _ADDRESS, types.int64, types.int64)
def load_bits_as_f32(builder: Any, address: Any, shift: Any, bits: Any) -> Any:
    """`bits` bits (a constant) at `shift` of 16 bytes, as floats."""
    moved = builder.lshr(_bytes_as_ints(builder, address), splat(builder, builder.trunc(shift, _i32), LANES))
    return builder.uitofp(builder.and_(moved, _same(I32.llvm, (1 << bits.constant) - 1)), F32.llvm)


@op(F32, _ADDRESS)
def load_e8m0(builder: Any, address: Any) -> Any:
    """16 exponents e of mxfp4 as 2^(e - 128): half the power they stand for, since its levels are doubled."""
    e = _bytes_as_ints(builder, address)
    normal = builder.shl(builder.sub(e, _same(I32.llvm, 1)), _same(I32.llvm, 23))
    small = builder.shl(_same(I32.llvm, 1 << 21), e)
    return builder.bitcast(builder.select(builder.icmp_unsigned("<", e, _same(I32.llvm, 2)), small, normal), F32.llvm)


@op(F32, _ADDRESS)
def load_ue4m3(builder: Any, address: Any) -> Any:
    """16 unsigned floats of nvfp4 (4 exponent, 3 mantissa bits), halved since its levels are doubled.

    They are the middle of a half-precision number, whose exponent is biased by 8 more.
    """
    wide = builder.zext(_load(builder, address, _vector(_i8)), _vector(_i16))
    half = builder.bitcast(builder.shl(wide, _same(_vector(_i16), 7)), _vector(_f16))
    return builder.fmul(active.from_half(builder, half), _same(F32.llvm, 128.0))


@op(types.void, _ADDRESS, F32)
def store_f32(builder: Any, address: Any, v: Any) -> None:
    """Store 16 float32."""
    builder.store(v, pointer(builder, address, F32.llvm), align=1)


@op(types.void, _ADDRESS, F32, types.int64)
def store_first(builder: Any, address: Any, v: Any, count: Any) -> None:
    """Store the first `count` lanes."""
    where, mask = pointer(builder, address, F32.llvm), _first_lanes(builder, count)
    call(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), v, where, _i32(1), mask)


@op(types.void, _ADDRESS, F32)
def store_f16(builder: Any, address: Any, v: Any) -> None:
    """Store 16 floats rounded to half precision."""
    kind = _vector(_f16)
    builder.store(active.to_half(builder, v), pointer(builder, address, kind), align=1)


@op(types.void, _ADDRESS, F32)
def store_i8(builder: Any, address: Any, v: Any) -> None:
    """Store 16 floats, already whole numbers within a byte, as signed bytes."""
    kind = _vector(_i8)
    builder.store(builder.trunc(builder.fptosi(v, I32.llvm), kind), pointer(builder, address, kind), align=1)


@op(F32, F32)
def half(builder: Any, v: Any) -> Any:
    """Rounded to half precision."""
    return active.from_half(builder, active.to_half(builder, v))


def _first_lanes(builder: Any, count: Any) -> Any:
    lane = ir.Constant(I32.llvm, list(range(LANES)))
    return builder.icmp_signed("<", lane, splat(builder, builder.trunc(count, _i32), LANES))


@op(F32, F32, types.int64)
def first(builder: Any, v: Any, count: Any) -> Any:
    """The first `count` lanes of `v`, zeros behind, whatever stood there."""
    return builder.select(_first_lanes(builder, count), v, ir.Constant(F32.llvm, None))


@op(types.float32, F32, types.int64)
def lane(builder: Any, v: Any, index: Any) -> Any:
    """One lane."""
    return builder.extract_element(v, builder.trunc(index, _i32))


@op(F32, types.float32)
def same(builder: Any, x: Any) -> Any:
    """`x` in all 16 lanes."""
    return splat(builder, x, LANES)


@op(F32, F32, F32)
def add(builder: Any, a: Any, b: Any) -> Any:
    """`a + b`."""
    return builder.fadd(a, b)


@op(F32, F32, F32)
def sub(builder: Any, a: Any, b: Any) -> Any:
    """`a - b`."""
    return builder.fsub(a, b)


@op(F32, F32, F32)
def mul(builder: Any, a: Any, b: Any) -> Any:
    """`a * b`."""
    return builder.fmul(a, b)


@op(F32, F32, F32)
def div(builder: Any, a: Any, b: Any) -> Any:
    """`a / b`."""
    return builder.fdiv(a, b)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return call(builder, "llvm.fma.v16f32", F32.llvm, a, b, c)


@op(F32, F32, F32, F32)
def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once."""
    return _fma(builder, a, b, c)


@op(F32, F32, F32)
def maximum(builder: Any, a: Any, b: Any) -> Any:
    """The larger of each lane; `b` where either is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@op(F32, F32, F32)
def minimum(builder: Any, a: Any, b: Any) -> Any:
    """The smaller of each lane; `b` where either is NaN."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@op(MASK, F32, F32)
def below(builder: Any, a: Any, b: Any) -> Any:
    """Where `a < b`."""
    return builder.fcmp_ordered("<", a, b)


@op(F32, MASK, F32, F32)
def select_if(builder: Any, mask: Any, a: Any, b: Any) -> Any:
    """`a` where the mask is set, `b` elsewhere."""
    return builder.select(mask, a, b)


@op(F32, F32)
def absolute(builder: Any, a: Any) -> Any:
    """`|a|`."""
    return call(builder, "llvm.fabs.v16f32", F32.llvm, a)


@op(F32, F32)
def nearest(builder: Any, a: Any) -> Any:
    """Rounded to whole numbers, halves to even."""
    return call(builder, "llvm.nearbyint.v16f32", F32.llvm, a)


@op(F32, F32)
def floor(builder: Any, a: Any) -> Any:
    """Rounded down to whole numbers."""
    return call(builder, "llvm.floor.v16f32", F32.llvm, a)


@op(F32, F32)
def two_to(builder: Any, n: Any) -> Any:
    """2 to the power of whole numbers within -126 .. 127, by writing the exponent."""
    biased = builder.add(builder.fptosi(n, I32.llvm), _same(I32.llvm, 127))
    return builder.bitcast(builder.shl(biased, _same(I32.llvm, 23)), F32.llvm)


@op(F32, F32, types.int64, types.int64)
def keep_between(builder: Any, v: Any, first: Any, last: Any) -> Any:
    """Lanes `first` to `last - 1` of `v`; the others hold the lowest float."""
    lane = ir.Constant(I32.llvm, list(range(LANES)))
    low, high = (splat(builder, builder.trunc(bound, _i32), LANES) for bound in (first, last))
    inside = builder.and_(builder.icmp_signed(">=", lane, low), builder.icmp_signed("<", lane, high))
    return builder.select(inside, v, _same(F32.llvm, -3.4028234663852886e38))


def _fold(builder: Any, v: Any, combine: Any) -> Any:
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        halves = [ir.Constant(ir.VectorType(_i32, lanes), [h * lanes + i for i in range(lanes)]) for h in (0, 1)]
        low, high = (builder.shuffle_vector(v, v, half) for half in halves)
        v = combine(low, high)
    return builder.extract_element(v, _i32(0))


@op(types.float32, F32)
def total(builder: Any, v: Any) -> Any:
    """Sum of the lanes, halves onto halves: one order on every machine."""
    return _fold(builder, v, builder.fadd)


@op(types.float32, F32)
def largest(builder: Any, v: Any) -> Any:
    """Largest lane."""
    return _fold(builder, v, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


@op(types.int64, F32, types.float32)
def any_above(builder: Any, v: Any, bound: Any) -> Any:
    """Bit i is set where lane i is above `bound`; NaN never is."""
    mask = builder.fcmp_ordered(">", v, splat(builder, bound, LANES))
    return builder.zext(builder.bitcast(mask, _i16), _i64)
