"""Tiny wheels with tiny models, and a cache and an index in a temporary folder."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path

BODY = b"GGUF" + bytes(range(256)) * 40


def make_wheel(folder: Path, name: str, members: dict[str, bytes], version: str = "1.0") -> Path:
    """A wheel that pip accepts, with `members` as its files."""
    dist = f"{name.replace('-', '_')}-{version}"
    info = f"{dist}.dist-info"
    files = dict(members)
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{dist}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def cut(data: bytes, pieces: int) -> list[bytes]:
    """`data` in `pieces` runs of about the same length."""
    step = -(-len(data) // pieces)
    return [data[start : start + step] for start in range(0, len(data), step)]


def settings(index: Path, cache: Path) -> dict[str, str]:
    """Environment in which pip sees `index` alone and models are kept in `cache`."""
    alone = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": index.as_uri(), "PIP_CONFIG_FILE": os.devnull}
    return {**alone, "PIP_CONSTRAINT": "", "PIP_EXTRA_INDEX_URL": "", "HALFBYTE_CACHE": str(cache)}
