"""SIMD values inside numba: a numba type whose data model is one LLVM vector.

All kernels use one logical width, 16 rows (or tokens, or channels) side by side; LLVM cuts it for narrower registers.
A tile is a tuple of such vectors, one a token; its length is part of the type, so one source serves all lengths.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16

_LLVM = {"i1": ir.IntType(1), "i8": ir.IntType(8), "i32": ir.IntType(32), "f32": ir.FloatType()}


class Vec(types.Type):
    """`lanes` values of `lane` ("i1", "i8", "i32", "f32")."""

    def __init__(self, lane: str, lanes: int) -> None:
        self.lane, self.lanes = lane, lanes
        self.llvm = ir.VectorType(_LLVM[lane], lanes)
        super().__init__(name=f"{lane}x{lanes}")


@register_model(Vec)
class _VecModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Vec) -> None:
        super().__init__(manager, fe_type, fe_type.llvm)


U8 = Vec("i8", 4 * LANES)
"""16 rows x 4 columns of bytes: what one `dot4` eats."""
I32 = Vec("i32", LANES)
F32 = Vec("f32", LANES)
MASK = Vec("i1", LANES)


TILE = object()
"""Stands for "a tile of any length" among the argument types of a `tile_op`; `emit` gets a list of vectors."""

ANY = object()
"""Stands for "whatever is given"; `emit` gets the plain LLVM value."""


def op(returns: types.Type, *takes: types.Type) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of fixed types from `emit(builder, *llvm_values)`."""

    def wrap(emit: Callable[..., Any]) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            result = emit(builder, *args)
            return context.get_dummy_value() if returns == types.void else result

        def typer(typingctx: Any, *given: types.Type) -> Any:
            return returns(*takes), codegen

        return _intrinsic(emit, typer, len(takes))

    return wrap


def tile_op(returns: types.Type, *takes: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic from `emit(builder, *values) -> [vectors]`; a tile arrives as a list of LLVM vectors.

    The result is a tile as long as the first argument's, or nothing where `returns` is void.
    """

    def wrap(emit: Callable[..., Any]) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = [_unpack(builder, arg) if take is TILE else arg for arg, take in zip(args, takes, strict=True)]
            result = emit(builder, *values)
            if returns == types.void:
                return context.get_dummy_value()
            return _pack(builder, result, context.get_value_type(signature.return_type))

        def typer(typingctx: Any, *given: Any) -> Any:
            length = len(given[0])
            result = returns if returns == types.void else types.UniTuple(returns, length)
            return result(*(g if t is TILE or t is ANY else t for g, t in zip(given, takes, strict=True))), codegen

        return _intrinsic(emit, typer, len(takes))

    return wrap


def _intrinsic(emit: Callable[..., Any], typer: Callable[..., Any], arity: int) -> Any:
    """An intrinsic named as `emit`; numba wants to see each argument by itself, so the signature is spelt out."""
    names = ["typingctx", *(f"a{i}" for i in range(arity))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    typer.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    typer.__name__, typer.__doc__ = emit.__name__, emit.__doc__
    return intrinsic(typer)


def _unpack(builder: Any, array: Any) -> list[Any]:
    return [builder.extract_value(array, i) for i in range(array.type.count)]


def _pack(builder: Any, vectors: list[Any], kind: ir.Type) -> Any:
    packed = ir.Constant(kind, ir.Undefined)
    for i, vector in enumerate(vectors):
        packed = builder.insert_value(packed, vector, i)
    return packed


def pointer(builder: Any, address: Any, kind: ir.Type) -> Any:
    """An LLVM pointer to `kind` at an integer address.

    LLVM's last passes may write address + offset as an offset from null, and numba optimizes such code once more when
    it links a helper into its caller: there an access by way of null counts as unreachable unless the function says
    that null is an address like any other.
    """
    set.add(builder.function.attributes, "null_pointer_is_valid")  # past a list of names that lacks this one
    return builder.inttoptr(address, kind.as_pointer())


def call(builder: Any, name: str, returns: ir.Type, *args: Any) -> Any:
    """Call the LLVM intrinsic `name`."""
    signature = ir.FunctionType(returns, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), args)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """`value` in every lane."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    one = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))
