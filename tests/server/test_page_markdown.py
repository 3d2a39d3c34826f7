"""What the page makes of Markdown: elements, never markup, in linear time."""

from __future__ import annotations

import pytest

from halfbyte.server.served import Served
from tests.server.browser import launched, visited
from tests.server.parrot import parrot
from tests.server.running import running

CASES = {
    "a *b* __c__ ~~d~~ `e*f*`": "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e*f*</code></p>",
    "***a*** and **b *c* d**": "<p><em><strong>a</strong></em> and <strong>b <em>c</em> d</strong></p>",
    "2 * 3 * 4, snake_case_name, a ** b": "<p>2 * 3 * 4, snake_case_name, a ** b</p>",
    "open **never closed": "<p>open **never closed</p>",
    r"\*not\* \_this\_ \\": r"<p>*not* _this_ \</p>",
    "one\ntwo": "<p>one<br>two</p>",
    "# T\n\n### U ##\n\nV\n===": ('<h3 class="level-1">T</h3><h5 class="level-3">U</h5><h3 class="level-1">V</h3>'),
    "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>",
    "1. a\n\n2. b": "<ol><li><p>a</p></li><li><p>b</p></li></ol>",
    "- a\n- b\n  - c\n\n3. d\n4. e": (
        '<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><ol start="3"><li>d</li><li>e</li></ol>'
    ),
    "text:\n- a\n- b": "<p>text:</p><ul><li>a</li><li>b</li></ul>",
    "It was\n1984. Or so.": "<p>It was<br>1984. Or so.</p>",
    "1. a\n\n   more\n2. b": "<ol><li><p>a</p><p>more</p></li><li><p>b</p></li></ol>",
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
    "<b>x</b> &amp; <!-- y -->": "<p>&lt;b&gt;x&lt;/b&gt; &amp; &lt;!-- y --&gt;</p>",
    r"\(a_1 * b_2 * c\)": r'<p><code class="math">\(a_1 * b_2 * c\)</code></p>',
    "$$\na_1 * b * c\n$$": '<pre class="math">$$\na_1 * b * c\n$$</pre>',
    "*a*b **c**d": "<p><em>a</em>b <strong>c</strong>d</p>",
    "**重要**です": "<p><strong>重要</strong>です</p>",
    "``a`b`` `unclosed": "<p><code>a`b</code> `unclosed</p>",
    "[x] [y](z [w]": "<p>[x] [y](z [w]</p>",
}
LINKS = {
    "[a *b*](https://c.example/d_(e) 'f')": "https://c.example/d_(e)",
    "see https://a.example/b?c=d.": "https://a.example/b?c=d",
    "(https://a.example/b)": "https://a.example/b",
    "<mailto:a@b.example>": "mailto:a@b.example",
    "![seen](http://a.example/i.png)": "http://a.example/i.png",
}
# 100 kB each of what has a quadratic trap in it.
TRAPS = [
    "*a ",
    "**a_b ",
    "[",
    "![",
    "[a](",
    "`a``",
    "> ",
    "- ",
    "\\(",
    "<a ",
    "|a",
    "_*",
    "https://a",
    "a\n=\n",
    "(" * 9 + "[",
]
NESTED = (("> ", ""), ("- ", ""), ("*a **b ", "c** d* "), ("[", "](https://b.example)"))
DEPTH = """async (sources) => {
  const { Markdown } = await import("/page/markdown.js");
  const depth = (one) => 1 + Math.max(0, ...[...one.children].slice(0, 50).map(depth));
  return sources.map((source) => {
    const box = document.createElement("div");
    new Markdown(box).update(source);
    return depth(box);
  });
}"""
RENDER = """async (sources) => {
  const { Markdown } = await import("/page/markdown.js");
  return sources.map((source) => {
    const box = document.createElement("div");
    new Markdown(box).update(source);
    return box.innerHTML;
  });
}"""
GROW = """async (sources) => {
  const { Markdown } = await import("/page/markdown.js");
  const wrong = [];
  for (const source of sources) {
    const whole = document.createElement("div"), grown = document.createElement("div");
    new Markdown(whole).update(source);
    const text = new Markdown(grown);
    for (let end = 1; end <= source.length; end++) text.update(source.slice(0, end));
    if (whole.innerHTML !== grown.innerHTML) wrong.push([source, whole.innerHTML, grown.innerHTML]);
  }
  return wrong;
}"""
PLACES = """async (sources) => {
  const { Markdown } = await import("/page/markdown.js");
  const wrong = [];
  for (const source of sources) {
    const piece = (text, at) => {
      if (source.slice(at, at + text.length) !== text && !source.startsWith("&", at)) wrong.push([source, text, at]);
      return document.createTextNode(text);
    };
    new Markdown(document.createElement("div"), piece).update(source);
  }
  return wrong;
}"""


@pytest.fixture(scope="module")
def page():
    with (
        launched() as browser,
        parrot() as llm,
        running(Served(llm, "parrot")) as server,
        visited(browser, server.url) as here,
    ):
        yield here.page


def test_markdown_becomes_the_elements_it_means(page):
    shown = page.evaluate(RENDER, list(CASES))
    assert dict(zip(CASES, shown, strict=True)) == CASES


def test_links_lead_where_they_say(page):
    shown = page.evaluate(RENDER, list(LINKS))
    for html, address in zip(shown, LINKS.values(), strict=True):
        assert f'href="{address}"' in html
        assert html.count("<a ") == 1


def test_tables(page):
    (html,) = page.evaluate(RENDER, ["| a | b |\n|:--|--:|\n| `x|y` | 1 \\| 2 |\n| only |"])
    assert "<td><code>x|y</code></td>" in html
    assert '<td class="right">1 | 2</td>' in html
    assert html.count("<td") == 4


def test_code_is_kept_to_the_letter_and_coloured(page):
    code = 'def f(x):\n\treturn "<b>" + x  # why\n\n\nprint(f(1))'
    script = """async ([language, source]) => {
      const { Markdown } = await import("/page/markdown.js");
      const box = document.createElement("div");
      new Markdown(box).update("```" + language + "\\n" + source + "\\n```");
      const kinds = [...box.querySelectorAll("code span")].map((one) => [one.className, one.textContent]);
      return [box.querySelector("code").textContent, kinds];
    }"""
    text, kinds = page.evaluate(script, ["python", code])
    assert text == code
    assert kinds == [
        ["code-word", "def"], ["code-word", "return"], ["code-string", '"<b>"'], ["code-comment", "# why"],
        ["code-number", "1"],
    ]  # fmt: skip
    for language in ("constructor", "__proto__", "c++", "", "x" * 500):
        assert page.evaluate(script, [language, code])[0] == code


def test_a_text_that_grows_ends_as_one_that_came_whole(page):
    whole = "\n\n".join([*CASES, *LINKS, "```py\nx = 1\n```", "| a |\n|---|\n| b |"])
    assert page.evaluate(GROW, [*CASES, *LINKS, whole[:700]]) == []


def test_every_piece_knows_its_place_in_the_source(page):
    quote = "> 1. a *b*\n>    c\n>    - d `e`\n>\n> | f | g |\n> |---|---|\n> | h | **i** |"
    assert page.evaluate(PLACES, [*CASES, *LINKS, quote, "```\n  j\n\n k\n```\n\n\\(l\\)"]) == []


def test_traps_take_no_time_and_nest_no_deeper_than_a_page_can_bear(page):
    sources = [(trap * 100_000)[:100_000] for trap in TRAPS]
    shown = page.evaluate(RENDER, sources)
    assert all(shown)
    deepest = page.evaluate(DEPTH, [part * 500 + "a" + end * 500 for part, end in NESTED])
    assert max(deepest) < 60
