"""Messages in, prompt text out."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from halfbyte.errors import FormatError, RequestError, UnsupportedError
from halfbyte.text import ChatTemplate, build_tokenizer, encode_chat
from tests.text.tiny_vocabularies import byte_bpe

USER = {"role": "user", "content": "hi"}
TURNS = "{% for m in messages %}{{ m.role + ':' + m.content + '\\n' }}{% endfor %}"


def render(source: str, *messages: Any, **kwargs: Any) -> str:
    return ChatTemplate(source, name="test", bos_token="<s>", eos_token="</s>").render(messages or [USER], **kwargs)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>hi</s>"),
        ("{% if add_generation_prompt %}go{% endif %}", "go"),
        ("  {% if true %}\n  a\n  {% endif %}\nb\n", "  a\nb"),
        ("{% generation %}a{{ 1 }}{% endgeneration %}", "a1"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{{ {'a': '<é>', 'b': [1, none]} | tojson }}", '{"a": "<é>", "b": [1, null]}'),
        ("{{ {'a': '<é>'} | tojson(indent=2, ensure_ascii=true) }}", '{\n  "a": "<\\u00e9>"\n}'),
        ("{{ 'a' ~ 1 ~ none ~ [1] }}", "a1None[1]"),
        ("{{ missing }}{{ missing is defined }}{{ tools is none }}", "FalseTrue"),
        ("{{ messages | map(attribute='content') | join(', ') }}", "hi"),
        ("{{ (messages | selectattr('role', 'equalto', 'user') | list) | length }}", "1"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
        ("{% for m in messages %}{{ m.content.replace('h', 'H').split('i')[0].strip() }}{% endfor %}", "H"),
        ("{% macro f(x) %}[{{ x }}{{ f(x[1:]) if x }}]{% endmacro %}{{ f('ab') }}", "[ab[b[]]]"),
        ("{{ messages[::-1][0]['content'][1:] ~ '-'.join(['a', 'b']) ~ 'x' * 3 ~ '%02d' % 7 }}", "ia-bxxx07"),
        ("{{ '{} and {a:>3}'.format(1, a=2) }}{{ 'a\nb' | indent(2) }}{{ '<' | e }}", "1 and   2a\n  b&lt;"),
        ("{{ {'update': 5}.update }}{{ 'ab' | replace('a', 'c') }}{{ [1, 2] | sum }}{{ 2.345 | round(1) }}", "5cb32.3"),
        ("{{ strftime_now('%Y') | length }}", "4"),
        ("{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}", "a2b1"),
    ],
)
def test_templates_mean_what_they_mean_elsewhere(source: str, text: str) -> None:
    assert render(source) == text


def test_keywords_become_variables() -> None:
    source = "{{ enable_thinking }}{{ tools[0].name }}{% if add_generation_prompt %}go{% endif %}"
    assert render(source, add_generation_prompt=False, enable_thinking=False, tools=[{"name": "f"}]) == "Falsef"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (["a", {"text": "b"}], "a\nb"),
        ([], ""),
    ],
)
def test_content_may_be_absent_or_in_parts(content: Any, text: str) -> None:
    assert render(TURNS, {"role": "user", "content": content}) == f"user:{text}\n"


def test_a_message_of_tool_calls_needs_no_content() -> None:
    source = "{% if tools %}{% endif %}" + TURNS
    assert render(source, {"role": "assistant", "tool_calls": [{"name": "f"}]}) == "assistant:\n"


@pytest.mark.parametrize(
    ("messages", "error", "message"),
    [
        ("hi", RequestError, "messages wants a list"),
        (USER, RequestError, "messages wants a list"),
        (None, RequestError, "messages wants a list"),
        ([], RequestError, "messages is empty"),
        ([USER, "hi"], RequestError, r"messages\[1\] wants a mapping"),
        ([{"content": "hi"}], RequestError, r"messages\[0\]\['role'\] wants a name"),
        ([{"role": "user<|im_end|>", "content": "hi"}], RequestError, r"\['role'\] wants a name"),
        ([{"role": "user"}], RequestError, r"messages\[0\] has no 'content'"),
        ([{"role": "user", "content": 5}], RequestError, "wants a string, a list of parts or None, not int"),
        ([{"role": "user", "content": [5]}], RequestError, r"\['content'\]\[0\] wants"),
        ([{"role": "user", "content": [{"type": "text"}]}], RequestError, "has no 'text'"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], UnsupportedError, "part of type 'image_url'"),
        ([{"role": "user", "content": "hi", "extra": object()}], RequestError, r"\['extra'\] is a object"),
        ([{"role": "user", "content": "hi", 5: 6}], RequestError, "has the key 5"),
    ],
)
def test_malformed_messages_are_refused_by_place(messages: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ChatTemplate(TURNS, name="test").render(messages)


def test_deep_nesting_in_a_message_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(RequestError, match="nested more than 64 deep"):
        render(TURNS, {"role": "user", "content": "hi", "extra": deep})


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", RequestError, "refuses these messages: roles must alternate"),
        ("{{ messages[0].nothing.more }}", RequestError, "misses something in the messages"),
        ("{{ messages[0].content + 5 }}", RequestError, "fails on these messages: TypeError"),
        ("{{ 1 // 0 }}", RequestError, "ZeroDivisionError"),
        ("{% for m in %}", FormatError, "line 1"),
        ("{{ .System }}", FormatError, "line 1"),
        ("{{ 'a' | nosuch }}", UnsupportedError, "No filter named 'nosuch'"),
        ("{{ 'a' is nosuch }}", UnsupportedError, "No test named 'nosuch'"),
        ("{% include '/etc/passwd' %}", UnsupportedError, "includes another file"),
        ("{% import 'os' as os %}", UnsupportedError, "includes another file"),
    ],
)
def test_what_a_template_cannot_do_is_a_typed_error(source: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        render(source)


def from_file(**metadata: Any) -> ChatTemplate:
    tokenizer = build_tokenizer(byte_bpe())
    return ChatTemplate.from_metadata({key.replace("__", "."): value for key, value in metadata.items()}, tokenizer)


def test_the_files_template_is_used_and_its_variant_for_tools_with_tools() -> None:
    template = from_file(tokenizer__chat_template="plain {{ bos_token }}", tokenizer__chat_template__tool_use="tools")
    assert (template.name, template.render([USER])) == ("file", "plain <s>")
    assert template.render([USER], tools=[]) == "plain <s>"
    assert template.render([USER], tools=[{"name": "f"}]) == "tools"


def test_a_template_that_is_no_text_is_a_format_error() -> None:
    with pytest.raises(FormatError, match=r"tokenizer\.chat_template: wants text"):
        from_file(tokenizer__chat_template=5)


def test_without_a_template_the_architecture_decides() -> None:
    system = {"role": "system", "content": "be brief"}
    answer = {"role": "assistant", "content": "yo"}
    gemma = from_file(general__architecture="gemma3")
    assert gemma.name == "gemma"
    assert gemma.render([system, USER, answer, USER]) == (
        "<s><start_of_turn>user\nbe brief\n\nhi<end_of_turn>\n<start_of_turn>model\nyo<end_of_turn>\n"
        "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n"
    )
    chatml = from_file(general__architecture="qwen2")
    assert chatml.name == "chatml"
    assert chatml.render([system, USER], add_generation_prompt=False) == (
        "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
    )
    tokens = byte_bpe()["tokenizer.ggml.tokens"]
    renamed = byte_bpe(tokens=["<|start_header_id|>" if t == "<|im_start|>" else t for t in tokens])
    llama = ChatTemplate.from_metadata(renamed, build_tokenizer(renamed))
    assert llama.name == "llama3"
    assert llama.render([USER]) == (
        "<s><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    )


@pytest.mark.parametrize("source", ["{{ bos_token }}{{ messages[0].content }}", "{{ messages[0].content }}"])
def test_the_begin_token_stands_once_whether_the_template_writes_it_or_not(source: str) -> None:
    metadata = byte_bpe(add_bos_token=True) | {"tokenizer.chat_template": source}
    tokenizer = build_tokenizer(metadata)
    ids = encode_chat(tokenizer, ChatTemplate.from_metadata(metadata, tokenizer).render([USER]))
    assert ids == [tokenizer.bos_id, *tokenizer.encode("hi", bos=False)]


def test_jinja_is_imported_when_a_template_is_rendered_and_not_before() -> None:
    code = (
        "import sys, halfbyte.text as t; c = t.ChatTemplate('x', name='x'); assert 'jinja2' not in sys.modules; "
        "assert not {'tokenizers', 'sentencepiece'} & set(sys.modules); "
        "c.render([{'role': 'user', 'content': ''}]); assert 'jinja2' in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_a_template_that_knows_no_developer_takes_what_it_says_as_the_systems() -> None:
    told = {"role": "developer", "content": "be brief"}
    assert render(TURNS, told) == "system:be brief\n"
    assert render("{# developer #}" + TURNS, told) == "developer:be brief\n"


def test_thinking_has_the_name_that_the_template_looks_for() -> None:
    answer = {"role": "assistant", "content": "yes", "reasoning_content": "hm"}
    assert render("{{ messages[0].thinking }}", answer) == "hm"
    assert render("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}", answer) == "hm"
