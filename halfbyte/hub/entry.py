"""`Entry`: the files that one reference stands for, with what was measured when they came."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

Progress = Callable[[str, int, int], None]
"""`progress(what, done, total)`, in bytes; `what` is "download", "wait" or "verify", `total` is 0 where unknown."""

MANIFEST = "manifest.json"
CHUNK = 8 << 20


@dataclass(frozen=True)
class StoredFile:
    """Name inside the entry's folder, size in bytes, SHA-256 in hexadecimal."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One folder of the model cache. The first file is the one to open."""

    folder: Path
    files: tuple[StoredFile, ...]

    @property
    def path(self) -> Path:
        """The model file."""
        return self.folder / self.files[0].name

    def is_whole(self) -> bool:
        """Whether every file is there in its full size; a cheap test for every start."""
        try:
            return all((self.folder / file.name).stat().st_size == file.size for file in self.files)
        except OSError:
            return False

    def damaged(self, progress: Progress) -> list[str]:
        """Names of the files whose bytes are no longer those that were fetched."""
        paths = [self.folder / file.name for file in self.files]
        found = measure(self.folder, paths, progress)
        return [old.name for old, new in zip(self.files, found, strict=True) if old != new]

    def write(self) -> None:
        """Write the manifest into the folder."""
        text = json.dumps([asdict(file) for file in self.files], indent=1)
        (self.folder / MANIFEST).write_text(text, encoding="utf-8")


def read_entry(folder: Path) -> Entry | None:
    """The entry in `folder`; None where there is none or its manifest cannot be read."""
    try:
        rows = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = tuple(StoredFile(str(row["name"]), int(row["size"]), str(row["sha256"])) for row in rows)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Entry(folder, files) if files else None


def measure(folder: Path, paths: Sequence[Path], progress: Progress) -> tuple[StoredFile, ...]:
    """Read all files once; their names, sizes and hashes."""
    total = sum(path.stat().st_size for path in paths)
    done = 0
    files = []
    for path in paths:
        digest, size = hashlib.sha256(), 0
        for chunk in _chunks(path):
            digest.update(chunk)
            size += len(chunk)
            progress("verify", done + size, total)
        done += size
        files.append(StoredFile(path.relative_to(folder).as_posix(), size, digest.hexdigest()))
    return tuple(files)


def _chunks(path: Path) -> Iterable[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
