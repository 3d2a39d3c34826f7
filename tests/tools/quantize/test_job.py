"""The file that a job writes: whole or not there, the same for any number of threads, readable by everybody."""

from __future__ import annotations

from dataclasses import replace

import gguf
import numpy as np
import pytest

import halfbyte
from halfbyte.errors import ConfigError
from halfbyte.formats import GGUFWriter, open_gguf
from halfbyte.quant import FORMATS
from halfbyte.quant.recipes import RECIPES, recipe_named
from halfbyte.runtime.golden.vectors import read
from halfbyte.tools.quantize import job
from halfbyte.tools.quantize.choices import Choices
from halfbyte.tools.quantize.encoding import NearestCodes
from halfbyte.tools.quantize.imatrix import ImportanceMatrix
from halfbyte.tools.quantize.imatrix_entry import Entry
from halfbyte.tools.quantize.job import quantize
from halfbyte.tools.quantize.override import Override
from halfbyte.tools.quantize.plan import make_plan
from tests.model.tiny import make_tiny_gguf


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = make_tiny_gguf(tmp_path_factory.mktemp("job") / "source.gguf", n_embd=256, n_layers=1, weights="bf16")
    return open_gguf(path)


def plan_of(file, recipe, *types, **more):
    return make_plan(file, Choices(recipe_named(recipe), tuple(map(Override.parse, types)), **more))


def write(file, plan, path, encoder=None, **more):
    encoder = encoder or NearestCodes()
    quantize(file, plan, path, [(tensor, encoder) for tensor in plan.tensors], **more)
    return path


def relative_error(file, other, name):
    wanted, got = (f.tensors[name].format.decode(f.tensor_data(name)) for f in (file, other))
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize(("recipe", "largest"), [("q8_0", 0.01), ("q4_k_m", 0.12), ("q2_k", 0.5), ("f16", 0.001)])
def test_the_new_file_has_the_weights_of_the_old_nearly(source, tmp_path, recipe, largest):
    plan = plan_of(source, recipe)
    path = write(source, plan, tmp_path / "new.gguf")
    assert path.stat().st_size == plan.file_bytes
    with open_gguf(path) as new:
        assert {name: info.format.name for name, info in new.tensors.items()} == {
            tensor.name: tensor.target.name for tensor in plan.tensors
        }
        assert new.metadata["general.file_type"] == RECIPES[recipe].file_type
        for name in new.tensors:
            assert relative_error(source, new, name) < largest, name
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.gguf"]


def test_gguf_py_reads_it_and_decodes_the_same(source, tmp_path):
    path = write(source, plan_of(source, "q3_k_m"), tmp_path / "new.gguf")
    reader = gguf.GGUFReader(path)
    with open_gguf(path) as new:
        for tensor in reader.tensors:
            theirs = gguf.dequantize(tensor.data, tensor.tensor_type)
            ours = new.tensors[tensor.name].format.decode(new.tensor_data(tensor.name))
            assert np.array_equal(theirs.reshape(ours.shape), ours)
    assert reader.fields["halfbyte.recipe"].contents() == "q3_k_m"


def test_it_runs(tmp_path):
    with open_gguf(make_tiny_gguf(tmp_path / "m.gguf", n_layers=1, weights="f16")) as file:
        path = write(file, plan_of(file, "q8_0"), tmp_path / "new.gguf")
    with halfbyte.load(path) as new, halfbyte.load(tmp_path / "m.gguf") as old:
        ids = [1, 2, 3, 4]
        a, b = new.logits(ids), old.logits(ids)
    assert np.linalg.norm(a - b) < 0.2 * np.linalg.norm(b)


def test_the_number_of_threads_does_not_show(source, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "PIECE", 256 * 90)
    plan = plan_of(source, "q4_k_m")
    files = [write(source, plan, tmp_path / f"{n}.gguf", threads=n).read_bytes() for n in (1, 3)]
    assert files[0] == files[1]


def test_pieces_do_not_show(source, tmp_path, monkeypatch):
    plan = plan_of(source, "q5_k_m")
    whole = write(source, plan, tmp_path / "whole.gguf").read_bytes()
    monkeypatch.setattr(job, "PIECE", 256 * 77)
    assert write(source, plan, tmp_path / "pieces.gguf").read_bytes() == whole


def test_what_keeps_its_format_keeps_its_bytes(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", n_embd=256, n_layers=1, weights="q4_k")
    with open_gguf(path) as file:
        plan = plan_of(file, "q4_0", r"attn=q4_k", allow_requantize=True)
        with open_gguf(write(file, plan, tmp_path / "new.gguf")) as new:
            for name in ("blk.0.attn_q.weight", "blk.0.attn_norm.weight"):
                assert np.array_equal(new.tensor_data(name), file.tensor_data(name))
            assert new.tensors["blk.0.ffn_up.weight"].format.name == "q4_0"


def test_progress_counts_every_byte_of_the_source(source, tmp_path):
    seen = []
    write(source, plan_of(source, "q4_0"), tmp_path / "n.gguf", progress=lambda *told: seen.append(told))
    total = sum(info.n_bytes for info in source.tensors.values())
    assert {what for what, _, _ in seen} == {"quantize", "reference"}
    seen = [told for told in seen if told[0] == "quantize"]
    assert seen[-1] == ("quantize", total, total)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def damaged(tmp_path, name, row, value, shape=(64, 64)):
    values = np.ones(shape, np.float32)
    values[row, 5] = value
    return open_gguf(make_tiny_gguf(tmp_path / "bad.gguf", n_layers=1, tensors={name: values}))


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_what_is_no_number_names_tensor_and_row_and_leaves_nothing(tmp_path, monkeypatch, value, shown):
    monkeypatch.setattr(job, "PIECE", 64 * 8)
    file = damaged(tmp_path, "blk.0.attn_q.weight", 41, value)
    with pytest.raises(ConfigError, match=rf"'blk.0.attn_q.weight' has {shown} in row 41, column 5"):
        write(file, plan_of(file, "q8_0"), tmp_path / "new.gguf", threads=2)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.gguf"]


def test_what_is_only_copied_is_looked_at_too(tmp_path):
    file = damaged(tmp_path, "output.weight", 3, np.nan, (300, 64))
    with pytest.raises(ConfigError, match=r"'output.weight' has nan in row 3"):
        write(file, plan_of(file, "q8_0", keep_output=True), tmp_path / "new.gguf")


def test_weights_beyond_the_format_name_tensor_and_row(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "PIECE", 64 * 8)
    file = damaged(tmp_path, "blk.0.attn_q.weight", 41, 1e30)
    with pytest.raises(ConfigError, match=r"tensor 'blk.0.attn_q.weight', row 41: q8_0 cannot hold"):
        write(file, plan_of(file, "q8_0"), tmp_path / "new.gguf")


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_job_leaves_nothing_and_what_was_there(source, tmp_path, error):
    path = tmp_path / "new.gguf"
    path.write_bytes(b"before")

    def stop(what, done, total):
        if done > total // 3:
            raise error

    with pytest.raises(error):
        write(source, plan_of(source, "q4_0"), path, threads=2, progress=stop)
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["new.gguf"]


def test_the_source_is_never_replaced(source, tmp_path):
    link = tmp_path / "link.gguf"
    link.symlink_to(source.path)
    for target in (source.path, link):
        with pytest.raises(ConfigError, match="is the source itself"):
            write(source, plan_of(source, "q4_0"), target)


def test_a_folder_that_is_not_there_is_known_at_once(source, tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        write(source, plan_of(source, "q4_0"), tmp_path / "none" / "new.gguf")
    with pytest.raises(ConfigError, match="is a folder"):
        write(source, plan_of(source, "q4_0"), tmp_path)


def experts_file(path, rng):
    values = rng.normal(0, 1, (3, 10, 64)).astype(np.float32)
    with GGUFWriter(path, {"general.architecture": "llama"}) as writer:
        writer.declare("blk.0.ffn_up_exps.weight", FORMATS["f32"], (64, 10, 3))
        writer.write("blk.0.ffn_up_exps.weight", values)
    return values


def test_every_expert_has_its_own_importance(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "PIECE", 64 * 4)
    rng = np.random.default_rng(5)
    values = experts_file(tmp_path / "m.gguf", rng)
    columns = rng.uniform(0.01, 1, (3, 64)).astype(np.float32) ** 4
    matrix = ImportanceMatrix({"blk.0.ffn_up_exps.weight": Entry(columns * 7, np.full(3, 7, np.float32))})
    with open_gguf(tmp_path / "m.gguf") as file:
        plan = plan_of(file, "q4_1")
        new = open_gguf(write(file, plan, tmp_path / "n.gguf", NearestCodes(matrix)))
        plain = open_gguf(write(file, plan, tmp_path / "p.gguf"))
    data = new.tensor_data("blk.0.ffn_up_exps.weight")
    assert data.shape[0] == 30

    def cost(gguf_file, expert):
        got = FORMATS["q4_1"].decode(gguf_file.tensor_data("blk.0.ffn_up_exps.weight")).reshape(3, 10, 64)
        return ((got[expert] - values[expert]) ** 2 * columns[expert]).sum()

    assert all(cost(new, expert) < 0.9 * cost(plain, expert) for expert in range(3))


def test_several_files_become_one(source, tmp_path):
    names = list(source.tensors)
    parts = [names[: len(names) // 2], names[len(names) // 2 :]]
    from halfbyte.formats import Typed

    for number, part in enumerate(parts):
        keys = {"split.no": Typed(number, "u16"), "split.count": Typed(2, "u16")}
        keys["split.tensors.count"] = Typed(len(names), "i32")
        if number == 0:
            keys |= {key: Typed(value, source.types[key]) for key, value in source.metadata.items()}
        with GGUFWriter(tmp_path / f"m-0000{number + 1}-of-00002.gguf", keys) as writer:
            for name in part:
                writer.declare(name, source.tensors[name].format, source.tensors[name].shape)
            for name in part:
                writer.write(name, source.tensor_data(name))
    with open_gguf(tmp_path / "m-00001-of-00002.gguf") as split:
        path = write(split, plan_of(split, "q4_0"), tmp_path / "one.gguf")
        with pytest.raises(ConfigError, match="is the source itself"):
            write(split, plan_of(split, "q4_0"), tmp_path / "m-00002-of-00002.gguf")
    assert path.read_bytes() == write(source, plan_of(source, "q4_0"), tmp_path / "whole.gguf").read_bytes()


def test_a_model_of_an_unknown_architecture_gets_no_golden_vectors(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", metadata={"general.architecture": "unheard-of"})
    with open_gguf(path) as file, open_gguf(write(file, plan_of(file, "q8_0"), tmp_path / "new.gguf")) as new:
        assert not any(key.startswith("halfbyte.check.") for key in new.metadata)


def test_a_file_that_will_not_run_is_written_without_golden_vectors(tmp_path, caplog):
    path = make_tiny_gguf(tmp_path / "m.gguf")
    with open_gguf(path) as file:
        plan = plan_of(file, "q8_0")
        norm = next(tensor for tensor in plan.tensors if tensor.name == "output_norm.weight")
        tensors = [replace(tensor, target=FORMATS["q8_0"]) if tensor is norm else tensor for tensor in plan.tensors]
        with open_gguf(write(file, replace(plan, tensors=tuple(tensors)), tmp_path / "new.gguf")) as new:
            assert read(new) is None
    assert "cannot be run" in caplog.text
