"""How the files of the page are sent; what they do is `test_page`'s."""

from __future__ import annotations

import httpx
import pytest

from halfbyte.server import Served, page_files
from tests.server.running import running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in {"index.html": "<p>é", "app.js": "1", "mark.svg": "<svg/>", "notes.txt": "private"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(page_files, "PAGE", tmp_path)
    return tmp_path


@pytest.fixture
def http(folder, llm):
    with running(Served(llm, "toy"), keys=("secret",)) as server, httpx.Client(base_url=server.url) as made:
        yield made


def test_files_come_without_a_key_and_with_a_strict_policy(http):
    page, script = http.get("/"), http.get("/page/app.js")
    assert (page.text, page.headers["content-type"]) == ("<p>é", "text/html; charset=utf-8")
    assert script.headers["content-type"].startswith("text/javascript")
    for answer in (page, script):
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in str(policy)
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/page/notes.txt", "/page/", "/page/../config.py", "/page/%2e%2e/config.py", "/page//etc/passwd"]
)
def test_nothing_else_comes(http, path):
    assert http.get(path).status_code == 404


def test_a_server_may_be_without_a_page(folder, llm):
    with running(Served(llm, "toy"), page=False) as server:
        assert httpx.get(f"{server.url}/").status_code == 404


def test_a_page_that_is_not_installed_is_no_error(llm, monkeypatch, tmp_path):
    monkeypatch.setattr(page_files, "PAGE", tmp_path / "nowhere")
    with running(Served(llm, "toy")) as server:
        assert httpx.get(f"{server.url}/").status_code == 404
