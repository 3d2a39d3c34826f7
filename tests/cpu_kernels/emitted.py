"""Single vector ops as functions: run here on arrays, or turned into another machine's assembly. No numba kernel."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

I8, I16, I32, I64, F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
SIGNED_DOT = "llvm.aarch64.neon.sdot.v4i32.v16i8"


def module_of(emit, gives, *takes):
    """A module with `f(addresses of inputs..., address of the output)` around `emit(builder, *values)`."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * (len(takes) + 1)), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    *inputs, output = (
        builder.inttoptr(address, kind.as_pointer())
        for address, kind in zip(function.args, (*takes, gives), strict=True)
    )
    result = emit(builder, *(builder.load(address, align=1) for address in inputs))
    builder.store(result, output, align=1)
    builder.ret_void()
    return module


class Emitted:
    """One vector op, ready to run on this machine; inputs and output are arrays of whole vectors."""

    def __init__(self, emit, gives, *takes, cpu="", features=""):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features)
        text = str(module_of(emit, gives, *takes)).replace(SIGNED_DOT, "signed_dot")
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        if "signed_dot" in text:
            self._engine.add_module(llvm.parse_assembly(str(signed_dot())))
        self._engine.finalize_object()
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_longlong] * (len(takes) + 1))
        self._call = signature(self._engine.get_function_address("f"))

    def __call__(self, *arrays, out):
        """`out[i] = op(arrays[0][i], ...)` for each vector i; returns `out`."""
        for row in range(len(out)):
            self._call(*(array[row].ctypes.data for array in (*arrays, out)))
        return out


def signed_dot():
    """What ARM's `sdot` does, in plain LLVM."""
    bytes_, ints, wide = ir.VectorType(I8, 16), ir.VectorType(I32, 4), ir.VectorType(I32, 16)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ints, [ints, bytes_, bytes_]), "signed_dot")
    builder = ir.IRBuilder(function.append_basic_block())
    acc, a, b = function.args
    products = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
    for j in range(4):
        lanes = ir.Constant(ir.VectorType(I32, 4), [4 * i + j for i in range(4)])
        acc = builder.add(acc, builder.shuffle_vector(products, products, lanes))
    builder.ret(acc)
    return module


def assembly_for(triple, features, module):
    """Assembly of a module for any machine."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(features=features, opt=2)
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    return machine.emit_assembly(parsed)


def vectors(values, kind, lanes):
    """`values` as rows of whole vectors, the last one filled up with zeros."""
    values = np.asarray(values, kind)
    return np.concatenate([values, np.zeros(-len(values) % lanes, kind)]).reshape(-1, lanes)
