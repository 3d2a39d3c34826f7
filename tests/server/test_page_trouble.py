"""The web page where things go wrong: hostile answers, errors, storage that is full, shut off or full of garbage."""

from __future__ import annotations

import json
from functools import partial

import pytest

from halfbyte.server.served import Served
from tests.server.browser import PHONE, launched, visited
from tests.server.parrot import parrot
from tests.server.running import running

HOSTILE = {
    "script": "<script>window.pwned = 1</script>",
    "image": "<img src=x onerror='window.pwned = 1'>![x](https://evil.example/pixel.png?leak)",
    "frame": "<iframe src='javascript:parent.pwned = 1'></iframe><svg onload=window.pwned=1>",
    "links": "[a](javascript:window.pwned=1) [b](JaVaScRiPt:alert(1)) [c](data:text/html,<b>) [d](<java\tscript:1>) "
    "[e](vbscript:x) [f](file:///etc/passwd) [g](/v1/models) [h](javascript&colon;alert(1)) <javascript:alert(1)>",
    "title": '[a](https://a.example "\\" onclick=window.pwned=1")',
    "code": "```html\n</code></pre><script>window.pwned = 1</script>\n```",
    "language": '```"><script>window.pwned=1</script>\nx\n```',
    "table": "| a |\n|---|\n| <script>window.pwned=1</script> |",
}


@pytest.fixture(scope="module")
def browser():
    with launched() as made:
        yield made


@pytest.fixture(scope="module")
def llm():
    with parrot() as made:
        yield made


@pytest.fixture(scope="module")
def server(llm, browser):
    with running(Served(llm, "parrot")) as made:
        yield made


@pytest.fixture(scope="module")
def tab(browser, server):
    with visited(browser, server.url) as made:
        yield made


@pytest.fixture
def here(tab):
    tab.begin_anew()
    yield tab
    assert tab.complaints == []


def test_an_answer_never_becomes_markup(here):
    refused = 0
    for text in HOSTILE.values():
        here.page.keyboard.press("Control+Shift+O")
        here.say(text)
        refused += here.page.locator(".refused-link").count()
        tags = here.answer.evaluate("body => [...body.querySelectorAll('*')].map((one) => one.localName)")
        allowed = {"p", "a", "span", "br", "code", "pre", "figure", "figcaption", "button", "svg", "path"}
        assert set(tags) <= allowed | {"div", "table", "thead", "tbody", "tr", "th", "td"}
        attributes = here.answer.evaluate(
            "body => [...body.querySelectorAll('*')].flatMap((one) => one.getAttributeNames())"
        )
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
        links = here.answer.evaluate("body => [...body.querySelectorAll('a')].map((one) => [one.href, one.rel])")
        assert all(href.startswith("https://") and "noopener" in rel for href, rel in links)
    assert here.page.evaluate("window.pwned") is None
    assert refused >= 6


def test_markup_in_a_question_or_a_title_is_text(here):
    here.say("<b>x</b><script>window.pwned=1</script>")
    assert "<script>" in here.page.locator(".message.user .body").inner_text()
    assert "<b>" in here.page.locator(".entry").inner_text()
    assert here.page.evaluate("window.pwned") is None


def test_long_lines_and_other_scripts_do_not_break_the_page(here):
    long = "x" * 110
    here.say(f"{long}\n\n```\n{long}\n```\n\n| {long} | b |\n|---|---|\n| 1 | 2 |\n\n\u202eevil\u202c مرحبا بالعالم")
    assert here.overflow() <= 0
    here.page.set_viewport_size(PHONE)
    assert here.overflow() <= 0
    assert here.page.locator(".markdown > p").last.evaluate("one => getComputedStyle(one).unicodeBidi") == "plaintext"
    assert here.page.locator(".code pre").evaluate("one => one.scrollWidth > one.clientWidth")


def test_an_error_of_the_server_is_shown_and_can_be_tried_again(here):
    here.ask("long " * 4000)
    shown = here.page.locator(".failure").inner_text()
    assert "context" in shown
    here.page.click("text=Try again")
    here.page.wait_for_selector(".message.last.assistant:not(.growing) .branches")
    assert here.page.locator(".failure").count() == 1


HALF = 'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'
FULL_QUEUE = {"status": 429, "headers": {"retry-after": "7"}, "json": {"error": {"message": "Full."}}}
FAILURES = (
    ("Full. Try again in 7 s.", FULL_QUEUE),
    ("The server answered with status 502.", {"status": 502, "body": "<html>proxy</html>"}),
    ("The connection ended before the answer did.", {"body": HALF}),
    ("The connection broke off while the answer came.", {"body": 'data: {"choices": [{"delta"\n\n'}),
    ("It fell over.", {"body": 'data: {"error": {"message": "It fell over."}}\n\n'}),
    ("The server cannot be reached. Is it still running?", None),
)


def fail(answer, route, request) -> None:
    if answer is None:
        route.abort()
    else:
        route.fulfill(**answer)


def test_every_way_to_fail_is_told(here):
    for said, answer in FAILURES:
        here.page.keyboard.press("Control+Shift+O")
        here.page.route("**/v1/chat/completions", partial(fail, answer))
        here.ask("hello")
        assert here.page.locator(".failure p").inner_text() == said
        here.page.unroute("**/v1/chat/completions")
    here.say("well again")
    assert here.answer.inner_text() == "well again"


def test_garbage_in_storage_is_left_alone_until_one_says_so(here):
    ring = {"version": 1, "id": "a" * 24, "nodes": {"b" * 24: {"role": "user", "text": "x", "parent": "b" * 24}}}
    garbage = {f"halfbyte.conversation.{'c' * 24}": "{not json", f"halfbyte.conversation.{'a' * 24}": json.dumps(ring)}
    garbage |= {"halfbyte.settings": "[1]", "halfbyte.conversation.x": "null", "other": "mine"}
    here.store(**garbage)
    here.page.reload()
    here.say("still fine")
    assert here.answer.inner_text() == "still fine"
    assert here.page.evaluate("localStorage.other") == "mine"
    here.page.keyboard.press("Control+,")
    here.page.click("text=Remove >> visible=true")
    kept = here.page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('halfbyte.conv')).length")
    assert kept == 2


FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"
SHUT = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"


@pytest.mark.parametrize(("before", "said"), [(FULL, "storage is full"), (SHUT, "keeps nothing")], ids=["full", "shut"])
def test_one_can_chat_without_storage(browser, server, before, said):
    with visited(browser, server.url, before=before) as here:
        here.say("first")
        here.say("second")
        assert here.answer.inner_text() == "second"
        assert here.page.locator(".message").count() == 4
        assert here.page.locator(f".toast >> text={said}").count() == 1


def test_full_storage_gives_up_probabilities_first(here):
    here.store(**{"halfbyte.settings": json.dumps({"probabilities": True})})
    here.page.reload()
    here.say("with probabilities")
    assert any("tokens" in node for node in here.stored()[0]["nodes"].values())
    size = here.page.evaluate("JSON.stringify(localStorage).length")
    here.page.evaluate("""limit => {
      const set = Storage.prototype.setItem;
      Storage.prototype.setItem = function (key, value) {
        const others = Object.keys(this).filter((other) => other !== key);
        const size = others.reduce((sum, other) => sum + this[other].length, value.length);
        if (size > limit) throw new DOMException("full", "QuotaExceededError");
        set.call(this, key, value);
      };
    }""", size + 500)  # fmt: skip
    here.say("and more of them, so many that they do not fit")
    here.page.wait_for_selector(".toast >> text=probabilities")
    assert len(here.stored()[0]["nodes"]) == 4


def test_a_server_that_wants_a_key_gets_it(browser, llm):
    with running(Served(llm, "parrot"), keys=("secret",)) as locked, visited(browser, locked.url) as here:
        assert here.page.locator(".welcome h1").inner_text() == "This server asks for a key"
        here.page.click("text=Enter the key")
        assert here.page.evaluate("document.activeElement.id") == "set-key"
        here.page.keyboard.type("secret")
        here.page.keyboard.press("Enter")
        here.page.wait_for_selector(".welcome h1 >> text=parrot")
        here.say("open")
        assert here.answer.inner_text() == "open"
        assert here.page.evaluate("[sessionStorage['halfbyte.key'], localStorage['halfbyte.key']]") == ["secret", None]
        here.page.evaluate("sessionStorage['halfbyte.key'] = 'wrong'")
        here.ask("closed")
        here.page.wait_for_selector(".failure")
        here.page.click(".toast >> text=Enter the key")
        assert here.page.evaluate("document.activeElement.id") == "set-key"


def test_a_server_that_comes_late_is_found_at_the_next_try(browser, server):
    with visited(browser, server.url) as here:
        here.page.route("**/v1/models", lambda route: route.abort())
        here.page.reload()
        here.page.wait_for_selector(".welcome h1 >> text=No answer")
        here.page.unroute("**/v1/models")
        here.page.click("text=Try again")
        here.page.wait_for_selector(".welcome h1 >> text=parrot")
