"""The notes app without a screen, over a tiny model."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

import halfbyte
from tests.model.tiny import make_tiny_gguf
from tests.source_tree import ROOT

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
pytest.importorskip("PySide6.QtWidgets", reason="PySide6 or a library that it loads is missing", exc_type=ImportError)

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from examples.desktop.assistant import Assistant
from examples.desktop.window import WELCOME, NotesWindow


@pytest.fixture(scope="module")
def app():
    return QApplication.instance() or QApplication([])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(make_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", n_layers=1))


def load(model, **options):
    """A model that goes on until it is cut or stopped."""
    llm = halfbyte.load(model, backend="reference", speculation="off", **options)
    llm._engine._eog_ids = frozenset()
    return llm


@pytest.fixture
def window(app, path):
    assistant = Assistant(load, context=256)
    made = NotesWindow(assistant)
    made.show()
    assistant.load(path)
    until(app, lambda: assistant.ready and made.continue_action.isEnabled())
    yield made
    made.close()


def until(app, true, seconds=20.0):
    """Let the event loop turn until something is so."""
    end = time.monotonic() + seconds
    while not true():
        app.processEvents()
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.001)


def test_loading_shows_progress_and_then_the_actions(app, path):
    told = []
    assistant = Assistant(lambda model, progress, **options: (progress("pack", 1, 2), load(model, **options))[1], 256)
    assistant.progressed.connect(lambda *given: told.append(given))
    window = NotesWindow(assistant)
    assert not window.continue_action.isEnabled()
    assistant.load(path)
    until(app, window.continue_action.isEnabled)
    assert told == [("pack", 1, 2)]
    assert "tiny" in window.said.text()
    window.close()


def test_a_text_is_continued_piece_by_piece_where_the_cursor_is(app, window):
    seen = set()
    window.text.textChanged.connect(lambda: seen.add(len(window.text.toPlainText())))
    window.continue_this()
    assert window.cancel_action.isEnabled()
    window.text.document().setModified(False)
    until(app, window.continue_action.isEnabled)
    text = window.text.toPlainText()
    assert text.startswith(WELCOME)
    assert len(text) > len(WELCOME) + 20
    assert len(seen) > 2
    assert window.said.text().startswith(("length: ", "stop: "))


def test_a_summary_comes_at_the_end(app, window):
    window.text.setPlainText("the thing and the other thing")
    window.summarise()
    until(app, window.summarise_action.isEnabled)
    assert window.text.toPlainText().startswith("the thing and the other thing\n\nSummary: ")


def test_cancelling_keeps_what_came_and_frees_the_model(app, window):
    window.continue_this()
    until(app, lambda: len(window.text.toPlainText()) > len(WELCOME))
    window.cancel_action.trigger()
    until(app, window.continue_action.isEnabled)
    assert window.said.text().startswith("cancelled: ")
    assert len(window.text.toPlainText()) > len(WELCOME)
    llm = window.assistant._llm
    until(app, lambda: llm.info()["pages_used"] == 0)


def test_the_event_loop_turns_while_the_model_writes(app, window):
    turns = []
    timer = QTimer(interval=0)
    timer.timeout.connect(lambda: turns.append(window.assistant.busy))
    timer.start()
    window.continue_this()
    until(app, window.continue_action.isEnabled)
    timer.stop()
    assert sum(turns) > 20


def test_closing_while_it_writes_returns_at_once_and_nothing_comes_after(app, window):
    window.continue_this()
    until(app, lambda: len(window.text.toPlainText()) > len(WELCOME))
    window.close()
    text = window.text.toPlainText()
    until(app, lambda: not window.assistant.busy)
    app.processEvents()
    assert window.text.toPlainText() == text
    until(app, lambda: not [t for t in threading.enumerate() if t.name == "halfbyte-engine"])


def test_a_model_that_cannot_be_loaded_says_so(app):
    assistant = Assistant()
    window = NotesWindow(assistant)
    assistant.load("/none/such.gguf")
    until(app, lambda: "such.gguf" in window.said.text())
    assert not window.continue_action.isEnabled()
    window.close()


@pytest.mark.parametrize("when", ["loading", "writing"])
def test_the_app_ends_cleanly_in_the_middle(path, when):
    code = f"""
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import halfbyte
from examples.desktop.assistant import Assistant
from examples.desktop.window import NotesWindow
app = QApplication([])
def load(model, **options):
    if {when!r} == "loading":
        time.sleep(5)
    llm = halfbyte.load(model, backend="reference", **options)
    llm._engine._eog_ids = frozenset()
    return llm
assistant = Assistant(load, context=256)
window = NotesWindow(assistant)
window.show()
if {when!r} == "loading":
    QTimer.singleShot(50, window.close)
else:
    assistant.loaded.connect(window.continue_this)
    assistant.piece.connect(lambda text: window.close())
assistant.load({path!r})
code = app.exec()
print("ended", assistant.busy)
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30)
    said = [line for line in done.stderr.splitlines() if not line.startswith("This plugin does not support")]
    assert (done.returncode, said) == (0, [])
    assert done.stdout.startswith("ended")
