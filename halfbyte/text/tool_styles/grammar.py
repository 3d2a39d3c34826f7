"""`call_grammar`: what an answer may be that must call tools, or must call them rightly, in llguidance's Lark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import UnsupportedError
from ..reasoning import Reasoning
from .spelling import Spelling
from .style import ToolStyle

Control = Callable[[str], int | None]
"""The id of a control token, None for other texts."""

_INNER = re.compile(r"(\\.)|[/\n]", re.DOTALL)
"""What would end an expression in Lark, unless a backslash stands before it."""
_ANY = "/(?s:.*)/"
_NO_BRACE = r"\s*[^\s{\[](?s:.*)"
MOST_CALLS = 16
"""In one answer; a weak model that must call would go on for ever."""
_VALUES = {
    "quoted": """\
object: "{" (pair ("," pair)*)? "}"
pair: /[A-Za-z_][A-Za-z0-9_-]*/ ":" value
value: string | NUMBER | "true" | "false" | "null" | object | list
list: "[" (value ("," value)*)? "]"
string: QUOTE /[^<{}]*/ QUOTE
""",
    "python": """\
object: (pair (", " pair)*)?
pair: /[A-Za-z_][A-Za-z0-9_]*/ "=" value
value: STRING | NUMBER | "True" | "False" | "None" | list
list: "[" (value (", " value)*)? "]"
STRING: /"([^"\\\\\\n]|\\\\[nrt"\\\\])*"/
""",
    "tags": """\
object: pair*
pair: "<parameter=" /[A-Za-z_][A-Za-z0-9_-]*/ ">\\n" value
value[lazy]: /(?s:.*)\\n<\\/parameter>\\n/
""",
}
_NUMBER = "NUMBER: /-?(0|[1-9][0-9]*)(\\.[0-9]+)?/\n"


@dataclass(frozen=True)
class GrammarWriter:
    """Writes texts and rules for one vocabulary; `control` knows its control tokens."""

    control: Control
    marks: tuple[str, ...]

    def text(self, text: str) -> str:
        """Terms that match `text`: strings, and control tokens that it spells."""
        known = [mark for mark in self.marks if mark and self.control(mark) is not None]
        pattern = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        parts = re.split(f"({pattern})", text) if pattern else [text]
        return " ".join(self._term(part) for part in parts if part)

    def until(self, rule: str, mark: str) -> str:
        """A rule for any text up to a mark, and the mark."""
        if self.control(mark) is not None:
            return f"{rule}: {_ANY} {self.text(mark)}\n"
        return f"{rule}[lazy]: {rule.upper()}_TEXT {self.text(mark)}\n{rule.upper()}_TEXT: {_ANY}\n"

    def _term(self, part: str) -> str:
        token = self.control(part) if part in self.marks else None
        return json.dumps(part, ensure_ascii=False) if token is None else f"<[{token}]>"


def call_grammar(
    style: ToolStyle, schemas: Mapping[str, Any], *, required: bool, parallel: bool, control: Control
) -> str:
    """Rules with the start `calls`. `schemas` are JSON schemas of arguments by name; where the style writes arguments
    otherwise than as JSON, only the name is kept to.

    `required`: the answer is calls and nothing else. Otherwise what begins as a call is one, and any text may be
    before. Without `parallel` there is at most one.
    """
    writer, spelling = GrammarWriter(control, style.spelled), style.spelling
    between = writer.text(spelling.between)
    more = f" ({between} call){{0,{MOST_CALLS - 1}}}" if parallel else ""
    rules = [_body(style, writer, required, more)]
    names = [f"call_{number}" for number in range(len(schemas))]
    rules.append("call: " + " | ".join(names) + "\n")
    for rule, (name, schema) in zip(names, schemas.items(), strict=True):
        head, tail = writer.text(_opens(style, required) + name + spelling.arguments), writer.text(spelling.closes)
        arguments = f"%json {json.dumps(schema)}" if spelling.form == "json" else "object"
        rules.append(f"{rule}: {head} {rule}_arguments {tail}\n{rule}_arguments: {arguments}\n")
    if not required and style.frame.bare and _trigger(style):
        rules.append(_bare(style, writer, list(schemas)))
    return "".join(rules) + _values(spelling, writer)


def form_grammar(name: str, value: Any) -> str:
    """A rule `form` for a schema, choices or an expression that an answer must follow. Raises `UnsupportedError`."""
    if name == "schema":
        return f"form: %json {json.dumps(value)}\n"
    if name == "choices":
        return "form: " + " | ".join(json.dumps(text) for text in value) + "\n"
    if name == "regex":
        inner = _INNER.sub(lambda found: found[1] or {"/": "\\/", "\n": "\\n"}[found[0]], value)
        return f"form: FORM\nFORM: /{inner}/\n"
    raise UnsupportedError(f"{name} goes neither with tools nor behind thinking; schema, choices and regex do")


def whole_grammar(rules: Mapping[str, str], reasoning: Reasoning | None, opened: bool, control: Control) -> str:
    """One of `rules`, by the names of their starts, and before it thinking: where it is `opened` already, its rest."""
    body = f"body: {' | '.join(rules)}\n" + "".join(rules.values())
    if reasoning is None:
        return "start: body\n" + body
    writer = GrammarWriter(control, reasoning.spelled)
    if reasoning.marks is None:
        opens, goes_on = writer.text("<|channel|>analysis<|message|>"), writer.text("<|start|>assistant")
        return f"start: ({opens} thought {goes_on})? body\n" + writer.until("thought", "<|end|>") + body
    begin = "thought" if opened else f"({writer.text(reasoning.marks.opens)} thought)?"
    return f"start: {begin} /\\s*/ body\n" + writer.until("thought", reasoning.marks.closes) + body


def _opens(style: ToolStyle, required: bool) -> str:
    """What a call begins with behind the text that shows that one begins."""
    opens, mark = style.spelling.opens, _trigger(style)
    return opens if required or not opens.lstrip().startswith(mark) else opens.lstrip()[len(mark) :]


def _trigger(style: ToolStyle) -> str:
    """The mark that a call begins with, empty where it has none."""
    text = style.spelling.first + style.spelling.opens
    return next((mark for mark in style.frame.opens if text.lstrip().startswith(mark)), "")


def _body(style: ToolStyle, writer: GrammarWriter, required: bool, more: str) -> str:
    spelling, trigger = style.spelling, _trigger(style)
    first, last = writer.text(spelling.first), writer.text(spelling.last)
    if required:
        return f"calls: {first} call{more} {last}\n"
    if not trigger:
        return f"calls: call{more} | /{_NO_BRACE}/\n"
    lead = writer.until("lead", trigger)
    if spelling.first:
        rest = writer.text(spelling.first.removeprefix(trigger))
        return f"calls: lead {rest} call{more} {last} | {_ANY}\n{lead}"
    if style.frame.skips:
        # Headers of messages, which an answer is full of, are made of control tokens.
        tokens = " | ".join(writer.text(mark) for mark in style.spelled)
        lead = f"free: ({_ANY} ({tokens}))*\n{lead}"
        return f"calls: (free lead call)* free {_ANY}\n{lead}"
    if style.frame.bare:
        # What begins with a brace could be a call that keeps to nothing.
        first = "first_lead[lazy]: FIRST_TEXT " + writer.text(trigger) + f"\nFIRST_TEXT: /({_NO_BRACE})?/\n"
        rest = f" (lead call)* {_ANY}" if more else ""
        return f"calls: first_lead call{rest} | bare | /{_NO_BRACE}/\n{first}{lead if more else ''}"
    return f"calls: (lead call)* {_ANY}\n{lead}" if more else f"calls: lead call | {_ANY}\n{lead}"


def _bare(style: ToolStyle, writer: GrammarWriter, names: list[str]) -> str:
    """A call without the marks around it."""
    opens = style.spelling.opens.removeprefix(_trigger(style)).lstrip()
    closes = writer.text(style.spelling.closes.removesuffix(style.frame.closes).strip())
    heads = [writer.text(opens + name + style.spelling.arguments) for name in names]
    return "bare: " + " | ".join(f"{head} call_{at}_arguments {closes}" for at, head in enumerate(heads)) + "\n"


def _values(spelling: Spelling, writer: GrammarWriter) -> str:
    if spelling.form == "json":
        return ""
    rules = _VALUES[spelling.form].replace("QUOTE", writer.text(spelling.quote))
    return rules + (_NUMBER if "NUMBER" in rules else "")
