"""`RawGGUF`: GGUF bytes laid down one field at a time, right or wrong, with a note of where each number lies."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple, Self


class Field(NamedTuple):
    name: str
    offset: int
    code: str


@dataclass
class RawGGUF:
    data: bytearray = field(default_factory=bytearray)
    fields: list[Field] = field(default_factory=list)

    def number(self, name: str, code: str, value: float) -> Self:
        self.fields.append(Field(name, len(self.data), code))
        self.data += struct.pack(f"<{code}", value)
        return self

    def text(self, name: str, raw: bytes) -> Self:
        self.number(f"{name} length", "Q", len(raw))
        self.data += raw
        return self

    def head(self, n_tensors: int, n_keys: int, version: int = 3, magic: bytes = b"GGUF") -> Self:
        self.data += magic
        return self.number("version", "I", version).number("n_tensors", "Q", n_tensors).number("n_keys", "Q", n_keys)

    def key(self, name: bytes, kind: int) -> Self:
        return self.text(f"key {name.decode(errors='replace')}", name).number("value type", "I", kind)

    def array(self, name: bytes, kind: int, count: int) -> Self:
        return self.key(name, 9).number("element type", "I", kind).number("element count", "Q", count)

    def tensor(self, name: bytes, dims: list[int], kind: int, offset: int) -> Self:
        self.text("tensor name", name).number("n_dims", "I", len(dims))
        for axis, n in enumerate(dims):
            self.number(f"dimension {axis}", "Q", n)
        return self.number("tensor type", "I", kind).number("tensor offset", "Q", offset)

    def pad(self, alignment: int = 32, tail: int = 0) -> bytes:
        """The bytes so far, padded, and `tail` bytes of tensor data."""
        return bytes(self.data) + bytes(-len(self.data) % alignment + tail)

    def patched(self, where: Field, value: int, whole: bytes) -> bytes:
        """`whole` with one number replaced, wrapped around into the width it has there."""
        size = struct.calcsize(where.code)
        raw = (value % (1 << (8 * size))).to_bytes(size, "little")
        return whole[: where.offset] + raw + whole[where.offset + size :]


def sound_file() -> tuple[RawGGUF, bytes]:
    """A small file with every kind of field: two tensors (f32 [4, 2], q8_0 [32, 3]) and an alignment of its own."""
    raw = RawGGUF().head(n_tensors=2, n_keys=5)
    raw.key(b"general.alignment", 4).number("alignment", "I", 64)
    raw.key(b"general.architecture", 8).text("string value", b"llama")
    raw.key(b"llama.rope.freq_base", 6).number("float value", "f", 1e4)
    raw.array(b"tokenizer.ggml.tokens", 8, 3)
    for token in (b"a", b"", b"caf\xc3\xa9"):
        raw.text("array string", token)
    raw.array(b"tokenizer.ggml.scores", 6, 2).number("score", "f", 0.5).number("score", "f", -1)
    raw.tensor(b"norm.weight", [4, 2], 0, 0)
    raw.tensor(b"head.weight", [32, 3], 8, 64)
    return raw, raw.pad(64, 64 + 3 * 34)
