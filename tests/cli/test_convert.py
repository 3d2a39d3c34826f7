"""`halfbyte convert` as a person meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from halfbyte.cli import convert
from halfbyte.formats import open_gguf
from halfbyte.quant.search import NUMPY
from halfbyte.tools.convert import conversion
from tests.tools.convert import tiny_llama


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "CompiledSearch", lambda progress: NUMPY)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama.save(tmp_path_factory.mktemp("tiny-llama"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new.gguf"


def test_a_checkpoint_becomes_a_file_and_its_path_is_the_answer(run, checkpoint: Path, out: Path) -> None:
    done = run("convert", str(checkpoint), "-o", str(out))
    assert (done.code, done.out) == (0, f"{out}\n")
    notes = done.err.splitlines()
    assert notes[0].startswith("LlamaForCausalLM -> llama: 21 tensors, 0.2 MB of weights as f16")
    assert "21 tensors, " in notes[1]
    facts = run("inspect", str(out), "--json").json
    assert facts["types"].keys() == {"f16", "f32"}


def test_without_a_name_the_file_is_called_like_its_source(run, checkpoint: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("convert", str(checkpoint), "--type", "q8_0")
    assert done.code == 0
    assert Path(done.out.strip()) == Path(f"{checkpoint.name}-q8_0.gguf")
    assert (tmp_path / done.out.strip()).exists()


def test_a_dry_run_shows_where_every_tensor_comes_from(run, checkpoint: Path, out: Path) -> None:
    done = run("convert", str(checkpoint), "-o", str(out), "--type", "q4_k_m", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert not out.exists()
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "tensor shape of is becomes bytes"
    assert "blk.1.ffn_up.weight 64 x 96 model.layers.1.mlp.up_proj.weight bf16 q5_0 4224" in lines
    assert "blk.1.attn_norm.weight 64 model.layers.1.input_layernorm.weight bf16 f32 256" in lines
    assert "architecture llama (LlamaForCausalLM)" in lines


def test_metadata_are_taken_as_json_where_they_are(run, checkpoint: Path, out: Path) -> None:
    pairs = ["general.name=My model", "llama.context_length=64", 'general.tags=["a", "b"]', "general.url=https://x?a=b"]
    words = [word for pair in pairs for word in ("--metadata", pair)]
    assert run("convert", str(checkpoint), "-o", str(out), "--vocab-only", *words).code == 0
    found = open_gguf(out).metadata
    assert (found["general.name"], found["llama.context_length"]) == ("My model", 64)
    assert (list(found["general.tags"]), found["general.url"]) == (["a", "b"], "https://x?a=b")


def test_parts_are_named_on_lines_of_their_own(run, checkpoint: Path, out: Path) -> None:
    done = run("convert", str(checkpoint), "-o", str(out), "--split-size", "100kB")
    names = [Path(line).name for line in done.out.splitlines()]
    assert names == [f"new-{i + 1:05d}-of-{len(names):05d}.gguf" for i in range(len(names))]
    assert len(names) > 1


def test_a_file_that_is_there_is_replaced_only_by_force(run, checkpoint: Path, out: Path) -> None:
    out.write_bytes(b"precious")
    refused = run("convert", str(checkpoint), "-o", str(out))
    assert refused.code == 1
    assert "exists already; give another name, or replace it (--force)" in refused.err
    assert out.read_bytes() == b"precious"
    assert run("convert", str(checkpoint), "-o", str(out), "--force").code == 0
    assert open_gguf(out).tensors


def test_parts_that_are_there_are_replaced_only_by_force(run, checkpoint: Path, out: Path) -> None:
    words = ["convert", str(checkpoint), "-o", str(out), "--split-size"]
    assert run(*words, "100kB").code == 0
    refused = run(*words, "200kB")
    assert refused.code == 1
    assert "new-00001-of-" in refused.err
    assert "exists already" in refused.err
    assert run(*words, "100kB", "--force").code == 0


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "linked.bin"])
def test_no_force_replaces_the_checkpoint_itself(run, checkpoint: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "own"
    shutil.copytree(checkpoint, folder)
    (folder / "linked.bin").symlink_to("model.safetensors")
    before = (folder / name).read_bytes()
    refused = run("convert", str(folder), "-o", str(folder / name), "--force")
    assert refused.code == 1
    assert "belongs to the source" in refused.err
    assert (folder / name).read_bytes() == before


MISTAKES = {
    "no type": (["{checkpoint}", "--type", ""], 1, "unknown recipe ''"),
    "key of a part": (["{checkpoint}", "--metadata", "split.count=3"], 1, "split.count follows from the tensors"),
    "key of an answer": (["{checkpoint}", "--metadata", "halfbyte.check.version=1"], 1, "follows from the tensors"),
    "no folder": (["/no/such/folder"], 1, "does not exist. A checkpoint is a folder"),
    "a file": (["{checkpoint}/config.json"], 1, "is a file; name the folder it lies in"),
    "empty": (["{empty}"], 1, "config.json: is missing"),
    "recipe": (["{checkpoint}", "--type", "q4km"], 1, "did you mean 'q4_k_m'"),
    "repository": (["hf:nonsense"], 1, "hf:OWNER/REPO"),
    "file of a repository": (["hf:a/b:c"], 1, "a checkpoint is a whole repository; write hf:a/b"),
    "metadata": (["{checkpoint}", "--metadata", "name"], 2, "is not KEY=VALUE"),
    "base": (["{checkpoint}", "--base", "x"], 2, "--base is for adapters"),
    "size": (["{checkpoint}", "--split-size", "big"], 2, "--split-size"),
    "place": (["{checkpoint}", "-o", "/no/such/place.gguf"], 1, "there is no folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_says_what_to_do(run, checkpoint: Path, tmp_path: Path, mistake: str) -> None:
    words, code, hint = MISTAKES[mistake]
    (tmp_path / "empty").mkdir()
    done = run("convert", *[word.format(checkpoint=checkpoint, empty=tmp_path / "empty") for word in words])
    assert (done.code, done.out) == (code, "")
    assert hint in done.err
    assert "Traceback" not in done.err


def test_a_folder_of_gguf_files_needs_no_conversion(run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(tiny_llama.CONFIG))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert "which need no conversion" in run("convert", str(tmp_path)).err


def test_the_example_is_about_a_model_we_can_convert() -> None:
    assert convert.COMMAND.example.startswith("halfbyte convert hf:")
