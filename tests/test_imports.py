"""What an import costs: a light start, and nothing heavy before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMPILERS = ("numba", "llvmlite")
TEXT = ("jinja2", "tokenizers", "sentencepiece")
TERMINAL = ("rich", "prompt_toolkit", "huggingface_hub")
HEAVY = COMPILERS + TEXT + TERMINAL


def loaded_after(statement: str, watched: tuple[str, ...]) -> list[str]:
    """The watched packages that a fresh interpreter has loaded after `statement`."""
    code = f"import sys\n{statement}\nprint(*[n for n in {watched!r} if n in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import halfbyte",
        "import halfbyte; halfbyte.load",
        "import halfbyte.errors, halfbyte.quant.formats, halfbyte.formats",
        "import halfbyte.model",
        "import halfbyte.model.reference",
        "import halfbyte.runtime.load",
    ],
)
def test_library_imports_stay_light(statement):
    assert loaded_after(statement, HEAVY) == []


HELP_PAGE = """
import contextlib, io
from halfbyte.cli.main import main
sys.argv = ["halfbyte", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
"""


def test_help_needs_no_compiler():
    assert loaded_after(HELP_PAGE, COMPILERS + TEXT) == []


def test_the_probe_sees_a_heavy_import():
    assert loaded_after("import jinja2", HEAVY) == ["jinja2"]
