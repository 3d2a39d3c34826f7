"""Ops on KV pages, lowered and run on a device, and the same in NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from halfbyte.gpu_offload.calls import Call, Count, Data, Pages, Ref, Scratch, Sizes, StepAt, Stride, Vector
from halfbyte.gpu_offload.device import Launch
from halfbyte.gpu_offload.emit import EMIT
from halfbyte.gpu_offload.kv_pages import KvPages
from halfbyte.gpu_offload.lower import Lowering, Target
from halfbyte.gpu_offload.place import form_bytes
from halfbyte.gpu_offload.step_image import TOKENS_AT
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import Linear, Program
from halfbyte.model.reference_kv import PagedKv
from halfbyte.model.reference_ops import OPS
from halfbyte.model.reference_state import State
from tests.gpu_offload.arrays import download, upload

N_PAGES = 12


def padded(width):
    return -(-width // 64) * 64


class Stage:
    """Ops of one program, with pages on the device and in NumPy."""

    def __init__(self, device, ops, widths, kv_layers, *, types=None, weights=None, product=None):
        """`product`: what the last value is for, a product of "bytes" or of "halves"; it is not computed."""
        self.device, self.weights, self.product = device, weights or {}, product
        self.types = types or KvTypes()
        self.ops, last = tuple(ops), ops[-1].writes()
        reader = (Linear(last[0], "matrix", "product"),) if product else ()
        self.program = Program((*ops, *reader), widths, tuple(kv_layers), "logits", 1)
        self.pages = KvPages(device, self.program.kv_layers, N_PAGES, self.types)
        # As memory may be found: halves and floats that are no numbers.
        for page in range(N_PAGES):
            self.pages.write(page, np.full(self.pages.page_bytes, 0xFF, np.uint8))
        self.reference_kv = PagedKv(self.program.kv_layers, N_PAGES, 16, self.types)
        self.multiprocessors = device.multiprocessors
        self.data, self.scratch = {}, {}

    def lowered(self, ops, prompt):
        target = Target(
            self.multiprocessors, self.device.shared_bytes, 16 * N_PAGES, self.pages.page_bytes, self.pages.layout
        )
        packed = {"matrix": SimpleNamespace(family=SimpleNamespace(plain=False, name="Q4_K"))}
        return Lowering(self.program, packed, target, prompt, self.product or "bytes").walk(ops, EMIT)

    def run(self, batch, values, *, prompt=False, ops=None, bucket=0):
        """What the ops write, f32[T, width] by name, and what else they make of it, bytes by name and form.

        `bucket`: tokens that grids are made for, if more than there are.
        """
        calls = self.lowered(self.ops if ops is None else ops, prompt)
        tokens = max(bucket, len(batch.ids))
        buffers = {(name, "rows"): upload(self.device, _spread(x, tokens)) for name, x in values.items()}
        step, _held = step_buffer(self.device, batch)
        for call in calls:
            for operand in call.operands:
                if isinstance(operand, Ref) and (operand.value, operand.form) not in buffers:
                    n_bytes = form_bytes(operand.form, tokens, self.program.widths[operand.value])
                    poison = np.full(n_bytes, 0xFF, np.uint8)
                    buffers[operand.value, operand.form] = upload(self.device, poison)
            self._launch(call, Sizes(tokens, tokens, len(batch.seq_len)), buffers, step)
        found = {}
        for (name, form), buffer in buffers.items():
            if form != "rows":
                found[name, form] = download(self.device, buffer, np.uint8, (buffer.n_bytes,))
            elif name not in values:
                width = self.program.widths[name]
                rows = download(self.device, buffer, np.float32, (tokens, padded(width)))
                assert np.isnan(rows[len(batch.ids) :]).all(), f"{name}: rows of no token were written"
                found[name] = rows[: len(batch.ids), :width]
        return found

    def expected(self, batch, values, ops=None):
        """The same by the reference."""
        state = State(batch, self.reference_kv, {}, {name: w.astype(np.float32) for name, w in self.weights.items()})
        state.values.update(values)
        for op in self.ops if ops is None else ops:
            OPS[type(op)](op, state)
        return state.values

    def _launch(self, call: Call, sizes, buffers, step):
        held = []

        def address(operand):
            if isinstance(operand, Ref):
                return buffers[operand.value, operand.form].address
            if isinstance(operand, Stride):
                return padded(self.program.widths[operand.value])
            if isinstance(operand, Pages):
                return self.pages.address
            if isinstance(operand, StepAt):
                return step.address
            if isinstance(operand, Count):
                return step.address + TOKENS_AT
            if isinstance(operand, Data):
                if operand not in self.data:
                    self.data[operand] = upload(self.device, np.frombuffer(operand.content, np.uint8))
                return self.data[operand].address
            if isinstance(operand, Vector):
                held.append(upload(self.device, self.weights[operand.weight].astype(np.float32)))
                return held[-1].address
            if isinstance(operand, Scratch):
                # Kept from call to call, and zeros at first.
                old = self.scratch.get(operand.name)
                if old is None or old.n_bytes < operand.n_bytes(sizes):
                    self.scratch[operand.name] = upload(self.device, np.zeros(operand.n_bytes(sizes), np.uint8))
                return self.scratch[operand.name].address
            return operand

        arguments = tuple(address(operand) for operand in call.operands)
        self.device.load([call.kernel], None)
        self.device.launch(Launch(call.kernel, call.grid(sizes), call.threads, arguments, call.shared))
        self.device.synchronize()


def _spread(x, tokens):
    """Rows as they lie on the device."""
    rows = np.full((tokens, padded(x.shape[1])), np.nan, np.float32)
    rows[: len(x), : x.shape[1]] = x
    return rows


def step_buffer(device, batch):
    """A `Step`, and the arrays it points to."""
    tokens, rows = len(batch.ids), len(batch.logit_rows)
    scales = np.zeros((len(batch.seq_len), 1), np.float32)
    arrays = [batch.ids, batch.positions, batch.seq_of, batch.slots, batch.page_table, batch.seq_len, batch.logit_rows]
    held = [upload(device, array) for array in (*arrays, scales)]
    head = np.array([tokens, len(batch.seq_len), rows, batch.page_table.shape[1], 0, 0, 0, 0], np.int32)
    pointers = np.array([buffer.address for buffer in held], np.uint64)
    return upload(device, np.concatenate([head.view(np.uint8), pointers.view(np.uint8)])), held


def random_values(rng, batch, widths, scale=1.0):
    return {
        name: (rng.standard_normal((len(batch.ids), width)) * scale).astype(np.float32)
        for name, width in widths.items()
    }


def distance(found, expected):
    """Relative L2."""
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)
