from __future__ import annotations

import subprocess
import sys

import pytest

from halfbyte.cli import progress
from halfbyte.cli.progress import Bar, amount


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_short_work_shows_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        bar("pack", 0, 10)
        clock[0] += progress.SHOW_AFTER_S / 2
        bar("pack", 10, 10)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_a_line_comes_every_few_seconds(clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        for done in range(101):
            bar("compile", done, 100)
            clock[0] += 0.125
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "compiling kernels (first time only): 4 of 100"
    assert len(lines) == 5


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal here")
def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    pexpect = pytest.importorskip("pexpect")
    code = (
        "import time; from halfbyte.cli.progress import Bar\n"
        "with Bar() as bar:\n"
        "    bar('download', 0, 93_000_000); time.sleep(0.6)\n"
        "    bar('download', 40_000_000, 93_000_000); time.sleep(0.3)\n"
        "    bar('wait', 0, 0)\n"
        "print('over')"
    )
    child = pexpect.spawn(sys.executable, ["-c", code], encoding="utf-8", timeout=20, dimensions=(24, 120))
    child.expect_exact("fetching")
    child.expect_exact("40 of 93 MB")
    child.expect_exact("\x1b[2K")
    child.expect_exact("over")
    child.close()


@pytest.mark.parametrize(
    ("what", "done", "total", "shown"),
    [("verify", 1_400_000, 2_000_000, "1 of 2 MB"), ("download", 5_000_000, 0, "5 MB"), ("pack", 1, 9, "1 of 9")],
)
def test_amounts(what: str, done: int, total: int, shown: str) -> None:
    assert amount(what, done, total) == shown


def test_no_bar_is_imported_where_none_is_shown() -> None:
    code = "import sys; from halfbyte.cli.progress import Bar; Bar()('pack', 1, 2); sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
