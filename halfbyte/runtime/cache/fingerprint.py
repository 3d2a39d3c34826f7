"""What computed KV belongs to, as 16 bytes."""

from __future__ import annotations

import sys
from hashlib import blake2b

import numpy as np

from ...formats import GGUFFile, StringArray

KV_VERSION = 1
"""Raise it with every change of the bytes that a page has for the same tokens: a layout, an order of additions."""
SAMPLE_BYTES = 4096
_TEXT_ONLY = "tokenizer."


def fingerprint(file: GGUFFile, *, isa: str, kv: str, page_len: int, adapter: bytes = b"") -> bytes:
    """16 bytes that are the same exactly where pages can be exchanged, wherever the model file lies.

    Binds the metadata, name, shape and format of all tensors with their first and last `SAMPLE_BYTES`, and what the
    pages were made with. KV follows from ids and weights, so how text becomes ids (`tokenizer.*`) and the order of
    tensors in the file are left out: a corrected chat template or a model put together from its parts keeps its
    caches. It finds mistakes; it is no proof against someone who forges a file. Raises `FormatError` where the file
    has been cut.
    """
    hasher = blake2b(digest_size=16)

    def add(*parts: object) -> None:
        for part in parts:
            data = part if isinstance(part, bytes) else repr(part).encode()
            hasher.update(len(data).to_bytes(8, "little") + data)

    add("halfbyte", KV_VERSION, sys.byteorder, isa, kv, page_len, adapter)
    for key in sorted(file.metadata):
        if not key.startswith(_TEXT_ONLY):
            add(key, file.types[key], _plain(file.metadata[key]))
    for name in sorted(file.tensors):
        info = file.tensors[name]
        n_rows = -(-SAMPLE_BYTES * info.rows // info.n_bytes)
        add(name, info.format.name, info.shape)
        for start, stop in ((0, min(n_rows, info.rows)), (max(info.rows - n_rows, 0), info.rows)):
            add(file.read_rows(name, start, stop).tobytes())
    return hasher.digest()


def _plain(value: object) -> object:
    if isinstance(value, StringArray):
        return value.tolist()
    return value.tobytes() if isinstance(value, np.ndarray) else value
