"""`PRE_TOKENIZERS`: how text is cut into words before bytes are merged, by `tokenizer.ggml.pre`.

The patterns are those of the models' own tokenizer files, in Oniguruma syntax; each cuts the pieces that the one before
it left. Source of the names and of which share a pattern: llama.cpp's vocabulary loader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UnsupportedError, nearest


@dataclass(frozen=True)
class PreTokenizer:
    """`ignore_merges`: a word that is a token stays whole. `add_bos`: what holds where the file does not say."""

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False


_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_THREES = r"{1,3}(?=(?:%s{3})*(?!%s))"

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_DIGIT = r"\p{N}"
_LLAMA3 = rf"{_SHORT}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
_QWEN2 = rf"{_SHORT}|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}"
_QWEN35 = rf"{_SHORT}|{_LEAD}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
_CASED = rf"{_LEAD}{_UPPER}*{_LOWER}+%s|{_LEAD}{_UPPER}+{_LOWER}*%s|%s| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
_GPT4O = _CASED.replace("%s", _SHORT + "?", 2).replace("%s", r"\p{N}{1,3}")
_TEKKEN = _CASED.replace("%s", "", 2).replace("%s", r"\p{N}")
_NO_HAN_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_NO_HAN_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_KIMI = (
    rf"[\p{{Han}}]+|{_LEAD}{_NO_HAN_UPPER}*{_NO_HAN_LOWER}+{_SHORT}?|{_LEAD}{_NO_HAN_UPPER}+{_NO_HAN_LOWER}*{_SHORT}?"
    rf"|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
)
_PUNCTUATED = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    + _SPACES
)
_BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
_SEED = rf"{_SHORT}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}"
_EXAONE_MOE = (
    rf"{_SHORT}|{_LEAD}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]"
    r"|\s+(?!\S)|\s+"
)
_BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_JAPANESE = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_ASIAN = (
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
    "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
)
_DEEPSEEK_SIGNS = r"\s?[!-/:-~" + "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
_DEEPSEEK_CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4"
    "\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)

_FAMILIES: dict[PreTokenizer, tuple[str, ...]] = {
    PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True): (
        *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"),
    ),
    PreTokenizer((_LLAMA3,)): ("dbrx", "smaug-bpe", "chatglm-bpe"),
    PreTokenizer((_LLAMA3,), ignore_merges=True): ("glm4", "glm5"),
    PreTokenizer((r"\p{N}{1,3}", rf"{_SHORT}|{_WORD}|\p{{N}}+|{_SIGNS}|{_SPACES}"), ignore_merges=True): ("minicpm5",),
    PreTokenizer((_QWEN2,)): (
        *("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"),
    ),
    PreTokenizer((_QWEN35,)): ("qwen35",),
    PreTokenizer((_GPT4O,)): ("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"),
    PreTokenizer((_GPT4O,), ignore_merges=True): ("granite-embed-multi-97m",),
    PreTokenizer((r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O)): ("tiny_aya", "cohere2moe"),
    PreTokenizer((_TEKKEN,), ignore_merges=True, add_bos=True): ("tekken",),
    PreTokenizer((_KIMI,)): ("kimi-k2",),
    PreTokenizer((_GPT2,)): (
        *("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum"),
        *("exaone4", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "modern-bert"),
    ),
    PreTokenizer((_DIGIT, _GPT2)): (
        *("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
    ),
    PreTokenizer(("[\r\n]", rf"\s?[{_DEEPSEEK_CASED}]+", _DEEPSEEK_SIGNS, r"\s+$", _CJK, r"\p{N}+")): ("deepseek-llm",),
    PreTokenizer(("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, _DIGIT)): ("deepseek-coder",),
    PreTokenizer((r"\p{N}{1,3}", _JAPANESE, _PUNCTUATED)): ("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"),
    PreTokenizer((r"\p{N}" + _THREES.replace("%s", r"\p{N}"), _ASIAN, _PUNCTUATED)): ("afmoe",),
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")): ("falcon",),
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")): ("default",),
    PreTokenizer((_BLOOM,)): ("bloom", "poro-chat", "gpt3-finnish"),
    PreTokenizer((_BLOOM, _DIGIT)): ("viking",),
    PreTokenizer((r"\p{N}+", r"\d" + _THREES.replace("%s", r"\d"))): ("superbpe",),
    PreTokenizer((_BAILING,)): ("bailingmoe", "bailingmoe2", "llada-moe"),
    PreTokenizer((_SEED,)): ("seed-coder",),
    PreTokenizer((_EXAONE_MOE,)): ("exaone-moe",),
    PreTokenizer((r"[^\n]+|[\n]+", _QWEN2)): ("laguna",),
}

PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {name: pre for pre, names in _FAMILIES.items() for name in names}


def find_pre_tokenizer(name: str) -> PreTokenizer:
    """The entry for a name in a file; raises `UnsupportedError` with the known ones."""
    if name not in PRE_TOKENIZERS:
        hint = nearest(name, PRE_TOKENIZERS)
        raise UnsupportedError(f"unknown pre-tokenizer {name!r} in tokenizer.ggml.pre{hint}", known=PRE_TOKENIZERS)
    return PRE_TOKENIZERS[name]
