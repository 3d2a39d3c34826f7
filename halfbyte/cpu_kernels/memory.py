"""Single numbers in memory, and what threads tell each other through it. Addresses are int64."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .lowerings import active
from .vec import call, op, pointer

_i8, _i16, _i32, _i64 = (ir.IntType(n) for n in (8, 16, 32, 64))
_f16, _f32, _f64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_ADDRESS = types.int64


def _load(builder: Any, address: Any, kind: ir.Type) -> Any:
    return builder.load(pointer(builder, address, kind), align=1)


@op(types.int64, _ADDRESS)
def load_i64(builder: Any, address: Any) -> Any:
    """The int64 at `address`."""
    return builder.load(pointer(builder, address, _i64), align=8)


@op(types.int64, _ADDRESS)
def load_i32(builder: Any, address: Any) -> Any:
    """The int32 at `address`, widened."""
    return builder.sext(_load(builder, address, _i32), _i64)


@op(types.int64, _ADDRESS)
def load_u32(builder: Any, address: Any) -> Any:
    """The uint32 at `address`, widened."""
    return builder.zext(_load(builder, address, _i32), _i64)


@op(types.int64, _ADDRESS)
def load_word(builder: Any, address: Any) -> Any:
    """The 8 bytes at `address`, wherever they lie."""
    return _load(builder, address, _i64)


@op(types.int64, _ADDRESS)
def load_u16(builder: Any, address: Any) -> Any:
    """The uint16 at `address`, widened."""
    return builder.zext(_load(builder, address, _i16), _i64)


@op(types.int64, _ADDRESS)
def load_byte(builder: Any, address: Any) -> Any:
    """The byte at `address`, widened without sign."""
    return builder.zext(_load(builder, address, _i8), _i64)


@op(types.float32, _ADDRESS)
def load_float(builder: Any, address: Any) -> Any:
    """The float32 at `address`."""
    return _load(builder, address, _f32)


@op(types.float64, _ADDRESS)
def load_double(builder: Any, address: Any) -> Any:
    """The float64 at `address`."""
    return builder.load(pointer(builder, address, _f64), align=8)


@op(types.void, _ADDRESS, types.int64)
def store_i64(builder: Any, address: Any, value: Any) -> None:
    """Store an int64."""
    builder.store(value, pointer(builder, address, _i64), align=8)


@op(types.void, _ADDRESS, types.int64)
def store_word(builder: Any, address: Any, value: Any) -> None:
    """Store 8 bytes, wherever they lie."""
    builder.store(value, pointer(builder, address, _i64), align=1)


@op(types.void, _ADDRESS, types.int64)
def store_u32(builder: Any, address: Any, value: Any) -> None:
    """Store the low 32 bits."""
    builder.store(builder.trunc(value, _i32), pointer(builder, address, _i32), align=1)


@op(types.void, _ADDRESS, types.int64)
def store_u16(builder: Any, address: Any, value: Any) -> None:
    """Store the low 16 bits."""
    builder.store(builder.trunc(value, _i16), pointer(builder, address, _i16), align=1)


@op(types.void, _ADDRESS, types.int64)
def store_byte(builder: Any, address: Any, value: Any) -> None:
    """Store the low 8 bits."""
    builder.store(builder.trunc(value, _i8), pointer(builder, address, _i8), align=1)


@op(types.void, _ADDRESS, types.float32)
def store_float(builder: Any, address: Any, value: Any) -> None:
    """Store a float32."""
    builder.store(value, pointer(builder, address, _f32), align=1)


@op(types.void, _ADDRESS, types.float32)
def store_half(builder: Any, address: Any, value: Any) -> None:
    """Store a float32 rounded to half precision."""
    builder.store(active.to_half(builder, value), pointer(builder, address, _f16), align=1)


@op(types.float32, types.int64)
def bits_to_float(builder: Any, bits: Any) -> Any:
    """The float32 whose bits are the low half of `bits`."""
    return builder.bitcast(builder.trunc(bits, _i32), _f32)


@op(types.float32, types.float32)
def sqrt(builder: Any, x: Any) -> Any:
    """Square root, correctly rounded."""
    return call(builder, "llvm.sqrt.f32", _f32, x)


@op(types.int64)
def room_of_256(builder: Any) -> Any:
    """The address of 256 bytes that last as long as the kernel runs."""
    return builder.ptrtoint(cgutils.alloca_once(builder, ir.ArrayType(_i64, 32)), _i64)


@op(types.int64, _ADDRESS, types.int64)
def atomic_add(builder: Any, address: Any, value: Any) -> Any:
    """Add and return what was there before."""
    return builder.atomic_rmw("add", pointer(builder, address, _i64), value, "seq_cst")


@op(types.int64, _ADDRESS, types.int64)
def atomic_swap(builder: Any, address: Any, value: Any) -> Any:
    """Store and return what was there before."""
    return builder.atomic_rmw("xchg", pointer(builder, address, _i64), value, "seq_cst")


@op(types.int64, _ADDRESS, types.int64, types.int64)
def atomic_exchange_if(builder: Any, address: Any, expected: Any, value: Any) -> Any:
    """Store `value` if `expected` is there; returns what was there."""
    pair = builder.cmpxchg(pointer(builder, address, _i64), expected, value, "seq_cst", "seq_cst")
    return builder.extract_value(pair, 0)


@op(types.int64, _ADDRESS)
def atomic_load(builder: Any, address: Any) -> Any:
    """Read what another thread wrote, and all it wrote before."""
    return builder.load_atomic(pointer(builder, address, _i64), "seq_cst", 8)


@op(types.void, types.int64, *[types.int64] * 4)
def call_kernel(builder: Any, function: Any, *args: Any) -> None:
    """Call the kernel at an address."""
    signature = ir.FunctionType(ir.VoidType(), [_i64] * 4)
    builder.call(builder.inttoptr(function, signature.as_pointer()), args)


@op(types.void)
def pause(builder: Any) -> None:
    """Tell the core that this is a waiting loop."""
    active.pause(builder)


@op(types.void, *[types.int64] * 3)
def call_with_two(builder: Any, function: Any, first: Any, second: Any) -> None:
    """Call a function of two integers (or addresses) whose result nobody needs."""
    signature = ir.FunctionType(_i32, [_i64] * 2)
    builder.call(builder.inttoptr(function, signature.as_pointer()), [first, second])


@op(types.void, types.int64)
def call_plain(builder: Any, function: Any) -> None:
    """Call a function without arguments whose result nobody needs."""
    builder.call(builder.inttoptr(function, ir.FunctionType(_i32, []).as_pointer()), [])
