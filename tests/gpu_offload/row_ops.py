"""Ops lowered by themselves and run on a device, every value in memory of its own that was poisoned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from halfbyte.gpu_offload.calls import Call, Count, Packed, Ref, Scratch, Sizes, StepAt, Stride, Vector
from halfbyte.gpu_offload.device import Launch
from halfbyte.gpu_offload.emit_experts import EMIT_EXPERTS
from halfbyte.gpu_offload.emit_rows import EMIT_ROWS
from halfbyte.gpu_offload.lower import Lowering, Target
from halfbyte.gpu_offload.routed import plan_scratch
from halfbyte.model.program import Op, Program, TakeRows
from tests.gpu_offload.arrays import download, upload
from tests.gpu_offload.planes import from_planes, quads_of, units_of

EMIT = EMIT_ROWS | EMIT_EXPERTS


def padded(width: int) -> int:
    return (width + 63) // 64 * 64


class ByHand(Lowering):
    """A lowering of ops whose first inputs come from outside, with the forms a test wants: by default rows alone."""

    def __init__(
        self,
        ops: tuple[Op, ...],
        widths: dict[str, int],
        wanted: Mapping[str, tuple[str, ...]] | None = None,
        asked_for: frozenset[str] = frozenset(),
        packed: Mapping[str, Any] | None = None,
    ) -> None:
        self.wanted = wanted or {}
        target = Target(4, 99 << 10, 0, 0, None)
        super().__init__(Program(ops, widths, (), "logits", 0), packed or {}, target, False, "bytes")
        self._asked = set(asked_for)
        for op in ops:
            if isinstance(op, TakeRows) or any(name in self._asked for name in op.reads()):
                self._asked.update(op.writes())
        self._writer = dict.fromkeys(widths, -1) | self._writer
        self.walk(ops, EMIT)

    def _extra_forms(self, value: str) -> set[Any]:
        return set(self.wanted.get(value, ())) - {"rows"}

    def reads_rows(self, value: str) -> bool:
        return "rows" in self.wanted.get(value, ("rows",))


def step_words(device: Any, tokens: int, rows: list[int], seq_of: list[int], scales: np.ndarray | None) -> list[Any]:
    """Buffers of a `Step`, itself first."""
    counts = [tokens, max(seq_of, default=0) + 1, len(rows), 1, 0 if scales is None else scales.shape[1], 0, 0, 0]
    arrays = [upload(device, np.array(values, np.int32)) for values in (seq_of or [0], rows or [0])]
    of_scales = upload(device, np.zeros(1, np.float32) if scales is None else scales)
    pointers = [0, 0, arrays[0].address, 0, 0, 0, arrays[1].address, of_scales.address]
    words = np.concatenate([np.array(counts, np.int32).view(np.int64), np.array(pointers, np.int64)])
    return [upload(device, words), *arrays, of_scales]


class Run:
    """One step of ops: `given` values f32[T, width], of `tokens` real ones in a grid made for `bucket`."""

    def __init__(
        self,
        device: Any,
        low: ByHand,
        given: Mapping[str, np.ndarray],
        weights: Mapping[str, np.ndarray] | None = None,
        *,
        bucket: int = 0,
        rows: list[int] | None = None,
        seq_of: list[int] | None = None,
        scales: np.ndarray | None = None,
    ) -> None:
        self.device, self.low = device, low
        self.tokens = len(next(iter(given.values())))
        # For two rows at least: products norm a single one themselves.
        self.sizes = Sizes(*(max(bucket, self.tokens, len(rows or []), 2),) * 3)
        self.rows = rows or []
        self._buffers: dict[Any, Any] = {}
        seq_of = [0] * self.tokens if seq_of is None else seq_of
        self._step = step_words(device, self.tokens, self.rows, seq_of, scales)
        self._counts = [upload(device, np.array([n], np.int32)) for n in (self.tokens, len(self.rows))]
        for name, values in given.items():
            whole = np.full((self.most(name), padded(values.shape[1])), np.nan, np.float32)
            whole[: self.tokens, : values.shape[1]] = values
            self._buffers[Ref(name)] = upload(device, whole)
        for name, values in (weights or {}).items():
            self._buffers[Vector(name)] = upload(device, np.asarray(values, np.float32))
        launches = [self._launch(call) for call in low.calls if isinstance(call, Call)]
        device.load({launch.kernel for launch in launches}, None)
        for launch in launches:
            device.launch(launch)
        device.synchronize()

    def _launch(self, call: Call) -> Launch:
        arguments = tuple(self._resolve(operand) for operand in call.operands)
        kernel = call.kernel if isinstance(call.kernel, str) else call.kernel(self.sizes)
        shared = call.shared if isinstance(call.shared, int) else call.shared(self.sizes)
        return Launch(kernel, call.grid(self.sizes), call.threads, arguments, shared)

    def most(self, value: str) -> int:
        """Rows of a value that there is memory for: whole quads."""
        return quads_of(max(self.low.most_rows(value, self.sizes), 1)) * 4

    def count(self, value: str) -> int:
        """Rows that a value really has."""
        if self.low.count(value) == plan_scratch(1, 1):
            return int(self.scratch("expert_plan")[0])
        return len(self.rows) if self.low.asked(value) else self.tokens

    def _resolve(self, operand: Any) -> int | float:
        match operand:
            case int() | float():
                return operand
            case Stride(value):
                return padded(self.low.program.widths[value])
            case StepAt():
                return int(self._step[0].address)
            case Packed(weight):
                return self.low.packed[weight].address
            case Count(asked):
                return int(self._counts[asked].address)
        if operand not in self._buffers:
            n_bytes = operand.n_bytes(self.sizes) if isinstance(operand, Scratch) else self._bytes_of(operand)
            self._buffers[operand] = self.device.allocate(n_bytes)
        return int(self._buffers[operand].address)

    def _bytes_of(self, ref: Ref) -> int:
        rows, width = self.most(ref.value), self.low.program.widths[ref.value]
        units = units_of(width)
        each = {"rows": 4 * padded(width), "planes": 512 * units, "records": 128 * units, "halves": 2 * width}
        return rows * each.get(ref.form, 4)

    def value(self, name: str) -> np.ndarray:
        """f32[count, width], after a look at what lies around: it was left alone."""
        count, width = self.count(name), self.low.program.widths[name]
        whole = download(self.device, self._buffers[Ref(name)], np.float32, (self.most(name), padded(width)))
        assert np.isnan(whole[count:]).all(), "rows that no token has were written"
        assert np.isnan(whole[:, width:]).all(), "columns behind a row were written"
        return whole[:count, :width]

    def scratch(self, name: str) -> np.ndarray:
        """i32 words of a scratch."""
        buffer = next(b for key, b in self._buffers.items() if isinstance(key, Scratch) and key.name == name)
        return download(self.device, buffer, np.int32, (buffer.n_bytes // 4,))

    def planes(self, name: str) -> np.ndarray:
        """f32[count, width] that the planes of a value mean."""
        count, width = self.count(name), self.low.program.widths[name]
        forms = [self._buffers[Ref(name, "planes")], self._buffers[Ref(name, "records")]]
        found = [download(self.device, buffer, np.uint8, (buffer.n_bytes,)) for buffer in forms]
        values, untouched = from_planes(*found, width)
        assert untouched[count:].all(), "planes that no token has were written"
        assert not values[:count, width:].any(), "columns behind a row are not zero"
        return values[:count, :width]

    def halves(self, name: str) -> np.ndarray:
        """f32[count, width] that the halves of a value mean."""
        most, count, width = self.most(name), self.count(name), self.low.program.widths[name]
        halves = download(self.device, self._buffers[Ref(name, "halves")], np.float16, (most, width))
        scales = download(self.device, self._buffers[Ref(name, "half_scales")], np.float32, (most,))
        assert np.isnan(halves[count:]).all(), "halves that no token has were written"
        assert np.isnan(scales[count:]).all(), "scales that no token has were written"
        return halves[:count].astype(np.float32) * scales[:count, None]
