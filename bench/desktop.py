"""Does a window stay alive while a model writes into it? `python -m bench.desktop [MODEL] [--json]`

The notes app of `examples/desktop` runs without a screen; a timer of its event loop fires as often as it can, and the
longest time between two of its calls is what a person would feel. Measured while the model loads, while nothing
happens, and while an answer of 300 tokens comes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from typing import Any

Figures = dict[str, Any]


def measure(model: str) -> Figures:
    """Milliseconds between two turns of the event loop, the longest and the 99th percentile."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from examples.desktop.assistant import Assistant
    from examples.desktop.window import NotesWindow

    app = QApplication([])
    assistant = Assistant()
    window = NotesWindow(assistant)
    window.show()
    turns: list[float] = []
    timer = QTimer(interval=0)
    timer.timeout.connect(lambda: turns.append(time.perf_counter()))

    def until(done: Any, seconds: float) -> list[float]:
        turns.clear()
        end = time.perf_counter() + seconds
        while not done() and time.perf_counter() < end:
            app.processEvents()
        return sorted(1e3 * (b - a) for a, b in itertools.pairwise(turns))

    timer.start()
    assistant.load(model)
    found = {"loading": until(window.continue_action.isEnabled, 300)}
    found["idle"] = until(lambda: False, 2)
    window.text.setPlainText("The lighthouse keeper had not seen a ship for forty days. On the forty-first, ")
    window.text.moveCursor(window.text.textCursor().MoveOperation.End)
    window.continue_this()
    found["writing"] = until(window.continue_action.isEnabled, 120)
    said = window.said.text()
    window.close()
    return {"model": model, "answer": said} | {
        f"{name}_{kind}_ms": value
        for name, gaps in found.items()
        for kind, value in (("max", gaps[-1]), ("p99", gaps[int(0.99 * len(gaps))]))
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = measure(given.model)
    if given.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:16} {value:.2f}" if isinstance(value, float) else f"{name:16} {value}")


if __name__ == "__main__":
    main()
