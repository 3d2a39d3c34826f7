"""Importance matrices as files: written as GGUF, read as GGUF or in the older form."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError, FormatError
from ...formats import GGUFFile, GGUFWriter, StringArray, Typed, open_gguf
from ...formats.named_path import named_path
from ...quant import FORMATS
from .imatrix import CHUNK_SIZE, ImportanceMatrix
from .imatrix_entry import Entry, problem_of
from .imatrix_legacy import read_legacy

KIND = "general.type"
DATASETS, CHUNK_COUNT, CHUNK_SIZE_KEY = "imatrix.datasets", "imatrix.chunk_count", "imatrix.chunk_size"
SUMS, COUNTS = ".in_sum2", ".counts"
_MAGIC = b"GGUF"
_SHOWN = 8


def write_imatrix(matrix: ImportanceMatrix, path: str | PathLike[str]) -> None:
    """Write the GGUF form; the file appears when it is complete.

    Raises what `GGUFWriter` does, and `ConfigError` for what `read_imatrix` would refuse.
    """
    matrix = matrix.in_tokens(CHUNK_SIZE)
    for name, entry in matrix.entries.items():
        problem = problem_of(entry)
        if problem:
            raise ConfigError(f"{name!r} {problem}: this importance matrix cannot be written", key=name)
    metadata = {
        KIND: "imatrix",
        DATASETS: Typed(list(matrix.datasets), "string"),
        CHUNK_COUNT: Typed(matrix.chunk_count, "u32"),
        CHUNK_SIZE_KEY: Typed(matrix.chunk_size, "u32"),
    }
    arrays: dict[str, NDArray[np.float32]] = {}
    for name, entry in sorted(matrix.entries.items()):
        arrays[name + SUMS] = entry.in_sum2
        arrays[name + COUNTS] = entry.counts[:, None]
    with GGUFWriter(path, metadata) as writer:
        for name, array in arrays.items():
            experts, columns = array.shape
            writer.declare(name, FORMATS["f32"], (columns, experts) if experts > 1 else (columns,))
        for name, array in arrays.items():
            writer.write(name, np.asarray(array, np.float32))


def read_imatrix(path: str | PathLike[str]) -> ImportanceMatrix:
    """Read either form. Raises `FormatError` naming the entry that makes no sense, `ConfigError` for no such file."""
    path = named_path(path)
    return read_legacy(path) if _is_legacy(path) else _read_gguf(path)


def _is_legacy(path: Path) -> bool:
    """What cannot be read at all counts as GGUF, whose reader says why."""
    try:
        if not path.is_file() or path.stat().st_size == 0:
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) != _MAGIC
    except OSError:
        return False


def _read_gguf(path: Path) -> ImportanceMatrix:
    with open_gguf(path) as file:
        kind = file.metadata.get(KIND, "imatrix")
        sums = {name.removesuffix(SUMS) for name in file.tensors if name.endswith(SUMS)}
        counts = {name.removesuffix(COUNTS) for name in file.tensors if name.endswith(COUNTS)}
        if kind != "imatrix" or not sums | counts:
            is_model = "general.architecture" in file.metadata
            what = "this is a model" if is_model else f"{KIND} is {kind!r} and it has no entries"
            raise FormatError(f"is no importance matrix: {what}; make one with halfbyte imatrix", path=path)
        problems = [f"{name!r} has sums and no counts" for name in sorted(sums - counts)]
        problems += [f"{name!r} has counts and no sums" for name in sorted(counts - sums)]
        entries = {}
        for name in sorted(sums & counts):
            found = _problem(file, name)
            if found:
                problems.append(f"{name!r} {found}")
            else:
                entries[name] = _entry(file, name)
        if problems:
            more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise FormatError(f"the importance matrix is damaged: {'; '.join(problems[:_SHOWN])}{more}", path=path)
        datasets = file.metadata.get(DATASETS)
        named = tuple(datasets.tolist()) if isinstance(datasets, StringArray) else ()
        size = _number(file, CHUNK_SIZE_KEY) or CHUNK_SIZE
        return ImportanceMatrix(entries, named, _number(file, CHUNK_COUNT), size, path)


def _problem(file: GGUFFile, name: str) -> str:
    """What is wrong with an entry; empty where nothing is."""
    sums, counts = file.tensors[name + SUMS], file.tensors[name + COUNTS]
    if (sums.format.name, counts.format.name) != ("f32", "f32"):
        return f"is {sums.format.name} and {counts.format.name}, not f32"
    if sums.n_elements % counts.n_elements:
        return f"has {sums.n_elements} sums for {counts.n_elements} experts"
    return problem_of(_entry(file, name))


def _entry(file: GGUFFile, name: str) -> Entry:
    """A copy, so that nothing holds the file."""
    sums, counts = (
        np.array(file.tensor_data(name + part).reshape(-1).view("<f4"), np.float32) for part in (SUMS, COUNTS)
    )
    return Entry(sums.reshape(len(counts), -1), counts)


def _number(file: GGUFFile, key: str) -> int:
    value = file.metadata.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FormatError(f"{key} is {value!r}, not a count: the importance matrix is damaged", path=file.path)
    return value
