"""gguf-py, the reference implementation, reads what we write and writes what we read."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from halfbyte.formats import GGUFWriter, StringArray, Typed, open_gguf
from halfbyte.formats.value_type import NUMBERS
from halfbyte.quant.formats import FORMATS

SCALARS = {
    "u8": 255, "i8": -128, "u16": 65535, "i16": -32768, "u32": 2**32 - 1, "i32": -(2**31), "u64": 2**64 - 1,
    "i64": -(2**63), "f32": 0.5, "f64": 0.1, "bool": True, "string": "grüße ▁",
}  # fmt: skip
LISTS = {name: [value, value] for name, value in SCALARS.items()}
WEIGHTS = np.arange(96, dtype=np.float32).reshape(3, 32)


def test_gguf_py_reads_every_value_we_write(tmp_path):
    path = tmp_path / "ours.gguf"
    values = {f"one.{kind}": Typed(value, kind) for kind, value in SCALARS.items()}
    values |= {f"many.{kind}": Typed(value, kind) for kind, value in LISTS.items()}
    with GGUFWriter(path, {"general.architecture": "llama", **values}):
        pass
    reader = gguf.GGUFReader(path)
    for key, typed in values.items():
        field = reader.fields[key]
        assert field.contents() == typed.value
        assert field.types[-1].name == {"u": "UINT", "i": "INT", "f": "FLOAT"}.get(
            typed.type[0], typed.type.upper()
        ) + (typed.type[1:] if typed.type in NUMBERS and typed.type != "bool" else "")


@pytest.mark.parametrize("alignment", [8, 32, 128])
def test_gguf_py_reads_every_tensor_we_write(tmp_path, alignment):
    path = tmp_path / "ours.gguf"
    blocks = FORMATS["q8_0"].encode(WEIGHTS)
    with GGUFWriter(path, {"general.architecture": "llama"}, alignment) as writer:
        writer.declare("f32", FORMATS["f32"], (32, 3))
        writer.declare("odd", FORMATS["i8"], (5,))
        writer.declare("q8_0", FORMATS["q8_0"], (32, 3))
        writer.write("q8_0", blocks)
        writer.write("f32", WEIGHTS)
        writer.write("odd", b"12345")
    f32, odd, q8_0 = gguf.GGUFReader(path).tensors
    assert [f32.name, odd.name, q8_0.name] == ["f32", "odd", "q8_0"]
    assert q8_0.shape.tolist() == [32, 3]
    assert np.array_equal(f32.data, WEIGHTS)
    assert odd.data.tobytes() == b"12345"
    assert q8_0.data.tobytes() == blocks.tobytes()


def write_with_gguf_py(path, alignment=None):
    writer = gguf.GGUFWriter(path, "llama")
    if alignment:
        writer.add_custom_alignment(alignment)
    names = {"u": "uint", "i": "int", "f": "float"}
    for kind, value in SCALARS.items():
        verb = kind if kind in ("bool", "string") else names[kind[0]] + kind[1:]
        getattr(writer, f"add_{verb}")(f"one.{kind}", value)
    writer.add_array("many.strings", ["", "a", "é" * 400, "▁the"])
    writer.add_array("many.ints", [1, -2, 3])
    writer.add_array("many.floats", [0.5, -0.25])
    writer.add_array("many.bools", [True, False])
    writer.add_tensor("f32", WEIGHTS)
    writer.add_tensor("q8_0", FORMATS["q8_0"].encode(WEIGHTS), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("alignment", [None, 64])
def test_we_read_what_gguf_py_writes(tmp_path, alignment):
    write_with_gguf_py(tmp_path / "theirs.gguf", alignment)
    with open_gguf(tmp_path / "theirs.gguf") as file:
        assert (file.version, file.alignment) == (3, alignment or 32)
        assert {kind: file.metadata[f"one.{kind}"] for kind in SCALARS} == SCALARS
        assert {kind: file.types[f"one.{kind}"] for kind in SCALARS} == {kind: kind for kind in SCALARS}
        strings = file.metadata["many.strings"]
        assert isinstance(strings, StringArray)
        assert strings.tolist() == ["", "a", "é" * 400, "▁the"]
        assert file.metadata["many.ints"].tolist() == [1, -2, 3]
        assert file.metadata["many.floats"].tolist() == [0.5, -0.25]
        assert file.metadata["many.bools"].tolist() == [True, False]
        assert file.tensors["q8_0"].shape == (32, 3)
        assert file.tensor_data("f32").tobytes() == WEIGHTS.tobytes()
        assert file.tensor_data("q8_0").tobytes() == FORMATS["q8_0"].encode(WEIGHTS).tobytes()


def test_a_real_model_reads_as_gguf_py_reads_it(smollm2_path):
    reader = gguf.GGUFReader(smollm2_path)
    with open_gguf(smollm2_path) as file:
        assert list(file.metadata) == [key for key in reader.fields if not key.startswith("GGUF.")]
        for key, value in file.metadata.items():
            ours = value.tolist() if isinstance(value, StringArray | np.ndarray) else value
            assert ours == reader.fields[key].contents(), key
        assert list(file.tensors) == [tensor.name for tensor in reader.tensors]
        for tensor in reader.tensors:
            info = file.tensors[tensor.name]
            assert info.shape == tuple(tensor.shape.tolist())
            assert (info.format.ggml_id, info.offset) == (tensor.tensor_type.value, tensor.data_offset)
            assert info.n_bytes == tensor.n_bytes
