"""`Appender`: a program in the making, and the ops that every architecture needs.

A method appends ops and returns the name of the value it made. Weights and values inside a layer are named
`blk.<i>.<stem>`, as GGUF does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from .program import Act, Activation, Add, AddVector, LayerNorm, Linear, Mul, Op, RmsNorm, Scale, TakeRows
from .row_range import RowRange
from .spec import ModelSpec


class Appender:
    """Appends ops to a program; `tensors` are the names that the file has."""

    def __init__(self, spec: ModelSpec, tensors: Collection[str]) -> None:
        self.spec = spec
        self.tensors = tensors
        self.ops: list[Op] = []
        self.widths: dict[str, int] = {}
        self._layer = -1

    def layers(self) -> Iterator[int]:
        """Enter one layer after the other."""
        for layer in range(self.spec.n_layers):
            self._layer = layer
            yield layer
        self._layer = -1

    def norm(self, x: str, stem: str, groups: int = 1) -> str:
        """`x` normed by the weight `stem`."""
        out = self.value(stem, self.widths[x])
        self.ops.append(RmsNorm(x, f"{self.named(stem)}.weight", out, self.spec.norm_eps, groups))
        return out

    def layer_norm(self, x: str, stem: str) -> str:
        """`x` normed by the weight and bias `stem`."""
        out, name = self.value(stem, self.widths[x]), self.named(stem)
        bias = f"{name}.bias"
        self.ops.append(LayerNorm(x, f"{name}.weight", out, self.spec.norm_eps, bias if bias in self.tensors else None))
        return out

    def linear(self, x: str, stem: str, n: int) -> str:
        """[.., n]; the bias is added where the file has one."""
        bias = f"{self.named(stem)}.bias"
        out = self.value(stem, n)
        self.ops.append(Linear(x, f"{self.named(stem)}.weight", out, bias if bias in self.tensors else None))
        return out

    def linears(self, x: str, stem: str, parts: Mapping[str, int]) -> tuple[str, ...]:
        """Several products with matrices that the file has one below the other as `stem`: names of values to rows."""
        weight, bias = f"{self.named(stem)}.weight", f"{self.named(stem)}.bias"
        outs, start = [], 0
        for part, n in parts.items():
            out = self.value(part, n)
            of_bias = RowRange(bias, start, start + n).name if bias in self.tensors else None
            self.ops.append(Linear(x, RowRange(weight, start, start + n).name, out, of_bias))
            outs.append(out)
            start += n
        return tuple(outs)

    def scale(self, x: str, factor: float, stem: str) -> str:
        """`factor * x`."""
        out = self.value(stem, self.widths[x])
        self.ops.append(Scale(x, out, factor))
        return out

    def residual(self, x: str, part: str) -> str:
        """`x` and what a half of a layer adds to it."""
        scale = self.spec.residual_scale
        return self.add(x, part if scale == 1 else self.scale(part, scale, f"{part.rpartition('.')[2]}_scaled"))

    def add(self, a: str, b: str) -> str:
        """`a + b`."""
        out = self.value(f"{b.rpartition('.')[2]}_sum", self.widths[a])
        self.ops.append(Add(a, b, out))
        return out

    def add_vector(self, x: str, vector: str, stem: str) -> str:
        """`x` and the weight `vector` in every row."""
        out = self.value(stem, self.widths[x])
        self.ops.append(AddVector(x, vector, out))
        return out

    def act(self, x: str, act: Activation) -> str:
        """`act(x)`."""
        out = self.value(f"{x.rpartition('.')[2]}_act", self.widths[x])
        self.ops.append(Act(x, out, act))
        return out

    def mul(self, a: str, b: str, stem: str) -> str:
        """`a * b`."""
        out = self.value(stem, self.widths[a])
        self.ops.append(Mul(a, b, out))
        return out

    def asked_rows(self, *values: str) -> tuple[str, ...]:
        """In the last layer only the asked-for rows of `values`: nothing after attention looks at other tokens."""
        if self._layer < self.spec.n_layers - 1:
            return values
        return tuple(self._take_rows(value) for value in values)

    def _take_rows(self, x: str) -> str:
        out = self.value(f"{x.rpartition('.')[2]}_rows", self.widths[x])
        self.ops.append(TakeRows(x, out))
        return out

    def named(self, stem: str) -> str:
        """`stem` inside the layer that is being made."""
        return stem if self._layer < 0 else f"blk.{self._layer}.{stem}"

    def value(self, stem: str, width: int) -> str:
        """Name of a new value."""
        name = self.named(stem)
        assert name not in self.widths, f"{name} is made twice"
        self.widths[name] = width
        return name
