"""`NotesWindow`: a text, three actions and a line that says what the model does."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QCloseEvent, QFont, QKeySequence, QTextCursor
from PySide6.QtWidgets import QLabel, QMainWindow, QPlainTextEdit, QProgressBar, QToolBar

from .assistant import Assistant

WELCOME = "Write something, and let the model go on with Ctrl+Return.\n\n"


class NotesWindow(QMainWindow):
    """Answers go where the cursor was when they were asked for; the text stays editable meanwhile."""

    def __init__(self, assistant: Assistant) -> None:
        super().__init__()
        self.assistant = assistant
        self.text = QPlainTextEdit(WELCOME)
        self.text.setFont(QFont("serif", 13))
        self.text.document().setDocumentMargin(24)
        self.setCentralWidget(self.text)
        self.text.moveCursor(QTextCursor.MoveOperation.End)
        self._place = self.text.textCursor()
        self.setWindowTitle("Notes")
        self.resize(760, 560)
        self.continue_action = self._action("Continue this", "Ctrl+Return", self.continue_this)
        self.summarise_action = self._action("Summarise", "Ctrl+Shift+S", self.summarise)
        self.cancel_action = self._action("Cancel", "Esc", assistant.cancel)
        self._bar = QToolBar("Model", movable=False)
        self._bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self._bar.addActions([self.continue_action, self.summarise_action, self.cancel_action])
        self.addToolBar(self._bar)
        self.progress = QProgressBar(maximumWidth=180, textVisible=False)
        self.said = QLabel("Loading the model ...")
        self.statusBar().addWidget(self.said, 1)
        self.statusBar().addPermanentWidget(self.progress)
        assistant.progressed.connect(self._show_progress)
        assistant.loaded.connect(self._show_loaded)
        assistant.piece.connect(self._insert)
        assistant.ended.connect(self._show_end)
        assistant.failed.connect(self._show_end)
        self._set_busy(True)

    def continue_this(self) -> None:
        """Let the model go on from the cursor."""
        cursor = self.text.textCursor()
        cursor.clearSelection()
        before = self.text.toPlainText()[: cursor.position()]
        if before.strip():
            self._begin(cursor, "Writing ...")
            self.assistant.continue_text(before)

    def summarise(self) -> None:
        """A summary of what is selected, else of all, at the end."""
        cursor = self.text.textCursor()
        text = cursor.selectedText().replace("\u2029", "\n") or self.text.toPlainText()
        if text.strip():
            cursor.clearSelection()
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText("\n\nSummary: ")
            self._begin(cursor, "Reading ...")
            self.assistant.summarise(text)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Leave at once, whatever is under way."""
        self.assistant.close()
        event.accept()

    def _action(self, name: str, keys: str, run: object) -> QAction:
        action = QAction(name, self)
        action.setShortcut(QKeySequence(keys))
        action.setToolTip(f"{name} ({keys})")
        action.triggered.connect(lambda: run())  # type: ignore[operator]
        return action

    def _begin(self, cursor: QTextCursor, said: str) -> None:
        self._place = cursor
        self.said.setText(said)
        self._set_busy(True)

    def _insert(self, text: str) -> None:
        self._place.insertText(text)

    def _show_progress(self, what: str, done: int, total: int) -> None:
        self.progress.setRange(0, total if total < 2**31 else 0)
        self.progress.setValue(min(done, 2**31 - 1))
        self.said.setText(f"{what.capitalize()} ...")

    def _show_loaded(self, name: str) -> None:
        self.progress.hide()
        self._show_end(f"{name} is ready")

    def _show_end(self, said: str) -> None:
        self.said.setText(said)
        self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        able = not busy and self.assistant.ready
        self.continue_action.setEnabled(able)
        self.summarise_action.setEnabled(able)
        self.cancel_action.setEnabled(busy and self.assistant.ready)
