from types import SimpleNamespace

import numpy as np
import pytest

from halfbyte.gpu_offload.calls import Packed, Ref, Sizes, StepAt, Stride
from halfbyte.gpu_offload.device import Launch
from halfbyte.gpu_offload.emit_embed import EMIT_EMBED
from halfbyte.gpu_offload.families import FAMILIES
from halfbyte.gpu_offload.packing import pack_all
from halfbyte.model import program as ir
from tests.gpu_offload.arrays import download, run, upload
from tests.gpu_offload.weights import odd_columns, random_weight

IDS, POSITIONS = np.array([3, 49, 0, 17, 3], np.int32), np.array([7, 8, 9, 0, 1], np.int32)
BUCKET = 8
ROOM = 1 << 14
"""Bytes for any form of so few tokens."""
FORMS = ("rows", "planes", "records", "halves", "half_scales")


@pytest.fixture(scope="module", autouse=True)
def _all_at_once(device):
    """One compilation of them all."""
    device.load([f"embed<{family.name}>" for family in FAMILIES.values()] + ["make_forms"], None)


class OneOp:
    """Lowers an op over a table, in the forms that are `wanted`, and runs it in a bucket of `BUCKET` tokens."""

    def __init__(self, device, op, weight, wanted):
        self.device, self.wanted = device, wanted
        self.columns = weight.shape[1]
        self.stride = -(-self.columns // 64) * 64
        self.program = SimpleNamespace(widths={op.out: self.columns})
        self.packed = pack_all({op.table: weight}, device, None)
        self.buffers = {form: upload(device, np.full(ROOM, 0xEE, np.uint8)) for form in FORMS}
        EMIT_EMBED[type(op)](self, op)

    def each_row(self, value):
        return lambda sizes: (sizes.tokens, 1, 1)

    def forms(self, value):
        made = [Ref(value, form) if form in self.wanted else 0 for form in FORMS]
        return made[0], Stride(value), *made[1:]

    def call(self, kernel, grid, threads, operands, reads, writes, shared=0):
        assert (reads, writes) == ((), ("x",))
        ids, positions = upload(self.device, IDS), upload(self.device, POSITIONS)
        pointers = np.array([ids.address, positions.address, 0, 0, 0, 0, 0, 0], np.int64)
        head = np.array([len(IDS), 1, 0, 1, 0, 0, 0, 0], np.int32)
        step = upload(self.device, np.concatenate([head.view(np.uint8), pointers.view(np.uint8)]))
        places: dict = {Packed(name): matrix.address for name, matrix in self.packed.items()}
        places |= {StepAt(): step.address, Stride("x"): self.stride}
        places |= {Ref("x", form): self.buffers[form].address for form in FORMS}
        arguments = tuple(places.get(operand, operand) for operand in operands)
        self.device.launch(Launch(kernel, grid(Sizes(BUCKET, 0, 1)), threads, arguments, shared))
        self.device.synchronize()

    def bytes_of(self, form):
        return download(self.device, self.buffers[form], np.uint8, (ROOM,))

    def rows(self):
        return self.bytes_of("rows").view(np.float32)[: BUCKET * self.stride].reshape(BUCKET, self.stride)


@pytest.mark.parametrize("name", [*FAMILIES, "f64"])
def test_rows_are_those_of_the_file_scaled_once(device, name):
    weight = random_weight(name, 50, odd_columns(name))
    made = OneOp(device, ir.Embed("table", "x", scale=1.7), weight, ("rows",)).rows()
    wanted = weight.format.decode(weight.data[IDS]) * np.float32(1.7)
    assert np.array_equal(made[: len(IDS), : weight.shape[1]], wanted)
    assert (made[len(IDS) :].view(np.uint8) == 0xEE).all(), "padded tokens write nothing"


@pytest.mark.parametrize("order", [1, 2, 3])
def test_threads_may_run_in_any_order(emulated, monkeypatch, order):
    weight = random_weight("q4_k", 50, 512)
    monkeypatch.setattr(emulated, "order", order)
    made = OneOp(emulated, ir.Embed("table", "x", scale=3.0), weight, ("rows", "halves", "half_scales")).rows()
    assert np.array_equal(made[: len(IDS)], weight.format.decode(weight.data[IDS]) * np.float32(3))


@pytest.mark.parametrize("name", ["q8_0", "f32"])
def test_positions(device, name):
    weight = random_weight(name, 10, 64)
    made = OneOp(device, ir.EmbedPositions("table", "x", 10), weight, ("rows",)).rows()
    assert np.array_equal(made[: len(IDS)], weight.decode()[POSITIONS])


@pytest.mark.parametrize("wanted", [FORMS[1:], FORMS[3:], FORMS])
def test_other_forms_are_those_of_the_rows(device, wanted):
    weight = random_weight("q5_0", 50, 96)
    made = OneOp(device, ir.Embed("table", "x"), weight, wanted)
    rows = OneOp(device, ir.Embed("table", "x"), weight, ("rows",)).buffers["rows"]
    others = {form: upload(device, np.full(ROOM, 0xEE, np.uint8)) for form in FORMS}
    count = upload(device, np.array([len(IDS)], np.int32))
    forms = tuple(others[form] if form in wanted else 0 for form in FORMS[1:])
    run(device, "make_forms", (BUCKET,), 64, rows, made.stride, 96, count, *forms, shared=4 * 96)
    for form in wanted[wanted[0] == "rows" :]:
        assert np.array_equal(made.bytes_of(form), download(device, others[form], np.uint8, (ROOM,)))
    for form in set(FORMS) - set(wanted):
        assert (made.bytes_of(form) == 0xEE).all()
