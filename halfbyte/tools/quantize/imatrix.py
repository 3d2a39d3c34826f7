"""`ImportanceMatrix`: how much each column of each matrix counts, as the energy of what it is multiplied with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...errors import ConfigError, FormatError, nearest
from .imatrix_entry import Entry, Floats

CHUNK_SIZE = 512
"""Tokens of a chunk where nobody says: the usual window of tools that write the older form."""


@dataclass(frozen=True)
class ImportanceMatrix:
    """`entries` by weight name; `datasets` name the texts, `chunk_count` and `chunk_size` tell how much was read.

    A `chunk_size` of 0 is that of the older form, which counts chunks where the newer one counts tokens. `path` is the
    file it was read from.
    """

    entries: Mapping[str, Entry]
    datasets: tuple[str, ...] = ()
    chunk_count: int = 0
    chunk_size: int = 0
    path: Path | None = field(default=None, compare=False)

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def importance(self, name: str, columns: int | None = None) -> Floats:
        """f32[experts, M]: the mean square of each column's input; ones where an expert saw no token.

        `columns` is the M that the caller's weight has. Raises `ConfigError` for a weight without entry, `FormatError`
        where its columns are not those of the entry.
        """
        entry = self.entries.get(name)
        if entry is None:
            raise ConfigError(f"no importance is known of {name!r}{nearest(name, self.entries)}", key=name)
        sums, counts = entry.in_sum2, entry.counts
        if columns is not None and sums.shape[1] != columns:
            # The older form stacks experts without saying how many they are.
            if len(counts) > 1 or sums.size % columns:
                raise FormatError(
                    f"{name!r} has {sums.shape[1]} columns here and {columns} in the model: the importance matrix is "
                    "another model's",
                    path=self.path,
                )
            sums = sums.reshape(-1, columns)
        seen = np.broadcast_to(counts[:, None], sums.shape)
        return np.divide(sums, seen, out=np.ones_like(sums), where=seen > 0)

    def merge(self, other: ImportanceMatrix) -> ImportanceMatrix:
        """Of both texts together. Raises `ConfigError` for an entry of different shapes: two models, not one."""
        size = self.chunk_size or other.chunk_size or CHUNK_SIZE
        entries = dict(self.in_tokens(size).entries)
        for name, entry in other.in_tokens(size).entries.items():
            entries[name] = _sum(name, entries[name], entry) if name in entries else entry
        datasets = tuple(dict.fromkeys(self.datasets + other.datasets))
        return ImportanceMatrix(entries, datasets, self.chunk_count + other.chunk_count, size)

    def in_tokens(self, chunk_size: int) -> ImportanceMatrix:
        """Counts of the older form turned into tokens; what counts tokens already stays as it is."""
        if self.chunk_size:
            return self
        entries = {name: entry.scaled(chunk_size) for name, entry in self.entries.items()}
        return ImportanceMatrix(entries, self.datasets, self.chunk_count, chunk_size, self.path)


def _sum(name: str, a: Entry, b: Entry) -> Entry:
    if a.in_sum2.shape != b.in_sum2.shape:
        raise ConfigError(
            f"importance matrices of different models cannot be merged: {name!r} is {list(a.in_sum2.shape)} in one and "
            f"{list(b.in_sum2.shape)} in the other",
            key=name,
        )
    return a + b
