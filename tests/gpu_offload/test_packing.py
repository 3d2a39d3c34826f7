from pathlib import Path

import numpy as np
import pytest

from halfbyte.errors import ResourceError
from halfbyte.gpu_offload import packing
from halfbyte.gpu_offload.families import FAMILIES, packed_bytes
from halfbyte.gpu_offload.packing import BEHIND, matrices_of, pack_all
from halfbyte.model import program as ir
from halfbyte.quant import FORMATS
from tests.gpu_offload.arrays import download, run
from tests.gpu_offload.emulated.device import EmulatedDevice
from tests.gpu_offload.unpack import LAYOUTS
from tests.gpu_offload.weights import FORMATS_OF_DEVICES, PLAIN, bytes_of, odd_columns, random_weight, values_of


@pytest.fixture(scope="module", autouse=True)
def _all_at_once(device):
    """One compilation of them all."""
    device.load([f"pack<file::{name.upper()}>" for name in FORMATS_OF_DEVICES], None)


def same(packed, wanted):
    """Every weight as the file has it, and zeros around; -0 and 0 are one, since offsets are added."""
    rows, columns = wanted.shape
    assert np.array_equal(packed[:rows, :columns], wanted)
    assert not packed[rows:].any()
    assert not packed[:, columns:].any()


@pytest.mark.parametrize("rows", [1, 48, 50])
@pytest.mark.parametrize("name", FORMATS_OF_DEVICES)
def test_packed_weights_are_the_files_to_the_bit(device, name, rows):
    weight = random_weight(name, rows, odd_columns(name))
    matrix = pack_all({"w": weight}, device, None)["w"]
    assert (matrix.rows, matrix.columns, matrix.experts) == (rows, weight.shape[1], 1)
    assert matrix.n_bytes == packed_bytes(weight)
    same(values_of(device, matrix)[0], weight.decode())


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", ["q5_k", "q4_1", "iq1_m"])
def test_threads_may_run_in_any_order(emulated, monkeypatch, name, order):
    weight = random_weight(name, 20, odd_columns(name))
    monkeypatch.setattr(emulated, "order", order)
    same(values_of(emulated, pack_all({"w": weight}, emulated, None)["w"])[0], weight.decode())


@pytest.mark.parametrize("name", ["q4_0", "q4_k", "iq3_s", "q1_0"])
def test_every_experts_rows_begin_a_tile(device, name):
    weight = random_weight(name, 3 * 20, odd_columns(name))
    matrix = pack_all({"w": weight}, device, None, {"w": 3})["w"]
    assert (matrix.rows, matrix.experts, 3 * matrix.n_bytes) == (20, 3, packed_bytes(weight, 3))
    for packed, wanted in zip(values_of(device, matrix), weight.decode().reshape(3, 20, -1), strict=True):
        same(packed, wanted)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_numbers_stay_rows_as_in_the_file(device, name):
    weight = random_weight(name, 6, 40)
    matrix = pack_all({"w": weight}, device, None, {"w": 2})["w"]
    assert matrix.family is FAMILIES[name]
    assert bytes_of(device, matrix).tobytes() == weight.data.tobytes()


def test_formats_without_a_family_become_floats(device):
    weight = random_weight("f64", 6, 40)
    matrix = pack_all({"w": weight}, device, None)["w"]
    assert matrix.family is FAMILIES["f32"]
    assert bytes_of(device, matrix).tobytes() == weight.decode().tobytes()


@pytest.mark.parametrize(("name", "experts"), [("q6_k", 1), ("iq2_xs", 3), ("bf16", 1), ("f64", 1)])
def test_pieces_make_no_difference(device, monkeypatch, name, experts):
    weight = random_weight(name, 150, 256)
    whole = bytes_of(device, pack_all({"w": weight}, device, None, {"w": experts})["w"])
    monkeypatch.setattr(packing, "STAGING_BYTES", 40 * weight.data.shape[1])
    pieces = bytes_of(device, pack_all({"w": weight}, device, None, {"w": experts})["w"])
    assert np.array_equal(whole, pieces)


def test_many_weights_with_gaps_between_their_rows_side_by_side(device):
    table = random_weight("q4_k", 64, 512)
    parts = {f"{i}": random_weight(name, 40 + i, 256, called=f"{i}") for i, name in enumerate(FORMATS_OF_DEVICES)}
    # Half of every row: what is not one piece in the file.
    cut = {"half": type(table)("half", table.format, (64, 256), table.data[:, : table.data.shape[1] // 2])}
    reports = []
    packed = pack_all(parts | cut, device, lambda *report: reports.append(report))
    for name, weight in (parts | cut).items():
        assert packed[name].address % 256 == 0
        same(values_of(device, packed[name])[0], weight.decode())
    total = sum(weight.data.nbytes for weight in (parts | cut).values())
    done = [done for what, done, of in reports if what == "pack" and of == total]
    assert done == sorted(set(done))
    assert len(done) == len(packed)
    assert done[-1] == total


def test_large_weights_are_copied_by_several_threads(device):
    weight = random_weight("f32", 700, 600)
    assert bytes_of(device, pack_all({"w": weight}, device, None)["w"]).tobytes() == weight.data.tobytes()


def test_nothing_is_no_mistake(device):
    assert pack_all({}, device, None) == {}


def test_room_is_made_sure_of_first(device):
    small = EmulatedDevice(budget=10_000)
    with pytest.raises(ResourceError) as error:
        pack_all({"w": random_weight("q4_0", 320, 64)}, small, None)
    assert error.value.needed == 20 * 576 + BEHIND
    assert small.free_bytes() == 10_000


def test_matrices_of_a_program():
    ops = (
        ir.Embed("table", "x"),
        ir.RmsNorm("x", "norm", "n", 1e-5),
        ir.MoeRoute("r", "route", 2, "softmax", True),
        ir.ExpertLinear("n", "route", "experts", "e", 8),
        ir.Linear("x", "table", "logits", bias="bias"),
    )
    program = ir.Program(ops, {}, (), "logits", 10)
    assert matrices_of(program) == {"table": 1, "experts": 8}


def test_sizes_are_those_of_the_kernels(device):
    with_sizes = EmulatedDevice(more_kernels=(Path(__file__).parent / "sizes.cuh",))
    families = {family.name: family for family in FAMILIES.values() if not family.plain}
    with_sizes.load([f"sizes<{name}>" for name in families], None)
    out = with_sizes.allocate(16)
    for name, family in families.items():
        run(with_sizes, f"sizes<{name}>", (1,), 32, out)
        assert tuple(download(with_sizes, out, np.int64, (2,))) == (family.columns, family.step_bytes)


def test_every_quantized_format_has_a_family():
    assert set(FORMATS) - set(FAMILIES) == {"f64", "i8", "i16", "i32", "i64"}
    assert set(LAYOUTS) == {FAMILIES[name].name for name in FORMATS_OF_DEVICES}
