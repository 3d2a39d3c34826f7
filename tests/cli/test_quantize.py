"""`halfbyte quantize` as a person meets it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from halfbyte.cli.parser import UsageError
from halfbyte.cli.progress import Bar
from halfbyte.cli.quantize import RECIPE_NAMES
from halfbyte.cli.size import read_size
from halfbyte.formats import open_gguf
from halfbyte.quant.recipes import RECIPES
from halfbyte.quant.search import NUMPY
from halfbyte.quant.walk import NUMPY_WALK
from halfbyte.tools.quantize import quantizer
from halfbyte.tools.quantize.imatrix import ImportanceMatrix
from halfbyte.tools.quantize.imatrix_entry import Entry
from halfbyte.tools.quantize.imatrix_file import write_imatrix
from tests.model.tiny import make_tiny_gguf


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantizer, "CompiledSearch", lambda progress: NUMPY)
    monkeypatch.setattr(quantizer, "CompiledWalk", lambda progress: NUMPY_WALK)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_tiny_gguf(tmp_path / "source.gguf", n_layers=1, weights="f16", metadata={"general.file_type": 1})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new.gguf"


def test_a_recipe_makes_a_file_and_its_path_is_the_answer(run, source: Path, out: Path) -> None:
    done = run("quantize", str(source), str(out), "Q4_0")
    assert (done.code, done.out) == (0, f"{out}\n")
    assert done.err.startswith("q4_0: 0.2 MB -> 0.1 MB, ")
    assert "tensors have rows that do not divide and get the next format up" in done.err
    facts = run("inspect", str(out), "--json").json
    assert facts["metadata"]["general.file_type"] == 2
    assert facts["types"].keys() == {"q4_0", "q8_0", "f32"}


def test_a_dry_run_shows_the_exact_size_and_writes_nothing(run, source: Path, out: Path) -> None:
    words = ["quantize", str(source), str(out), "q4_k_s", "--type", "ffn_down=q8_0"]
    shown = run(*words, "--dry-run")
    assert (shown.code, shown.err) == (0, "")
    assert not out.exists()
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert lines[0] == "tensor shape is becomes bytes"
    assert "blk.0.ffn_down.weight 128 x 64 f16 q8_0 8704" in lines
    assert "blk.0.ffn_up.weight 64 x 128 f16 q5_0* 5632" in lines
    assert "blk.0.attn_norm.weight 64 f32 f32 256" in lines
    assert "recipe q4_k_s --type ffn_down=q8_0" in lines
    run(*words)
    assert lines[-1] == f"file {out.stat().st_size} bytes (0.1 MB)"


def test_a_file_that_is_there_is_replaced_only_by_force(run, source: Path, out: Path) -> None:
    out.write_bytes(b"precious")
    refused = run("quantize", str(source), str(out), "q8_0")
    assert refused.code == 1
    assert "exists already; give another name, or replace it (--force)" in refused.err
    assert out.read_bytes() == b"precious"
    assert run("quantize", str(source), str(out), "q8_0", "--force").code == 0
    assert open_gguf(out).metadata["general.file_type"] == 7


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["q4_km"], 1, "unknown recipe 'q4_km'; did you mean 'q4_k_m'?; known: f32, f16"),
        ([], 2, "RECIPE missing"),
        (["q4_0", "--target-bpw", "4"], 2, "q4_0 and --target-bpw together"),
        (["--target-size", "1MB", "--target-bpw", "4"], 2, "--target-size and --target-bpw together"),
        (["--target-size", "1MB", "--pure"], 2, "--pure and --target-size together"),
        (["--target-size", "large"], 2, "--target-size: 'large' is no size; write 300MB"),
        (["--target-size", "1kB"], 1, "the target is too small: this model takes at least "),
        (["q4_0", "--chunks", "2"], 2, "--chunks counts windows of a text, and none is given; give one (--file)"),
        (["q4_0", "--type", "ffn_down"], 1, "'ffn_down' is not REGEX=FORMAT"),
        (["q4_0", "--imatrix", "none.dat"], 1, "none.dat"),
        (["q4_0", "--file", "none.txt"], 1, "none.txt: cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(run, source: Path, out: Path, words, code: int, hint: str) -> None:
    done = run("quantize", str(source), str(out), *words)
    assert (done.code, done.out) == (code, "")
    assert hint in done.err
    assert not out.exists()


def test_path_and_recipe_in_the_wrong_order_are_told_the_right_one(run, source: Path, out: Path) -> None:
    done = run("quantize", str(source), "q4_k_m", str(out))
    assert (done.code, done.out) == (2, "")
    assert f"the new file's path comes before the recipe: {out} q4_k_m" in done.err


def test_a_second_loss_must_be_allowed(run, tmp_path: Path, out: Path) -> None:
    source = make_tiny_gguf(tmp_path / "q8.gguf", n_layers=1, weights="q8_0")
    refused = run("quantize", str(source), str(out), "q4_0")
    assert refused.code == 1
    assert "--allow-requantize" in refused.err
    assert run("quantize", str(source), str(out), "q4_0", "--allow-requantize").code == 0


def test_the_source_is_safe_even_from_force(run, source: Path) -> None:
    before = source.read_bytes()
    done = run("quantize", str(source), str(source), "q4_0", "--force")
    assert done.code == 1
    assert "is the source itself" in done.err
    assert source.read_bytes() == before


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_closed_terminal_or_a_kill_leaves_nothing(run, source: Path, out: Path, monkeypatch, name: str) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)

    def told(self: Bar, what: str, done: int, total: int) -> None:
        if what == "quantize":
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Bar, "__call__", told)
    with pytest.raises(SystemExit) as ended:
        run("quantize", str(source), str(out), "q4_0")
    assert ended.value.code == 128 + number
    assert [path.name for path in out.parent.iterdir() if "gguf" in path.name] == ["source.gguf"]
    assert signal.getsignal(number) is before


def test_few_bits_without_calibration_are_warned_of(run, tmp_path: Path, out: Path) -> None:
    source = make_tiny_gguf(tmp_path / "wide.gguf", n_layers=1, n_embd=256, weights="f16")
    words = ["quantize", str(source), str(out), "q4_0", "--type", "attn_q=iq2_xxs"]
    assert "warning: 1 tensors become iq2_xxs" in run(*words).err
    assert "warning" not in run(*words[:4], "--force").err


def test_an_importance_matrix_is_used_and_named_in_the_file(run, source: Path, out: Path, tmp_path: Path) -> None:
    columns = np.geomspace(1e-4, 1, 64, dtype=np.float32)[None]
    entries = {"blk.0.ffn_up.weight": Entry(columns, np.ones(1, np.float32))}
    write_imatrix(ImportanceMatrix(entries, ("book.txt",), 3, 512), tmp_path / "i.gguf")
    run("quantize", str(source), str(out), "q4_1")
    plain = open_gguf(out).tensor_data("blk.0.ffn_up.weight").copy()
    assert run("quantize", str(source), str(out), "q4_1", "--force", "--imatrix", str(tmp_path / "i.gguf")).code == 0
    with open_gguf(out) as new:
        assert not np.array_equal(new.tensor_data("blk.0.ffn_up.weight"), plain)
        keys = {key: value for key, value in new.metadata.items() if key.startswith("quantize.")}
    assert keys == {
        "quantize.imatrix.file": "i.gguf",
        "quantize.imatrix.dataset": "book.txt",
        "quantize.imatrix.entries_count": 1,
        "quantize.imatrix.chunks_count": 3,
    }


def test_a_target_is_met_and_the_mix_is_in_the_file(run, source: Path, out: Path) -> None:
    done = run("quantize", str(source), str(out), "--target-size", "90kB")
    assert (done.code, done.out) == (0, f"{out}\n")
    assert 80_000 < out.stat().st_size <= 90_000
    assert "--type" in str(open_gguf(out).metadata["halfbyte.recipe"])


def test_the_help_names_every_recipe() -> None:
    assert sorted(RECIPE_NAMES.split()) == sorted(RECIPES)


@pytest.mark.parametrize(
    ("text", "size"),
    [("300MB", 300_000_000), ("1.5 GiB", 3 << 29), ("4k", 4000), ("77", 77), ("77B", 77), (".5mib", 1 << 19)],
)
def test_sizes(text: str, size: int) -> None:
    assert read_size(text, "--target-size") == size


@pytest.mark.parametrize("text", ["", "MB", "-3MB", "3 apples", "1e9", "nan", "3.MB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="--target-size"):
        read_size(text, "--target-size")
