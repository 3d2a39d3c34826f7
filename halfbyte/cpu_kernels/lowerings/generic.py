"""Any CPU: widen, multiply, add up. LLVM finds what the machine has for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..vec import LANES


def dot4(builder: Any, acc: Any, unsigned: Any, signed: Any, bits: int) -> Any:
    """`acc[i] += sum of unsigned[4i + j] * signed[4i + j]`."""
    wide = ir.VectorType(ir.IntType(32), 4 * LANES)
    products = builder.mul(builder.zext(unsigned, wide), builder.sext(signed, wide))
    for j in range(4):
        every_fourth = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [4 * i + j for i in range(LANES)])
        acc = builder.add(acc, builder.shuffle_vector(products, products, every_fourth))
    return acc


def pause(builder: Any) -> None:
    """Nothing that every CPU would understand."""


def _like(value: Any, kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind, value.type.count) if isinstance(value.type, ir.VectorType) else kind


def _same(kind: ir.Type, value: Any) -> Any:
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def from_half(builder: Any, value: Any) -> Any:
    """Half to float32 by its bits; a multiplication by 2^112 moves the exponent and makes subnormals normal."""
    ints, floats = _like(value, ir.IntType(32)), _like(value, ir.FloatType())
    bits = builder.zext(builder.bitcast(value, _like(value, ir.IntType(16))), ints)
    sign = builder.shl(builder.and_(bits, _same(ints, 0x8000)), _same(ints, 16))
    rest = builder.shl(builder.and_(bits, _same(ints, 0x7FFF)), _same(ints, 13))
    scaled = builder.bitcast(builder.fmul(builder.bitcast(rest, floats), _same(floats, 2.0**112)), ints)
    endless = builder.icmp_unsigned(">=", rest, _same(ints, 0x0F800000))  # infinity and NaN keep all exponent bits
    magnitude = builder.select(endless, builder.or_(rest, _same(ints, 0x7F800000)), scaled)
    return builder.bitcast(builder.or_(magnitude, sign), floats)


def to_half(builder: Any, value: Any) -> Any:
    """Float32 to half, nearest, halves to even; beyond 65504 infinity.

    Normal results: round the upper bits by adding half a unit less one, plus the last kept bit. Subnormal results:
    adding 0.5 aligns the mantissa so that the adder itself rounds.
    """
    ints, floats = _like(value, ir.IntType(32)), _like(value, ir.FloatType())
    bits = builder.bitcast(value, ints)
    sign = builder.and_(builder.lshr(bits, _same(ints, 16)), _same(ints, 0x8000))
    size = builder.and_(bits, _same(ints, 0x7FFFFFFF))
    odd = builder.and_(builder.lshr(size, _same(ints, 13)), _same(ints, 1))
    rounded = builder.add(builder.add(size, _same(ints, 0xC8000FFF - (1 << 32))), odd)
    normal = builder.lshr(rounded, _same(ints, 13))
    aligned = builder.bitcast(builder.fadd(builder.bitcast(size, floats), _same(floats, 0.5)), ints)
    small = builder.sub(aligned, _same(ints, 0x3F000000))
    result = builder.select(builder.icmp_unsigned("<", size, _same(ints, 0x38800000)), small, normal)
    result = builder.select(builder.icmp_unsigned(">=", size, _same(ints, 0x477FF000)), _same(ints, 0x7C00), result)
    result = builder.select(builder.icmp_unsigned(">", size, _same(ints, 0x7F800000)), _same(ints, 0x7E00), result)
    packed = builder.trunc(builder.or_(result, sign), _like(value, ir.IntType(16)))
    return builder.bitcast(packed, _like(value, ir.HalfType()))
