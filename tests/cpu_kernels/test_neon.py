"""ARM kernels, compiled on any machine: what they are made of."""

import re
from types import SimpleNamespace

import pytest
from llvmlite import ir

from halfbyte.cpu_kernels.isa import ISAS
from tests.cpu_kernels.emitted import I64, assembly_for

NEON = ISAS["neon_dotprod"]
TRIPLE, FEATURES = "aarch64-unknown-linux-gnu", "+neon,+dotprod"
CONTEXT = SimpleNamespace(
    get_dummy_value=lambda: None, get_value_type=lambda kind: ir.ArrayType(kind.dtype.llvm, kind.count)
)


@pytest.fixture
def words(monkeypatch):
    """The vocabulary of kernels with NEON's lowerings: `words.load_f16(builder, address)` emits it."""
    from halfbyte.cpu_kernels import fields, level_formats, lowerings, ops, tiles

    monkeypatch.setattr(lowerings.active, "__dict__", {})
    lowerings.active.use(NEON)
    words = SimpleNamespace()
    for module in (ops, tiles, fields, level_formats):
        for name, intrinsic in vars(module).items():
            if hasattr(intrinsic, "_defn"):
                setattr(words, name, lambda builder, *args, word=intrinsic: emit(word, builder, *args))
    return words


def emit(word, builder, *args):
    """What numba would have an intrinsic emit for these values."""
    from numba import types

    kinds = [
        types.UniTuple(types.int64, arg.type.count) if isinstance(arg.type, ir.ArrayType) else None for arg in args
    ]
    signature, codegen = word._defn(None, *kinds)
    return codegen(CONTEXT, builder, signature, args)


def assembly(body):
    """Assembly of `body(builder, w, x, sums, out)`, all addresses."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 4), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    body(builder, *function.args)
    builder.ret_void()
    return assembly_for(TRIPLE, FEATURES, module)


def count(text, *names):
    return sum(len(re.findall(rf"^\s+{name}\b", text, re.MULTILINE)) for name in names)


def group(words, builder, w, x, sums, out, *, chunks, dot):
    """A group of 32 columns of 16 rows times a tile of four tokens."""
    shape = ir.Constant(ir.ArrayType(I64, NEON.tokens[0]), None)
    stride = I64(320)
    acc = words.zeros(builder, shape)
    dots = dot(builder, acc, chunks(builder, builder.add(w, I64(64))), x, stride)
    scale, offset = words.load_f16(builder, w), words.load_f16(builder, builder.add(w, I64(32)))
    acc = words.add_group(builder, acc, dots, scale, offset, sums, I64(4), stride)
    words.store_tile(builder, acc, out, stride)


def test_a_group_of_nibbles(words):
    text = assembly(lambda *args: group(words, *args, chunks=words.nibbles, dot=words.dot_small))
    # 4 tokens x 2 planes of activations x 8 vectors of 4 columns x 4 quarters of 16 rows
    assert count(text, "sdot") == 4 * 2 * 8 * 4
    assert count(text, "fmla") == 4 * 4 * 2
    assert count(text, "fcvtl", "fcvtl2") == 2 * 4
    assert count(text, "scvtf") == 4 * 4
    assert count(text, "bl", "blr") == 0


def test_a_group_of_levels_of_a_table(words):
    def levels(builder, w):
        return words.iq4_levels(builder, words.nibbles(builder, w))

    text = assembly(lambda *args: group(words, *args, chunks=levels, dot=words.dot_wide))
    assert count(text, "tbl") == 8 * 4
    assert count(text, "bl", "blr") == 0


def test_a_group_of_whole_bytes(words):
    text = assembly(lambda *args: group(words, *args, chunks=words.whole_bytes, dot=words.dot_wide))
    assert 4 * 2 * 8 * 4 < count(text, "sdot") <= 3 * 4 * 2 * 8 * 4
    assert count(text, "bl", "blr") == 0


def test_no_word_of_the_vocabulary_is_a_call(words):
    """Conversions, rounding, selection: none falls back to a library's function."""

    def body(builder, w, x, sums, out):
        v = words.load_f16(builder, w)
        for name in ("nearest", "floor", "absolute"):
            v = getattr(words, name)(builder, v)
        v = words.fma(builder, v, words.load_bf16(builder, x), words.load_f32(builder, sums))
        v = words.maximum(builder, v, words.minimum(builder, v, words.load_u8_as_f32(builder, w)))
        v = words.div(builder, v, words.load_i8_as_f32(builder, w))
        v = words.keep_between(builder, words.first(builder, v, x), w, x)
        v = words.two_to(builder, v)
        words.store_f16(builder, out, v)
        words.store_i8(builder, builder.add(out, I64(32)), v)
        words.store_f32(builder, builder.add(out, I64(48)), words.same(builder, words.total(builder, v)))

    text = assembly(body)
    assert count(text, "fcvtn", "fcvtn2") > 0
    assert count(text, "frintx", "frinti") > 0
    assert count(text, "bl", "blr") == 0
