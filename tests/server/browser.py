"""A real Chromium with the page in it, which must not complain, nor ask anything of anyone else."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
FIELD = "#composer-text"


def chromium():
    """The path of a Chromium; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium on PATH: the page is tested where there is one")
    return found


@contextmanager
def launched() -> Iterator:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A tab of a browser of its own; `complaints` are errors of the page, of its policy and requests to elsewhere."""

    def __init__(self, browser, url: str, *, phone: bool = False, scheme: str = "light", before: str = "") -> None:
        self.url, self.complaints = url, []
        self.context = browser.new_context(
            viewport=PHONE if phone else WIDE, is_mobile=phone, has_touch=phone, color_scheme=scheme,
            accept_downloads=True, reduced_motion="reduce", permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        self.context.set_default_timeout(10_000)
        self.context.on("request", self._note_request)
        self.context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self.context.on("console", self._note_console)
        if before:
            self.context.add_init_script(before)
        self.page = self.open()

    def open(self):
        """Another tab of the same browser."""
        page = self.context.new_page()
        page.goto(self.url)
        page.wait_for_selector(".welcome h1, .message")
        return page

    def begin_anew(self) -> None:
        """As on a first visit, but quicker than one."""
        self.page.set_viewport_size(WIDE)
        self.page.evaluate("localStorage.clear(); sessionStorage.clear(); history.replaceState(null, '', '/')")
        self.page.reload()
        self.page.wait_for_selector(".welcome h1")

    def _note_request(self, request) -> None:
        if not request.url.startswith((self.url, "blob:")):
            self.complaints.append(f"asked {request.url[:200]}")

    def _note_console(self, message) -> None:
        # A refused request is the browser's to report, and for the page to show: the tests look at that.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def ask(self, text: str, wait: bool = True) -> None:
        self.page.fill(FIELD, text)
        self.page.press(FIELD, "Control+Enter")
        if wait:
            self.page.wait_for_selector(".message.last.assistant:not(.growing)")

    def say(self, text: str, wait: bool = True) -> None:
        """Have the parrot answer with `text`."""
        self.ask(f"say «{text}»", wait)

    @property
    def answer(self):
        """The last answer's body."""
        return self.page.locator(".message.last.assistant .body").last

    def store(self, **entries: str) -> None:
        self.page.evaluate("entries => Object.assign(localStorage, entries)", entries)

    def stored(self) -> list:
        return self.page.evaluate(
            "Object.entries(localStorage).filter(([k]) => k.startsWith('halfbyte.conversation.'))"
            ".map(([, v]) => JSON.parse(v)).sort((a, b) => a.created - b.created)"
        )

    def screenshot(self, name: str, tmp_path: Path) -> None:
        """Kept where `HALFBYTE_SCREENSHOTS` says."""
        folder = Path(os.environ.get("HALFBYTE_SCREENSHOTS") or tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        assert len(self.page.screenshot(path=folder / f"page-{name}.png", animations="disabled")) > 5000

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")


@contextmanager
def visited(browser, url: str, **options) -> Iterator[Visit]:
    """A visit that ends without a complaint."""
    here = Visit(browser, url, **options)
    yield here
    here.context.close()
    assert here.complaints == []


def until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)
