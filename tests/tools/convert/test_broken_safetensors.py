"""Whatever is wrong with a file of weights, or with several: a typed error names the file, and nothing is left."""

from __future__ import annotations

import json
import os
import pickle
import struct

import numpy as np
import pytest

from halfbyte.errors import FormatError
from tests.tools.convert.broken import INDEX, WEIGHTS, Q, index, refused, sharded
from tests.tools.convert.tiny_folder import data_of, header_of, tensors, write_safetensors


def lie(folder, change, data=None):
    """`change` makes another header of the true one."""
    arrays = tensors()
    header = change(header_of(arrays))
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = data_of(arrays) if data is None else data
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + body)
    return folder


def entry(**changes):
    return lambda header: header | {Q: header[Q] | changes}


class TestSafetensors:
    @pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, 5000, -1, -4, -64, -100_000])
    def test_that_are_cut_off(self, folder, kept):
        whole = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(whole[:kept])
        refused(folder, FormatError, WEIGHTS)

    def test_with_more_than_belongs_to_them(self, folder):
        with (folder / WEIGHTS).open("ab") as file:
            file.write(b"more")
        refused(folder, FormatError, WEIGHTS)

    @pytest.mark.parametrize("length", [0, 2**31, 2**40, 2**63 - 1, 2**64 - 1])
    def test_whose_header_has_no_such_length(self, folder, length):
        whole = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + whole[8:])
        refused(folder, FormatError, WEIGHTS)

    @pytest.mark.parametrize("header", [b"", b"{", b"[]", b"7", b"\xff\xff", b"[" * 9999, b"{" * 9999, b'{"a": 1}'])
    def test_whose_header_is_none(self, folder, header):
        refused(lie(folder, lambda _: header), FormatError, WEIGHTS)

    @pytest.mark.parametrize(
        "changes",
        [
            {"shape": [-64, 64]},
            {"shape": [64, -64]},
            {"shape": [64, 65]},
            {"shape": [64, 32]},
            {"shape": [2**40, 2**40]},
            {"shape": [2**63, 2]},
            {"shape": [64.0, 64]},
            {"shape": ["64", 64]},
            {"shape": 4096},
            {"shape": None},
            {"dtype": "F16"},
            {"dtype": "F64"},
            {"dtype": "FOO"},
            {"dtype": 7},
            {"data_offsets": [0, 16384]},
            {"data_offsets": [16384, 0]},
            {"data_offsets": [-16384, 0]},
            {"data_offsets": [2**62, 2**62 + 16384]},
            {"data_offsets": [2**64 - 16384, 0]},
            {"data_offsets": [0]},
            {"data_offsets": []},
            {"data_offsets": "0, 1"},
        ],
    )
    def test_with_an_entry_that_lies(self, folder, changes):
        refused(lie(folder, entry(**changes)), FormatError, WEIGHTS)

    def test_with_an_entry_that_lacks_something(self, folder):
        refused(lie(folder, lambda header: header | {Q: {"dtype": "F32"}}), FormatError, WEIGHTS)

    def test_with_two_tensors_of_one_name(self, folder):
        def twice(header):
            return json.dumps(header).encode()[:-1] + b", " + json.dumps({Q: header[Q]}).encode()[1:]

        refused(lie(folder, twice), FormatError, WEIGHTS)

    def test_with_holes_between_tensors(self, folder):
        last = "lm_head.weight"

        def moved(header):
            start, stop = header[last]["data_offsets"]
            return header | {last: header[last] | {"data_offsets": [start + 4, stop + 4]}}

        refused(lie(folder, moved, data_of(tensors()) + bytes(4)), FormatError, WEIGHTS)


class TestShards:
    def test_that_are_missing(self, folder):
        sharded(folder)
        (folder / "model-00002-of-00002.safetensors").unlink()
        refused(folder, FormatError, r"index\.json.*model-00002-of-00002\.safetensors")

    def test_that_are_missing_without_an_index(self, folder):
        sharded(folder)
        (folder / INDEX).unlink()
        (folder / "model-00001-of-00002.safetensors").unlink()
        refused(folder, FormatError, r"checkpoint.*model-00001-of-00002\.safetensors")

    @pytest.mark.parametrize("name", ["../other.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\0b"])
    def test_outside_the_folder(self, folder, name):
        places = sharded(folder)
        write_safetensors(folder.parent / "other.safetensors", tensors())
        refused(index(folder, places | {Q: name}), FormatError, INDEX)

    def test_that_do_not_hold_what_the_index_says(self, folder):
        sharded(folder, Q)
        refused(folder, FormatError, rf"{INDEX}.*{Q}")

    def test_that_hold_what_the_index_says_of_others(self, folder):
        places = sharded(folder)
        other = "model-00001-of-00002.safetensors"
        assert places[Q] != other
        refused(index(folder, places | {Q: other}), FormatError, rf"{INDEX}.*{Q}")

    def test_that_hold_the_same_tensor(self, folder):
        places = sharded(folder)
        arrays = tensors()
        first = {name: arrays[name] for name, file in places.items() if "00001" in file}
        write_safetensors(folder / "model-00001-of-00002.safetensors", first | {Q: arrays[Q]})
        refused(folder, FormatError, rf"model-0000.-of-00002\.safetensors.*{Q}")

    @pytest.mark.parametrize("places", [None, [], {}, {Q: 7}, {Q: None}, "model.safetensors"])
    def test_of_an_index_without_a_map(self, folder, places):
        sharded(folder)
        refused(index(folder, places), FormatError, INDEX)

    @pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff"])
    def test_of_an_index_that_is_no_json(self, folder, text):
        (folder / INDEX).write_bytes(text)
        refused(folder, FormatError, INDEX)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


class TestPickles:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch")

    def weights_of(self, folder):
        (folder / WEIGHTS).unlink()
        return folder / "pytorch_model.bin"

    def test_with_code_that_is_never_run(self, folder):
        import torch

        path = self.weights_of(folder)
        torch.save({Q: Evil(folder.parent / "run")}, path)
        refused(folder, FormatError, path.name)
        assert not (folder.parent / "run").exists()

    def test_of_an_old_kind_with_code_that_is_never_run(self, folder):
        path = self.weights_of(folder)
        path.write_bytes(pickle.dumps(Evil(folder.parent / "run")))
        refused(folder, FormatError, path.name)
        assert not (folder.parent / "run").exists()

    @pytest.mark.parametrize("content", [[1, 2], {"a": 1}, {"state": {}}, 7])
    def test_of_other_things_than_tensors(self, folder, content):
        import torch

        path = self.weights_of(folder)
        torch.save(content, path)
        refused(folder, FormatError, path.name)

    @pytest.mark.parametrize("kept", [0, 1, 4, 100, -1, -100, -5000])
    def test_that_are_cut_off(self, folder, kept):
        import torch

        path = self.weights_of(folder)
        torch.save({name: torch.from_numpy(array) for name, array in tensors().items()}, path)
        path.write_bytes(path.read_bytes()[:kept])
        refused(folder, FormatError, path.name)

    def test_of_noise(self, folder):
        path = self.weights_of(folder)
        path.write_bytes(np.random.default_rng(0).bytes(5000))
        refused(folder, FormatError, path.name)
