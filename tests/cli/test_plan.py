from __future__ import annotations

import re
from pathlib import Path

import pytest

import halfbyte
from halfbyte.errors import ConfigError
from tests.model.tiny import make_tiny_gguf


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(make_tiny_gguf(tmp_path / "tiny.gguf"))


@pytest.fixture(autouse=True)
def _bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured, so no kernel is compiled."""
    monkeypatch.setattr("halfbyte.cpu_kernels.bandwidth.read_gb_s", lambda threads=None: 10.0)


def test_a_plan_adds_up_and_says_what_fits(run, model) -> None:
    done = run("plan", model, "--context", "128", "--memory", "1GB", "--bandwidth", "20", "--json")
    found = done.json
    assert done.code == 0
    parts = ("weight_bytes", "kv_bytes", "buffer_bytes", "rest_bytes")
    assert sum(found[part] for part in parts) == found["total_bytes"]
    assert (found["fits"], found["context"], found["longest_context"], found["read_gb_s"]) == (True, 128, 256, 20.0)
    plan = halfbyte.plan(model, context=128)
    assert found["kv_bytes"] == plan.kv == 128 * plan.token_kv_bytes
    assert found["decode_tok_s"] == pytest.approx(0.85 * 20e9 / plan.token_weight_bytes)
    assert found["decode_tok_s_at_end"] < found["decode_tok_s"]


def test_more_context_takes_as_much_more_as_its_keys_and_values(model) -> None:
    one, two = halfbyte.plan(model, context=64), halfbyte.plan(model, context=192)
    assert two.kv - one.kv == 128 * one.token_kv_bytes
    small = halfbyte.plan(model, context=64, kv="q8_0")
    assert small.kv < 0.7 * one.kv
    assert halfbyte.plan(model, context=64, kv_memory=one.kv * 3).kv == one.kv * 3


def test_what_does_not_fit_says_what_would(run, model) -> None:
    plan = halfbyte.plan(model, context=256)
    memory = plan.total - plan.kv // 2
    done = run("plan", model, "-c", "256", "--memory", str(memory))
    assert done.code == 1
    assert re.search(r"does not fit [0-9.]+ MB, where a context of up to 128 does", done.out)
    done = run("plan", model, "--memory", "1MB")
    assert (done.code, "with any context" in done.out) == (1, True)


def test_mistakes_are_one_line(run, model, tmp_path) -> None:
    assert "'lots' is no size" in run("plan", model, "--memory", "lots").err
    assert "none.gguf" in run("plan", str(tmp_path / "none.gguf")).err
    assert "unknown keyword of --load 'kw'" in run("plan", model, "--load", "kw=q8_0").err
    with pytest.raises(ConfigError, match="leave out gpu_layers"):
        halfbyte.plan(model, gpu_layers=1)


def test_a_doctor_knows_the_machine_and_a_model(run, model) -> None:
    found = run("doctor", model, "--json").json
    assert list(found) == [
        *("halfbyte", "cpu", "isa", "threads", "memory", "huge_pages", "cache", "kernels", "gpu", "read"),
        *("model", "takes", "its_kernels", "decode"),
    ]
    assert halfbyte.__version__ in found["halfbyte"]
    assert found["read"].startswith("10.0 GB/s")
    assert re.fullmatch(r"0 of \d+ compiled; the first start makes the others", found["its_kernels"])
    assert found["gpu"].startswith("none: ") or "compute capability" in found["gpu"]


def test_a_quick_doctor_measures_nothing(run, monkeypatch) -> None:
    monkeypatch.setattr("halfbyte.cpu_kernels.bandwidth.read_gb_s", lambda threads=None: pytest.fail("measured"))
    done = run("doctor", "--quick")
    assert done.code == 0
    assert "read" not in [line.split()[0] for line in done.out.splitlines()]


def test_a_folder_that_cannot_be_written_is_named(run, monkeypatch) -> None:
    monkeypatch.setattr("os.access", lambda *given: False)
    assert "NOT WRITABLE: set HALFBYTE_CACHE" in run("doctor", "--quick").out
