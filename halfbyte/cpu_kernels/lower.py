"""From a Program to kernel calls: the walk over its ops, and what is known of its values.

What one op becomes stands in `emit.py`; where values lie in memory is decided in `place.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import UnsupportedError
from ..model import program as ir
from ..model.kv_types import KvTypes
from .calls import ORDER, QUANTIZED, Angles, Call, Count, Operand, Ref, Stride, angles_name, float_bits, value_of
from .packing import PackedWeight


@dataclass
class Lowering:
    """Calls of a program for matrices of given families; where they lie is not asked."""

    program: ir.Program
    packed: Mapping[str, PackedWeight]
    tables: Mapping[str, str]
    """Embedding tables that kernels can read from the file, to their formats."""
    max_tokens: int
    kv: KvTypes = field(default_factory=KvTypes)
    calls: list[Call] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    """Values that are computed in place, to the value whose memory they share."""

    def __post_init__(self) -> None:
        self._readers: dict[str, list[ir.Op]] = {}
        for op in self.program.ops:
            for name in op.reads():
                self._readers.setdefault(name, []).append(op)
        self._writer = {name: i for i, op in enumerate(self.program.ops) for name in op.writes()}
        self._done: set[int] = set()
        self._per_row = self._values_per_row()
        self._routes = self._routes_of_values()
        self._adapter_of = self._values_of_adapters()
        self._adapter: int | None = None
        self._op = 0
        for table in dict.fromkeys(op.table for op in self.program.ops if isinstance(op, ir.Rope)):
            self._angles(table)
        from .emit import EMIT

        for index, op in enumerate(self.program.ops):
            if id(op) in self._done:
                continue
            emit = EMIT.get(type(op))
            if emit is None:
                raise UnsupportedError(f"the CPU backend has no kernel for {type(op).__name__}")
            self._adapter = self._adapter_of.get(op.writes()[0]) if op.writes() else None
            self._op = index
            emit(self, op, self.program.ops[index + 1 :])

    def per_row(self, value: str) -> bool:
        """Whether a value has a row for each asked-for token instead of each token."""
        return value_of(value) in self._per_row

    def route_of(self, value: str) -> ir.MoeRoute | None:
        """What gave a value the rows of experts that it has instead of tokens."""
        return self._routes.get(value_of(value))

    def dealt_by(self, route: str) -> tuple[int, int]:
        """How many experts a route chooses from, and how many rows it deals out at most."""
        op = self.program.ops[self._writer[route]]
        assert isinstance(op, ir.MoeRoute), op
        return self.program.widths[op.x], self.max_tokens * op.used

    def most_rows(self, value: str) -> int:
        """Rows of a value in the largest step."""
        route = self.route_of(value)
        return self.max_tokens * (1 if route is None else route.used)

    def _values_per_row(self) -> set[str]:
        found: set[str] = set()
        for op in self.program.ops:
            received = isinstance(op, ir.Receive) and op.asked
            if received or isinstance(op, ir.TakeRows) or any(name in found for name in op.reads()):
                found.update(op.writes())
        return found

    def _routes_of_values(self) -> dict[str, ir.MoeRoute]:
        routes = {op.out: op for op in self.program.ops if isinstance(op, ir.MoeRoute)}
        found: dict[str, ir.MoeRoute] = {}
        for op in self.program.ops:
            dealt = [routes[op.route]] if isinstance(op, ir.Dispatch) else [found[x] for x in op.reads() if x in found]
            if dealt and not isinstance(op, ir.Combine):
                found.update(dict.fromkeys(op.writes(), dealt[0]))
        return found

    def _values_of_adapters(self) -> dict[str, int]:
        """Values that nothing reads but what adds one adapter, to its number."""
        found: dict[str, int] = {}
        for op in reversed(self.program.ops):
            for name in op.writes():
                uses = {_use(reader, name, found) for reader in self._readers.get(name, [])}
                adapter = uses.pop() if len(uses) == 1 else None
                if adapter is not None and name != self.program.logits:
                    found[name] = adapter
        return found

    def reads_quantized(self, op: ir.Op) -> bool:
        """Whether `op` is a matrix that takes int8 activations."""
        return isinstance(op, ir.Linear | ir.ExpertLinear) and self.packed[op.weight].layout.quantized

    def forms(self, value: str) -> tuple[bool, bool]:
        """Whether a value is needed as float32, and as int8."""
        wanted = [self._wanted(op, value) for op in self._readers.get(value, [])]
        plain = value == self.program.logits or any(plain for plain, _ in wanted)
        return plain, any(quantized for _, quantized in wanted)

    def _wanted(self, op: ir.Op, value: str) -> tuple[bool, bool]:
        """In which forms a reader takes a value; one that copies rows wants those of its copies."""
        if isinstance(op, ir.Dispatch) and op.x == value:
            return self.forms(op.out)
        quantized = isinstance(op, ir.Linear | ir.ExpertLinear) and op.x == value and self.reads_quantized(op)
        return not quantized, quantized

    def written_before(self, value: str, op: ir.Op) -> bool:
        """Whether a value is there when `op` runs."""
        return self._writer[value] < self._writer[op.writes()[0]]

    def only_reader(self, value: str) -> ir.Op | None:
        """The op that reads a value, if it is the only one."""
        readers = self._readers.get(value, [])
        return readers[0] if len(readers) == 1 and value != self.program.logits else None

    def kv_of(self, layer: int) -> KvTypes:
        """Types of the store of a KV layer."""
        return self.kv.of(self.program.kv_layers[layer])

    def over_kv(self, kernel: str, layer: int) -> str:
        """Name of a kernel that is made for the types of a KV layer."""
        types = self.kv_of(layer)
        return f"{kernel}_{types.keys}_{types.values}"

    def call(
        self,
        kernel: str,
        layout: str,
        operands: dict[str, Operand],
        reads: list[str],
        writes: list[str],
        adapter: int | None = None,
    ) -> None:
        """Append a call; one for what only an adapter needs is that adapter's anyway."""
        counted = (self.route_of(operand.value) for operand in operands.values() if isinstance(operand, Count))
        orders = [route.out + ORDER for route in counted if route is not None]
        read, whose = tuple(dict.fromkeys(reads + orders)), self._adapter if adapter is None else adapter
        out_for = self._out_for(operands)
        self.calls.append(Call(kernel, layout, operands, read, tuple(writes), whose, out_for, self._op))

    def _out_for(self, operands: dict[str, Operand]) -> frozenset[int]:
        """The adapters for whose sake alone a kernel that writes int8 writes float32 too; none where others want it."""
        out = operands.get("out")
        if not operands.get("quantized") or not isinstance(out, Ref):
            return frozenset()
        readers = [op for op in self._readers.get(out.value, []) if self._wanted(op, out.value)[0]]
        adapters = {self._adapter_of.get(op.writes()[0]) if op.writes() else None for op in readers}
        return frozenset(adapter for adapter in adapters if adapter is not None and None not in adapters)

    def root(self, value: str) -> str:
        """The value whose memory `value` uses."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def in_place(self, before: str, after: str) -> None:
        """Let `after` be made where `before` lies, which nobody else reads; the logits have one place, the caller's."""
        if self.only_reader(before) is None:
            raise UnsupportedError(f"the CPU backend changes {before!r} in place: it has one reader and no tap")
        root = self.root(before)
        if after == self.program.logits:
            self.aliases[root] = after
        else:
            self.aliases[after] = root

    def done(self, op: ir.Op) -> None:
        """Mark an op that another one's kernel computes along."""
        self._done.add(id(op))

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


def _use(reader: ir.Op, value: str, found: Mapping[str, int]) -> int | None:
    """The adapter for whose sake alone `reader` reads a value."""
    if isinstance(reader, ir.AddScaled):
        return None if reader.a == value else reader.adapter
    return found.get(reader.writes()[0]) if reader.writes() else None
