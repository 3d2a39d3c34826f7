from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from halfbyte.cli import bench
from halfbyte.cli.resident import ResidentPeak
from halfbyte.errors import ResourceError
from tests.cli.fake_llm import FakeLLM

PROMISED = {
    *("read_gb_s", "decode_tok_s", "decode_gb_s", "prefill_tok_s", "load_s"),
    *("first_token_s", "peak_rss_mb", "threads", "isa", "kernels"),
}


@pytest.fixture
def measured(loaded: list[FakeLLM], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(
        sys.modules, "halfbyte.cpu_kernels.bandwidth", SimpleNamespace(read_gb_s=lambda threads: 20.0 * threads)
    )
    monkeypatch.setattr(bench, "_first_token", lambda path, threads, more: 0.25)
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return path


def test_bench_json_has_every_promised_figure(run, measured: Path, loaded: list[FakeLLM]) -> None:
    figures = run("bench", str(measured), "--json").json
    assert figures.keys() >= PROMISED
    assert (figures["read_gb_s"], figures["first_token_s"], figures["threads"]) == (40.0, 0.25, 2)
    assert figures["decode_gb_s"] == pytest.approx(figures["decode_tok_s"])  # the fake touches 1 GB a token
    assert all(llm.closed for llm in loaded)


def test_bench_is_traced_beside_the_measurements(run, measured: Path, loaded: list[FakeLLM], tmp_path: Path) -> None:
    assert run("bench", str(measured), "--trace", str(tmp_path / "trace.json"), "--runs=3", "--decode=8").code == 0
    assert (tmp_path / "trace.json").read_text() == "2 calls"
    assert len(loaded[-1].calls) == 3 + 3 + 2


def test_bench_shows_the_same_figures_to_people(run, measured: Path) -> None:
    shown = {line.split()[0]: line.split()[1] for line in run("bench", str(measured)).out.splitlines()}
    assert shown.keys() >= PROMISED
    assert shown["read_gb_s"] == "40.000"


def test_no_prompt_is_the_start_of_another(run, measured: Path, loaded: list[FakeLLM]) -> None:
    run("bench", str(measured), "--prefill", "100", "--decode", "4")
    prompts = [prompt for prompt, _ in loaded[1].calls]
    assert {len(prompt) for prompt in prompts} == {16, 100}
    assert len({tuple(prompt[:8]) for prompt in prompts}) == len(prompts) >= 2 * bench.RUNS.default


def test_decoding_goes_on_where_an_answer_ends_early() -> None:
    # The echo of 16 letters has 18 tokens in 2 seconds, so 17 of them count.
    llm = FakeLLM("m")
    assert bench._decode(llm, 40, run=0) == pytest.approx(40 / 6, rel=0.2)  # type: ignore[arg-type]
    assert len(llm.calls) == 3


def test_a_process_that_cannot_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="could not answer: error: there is no file"):
        bench._first_token(tmp_path / "missing.gguf", threads=1)


def test_the_peak_of_memory_is_seen() -> None:
    with ResidentPeak() as before:
        pass
    with ResidentPeak() as peak:
        held = bytearray(64 << 20)
        held[::4096] = b"x" * len(held[::4096])
        while peak.bytes < before.bytes + (60 << 20):
            pass
    assert peak.bytes >= before.bytes + (60 << 20)
