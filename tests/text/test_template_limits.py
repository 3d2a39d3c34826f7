"""Templates that loop, grow or reach out end in a typed error, quickly and in little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from halfbyte.errors import HalfbyteError
from halfbyte.text import ChatTemplate
from halfbyte.text.template_budget import BASE_WORK

GROW = "{%% set ns = namespace(s='aaaa') %%}{%% for i in range(60) %%}{%% set ns.s = %s %%}{%% endfor %%}"
MANY = "{%% for i in range(99999) %%}{%% for j in range(99999) %%}%s{%% endfor %%}{%% endfor %%}"
KEEP = (
    "{%% set ns = namespace(l=[]) %%}{%% set s = 'a ' * 200000 %%}"
    "{%% for i in range(99999) %%}{%% set ns.l = ns.l + [%s] %%}{%% endfor %%}"
)

HOSTILE = {
    "range": "{% for i in range(10**9) %}{% endfor %}",
    "range far out": "{{ range(10, 10**30) | list }}",
    "loops": MANY % "",
    "filtered loop": "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
    "macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "two macros": "{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}",
    "tree of calls": "{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n }}{% endmacro %}{{ f(60) }}",
    "block": "{% block a %}{{ self.a() }}{% endblock %}",
    "recursive loop": "{% for x in messages recursive %}{{ loop(messages) }}{% endfor %}",
    "string times": "{{ ('a' * 10**9) | length }}",
    "times string": "{{ (10**9 * 'a') | length }}",
    "list times": "{{ ([1] * 10**9) | length }}",
    "power": "{{ 10 ** (10 ** 7) }}",
    "squares": "{% set ns = namespace(x=9) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "digits": "{{ " + "9" * 10000 + " }}",
    **{
        f"grow by {grow}": GROW % grow
        for grow in (
            *("ns.s + ns.s", "ns.s ~ ns.s", "[ns.s, ns.s] | join", "ns.s.replace('a', 'aa')", "'%s%s' % (ns.s, ns.s)"),
            *("ns.s | replace('a', 'aa')", "ns.s.join([ns.s, ns.s])", "'{0}{0}'.format(ns.s)"),
        )
    },
    "grow by block": "{% set ns = namespace(s='a') %}{% for i in range(60) %}"
    "{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}",
    "shared list": GROW % "[ns.s, ns.s]" + "{{ ns.s }}",
    "shared dict": GROW % "{'a': ns.s, 'b': ns.s}" + "{{ ns.s | tojson }}",
    "shared key": GROW % "(ns.s, ns.s)" + "{{ {ns.s: 1} }}",
    "wide key": "{% set x = ((1,) * 1000,) * 100000 %}{{ {}.get(x) }}",
    "wide lists": "{% set ns = namespace(a=[[1] * 1000]) %}"
    "{% for i in range(15) %}{% set ns.a = ns.a + ns.a %}{% endfor %}{{ ns.a | tojson }}",
    **{
        f"keep {kept}": KEEP % kept for kept in ("s[1:]", "s | upper", "s.split(' ')", "s.title()", "s | list", "s | e")
    },
    "output kept": "{% macro f(s) %}{% for i in range(99999) %}{{ s }}{% endfor %}{% endmacro %}{{ f('a' * 400000) }}",
    "text kept": "{% macro f() %}{% for i in range(99999) %}" + "z" * 100000 + "{% endfor %}{% endmacro %}{{ f() }}",
    "sorting": MANY % "{{ range(90000) | list | sort }}",
    "searching": MANY % "{{ -1 in range(90000) | select }}",
    **{
        f"format {form}": "{{ " + form + " }}"
        for form in (
            *("'%1000000000d' % 1", "'%*d' % (1000000000, 1)", "'%.1000000000f' % 1.5", "'%1000000000d' | format(1)"),
            *("'{:>1000000000}'.format(1)", "'{:{w}}'.format(1, w=10**9)", "'{0.__class__}'.format(1)"),
            *("('%(a)s' * 100000) % {'a': 'x' * 100000}", "'{a}'.format_map({'a': 1})"),
        )
    },
    "center": "{{ 'a'.center(10**9) }}{{ 'a' | center(10**9) }}",
    "zfill": "{{ 'a'.zfill(10**9) }}",
    "expandtabs": "{{ '\t'.expandtabs(10**9) }}",
    "indent": "{{ 'a\nb' | indent(10**9) }}",
    "json indent": "{{ [1] | tojson(indent=10**9) }}",
    "round": "{{ 5 | round(-10**9) }}",
    "lipsum": "{{ lipsum(10**9) }}",
    "date": "{{ strftime_now('%1000000000d') }}",
    "parentheses": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "sum": "{{ " + " + ".join(["1"] * 20000) + " }}",
    "ifs": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "nested loops": "{% for i in [1] %}" * 30 + "{% endfor %}" * 30,
    "long": " " * 200000,
    "namespace in itself": "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
}

REACHING = [
    "''.__class__",
    "''.__class__.__mro__[1].__subclasses__()",
    "''['__class__']",
    "'' | attr('__class__')",
    "messages.__init__.__globals__",
    "cycler.__init__.__globals__",
    "raise_exception.__globals__",
    "self.__init__",
    "[''] | map(attribute='__class__') | list",
    "messages | groupby('__class__') | list",
    "messages | selectattr('__class__') | list",
    "messages.append(1)",
    "messages[0].update({})",
    "messages[0].content.encode()",
    "namespace",
    "messages[0].items",
]


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_runaway_template_ends_in_a_typed_error(source: str) -> None:
    template = ChatTemplate(source, name="hostile")
    with pytest.raises(HalfbyteError):
        template.render([{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("name", ["string times", "grow by ns.s ~ ns.s", "keep s[1:]", "output kept", "shared list"])
def test_a_runaway_template_takes_little_memory(name: str) -> None:
    template = ChatTemplate(HOSTILE[name], name="hostile")
    with pytest.raises(HalfbyteError):
        template.render([{"role": "user", "content": "hi"}])
    tracemalloc.start()
    with pytest.raises(HalfbyteError):
        template.render([{"role": "user", "content": "hi"}])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * BASE_WORK


@pytest.mark.parametrize("expression", REACHING)
def test_a_template_that_reaches_out_ends_in_a_typed_error(expression: str) -> None:
    with pytest.raises(HalfbyteError):
        ChatTemplate("{{ " + expression + " }}", name="hostile").render([{"role": "user", "content": "hi"}])


def test_the_time_limit_ends_work_that_is_cheap_but_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10**6))
    monkeypatch.setattr("halfbyte.text.template_budget.time.monotonic", lambda: float(next(now)))
    template = ChatTemplate("{% for i in range(50) %}{% endfor %}", name="slow")
    with pytest.raises(HalfbyteError, match="ran longer than 5 seconds"):
        template.render([{"role": "user", "content": "hi"}])


def test_the_work_allowed_grows_with_the_messages() -> None:
    source = "{% for m in messages %}{{ m.content.split('#')[-1] | trim | replace('a', 'b') }}{% endfor %}"
    messages = [{"role": "user", "content": "a" * 1000}] * 2000
    assert ChatTemplate(source, name="long chat").render(messages) == "b" * 2_000_000
