"""Every keyword of JSON schema: kept to the letter by answers, or refused by name."""

from __future__ import annotations

import pytest

from halfbyte.errors import ConfigError, UnsupportedError
from halfbyte.runtime.constraint.compiler import Compiler
from halfbyte.runtime.constraint.keywords import FORMATS, KEPT, REFUSED, REMARKS, check_keywords
from halfbyte.runtime.constraint.wish import read_constraint

NUMBER, TEXT, LIST, OBJECT = {"type": "number"}, {"type": "string"}, {"type": "array"}, {"type": "object"}
# A schema, an answer that follows it, and one that does not.
MEANT = {
    "type": (TEXT, '"a"', "3"),
    "enum": ({"enum": ["a", 3, None]}, "null", '"b"'),
    "const": ({"const": {"a": [1]}}, '{"a": [1]}', '{"a": [2]}'),
    "minimum": (NUMBER | {"minimum": 3}, "3", "2"),
    "maximum": (NUMBER | {"maximum": 3}, "3", "4"),
    "exclusiveMinimum": (NUMBER | {"exclusiveMinimum": 3}, "4", "3"),
    "exclusiveMaximum": (NUMBER | {"exclusiveMaximum": 3}, "2", "3"),
    "multipleOf": ({"type": "integer", "multipleOf": 5}, "15", "16"),
    "minLength": (TEXT | {"minLength": 2}, '"ab"', '"a"'),
    "maxLength": (TEXT | {"maxLength": 2}, '"ab"', '"abc"'),
    "pattern": (TEXT | {"pattern": "^[ab]+$"}, '"aba"', '"abc"'),
    "format": (TEXT | {"format": "date"}, '"2024-02-03"', '"2024-13-03"'),
    "items": (LIST | {"items": NUMBER}, "[1, 2]", '["a"]'),
    "prefixItems": (LIST | {"prefixItems": [NUMBER, TEXT], "items": False}, '[1, "a"]', '["a", 1]'),
    "additionalItems": (LIST | {"items": [NUMBER], "additionalItems": TEXT}, '[1, "a"]', "[1, 2]"),
    "minItems": (LIST | {"items": NUMBER, "minItems": 2}, "[1, 2]", "[1]"),
    "maxItems": (LIST | {"items": NUMBER, "maxItems": 1}, "[1]", "[1, 2]"),
    "properties": (OBJECT | {"properties": {"a": NUMBER}}, '{"a": 1}', '{"a": "b"}'),
    "required": (OBJECT | {"properties": {"a": NUMBER}, "required": ["a"]}, '{"a": 1}', "{}"),
    "additionalProperties": (OBJECT | {"additionalProperties": False}, "{}", '{"a": 1}'),
    "patternProperties": (OBJECT | {"patternProperties": {"^a": NUMBER}}, '{"ab": 1}', '{"ab": "c"}'),
    "minProperties": (OBJECT | {"minProperties": 1}, '{"a": 1}', "{}"),
    "maxProperties": (OBJECT | {"maxProperties": 1}, '{"a": 1}', '{"a": 1, "b": 2}'),
    "allOf": ({"allOf": [TEXT | {"minLength": 2}, TEXT | {"maxLength": 2}]}, '"ab"', '"abc"'),
    "anyOf": ({"anyOf": [NUMBER, {"type": "null"}]}, "null", '"a"'),
    "oneOf": ({"oneOf": [NUMBER, {"type": "null"}]}, "null", '"a"'),
    "$ref": ({"$ref": "#/$defs/n", "$defs": {"n": NUMBER}}, "1", '"a"'),
    "definitions": ({"$ref": "#/definitions/n", "definitions": {"n": NUMBER}}, "1", '"a"'),
    "$defs": (LIST | {"items": {"$ref": "#/$defs/n"}, "$defs": {"n": NUMBER}}, "[1]", '["a"]'),
    "$id": ({"$id": "http://example.org/n", "type": "number"}, "1", '"a"'),
    "$anchor": ({"$anchor": "n", "type": "number"}, "1", '"a"'),
    "$schema": ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "number"}, "1", '"a"'),
}  # fmt: skip


BOTH = OBJECT | {"properties": {"a": NUMBER, "b": NUMBER}, "additionalProperties": False}
# Keywords that meet: neither may be lost for the other.
TOGETHER = [
    (BOTH | {"maxProperties": 1}, '{"a": 1}', '{"a": 1, "b": 2}'),
    (BOTH | {"minProperties": 1}, '{"b": 1}', "{}"),
    (BOTH | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"b": 1}', "{}"),
    ({"enum": ["a", "bb"], "minLength": 2}, '"bb"', '"a"'),
    ({"enum": ["2024-01-01", "x"], "format": "date"}, '"2024-01-01"', '"x"'),
    ({"enum": [1, 2, 10], "minimum": 3}, "10", "1"),
    ({"enum": [[1], [1, 2]], "minItems": 2}, "[1, 2]", "[1]"),
    (TEXT | {"maxLength": 6, "format": "email"}, '"a@b.co"', '"abcd@bcd.com"'),
    ({"$ref": "#/$defs/n", "maxLength": 2, "$defs": {"n": TEXT}}, '"ab"', '"abc"'),
    (LIST | {"prefixItems": [NUMBER], "items": False, "maxItems": 3}, "[1]", "[1, 2]"),
    ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, "2", "3"),
]


def follows(llm, grammar, text):
    """Whether `text` is a whole answer."""
    matcher = grammar.matcher()
    for token in llm.tokenize(text):
        if token not in matcher.mask().ids:
            return False
        matcher.accept(token)
    return matcher.ended or llm.tokenizer.eos_id in matcher.mask().ids


@pytest.fixture(scope="module")
def compiler(llm):
    return Compiler(llm.tokenizer)


def test_every_kept_keyword_is_listed():
    assert set(MEANT) == KEPT
    assert not KEPT & REFUSED
    assert not REMARKS & (KEPT | REFUSED)


@pytest.mark.parametrize("keyword", MEANT)
def test_a_kept_keyword_allows_and_forbids(llm, compiler, keyword):
    schema, right, wrong = MEANT[keyword]
    grammar = compiler.compile(read_constraint({"schema": schema}))
    assert follows(llm, grammar, right)
    assert not follows(llm, grammar, wrong)


@pytest.mark.parametrize(("schema", "right", "wrong"), TOGETHER, ids=str)
def test_keywords_that_meet_are_all_kept(llm, compiler, schema, right, wrong):
    grammar = compiler.compile(read_constraint({"schema": schema}))
    assert follows(llm, grammar, right)
    assert not follows(llm, grammar, wrong)


@pytest.mark.parametrize("keyword", [*sorted(REFUSED), "requird", "x-mine"])
def test_any_other_is_refused_by_name_and_place(compiler, keyword):
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {keyword: True}]}}}
    with pytest.raises(UnsupportedError, match=f"{keyword!r} at /properties/a/anyOf/1".replace("$", r"\$")):
        compiler.compile(read_constraint({"schema": schema}))


@pytest.mark.parametrize("keyword", sorted(REMARKS))
def test_remarks_change_nothing(llm, compiler, keyword):
    grammar = compiler.compile(read_constraint({"schema": {"type": "null", keyword: "some text"}}))
    assert follows(llm, grammar, "null")
    assert not follows(llm, grammar, "1")


@pytest.mark.parametrize("name", FORMATS)
def test_known_formats_are_understood(compiler, name):
    assert compiler.compile(read_constraint({"schema": {"type": "string", "format": name}}))


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        ({"type": "string", "format": "iri"}, UnsupportedError, "format 'iri' at /.*known: date-time"),
        ({"maximum": 3, "exclusiveMaximum": True}, UnsupportedError, "must be numbers"),
        ({"properties": []}, ConfigError, "/properties must be an object"),
        ({"items": 3}, ConfigError, "/items must be an object"),
        ({"anyOf": [{"items": "a"}]}, ConfigError, "/anyOf/0/items must be an object"),
    ],
)
def test_malformed_parts_are_refused_where_they_stand(schema, error, message):
    with pytest.raises(error, match=message):
        check_keywords(schema)


def test_endless_nesting_is_refused():
    schema = {}
    for _ in range(200):
        schema = {"items": schema}
    with pytest.raises(ConfigError, match="nested more than 128 deep"):
        check_keywords(schema)
