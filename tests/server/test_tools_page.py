"""The examples of docs/tools.md run."""

from __future__ import annotations

import re

import halfbyte
from halfbyte.server.served import Served
from halfbyte.text.tool_styles import TOOL_STYLES
from tests.server.parrot import parrot
from tests.server.running import running
from tests.source_tree import ROOT

PAGE = (ROOT / "docs/tools.md").read_text(encoding="utf-8")
HTTP, PYTHON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_over_http():
    with parrot() as llm, running(Served(llm, "NAME")) as server:
        names = {}
        source = HTTP.replace("http://127.0.0.1:8080", server.url).replace(
            "What is the weather in Paris?",
            """say «<tool_call>\\n{\\"name\\": \\"get_weather\\", \\"arguments\\": {}}»""",
        )
        exec(source.replace('tool_choice="required"', 'tool_choice="required", max_tokens=200'), names)
        names["client"].close()
    assert names["messages"][1].tool_calls[0].function.name == "get_weather"


def test_in_python(monkeypatch, capsys):
    monkeypatch.setattr(halfbyte, "load", lambda name: parrot())
    exec(PYTHON.replace("What time is it?", "say «<tool_call>{'name'»"), {})
    exec(PYTHON.replace("What time is it?", """say «{\\"name\\": \\"now\\"}»"""), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[Content(")
    assert second == "[CallStart(name='now'), CallArguments(text='{}'), CallEnd()]"


def test_every_style_has_a_row():
    assert set(re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)))) >= set(
        TOOL_STYLES
    )
