"""A model in several files opens through any of them, and every contradiction between them is named."""

from __future__ import annotations

import numpy as np
import pytest

from halfbyte.errors import FormatError
from halfbyte.formats import GGUFWriter, Typed, open_gguf
from halfbyte.quant.formats import FORMATS

F32 = FORMATS["f32"]


def name_of(i: int, count: int) -> str:
    return f"model-{i + 1:05d}-of-{count:05d}.gguf"


def write_part(path, tensors, **keys):
    kinds = {"no": "u16", "count": "u16", "total": "i32"}
    names = {"no": "split.no", "count": "split.count", "total": "split.tensors.count"}
    metadata = {names[key]: Typed(value, kinds[key]) for key, value in keys.items() if key in names}
    if "arch" in keys:
        metadata["general.architecture"] = keys["arch"]
    with GGUFWriter(path, metadata) as writer:
        for name in tensors:
            writer.declare(name, F32, (8,))
        for name in tensors:
            writer.write(name, np.full(8, len(name), np.float32))


def write_model(folder, count=3, **changed):
    for i in range(count):
        keys = {"no": i, "count": count, "total": 2 * count, **({"arch": "llama"} if i == 0 else {})}
        write_part(folder / name_of(i, count), [f"t{i}.a", f"t{i}.bb"], **keys)
    return folder / name_of(0, count)


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_part_opens_the_whole(tmp_path, given):
    write_model(tmp_path)
    with open_gguf(tmp_path / name_of(given, 3)) as file:
        assert file.path == tmp_path / name_of(0, 3)
        assert [path.name for path in file.parts] == [name_of(i, 3) for i in range(3)]
        assert file.metadata["general.architecture"] == "llama"
        assert [(info.name, info.part) for info in file.tensors.values()] == [
            (f"t{i}.{end}", i) for i in range(3) for end in ("a", "bb")
        ]
        assert file.tensor_data("t2.bb").view(np.float32).tolist() == [[5.0] * 8]


def test_a_merged_file_keeps_the_keys_and_is_whole(tmp_path):
    write_part(tmp_path / "merged.gguf", ["t"], no=0, count=0, total=1)
    with open_gguf(tmp_path / "merged.gguf") as file:
        assert list(file.tensors) == ["t"]


def refusal(path) -> str:
    with pytest.raises(FormatError) as caught:
        open_gguf(path)
    assert caught.value.path == str(path)
    return str(caught.value)


def test_all_missing_parts_are_named(tmp_path):
    path = write_model(tmp_path)
    for i in (1, 2):
        (tmp_path / name_of(i, 3)).unlink()
    message = refusal(path)
    assert f"part 2 ({name_of(1, 3)}) is missing" in message
    assert f"part 3 ({name_of(2, 3)}) is missing" in message


def test_a_missing_and_a_damaged_part_are_named_together(tmp_path):
    path = write_model(tmp_path)
    (tmp_path / name_of(1, 3)).write_bytes(b"GGUF")
    (tmp_path / name_of(2, 3)).unlink()
    message = refusal(path)
    assert "part 3" in message
    assert f"{name_of(1, 3)}: the version needs 4 bytes" in message


@pytest.mark.parametrize(
    ("part", "keys", "message"),
    [
        (1, {"no": 2, "count": 3}, "says it is part 3 of 3"),
        (1, {"no": 1, "count": 4}, "says it is part 2 of 4"),
        (1, {}, "says it is part 0 of 0"),
        (2, {"no": 2, "count": 3, "arch": "gemma3"}, "architecture 'gemma3', the first part of 'llama'"),
        (0, {"no": 0, "count": 3, "total": 7}, "hold 6 tensors, split.tensors.count says 7"),
    ],
)
def test_contradictions_are_named(tmp_path, part, keys, message):
    path = write_model(tmp_path)
    write_part(tmp_path / name_of(part, 3), [f"t{part}.a", f"t{part}.bb"], **keys)
    assert message in refusal(path)


def test_a_tensor_in_two_parts_is_named(tmp_path):
    path = write_model(tmp_path)
    write_part(tmp_path / name_of(2, 3), ["t0.a", "t2.bb"], no=2, count=3)
    assert f"tensor 't0.a' is both in {name_of(0, 3)} and in {name_of(2, 3)}" in refusal(path)


@pytest.mark.parametrize("name", ["model.gguf", "model-00001-of-00004.gguf"])
def test_a_part_under_another_name_says_what_to_call_it(tmp_path, name):
    write_part(tmp_path / name, ["t"], no=1, count=3)
    assert "PREFIX-00002-of-00003.gguf" in refusal(tmp_path / name)


@pytest.mark.parametrize("value", [Typed(-1, "i32"), "3", 2.0, True, [3]])
def test_a_count_that_is_none_is_refused(tmp_path, value):
    with GGUFWriter(tmp_path / "m.gguf", {"split.count": value}):
        pass
    assert "split.count is" in refusal(tmp_path / "m.gguf")


def test_thousands_of_missing_parts_make_a_short_message(tmp_path):
    write_part(tmp_path / name_of(0, 60000), ["t"], no=0, count=60000)
    message = refusal(tmp_path / name_of(0, 60000))
    assert "and 59991 more problems" in message
    assert len(message) < 1500
