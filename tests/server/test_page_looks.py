"""The page by day and night, on a wide screen and a phone, and without a mouse."""

from __future__ import annotations

import pytest

from halfbyte.server.served import Served
from tests.server.browser import FIELD, launched, until, visited
from tests.server.parrot import parrot
from tests.server.running import running

SAID = (
    "## Halves\n\nA **nibble** is half a byte, [four bits](https://en.wikipedia.org/wiki/Nibble).\n\n"
    "```python\nhigh, low = byte >> 4, byte & 15  # two of them\n```\n\n- `0` to `15`\n- one hexadecimal digit"
)
SIDEBAR = "document.getElementById('sidebar').getBoundingClientRect()"
CONTRASTS = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number)
    .map((part, i) => (colour.startsWith("color(") && i < 3 ? part * 255 : part));
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const aside = one.closest(":disabled, .hidden-text, .skip");
    if (!own || aside || !one.checkVisibility({ opacityProperty: true })) continue;
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${one.className || one.localName}: ${one.textContent}`);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    with launched() as made:
        yield made


@pytest.fixture(scope="module")
def server(browser):
    with parrot() as llm, running(Served(llm, "SmolLM2-135M-Instruct")) as made:
        yield made


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
def test_it_can_be_read_by_day_and_night_wide_and_narrow(browser, server, scheme, phone, tmp_path):
    with visited(browser, server.url, phone=phone, scheme=scheme) as here:
        here.page.fill(FIELD, f"What is a nibble? «{SAID}»")
        here.page.click("[aria-label=Send]")
        here.page.wait_for_selector(".message.last.assistant:not(.growing)")
        assert here.overflow() <= 0
        assert here.page.evaluate(CONTRASTS) == []
        ground = here.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
        assert (ground < 60) == (scheme == "dark")
        here.screenshot(f"{'phone' if phone else 'wide'}-{scheme}", tmp_path)


def test_on_a_phone_the_list_comes_when_called_and_goes(browser, server):
    with visited(browser, server.url, phone=True) as here:
        here.ask("say «hello»\n")
        assert here.page.evaluate("document.getElementById('sidebar').inert")
        here.page.tap("#sidebar-button")
        until(lambda: here.page.evaluate(f"{SIDEBAR}.left === 0"))
        here.page.tap(".entry")
        until(lambda: here.page.evaluate(f"{SIDEBAR}.right <= 0"))
        assert here.page.locator(".entry").count() == 1
        here.page.press(FIELD, "Enter")  # on a touch screen a new line, not a message
        assert here.page.input_value(FIELD) == "\n"
        small = here.page.evaluate(
            "[...document.querySelectorAll('.bar button, .send')].map((one) => one.getBoundingClientRect())"
            ".filter((box) => box.width && (box.width < 36 || box.height < 36)).length"
        )
        assert small == 0
        here.page.tap("[aria-label=More]")
        here.page.wait_for_selector("[role=menu] button")
        assert here.overflow() <= 0


def test_a_chosen_theme_stays(browser, server):
    with visited(browser, server.url, scheme="light") as here:
        here.page.keyboard.press("Control+,")
        here.page.check("[name=theme][value=dark]", force=True)
        ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
        assert here.page.evaluate(ground) < 60
        here.page.reload(wait_until="commit")
        until(lambda: here.page.evaluate("document.body !== null"))
        assert here.page.evaluate(ground) < 60


def test_all_can_be_done_by_keyboard(browser, server):
    with visited(browser, server.url) as here:
        keyboard = here.page.keyboard
        here.page.evaluate("document.activeElement.blur()")
        keyboard.press("?")
        assert here.page.locator("dialog[open] kbd").count() > 12
        keyboard.press("Escape")
        keyboard.press("/")
        keyboard.type("say «one")
        keyboard.press("Shift+Enter")
        keyboard.type("two»")
        keyboard.press("Enter")
        here.page.wait_for_selector(".message.last.assistant:not(.growing)")
        assert here.answer.inner_html() == "<p>one<br>two</p>"
        assert here.page.evaluate("document.activeElement.id") == "composer-text"
        said = here.page.locator("#announcer").inner_text()
        assert said == "Answer: one two" or said.startswith("Answer: one")
        keyboard.press("Control+Shift+O")
        keyboard.type("say «three»")
        keyboard.press("Enter")
        here.page.wait_for_selector(".message.last.assistant:not(.growing)")
        keyboard.press("Alt+ArrowDown")
        assert here.answer.inner_text() == "one\ntwo"
        seen = tab_stops(here)
        assert {"Copy message", "Answer again", "More", "Conversations"} <= seen
        here.page.focus("[aria-label=More]")
        keyboard.press("Enter")
        keyboard.press("End")
        keyboard.press("Enter")
        assert here.page.locator(".entry").count() == 1


def tab_stops(here) -> set[str]:
    """Names of what Tab reaches, once around; each shows that it has the focus."""
    seen = set()
    for _ in range(40):
        here.page.keyboard.press("Tab")
        name, ring = here.page.evaluate(
            "(() => { const one = document.activeElement, style = getComputedStyle(one);"
            "return [one.getAttribute('aria-label') || one.textContent,"
            "style.outlineStyle !== 'none' || one.id === 'composer-text' || one === document.body]; })()"
        )
        assert ring, f"{name!r} has the focus and does not show it"
        seen.add(name)
    return seen


def test_it_follows_an_answer_until_one_scrolls_up(browser, server):
    with visited(browser, server.url) as here:
        here.say("line\n\n" * 30)
        place = "(([s]) => s.scrollHeight - s.scrollTop - s.clientHeight)([document.getElementById('scroller')])"
        assert here.page.evaluate(place) < 5
        here.page.evaluate("document.getElementById('scroller').scrollTop = 0")
        here.page.wait_for_selector(".jump", state="visible")
        here.page.click(".jump")
        here.page.wait_for_selector(".jump", state="hidden")
        assert here.page.evaluate(place) < 5


def test_two_tabs_share_what_is_kept(browser, server):
    with visited(browser, server.url) as here:
        other = here.open()
        here.page.bring_to_front()
        here.say("shared")
        other.wait_for_selector(".entry")
        other.click(".entry")
        assert other.locator(".message.assistant .body").inner_text() == "shared"
