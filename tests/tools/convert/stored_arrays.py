"""Arrays that stand for the tensors of a checkpoint, and what every quantized source must keep to."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from halfbyte.tools.convert.quantized import plain_source
from halfbyte.tools.convert.tensor_source import DTYPES, SourceTensor

FILE = Path("folder/model-00001-of-00002.safetensors")
_OF_NUMPY = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8", "u1": "U8"}


class StoredArrays:
    """A `TensorSource` of arrays, or pairs of a dtype and an array. Notes the entries that are read."""

    def __init__(self, **arrays):
        self.tensors, self._arrays, self.read_entries = {}, {}, {}
        self._lock = threading.Lock()
        self.put(arrays)

    def put(self, arrays):
        for name, given in arrays.items():
            dtype, array = given if isinstance(given, tuple) else (_OF_NUMPY[given.dtype.str[1:]], given)
            self._arrays[name] = np.asarray(array, DTYPES[dtype])
            self.tensors[name] = SourceTensor(name, dtype, self._arrays[name].shape, FILE)
        return self

    def without(self, *names):
        for name in names:
            del self.tensors[name], self._arrays[name]
        return self

    def read(self, name, start=0, stop=None):
        array = self._arrays[name]
        if not array.shape:
            return array.copy()
        assert 0 <= start <= (array.shape[0] if stop is None else stop) <= array.shape[0]
        part = np.ascontiguousarray(array[start:stop])
        with self._lock:
            self.read_entries[name] = self.read_entries.get(name, 0) + len(part)
        return part


def bf16(values):
    """Of values that it holds exactly."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return "BF16", (bits >> 16).astype(np.uint16)


def plain(source, **settings):
    return plain_source(source, {"quantization_config": settings})


def check(source, name, expected, dtype="F32"):
    """The tensor has these bits, whole and in all ranges of rows, and whoever asks."""
    tensor = source.tensors[name]
    assert tensor.dtype == dtype
    assert tensor.path == FILE
    whole = source.read(name)
    assert whole.dtype == np.dtype(DTYPES[dtype])
    np.testing.assert_array_equal(whole.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))
    n = tensor.shape[0]
    ranges = [(start, stop) for start in range(n + 1) for stop in range(start, n + 1)]
    if len(ranges) > 300:
        rng = np.random.default_rng(n)
        ranges = [ranges[i] for i in rng.choice(len(ranges), 300, replace=False)]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda part: source.read(name, *part), ranges))
    for (start, stop), part in zip(ranges, parts, strict=True):
        np.testing.assert_array_equal(part, whole[start:stop], strict=True)


def bit_fields(codes, bits):
    """u8[n, k] to i32[n, words]: numbers one after the other, the lowest bit first, the end filled with zeros."""
    n, k = codes.shape
    stream = ((codes[:, :, None] >> np.arange(bits, dtype=np.uint8)) & 1).astype(np.uint8).reshape(n, k * bits)
    padded = np.zeros((n, -(-k * bits // 32) * 32), np.uint8)
    padded[:, : k * bits] = stream
    return np.packbits(padded, axis=1, bitorder="little").view("<i4")
