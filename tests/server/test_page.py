"""The web page in a real Chromium, against the real server with a model that says what it is told."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from halfbyte.server.served import Served
from tests.runtime.toy_llm import pages_used
from tests.server.browser import FIELD, launched, until, visited
from tests.server.parrot import THINKS, Parrot, parrot
from tests.server.running import running


@pytest.fixture(scope="module")
def browser():
    with launched() as made:
        yield made


@pytest.fixture(scope="module")
def llm():
    with parrot(THINKS) as made:
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


@pytest.fixture
def slow(monkeypatch):
    """Some 5 ms a token."""
    quick = Parrot._next
    monkeypatch.setattr(Parrot, "_next", lambda self, history: time.sleep(0.005) or quick(self, history))


def test_an_answer_streams_in_and_outlives_a_reload(here):
    here.say("**Hello** there")
    assert here.answer.inner_html() == "<p><strong>Hello</strong> there</p>"
    here.page.reload()
    here.page.wait_for_selector(".message.assistant")
    assert here.answer.inner_text() == "Hello there"
    assert here.page.locator(".entry[aria-current]").inner_text() == "say «**Hello** there»"
    assert "tokens/s" in here.page.locator(".message.last .facts").inner_text()
    assert "% of context" in here.page.locator(".meter").inner_text()


def test_the_model_reads_the_conversation_so_far(here):
    here.say("one")
    with here.page.expect_request("**/v1/chat/completions") as sent:
        here.say("two")
    told = [(message["role"], message["content"]) for message in sent.value.post_data_json["messages"]]
    assert told == [("user", "say «one»"), ("assistant", "one"), ("user", "say «two»")]


def test_stop_keeps_what_came_and_frees_the_server(here, slow, llm, server):
    here.say("word " * 400, wait=False)
    here.page.wait_for_selector(".growing .body p")
    here.page.keyboard.press("Escape")
    here.page.wait_for_selector(".message.last .ending")
    assert here.page.locator(".message.last .ending").inner_text() == "Stopped."
    kept = here.answer.inner_text()
    assert kept
    assert ("word " * 400).startswith(kept)
    assert len(kept) < 1900
    until(lambda: pages_used(llm) == 0)
    assert here.stored()[0]["nodes"][here.stored()[0]["leaf"]]["finish"] == "stopped"


def test_a_closed_tab_stops_the_server_and_leaves_what_came(here, slow, llm):
    here.say("word " * 400, wait=False)
    here.page.wait_for_selector(".growing .body p")
    here.page.reload()
    here.page.wait_for_selector(".message.last .ending")
    assert here.page.locator(".message.last .ending").inner_text() == "This answer was interrupted."
    until(lambda: pages_used(llm) == 0)


def test_an_edited_question_stands_beside_the_old_one(here):
    here.say("first")
    here.page.press(FIELD, "ArrowUp")
    here.page.fill(".editor textarea", "say «second»")
    here.page.keyboard.press("Control+Enter")
    here.page.wait_for_selector(".message.last.assistant:not(.growing) >> text=second")
    assert [node["role"] for node in here.stored()[0]["nodes"].values()].count("user") == 2
    here.page.locator(".message.user").hover()
    assert here.page.locator(".branches").inner_text() == "2/2"
    here.page.click("[aria-label='Version before']")
    assert here.answer.inner_text() == "first"
    here.page.reload()
    here.page.wait_for_selector(".message.assistant")
    assert here.answer.inner_text() == "first"


def test_another_answer_stands_beside_the_old_one(here):
    here.say("same")
    here.page.click("[aria-label='Answer again']")
    here.page.wait_for_selector(".message.last.assistant:not(.growing) .branches")
    assert here.page.locator(".branches").inner_text() == "2/2"
    assert len(here.stored()[0]["nodes"]) == 3


def test_two_conversations_answer_at_once(here, slow):
    here.say("alpha " * 20, wait=False)
    here.page.wait_for_selector(".growing .body p")
    here.page.keyboard.press("Control+Shift+O")
    here.say("beta")
    assert here.answer.inner_text() == "beta"
    here.page.click(".entry >> text=alpha")
    here.page.wait_for_selector(".message.last.assistant:not(.growing)")
    assert here.answer.inner_text() == ("alpha " * 20).strip()


def test_rename_delete_and_undo(here):
    here.say("hello")
    here.page.focus(".entry")
    here.page.keyboard.press("F2")
    here.page.keyboard.type("Greetings")
    here.page.keyboard.press("Enter")
    assert here.page.locator(".entry").inner_text() == "Greetings"
    here.page.click("[aria-label=More]")
    here.page.keyboard.press("End")
    here.page.keyboard.press("Enter")
    assert here.page.locator(".entry").count() == 0
    assert here.stored() == []
    here.page.click("text=Undo")
    assert here.answer.inner_text() == "hello"
    assert here.stored()[0]["title"] == "Greetings"


def test_a_conversation_goes_out_as_a_file_and_comes_back(here, tmp_path):
    here.say("a *file*")
    for entry, name in (("Export as Markdown", "talk.md"), ("Export as JSON", "talk.json")):
        here.page.click("[aria-label=More]")
        with here.page.expect_download() as coming:
            here.page.click(f"text={entry}")
        coming.value.save_as(tmp_path / name)
    assert (tmp_path / "talk.md").read_text().endswith("**Answer**\n\na *file*\n")
    import_file(here, tmp_path / "talk.json")
    here.page.wait_for_selector(".entry >> nth=1")
    assert here.answer.inner_text() == "a file"
    assert len({one["id"] for one in here.stored()}) == 2
    (tmp_path / "other.json").write_text('{"version": 1, "nodes": []}')
    import_file(here, tmp_path / "other.json")
    here.page.wait_for_selector(".toast >> text=no conversation")


def import_file(here, path: Path) -> None:
    here.page.click("[aria-label=More]")
    with here.page.expect_file_chooser() as asked:
        here.page.click("text=Import")
    asked.value.set_files(path)


def test_thinking_is_folded(here):
    here.page.keyboard.press("Control+,")
    here.page.check("[name=thinking][value=on]", force=True)
    here.page.keyboard.press("Escape")
    here.say("Let me see.</think>It is so.")
    assert here.answer.inner_text() == "It is so."
    assert not here.page.locator(".thinking .markdown").is_visible()
    here.page.click(".thinking summary")
    assert here.page.locator(".thinking .markdown").inner_text() == "Let me see."


def test_probabilities_show_at_a_token(here, tmp_path):
    here.store(**{"halfbyte.settings": json.dumps({"probabilities": True, "theme": "garbage", "sampling": "none"})})
    here.page.reload()
    here.say("é **b** `c`")
    tokens = here.page.locator(".dressed .body .token")
    assert "".join(tokens.all_inner_texts()) == "é b c"
    tokens.first.hover()
    card = here.page.locator(".token-card")
    assert "100 %" in card.locator(".chosen").inner_text()
    assert card.locator(".row").count() >= 5
    here.page.focus(".dressed .body")
    here.page.keyboard.press("ArrowRight")
    here.page.keyboard.press("ArrowRight")
    assert card.is_visible()
    here.screenshot("probabilities", tmp_path)
    here.page.click("[aria-label='Token probabilities']")
    assert tokens.count() == 0


def test_what_is_set_is_sent_and_nonsense_is_not(here):
    here.page.keyboard.press("Control+,")
    here.page.fill("#set-temperature", "0.5")
    here.page.fill("#set-top_k", "1.5")
    here.page.fill("#set-top_p", "7")
    here.page.fill("#set-stop", "\\n\\n, END")
    here.page.fill("#set-system", "Be brief.")
    assert here.page.evaluate("document.querySelector('#set-top_p').validationMessage") == "A number from 0 to 1"
    here.page.check("[name=thinking][value=off]", force=True)
    here.page.keyboard.press("Escape")
    with here.page.expect_request("**/v1/chat/completions") as sent:
        here.say("short")
    body = sent.value.post_data_json
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    chosen = {name: body.get(name) for name in ("temperature", "top_k", "top_p", "stop", "reasoning_effort")}
    assert chosen == {
        "temperature": 0.5, "top_k": None, "top_p": None, "stop": ["\n\n", "END"], "reasoning_effort": "none",
    }  # fmt: skip
    assert here.answer.inner_text() == "short"
