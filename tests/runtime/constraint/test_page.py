"""`docs/structured-output.md` says what is so."""

from __future__ import annotations

import re

from halfbyte.runtime.constraint.keywords import FORMATS, KEPT, REFUSED, REMARKS
from tests.model.tiny import tiny_model
from tests.source_tree import ROOT

PAGE = (ROOT / "docs/structured-output.md").read_text(encoding="utf-8")


def listed(title):
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {title}"))
    return re.findall(r"`([^`]+)`", line)


def test_every_keyword_is_listed_where_it_belongs():
    lists = {"kept": KEPT, "remarks": REMARKS, "refused": REFUSED, "formats": FORMATS}
    assert {title: sorted(listed(title)) for title in lists} == {
        title: sorted(keywords) for title, keywords in lists.items()
    }


def test_its_example_runs(tmp_path, capsys):
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert example.count('"smollm2-135m"') == 1
    exec(example.replace('"smollm2-135m"', repr(str(tiny_model(tmp_path)))), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines()[-1] in {" yes", " no"}
