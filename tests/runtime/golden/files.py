"""Model files with golden vectors, and the same files with something changed behind their back."""

from __future__ import annotations

from halfbyte.formats import GGUFWriter, Typed, open_gguf
from halfbyte.runtime.golden.recording import record, room
from tests.model.tiny import make_tiny_gguf


def golden_gguf(path, arch="llama", **choices):
    """A tiny model with golden vectors; returns `path`."""
    plain = make_tiny_gguf(path.with_name("plain.gguf"), arch, **choices)
    with open_gguf(plain) as file, copy_of(file, path, room(len(file.tensors))) as writer:
        record(writer)
    plain.unlink()
    return path


def changed(source, path, metadata=None, data=None, formats=None):
    """`source` as a new file with other values for some keys, bytes for some tensors, or formats for all of them."""
    with open_gguf(source) as file, copy_of(file, path, metadata or {}, data, formats):
        pass
    return path


def copy_of(file, path, metadata, data=None, format=None):
    kept = {key: Typed(value, file.types[key]) for key, value in file.metadata.items()}
    writer = GGUFWriter(path, kept | metadata)
    for name, info in file.tensors.items():
        writer.declare(name, info.format if format is None or len(info.shape) < 2 else format, info.shape)
    for name, info in file.tensors.items():
        raw = (data or {}).get(name, file.tensor_data(name))
        encode = format is not None and len(info.shape) > 1
        writer.write(name, format.encode(info.format.decode(raw)) if encode else raw)
    return writer


def strings(path, key):
    """A list of texts in a file's metadata."""
    with open_gguf(path) as file:
        return list(file.metadata[key])


def tensor(path, name):
    """A copy of a tensor's bytes, u8[rows, row_bytes]."""
    with open_gguf(path) as file:
        return file.tensor_data(name).copy()
