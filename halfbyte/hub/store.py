"""Keep what was fetched: whole or not at all, once for all processes."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import ResourceError
from .entry import Entry, Progress, StoredFile, measure, read_entry
from .folder import disk_errors, folder_name, models_folder
from .lock import locked

log = logging.getLogger("halfbyte.hub")

Fill = Callable[[Path, Progress], dict[Path, str]]
"""`fill(folder, progress)` puts files into the folder and returns their paths, the model file first, each with the
SHA-256 that its source states, or an empty string."""


def kept(reference: str, expected: StoredFile | None = None) -> Entry | None:
    """The whole entry of a reference, or None. `expected` is what its model file must be."""
    entry = read_entry(models_folder() / folder_name(reference))
    if entry is None or not entry.is_whole():
        return None
    return entry if expected is None or entry.files[0] == expected else None


def obtain(
    reference: str, fill: Fill, progress: Progress, *, expected: StoredFile | None = None, refresh: bool = False
) -> Entry:
    """The kept entry of a reference; where it is missing, cut short or to be refreshed, a fetched one.

    Files arrive in a temporary folder that is renamed when their sizes and hashes are proven, so that neither an
    interruption nor a second process leaves half a model.
    """
    if not refresh and (entry := kept(reference, expected)) is not None:
        return entry
    models = models_folder()
    with disk_errors(models):
        models.mkdir(parents=True, exist_ok=True)
        with locked(models / f".{folder_name(reference)}.lock", lambda: progress("wait", 0, 0)):
            if not refresh and (entry := kept(reference, expected)) is not None:
                return entry
            return _fetch(reference, fill, progress, expected)


def _fetch(reference: str, fill: Fill, progress: Progress, expected: StoredFile | None) -> Entry:
    folder = models_folder() / folder_name(reference)
    prefix = f".{folder.name}.fetch-"
    # The lock is ours, so these belong to fetches that were killed.
    for left_over in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    fetching = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        place = fetching / "files"
        place.mkdir()
        stated = fill(place, progress)
        files = measure(place, list(stated), progress)
        _compare(reference, files, list(stated.values()), expected)
        Entry(place, files).write()
        if folder.exists():
            os.replace(folder, fetching / "old")
        os.replace(place, folder)
    finally:
        shutil.rmtree(fetching, ignore_errors=True)
    log.info("%s is kept in %s", reference, folder)
    return Entry(folder, files)


def _compare(reference: str, files: Sequence[StoredFile], stated: Sequence[str], expected: StoredFile | None) -> None:
    for file, sha256 in zip(files, stated, strict=True):
        if sha256 and file.sha256 != sha256:
            raise ResourceError(_mismatch(reference, file, StoredFile(file.name, file.size, sha256)))
    if expected is not None and files[0] != expected:
        raise ResourceError(_mismatch(reference, files[0], expected))


def _mismatch(reference: str, got: StoredFile, expected: StoredFile) -> str:
    what = (
        f"{got.size} bytes instead of {expected.size}"
        if got.size != expected.size
        else f"SHA-256 {got.sha256[:16]}... instead of {expected.sha256[:16]}..."
    )
    return (
        f"the file fetched for {reference} is not the expected one ({what}) and was thrown away; "
        "try again, and check the package index or mirror if it happens again"
    )
