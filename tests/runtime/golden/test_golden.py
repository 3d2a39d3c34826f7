"""A file that is as it was made passes; whatever is changed behind its back is caught, and said to be what it is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import halfbyte
from halfbyte import CheckError, FormatError
from halfbyte.formats import open_gguf
from halfbyte.model.archs import ARCHS
from halfbyte.quant import FORMATS
from halfbyte.runtime.golden import recording
from halfbyte.runtime.golden.bare_answer import BareAnswer
from halfbyte.runtime.golden.self_check import SelfCheck
from halfbyte.runtime.golden.vectors import PREFIX, read
from tests.cpu_kernels.programs import ARCHS as WITH_KERNELS
from tests.model.adapters import make_adapter
from tests.model.tiny import make_tiny_gguf
from tests.runtime.golden.files import changed, copy_of, golden_gguf, strings, tensor

UP = "blk.1.ffn_up.weight"


@pytest.fixture
def golden(tmp_path):
    return golden_gguf(tmp_path / "golden.gguf", weights="q8_0")


@pytest.fixture
def new(tmp_path):
    return tmp_path / "changed.gguf"


def load(path, **options):
    return halfbyte.load(path, check=True, **{"context": 64, "threads": 1, "backend": "reference"} | options)


def refusal(path, **options):
    with pytest.raises(CheckError) as caught:
        load(path, **options)
    return caught.value


@pytest.mark.parametrize(
    ("arch", "weights"), [*itertools.product(WITH_KERNELS, ("bf16", "q8_0", "q4_k")), ("qwen3moe", "q8_0")]
)
def test_a_file_as_it_was_made_passes_on_the_kernels(tmp_path, arch, weights):
    with load(golden_gguf(tmp_path / "m.gguf", arch, weights=weights), backend="cpu") as llm:
        assert llm.generate("a", max_tokens=1).ids


@pytest.mark.parametrize("arch", list(ARCHS))
def test_every_architecture_has_golden_vectors_and_passes_on_the_reference(tmp_path, arch):
    with open_gguf(golden_gguf(tmp_path / "m.gguf", arch, weights="q8_0")) as file:
        check = SelfCheck(file)
        with BareAnswer(file.path, backend="reference") as answer:
            findings = [*check.before_loading(), *check.of_kernels(answer)]
    assert check.recorded
    assert [finding for finding in findings if not finding.ok] == []


def test_a_changed_byte_is_found_in_the_tensor_that_has_it(golden, new):
    damaged = tensor(golden, UP)
    damaged[5, 9] ^= 1
    wrong = refusal(changed(golden, new, data={UP: damaged}))
    assert wrong.item.endswith(" tensors")
    assert f"1 are not as they were written: {UP}; the file is damaged" in str(wrong)


def test_two_tensors_that_were_exchanged_are_named(golden, new):
    other = UP.replace("1", "2")
    wrong = refusal(changed(golden, new, data={UP: tensor(golden, other), other: tensor(golden, UP)}))
    assert f"2 are not as they were written: {UP}, {other}" in str(wrong)


def test_another_rope_is_found_although_all_tensors_are_right(golden, new):
    wrong = refusal(changed(golden, new, {"llama.rope.freq_base": 500.0}))
    assert wrong.item.startswith("logits behind token")
    assert "metadata that the answers depend on were changed" in str(wrong)


def test_another_merge_is_found_by_the_ids(golden, new):
    merges = strings(golden, "tokenizer.ggml.merges")
    wrong = refusal(changed(golden, new, {"tokenizer.ggml.merges": merges[1:]}))
    assert wrong.item.startswith("ids of ")
    assert "instead of" in str(wrong)
    assert "merges" in str(wrong)


def test_kernels_that_compute_something_else_are_blamed(golden):
    with open_gguf(golden) as file, load(golden) as llm:
        check = SelfCheck(file)
        findings = list(check.of_kernels(lambda ids: llm.logits(ids) * np.float32(1.05)))
        assert not any(finding.ok for finding in findings)
        assert "it is the kernels of this machine" in " ".join(check.causes({"logits"}))


def test_logits_that_are_no_numbers_never_pass(golden):
    with open_gguf(golden) as file:
        findings = list(SelfCheck(file).of_kernels(lambda ids: np.full((len(ids), 300), np.nan, np.float32)))
    assert {(finding.ok, finding.note) for finding in findings} == {(False, "not a number")}


def test_vectors_that_another_program_copied_to_other_weights_are_not_believed(golden, new):
    with open_gguf(changed(golden, new, formats=FORMATS["q4_0"])) as file:
        check = SelfCheck(file)
        assert (check.stale, check.recorded) == (True, False)
    load(new).close()


def test_a_file_without_vectors_is_compared_with_the_reference_of_now(tmp_path):
    path = make_tiny_gguf(tmp_path / "m.gguf", weights="q8_0")
    with open_gguf(path) as file:
        check = SelfCheck(file)
        assert (check.stale, check.recorded) == (False, False)
        items = list(check.before_loading())
    assert [item.part for item in items] == ["token ids"] * len(items)
    assert all(item.ok for item in items)
    load(path, backend="cpu").close()


@pytest.mark.parametrize("options", [{"kv": "q4_0"}, {"context": 4}], ids=str)
def test_logits_are_compared_with_halves_and_room_whatever_the_model_is_loaded_with(golden, new, options):
    load(golden, **options).close()
    assert refusal(changed(golden, new, {"llama.rope.freq_base": 500.0}), **options).item.startswith("logits")


def test_adapters_are_left_out(golden, tmp_path):
    adapter = make_adapter(tmp_path / "adapter.gguf", {"blk.0.attn_q.weight": (64, 64)}, size=2)
    with load(golden, adapters=[adapter]) as llm:
        assert not np.array_equal(llm.logits([1, 2]), llm.logits([1, 2], adapters=()))


def test_a_model_without_a_tokenizer_has_vectors_too(tmp_path):
    dropped = ("model", "pre", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id", "add_bos_token")
    none = {f"tokenizer.ggml.{key}": None for key in dropped}
    with open_gguf(golden_gguf(tmp_path / "m.gguf", metadata=none)) as file:
        vectors = read(file)
        assert set(vectors.ids) == {None}
        assert len(vectors.prompt) == len(vectors.rows.best) == 12


def test_a_context_shorter_than_the_prompt_makes_a_shorter_prompt(tmp_path):
    with open_gguf(golden_gguf(tmp_path / "m.gguf", metadata={"llama.context_length": 5})) as file:
        assert len(read(file).prompt) == 5
    load(file.path).close()


def test_failing_while_recording_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "ask", lambda *_: 1 / 0)
    plain = make_tiny_gguf(tmp_path / "plain.gguf")
    with open_gguf(plain) as file:
        writer = copy_of(file, tmp_path / "new.gguf", recording.room(len(file.tensors)))
    with pytest.raises(ZeroDivisionError), writer:
        recording.record(writer)
    assert [path.name for path in tmp_path.iterdir()] == ["plain.gguf"]


def test_blank_vectors_count_as_none(tmp_path):
    plain = make_tiny_gguf(tmp_path / "plain.gguf")
    with open_gguf(plain) as file, copy_of(file, tmp_path / "new.gguf", recording.room(len(file.tensors))) as writer:
        recording.leave_blank(writer)
    with open_gguf(tmp_path / "new.gguf") as file:
        assert read(file) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"columns": np.full(16, 300, np.int32)},
        {"columns": np.full(16, -1, np.int32)},
        {"prompt": np.full(12, 300, np.int32)},
        {"tensors": np.zeros(3, np.uint32)},
    ],
    ids=["beyond the row", "before the row", "no token", "few tensors"],
)
def test_vectors_that_are_not_of_the_model_are_a_damaged_file(golden, new, broken):
    changed(golden, new, {PREFIX + key: value for key, value in broken.items()})
    with open_gguf(new) as file, pytest.raises(FormatError, match=r"halfbyte\.check"):
        SelfCheck(file)


@pytest.mark.parametrize(
    "broken",
    [
        {"prompt": np.zeros(13, np.int32), "best": np.zeros(13, np.int32)},
        {"best": np.zeros(3, np.int32)},
        {"columns": np.zeros(0, np.int32)},
        {"text_lengths": np.full(11, 2000, np.int32)},
        {"sample": "text"},
        {"texts": ["one"]},
    ],
    ids=lambda broken: " ".join(broken),
)
def test_vectors_that_contradict_each_other_are_a_damaged_file(golden, new, broken):
    changed(golden, new, {PREFIX + key: value for key, value in broken.items()})
    with open_gguf(new) as file, pytest.raises(FormatError, match=r"halfbyte\.check"):
        read(file)


def test_a_model_whose_answers_are_no_numbers_is_recorded_and_never_passes(tmp_path, caplog):
    nan = np.full(64, np.nan, np.float32)
    path = golden_gguf(tmp_path / "m.gguf", tensors={"output_norm.weight": nan})
    assert "not a number" in caplog.text
    assert refusal(path).item.startswith("logits")
