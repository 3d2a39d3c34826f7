"""What no file of the page may hold: ways from text to markup or code, and addresses of others."""

from __future__ import annotations

import re

import pytest

from halfbyte.server.page_files import PAGE
from tests.test_budgets import FILE_LINES

SVG = "http://www.w3.org/2000/svg"
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc")
INLINE = re.compile(r"\son[a-z]+=|\sstyle=|<style|<script(?! [^>]*src=)")
ELSEWHERE = re.compile(r"""["'(](?:https?:)?//[a-z0-9]""")


@pytest.mark.parametrize("path", sorted(PAGE.iterdir(), key=lambda path: path.name), ids=lambda path: path.name)
def test_a_file_keeps_to_the_rules(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= FILE_LINES
    assert not MARKUP.search(text)
    assert path.suffix not in (".html", ".svg") or not INLINE.search(text)
    assert not ELSEWHERE.search(text.replace(SVG, ""))


def test_the_rules_would_notice_a_breach():
    assert MARKUP.search("box.innerHTML = text")
    assert INLINE.search('<p onclick="x">')
    assert INLINE.search("<script>x</script>")
    assert not INLINE.search('<script src="a.js"></script>')
    assert ELSEWHERE.search('fetch("https://example.org")')
    assert ELSEWHERE.search("url(//example.org)")
