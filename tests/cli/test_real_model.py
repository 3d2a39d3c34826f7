"""The commands as a person types them, with a real model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def halfbyte(*words: str, piped: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "halfbyte", *words]
    return subprocess.run(command, input=piped, capture_output=True, text=True, encoding="utf-8", timeout=300)


def test_a_piped_question_is_answered(smollm2_path: Path) -> None:
    done = halfbyte("chat", str(smollm2_path), "-n", "12", "--seed", "1", piped="What colour is the sky?\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "decode" in done.stderr


def test_a_text_is_continued_with_what_the_model_knows(smollm2_path: Path) -> None:
    done = halfbyte("generate", str(smollm2_path), "-n", "2", "--json", piped="The capital of France is\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"].startswith(" Paris")
