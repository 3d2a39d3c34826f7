"""How each family cuts text into words."""

from __future__ import annotations

import pytest
from tokenizers import Regex
from tokenizers.pre_tokenizers import Sequence, Split

from halfbyte.text.pre_tokenizers import PRE_TOKENIZERS

TEXT = "It's 12345 isn'T  naïve\n\n x+=1;\tПриветМир 東京 a/b\r\n  "

CUTS = {
    "gpt-2": "It|'s| 12345| isn|'|T| | naïve|\n\n| x|+=|1|;|\t|ПриветМир| 東京| a|/|b|\r\n  ",
    "smollm": "It|'s| |1|2|3|4|5| isn|'|T| | naïve|\n\n| x|+=|1|;|\t|ПриветМир| 東京| a|/|b|\r\n  ",
    "llama-bpe": "It|'s| |123|45| isn|'T| | naïve|\n\n| x|+=|1|;|\tПриветМир| 東京| a|/b|\r\n|  ",
    "qwen2": "It|'s| |1|2|3|4|5| isn|'T| | naïve|\n\n| x|+=|1|;|\tПриветМир| 東京| a|/b|\r\n|  ",
    "gpt-4o": "It's| |123|45| isn'T| | naïve|\n\n| x|+=|1|;|\tПривет|Мир| 東京| a|/b|\r\n|  ",
    "tekken": "It|'s| |1|2|3|4|5| isn|'T| | naïve|\n\n| x|+=|1|;|\tПривет|Мир| 東京| a|/b|\r\n|  ",
    "default": "It|'|s| |123|45| isn|'|T| | naïve|\n\n| x|+=|1|;|\t|ПриветМир| 東京| a|/|b|\r\n  ",
    "falcon": "It|'|s| |123|45| isn|'|T| | naïve|\n\n| x|+=|1|;|\t|ПриветМир| 東京| a|/|b|\r\n  ",
    "deepseek-llm": "It|'|s| |12345| isn|'|T| | na|ï|ve|\n|\n| x|+=|1|;|\tПриветМир| |東京| a|/|b|\r|\n|  ",
    "deepseek-coder": "It|'|s| |1|2|3|4|5| isn|'|T| | naïve|\n|\n| x|+=|1|;|\tПриветМир| |東京| a|/|b|\r|\n|  ",
    "deepseek-v3": "It|'s| |123|45| isn|'T| | naïve|\n\n| x|+=|1|;|\tПриветМир| |東京| a|/b|\r\n|  ",
}


def cut(name: str, text: str) -> list[str]:
    splits = [Split(Regex(pattern), "isolated") for pattern in PRE_TOKENIZERS[name].patterns]
    return [piece for piece, _ in Sequence(splits).pre_tokenize_str(text)]


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_every_family_compiles_and_loses_nothing(name: str) -> None:
    assert "".join(cut(name, TEXT)) == TEXT


@pytest.mark.parametrize("name", CUTS)
def test_words_are_cut_where_the_model_learned_it(name: str) -> None:
    assert "|".join(cut(name, TEXT)) == CUTS[name]


@pytest.mark.parametrize("name", ["afmoe", "superbpe", "tiny_aya"])
def test_digits_are_grouped_from_the_right(name: str) -> None:
    assert cut(name, "1234567")[:3] == ["1", "234", "567"]


def test_a_mark_stays_with_its_letter_where_the_family_says_so() -> None:
    assert cut("qwen35", "नमस्ते") == ["नमस्ते"]
    assert len(cut("qwen2", "नमस्ते")) > 1


def test_kimi_cuts_han_from_other_letters() -> None:
    assert cut("kimi-k2", "abc東京def") == ["abc", "東京", "def"]
