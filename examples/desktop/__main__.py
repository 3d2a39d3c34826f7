"""Open the window: `python -m examples.desktop [MODEL]`."""

from __future__ import annotations

import sys

from PySide6.QtWidgets import QApplication

from .assistant import Assistant
from .window import NotesWindow


def main() -> int:
    """Run until the window is closed."""
    app = QApplication(sys.argv)
    assistant = Assistant()
    window = NotesWindow(assistant)
    window.show()
    assistant.load(sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m")
    return app.exec()


if __name__ == "__main__":
    sys.exit(main())
