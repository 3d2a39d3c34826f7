"""From a Program to kernel calls: which kernel computes which op, and which ops one kernel takes together.

Fused: the sum behind a matrix product, the sum before a norm, and the quantization of what only matrices read. A call
names values, not addresses; `place.py` gives them memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import UnsupportedError
from ..model import program as ir
from .instruction import NO_WINDOW, attention_scratch_bytes
from .packing import PackedWeight

QUANTIZED = "#q"
"""Suffix of the int8 form of a value; without it a name means float32 rows."""


@dataclass(frozen=True)
class Ref:
    """Address of a value's rows; `part` "sums" is where an int8 form's records start."""

    value: str
    part: str = "rows"


@dataclass(frozen=True)
class Stride:
    """Bytes from one row of a value to the next."""

    value: str


@dataclass(frozen=True)
class Constant:
    """Address of a vector weight, padded to whole vectors."""

    weight: str


@dataclass(frozen=True)
class Count:
    """Address of the number of rows a value has."""

    value: str


@dataclass(frozen=True)
class Kv:
    """Address of the keys or values of a KV layer."""

    layer: int
    part: str


@dataclass(frozen=True)
class Angles:
    """Address of the sines and cosines of a rope table; `part` "inv_freq" of its frequencies."""

    table: ir.RopeTable
    part: str = "angles"


@dataclass(frozen=True)
class Scratch:
    """Address of `n_bytes` for each thread."""

    n_bytes: int


Operand = int | Ref | Stride | Constant | Count | Kv | Angles | Scratch


@dataclass(frozen=True)
class Call:
    """One kernel call. `reads` and `writes` name value forms and KV layers: what barriers and memory are planned by."""

    kernel: str
    layout: str
    operands: dict[str, Operand]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def float_bits(x: float) -> int:
    """A float operand as kernels take it."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


@dataclass
class Lowering:
    """Calls of a program for given packed weights."""

    program: ir.Program
    packed: Mapping[str, PackedWeight]
    threads: int
    calls: list[Call] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    """Values that are computed in place, to the value whose memory they share."""

    def __post_init__(self) -> None:
        self._readers: dict[str, list[ir.Op]] = {}
        for op in self.program.ops:
            for name in op.reads():
                self._readers.setdefault(name, []).append(op)
        self._done: set[int] = set()
        self._per_row = self._values_per_row()
        for table in dict.fromkeys(op.table for op in self.program.ops if isinstance(op, ir.Rope)):
            self._angles(table)
        for index, op in enumerate(self.program.ops):
            if id(op) in self._done or isinstance(op, ir.Embed):
                continue
            emit = _EMIT.get(type(op))
            if emit is None:
                raise UnsupportedError(f"the CPU backend has no kernel for {type(op).__name__}")
            emit(self, op, self.program.ops[index + 1 :])

    def per_row(self, value: str) -> bool:
        """Whether a value has a row for each asked-for token instead of each token."""
        return value.removesuffix(QUANTIZED) in self._per_row

    def _values_per_row(self) -> set[str]:
        found: set[str] = set()
        for op in self.program.ops:
            if isinstance(op, ir.TakeRows) or any(name in found for name in op.reads()):
                found.update(op.writes())
        return found

    def reads_quantized(self, op: ir.Op) -> bool:
        """Whether `op` is a matrix that takes int8 activations."""
        return isinstance(op, ir.Linear) and self.packed[op.weight].layout.quantized

    def forms(self, value: str) -> tuple[bool, bool]:
        """Whether a value is needed as float32, and as int8."""
        readers = self._readers.get(value, [])
        quantized = any(self.reads_quantized(op) for op in readers)
        plain = value == self.program.logits or any(not self.reads_quantized(op) for op in readers)
        return plain, quantized

    def only_reader(self, value: str) -> ir.Op | None:
        """The op that reads a value, if it is the only one."""
        readers = self._readers.get(value, [])
        return readers[0] if len(readers) == 1 and value != self.program.logits else None

    def call(self, kernel: str, layout: str, operands: dict[str, Operand], reads: list[str], writes: list[str]) -> None:
        """Append a call."""
        self.calls.append(Call(kernel, layout, operands, tuple(reads), tuple(writes)))

    def done(self, op: ir.Op) -> None:
        """Mark an op that another one's kernel computes along."""
        self._done.add(id(op))

    def is_done(self, op: ir.Op) -> bool:
        """Whether an op was taken along."""
        return id(op) in self._done

    def targets(self, value: str) -> tuple[dict[str, Operand], list[str]]:
        """Operands of a kernel that can write both forms of a value, and the forms it must write."""
        plain, quantized = self.forms(value)
        q = value + QUANTIZED
        operands: dict[str, Operand] = {
            "out": Ref(value) if plain else 0,
            "quantized": Ref(q) if quantized else 0,
            "sums": Ref(q, "sums") if quantized else 0,
            "q_stride": Stride(q) if quantized else 0,
        }
        return operands, [value] * plain + [q] * quantized

    def quantize(self, value: str) -> None:
        """Make the int8 form of a value that a kernel wrote as float32."""
        if not self.forms(value)[1]:
            return
        q = value + QUANTIZED
        operands: dict[str, Operand] = {
            "count": Count(value),
            "x": Ref(value),
            "quantized": Ref(q),
            "sums": Ref(q, "sums"),
            "width": self.program.widths[value],
            "stride": Stride(value),
            "q_stride": Stride(q),
        }
        self.call("quantize", "quantize", operands, [value], [q])

    def _angles(self, table: ir.RopeTable) -> None:
        operands: dict[str, Operand] = {
            "inv_freq": Angles(table, "inv_freq"),
            "pairs": len(table.inv_freq),
            "magnitude": float_bits(table.magnitude),
            "out": Angles(table),
        }
        self.call("angles", "angles", operands, [], [angles_name(table)])


def angles_name(table: ir.RopeTable) -> str:
    """Name of a rope table's angles among the things calls read and write."""
    return f"angles {hash(table)}"


def kv_name(layer: int) -> str:
    """Name of a KV layer among the things calls read and write."""
    return f"kv {layer}"


def _linear(low: Lowering, op: ir.Linear, later: tuple[ir.Op, ...]) -> None:
    weight, plain = low.packed[op.weight], not low.reads_quantized(op)
    x = op.x if plain else op.x + QUANTIZED
    out, residual = op.out, _residual_of(low, op, later)
    if residual is not None:
        out = residual[1]
    tiles = (weight.rows + 15) // 16
    operands: dict[str, Operand] = {
        "count": Count(op.x),
        "weights": weight.address,
        "x": Ref(x),
        "sums": 0 if plain else Ref(x, "sums"),
        "x_stride": Stride(x),
        "columns": weight.columns,
        "rows": weight.rows,
        "per_tile": weight.per_tile,
        "chunk": max(1, tiles // (16 * low.threads)),
        "bias": 0 if op.bias is None else Constant(op.bias),
        "residual": 0 if residual is None else Ref(residual[0]),
        "residual_stride": 0 if residual is None else Stride(residual[0]),
        "out": Ref(out),
        "out_stride": Stride(out),
    }
    low.call(f"linear_{weight.family}", "linear", operands, [x] + ([residual[0]] if residual else []), [out])
    low.quantize(out)


def _residual_of(low: Lowering, op: ir.Linear, later: tuple[ir.Op, ...]) -> tuple[str, str] | None:
    """Other summand and result of the sum that alone reads a product, if the summand is there already."""
    reader = low.only_reader(op.out)
    if not isinstance(reader, ir.Add) or reader.a == reader.b:
        return None
    other = reader.b if reader.a == op.out else reader.a
    if any(other in after.writes() for after in later):
        return None
    low.done(reader)
    return other, reader.out


def _norm(low: Lowering, op: ir.RmsNorm, later: tuple[ir.Op, ...]) -> None:
    _emit_norm(low, op, None)


def _emit_norm(low: Lowering, op: ir.RmsNorm, added: ir.Add | None) -> None:
    width = low.program.widths[op.out]
    operands, writes = low.targets(op.out)
    if op.groups > 1:  # heads are normed in place of int8, which would need whole groups of 32
        operands, writes = {"out": Ref(op.out), "quantized": 0, "sums": 0, "q_stride": 0}, [op.out]
    operands |= {
        "count": Count(op.out),
        "x": Ref(op.x if added is None else added.a),
        "residual": 0 if added is None else Ref(added.b),
        "add_out": 0 if added is None else Ref(added.out),
        "weight": Constant(op.weight),
        "width": width // op.groups,
        "groups": op.groups,
        "eps": float_bits(op.eps),
        "stride": Stride(op.out),
    }
    reads = [op.x] if added is None else [added.a, added.b]
    low.call("norm", "norm", operands, reads, writes + ([] if added is None else [added.out]))
    if op.groups > 1:
        low.quantize(op.out)


def _add(low: Lowering, op: ir.Add, later: tuple[ir.Op, ...]) -> None:
    follower = later[0] if later else None
    if isinstance(follower, ir.RmsNorm) and follower.x == op.out and follower.groups == 1 and not low.forms(op.out)[1]:
        low.done(follower)
        _emit_norm(low, follower, op)
        return
    _elementwise(low, "add", op.a, op.b, 0.0, op.out)


def _elementwise(low: Lowering, kernel: str, a: str, b: str, factor: float, out: str) -> None:
    if out == low.program.logits and low.only_reader(a) is not None:
        low.aliases[a] = out  # the logits have one place, the caller's
    operands: dict[str, Operand] = {
        "count": Count(out),
        "a": Ref(a),
        "b": Ref(b),
        "factor": float_bits(factor),
        "out": Ref(out),
        "width": low.program.widths[out],
        "stride": Stride(out),
    }
    low.call(kernel, "elementwise", operands, [a, b], [out])
    low.quantize(out)


def _scale(low: Lowering, op: ir.Scale, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "scale", op.x, op.x, op.factor, op.out)


def _softcap(low: Lowering, op: ir.Softcap, later: tuple[ir.Op, ...]) -> None:
    _elementwise(low, "softcap", op.x, op.x, op.cap, op.out)


ACTIVATIONS = ("silu", "gelu_tanh", "relu")


def _gated(low: Lowering, op: ir.GatedAct, later: tuple[ir.Op, ...]) -> None:
    if op.act not in ACTIVATIONS:
        raise UnsupportedError(f"the CPU backend has no activation {op.act!r}", known=ACTIVATIONS)
    operands, writes = low.targets(op.out)
    operands |= {
        "count": Count(op.out),
        "gate": Ref(op.gate),
        "up": Ref(op.up),
        "width": low.program.widths[op.out],
        "stride": Stride(op.gate),
    }
    low.call(f"gated_{op.act}", "gated", operands, [op.gate, op.up], writes)


def _rope(low: Lowering, op: ir.Rope, later: tuple[ir.Op, ...]) -> None:
    operands: dict[str, Operand] = {
        "x": Ref(op.x),
        "out": Ref(op.out),
        "angles": Angles(op.table),
        "pairs": len(op.table.inv_freq),
        "heads": op.heads,
        "head_size": low.program.widths[op.out] // op.heads,
        "stride": Stride(op.out),
    }
    low.call(f"rope_{op.table.kind}", "rope", operands, [op.x, angles_name(op.table)], [op.out])
    low.quantize(op.out)


def _kv_write(low: Lowering, op: ir.KvWrite, later: tuple[ir.Op, ...]) -> None:
    layer = low.program.kv_layers[op.layer]
    operands: dict[str, Operand] = {
        "k": Ref(op.k),
        "v": Ref(op.v),
        "keys": Kv(op.layer, "keys"),
        "values": Kv(op.layer, "values"),
        "kv_heads": layer.kv_heads,
        "key_size": layer.key_size,
        "value_size": layer.value_size,
        "k_stride": Stride(op.k),
        "v_stride": Stride(op.v),
    }
    low.call("kv_write", "kv_write", operands, [op.k, op.v], [kv_name(op.layer)])


def _attention(low: Lowering, op: ir.Attention, later: tuple[ir.Op, ...]) -> None:
    scratch = attention_scratch_bytes(op.value_size)
    operands: dict[str, Operand] = {
        "q": Ref(op.q),
        "keys": Kv(op.layer, "keys"),
        "values": Kv(op.layer, "values"),
        "out": Ref(op.out),
        "heads": op.heads,
        "kv_heads": op.kv_heads,
        "key_size": op.key_size,
        "value_size": op.value_size,
        "scale": float_bits(op.scale),
        "softcap": float_bits(op.softcap or 0.0),
        "window": op.window or NO_WINDOW,
        "q_stride": Stride(op.q),
        "out_stride": Stride(op.out),
        "scratch": Scratch(scratch),
        "scratch_bytes": scratch,
    }
    low.call("attention", "attention", operands, [op.q, kv_name(op.layer)], [op.out])
    low.quantize(op.out)


def _take_rows(low: Lowering, op: ir.TakeRows, later: tuple[ir.Op, ...]) -> None:
    operands: dict[str, Operand] = {
        "x": Ref(op.x),
        "out": Ref(op.out),
        "width": low.program.widths[op.out],
        "stride": Stride(op.out),
    }
    low.call("take_rows", "take_rows", operands, [op.x], [op.out])
    low.quantize(op.out)


_EMIT: dict[type[ir.Op], Callable[..., None]] = {
    ir.Linear: _linear,
    ir.RmsNorm: _norm,
    ir.Add: _add,
    ir.Scale: _scale,
    ir.Softcap: _softcap,
    ir.GatedAct: _gated,
    ir.Rope: _rope,
    ir.KvWrite: _kv_write,
    ir.Attention: _attention,
    ir.TakeRows: _take_rows,
}
