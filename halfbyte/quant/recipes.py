"""`RECIPES`: the mixes of formats that GGUF users know by name.

The rules are those of llama.cpp's quantizer, so that a file of the same recipe has the same size: value projections and
the way back from the feed-forward net hold on to more bits, most of all in the first layers.
"""

from __future__ import annotations

from types import MappingProxyType

from ..errors import UnsupportedError, nearest
from .recipe import (
    Recipe,
    Rule,
    both,
    calibrated,
    early_8th,
    early_16th,
    eight_experts,
    falcon,
    first_2,
    first_4,
    many_experts,
    middle,
    shared_values,
    spread,
    stacked,
    uncalibrated,
)
from .roles import ATTN_K, ATTN_OUTPUT, ATTN_Q, ATTN_V, EMBEDDING, FFN_DOWN, FFN_GATE, FFN_UP

_EIGHT = (Rule(ATTN_V, "q8_0", eight_experts), Rule(ATTN_K, "q8_0", eight_experts))
_EIGHT_OUT = (*_EIGHT, Rule(ATTN_OUTPUT, "q5_k", eight_experts))
_TERNARY = (*_EIGHT, Rule(EMBEDDING, "q4_k"))


def _tiny(name: str, file_type: int, base: str, more: str, out: str) -> Recipe:
    """Below 3 bits: `more` for what one may not starve, `out` behind attention."""
    rules = (
        Rule(ATTN_V, "q4_k", shared_values),
        Rule(ATTN_V, "q4_k", many_experts),
        Rule(ATTN_V, more),
        Rule(ATTN_K, "q4_k", eight_experts),
        Rule(FFN_DOWN, more, early_8th),
        Rule(ATTN_OUTPUT, "q5_k", eight_experts),
        Rule(ATTN_OUTPUT, out),
        Rule(EMBEDDING, more),
    )
    return Recipe(name, file_type, base, "q5_k", rules, precious=False)


_ALL = (
    Recipe("f32", 0, "f32", "f32"),
    Recipe("f16", 1, "f16", "f16"),
    Recipe("bf16", 32, "bf16", "bf16"),
    Recipe("q8_0", 7, "q8_0", "q8_0", _EIGHT),
    Recipe("q4_0", 2, "q4_0", "q6_k", (*_EIGHT, Rule(FFN_DOWN, "q4_1", both(early_8th, calibrated)))),
    Recipe("q4_1", 3, "q4_1", "q6_k", _EIGHT),
    Recipe("q5_0", 8, "q5_0", "q6_k", (*_EIGHT, Rule(FFN_DOWN, "q5_1", both(early_8th, calibrated)))),
    Recipe("q5_1", 9, "q5_1", "q6_k", _EIGHT),
    Recipe(
        "q2_k",
        10,
        "q2_k",
        "q6_k",
        (
            *_EIGHT_OUT,
            Rule(ATTN_V, "q4_k", shared_values),
            Rule(ATTN_V, "q3_k"),
            Rule(FFN_DOWN, "q3_k"),
            Rule(ATTN_OUTPUT, "q2_k", falcon),
            Rule(ATTN_OUTPUT, "q3_k"),
        ),
    ),
    Recipe(
        "q2_k_s",
        21,
        "q2_k",
        "q6_k",
        (*_EIGHT, Rule(ATTN_V, "q4_k", shared_values), Rule(FFN_DOWN, "q4_k", early_8th)),
    ),
    Recipe("q3_k_s", 11, "q3_k", "q6_k", _EIGHT_OUT),
    Recipe(
        "q3_k_m",
        12,
        "q3_k",
        "q6_k",
        (
            *_EIGHT_OUT,
            Rule(ATTN_V, "q5_k", first_2),
            Rule(ATTN_V, "q4_k"),
            Rule(FFN_DOWN, "q5_k", early_16th),
            Rule(FFN_DOWN, "q4_k", spread),
            Rule(FFN_DOWN, "q3_k", falcon),
            Rule(FFN_DOWN, "q4_k"),
            Rule(ATTN_OUTPUT, "q3_k", falcon),
            Rule(ATTN_OUTPUT, "q4_k"),
        ),
    ),
    Recipe(
        "q3_k_l",
        13,
        "q3_k",
        "q6_k",
        (
            *_EIGHT,
            Rule(ATTN_V, "q5_k"),
            Rule(FFN_DOWN, "q4_k", falcon),
            Rule(FFN_DOWN, "q5_k"),
            Rule(ATTN_OUTPUT, "q4_k", falcon),
            Rule(ATTN_OUTPUT, "q3_k", eight_experts),
            Rule(ATTN_OUTPUT, "q5_k"),
        ),
    ),
    Recipe(
        "q4_k_s",
        14,
        "q4_k",
        "q6_k",
        (
            *_EIGHT_OUT,
            Rule(ATTN_V, "q5_k", first_4),
            Rule(FFN_DOWN, "q4_k", falcon),
            Rule(FFN_DOWN, "q5_k", early_8th),
        ),
    ),
    Recipe(
        "q4_k_m",
        15,
        "q4_k",
        "q6_k",
        (
            *_EIGHT_OUT,
            Rule(ATTN_V, "q6_k", spread),
            Rule(FFN_DOWN, "q6_k", both(falcon, early_16th)),
            Rule(FFN_DOWN, "q5_k", both(falcon, spread)),
            Rule(FFN_DOWN, "q6_k", spread),
        ),
    ),
    Recipe("q5_k_s", 16, "q5_k", "q6_k", _EIGHT),
    Recipe("q5_k_m", 17, "q5_k", "q6_k", (*_EIGHT, Rule(ATTN_V, "q6_k", spread), Rule(FFN_DOWN, "q6_k", spread))),
    Recipe("q6_k", 18, "q6_k", "q6_k", _EIGHT),
    _tiny("iq1_s", 24, "iq1_s", "q2_k", "iq2_xxs"),
    _tiny("iq1_m", 31, "iq1_m", "q2_k", "iq2_xxs"),
    _tiny("iq2_xxs", 19, "iq2_xxs", "q2_k", "iq2_xxs"),
    _tiny("iq2_xs", 20, "iq2_xs", "q2_k", "iq2_xs"),
    _tiny("iq2_s", 28, "iq2_xs", "iq3_s", "iq3_s"),
    _tiny("iq2_m", 29, "iq2_s", "iq3_s", "iq3_s"),
    Recipe(
        "iq3_xxs",
        23,
        "iq3_xxs",
        "q5_k",
        (
            *_EIGHT_OUT,
            Rule(EMBEDDING, "iq3_s"),
            Rule(ATTN_V, "q4_k", shared_values),
            Rule(ATTN_V, "iq3_s", uncalibrated),
            Rule(ATTN_K, "iq2_s"),
            Rule(ATTN_Q, "iq2_s"),
            Rule(FFN_DOWN, "q4_k", both(uncalibrated, early_8th)),
            Rule(FFN_DOWN, "q3_k", uncalibrated),
            Rule(ATTN_OUTPUT, "iq3_xxs", falcon),
            Rule(ATTN_OUTPUT, "iq3_s"),
        ),
    ),
    Recipe(
        "iq3_xs",
        22,
        "iq3_s",
        "q6_k",
        (
            *_EIGHT_OUT,
            Rule(ATTN_V, "q4_k", shared_values),
            Rule(ATTN_K, "iq3_xxs"),
            Rule(ATTN_Q, "iq3_xxs"),
            Rule(FFN_GATE, "iq3_xxs", middle),
            Rule(FFN_UP, "iq3_xxs", middle),
        ),
    ),
    Recipe("iq3_s", 26, "iq3_s", "q6_k", (*_EIGHT_OUT, Rule(ATTN_V, "q4_k", shared_values))),
    Recipe(
        "iq3_m",
        27,
        "iq3_s",
        "q6_k",
        (
            *_EIGHT_OUT,
            Rule(ATTN_V, "q4_k"),
            Rule(FFN_DOWN, "q4_k", early_8th),
            Rule(FFN_DOWN, "q4_k", both(eight_experts, spread)),
            Rule(ATTN_OUTPUT, "iq3_s", falcon),
            Rule(ATTN_OUTPUT, "q4_k"),
        ),
    ),
    *(
        Recipe(
            name,
            file_type,
            name,
            "q6_k",
            (
                *_EIGHT_OUT,
                Rule(ATTN_V, "q5_k", shared_values),
                Rule(FFN_DOWN, "q5_k", both(early_8th, uncalibrated)),
            ),
        )
        for name, file_type in (("iq4_nl", 25), ("iq4_xs", 30))
    ),
    Recipe("tq1_0", 36, "tq1_0", "q6_k", _TERNARY),
    Recipe("tq2_0", 37, "tq2_0", "q6_k", _TERNARY),
    Recipe("mxfp4", 38, "mxfp4", "q6_k", _EIGHT),
    Recipe("mxfp4_moe", 38, "mxfp4", "q8_0", (Rule("", "mxfp4", stacked), Rule("", "q8_0")), precious=False),
    Recipe("nvfp4", 39, "nvfp4", "q6_k", _EIGHT),
    Recipe("q1_0", 40, "q1_0", "q6_k", _EIGHT),
)

RECIPES = MappingProxyType({recipe.name: recipe for recipe in _ALL})
ALIASES = MappingProxyType({"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"})
"""What GGUF users call the middle one of three."""


def recipe_named(name: str) -> Recipe:
    """The recipe of a name in either case; raises `UnsupportedError` with the nearest and all known ones."""
    plain = name.lower()
    found = RECIPES.get(ALIASES.get(plain, plain))
    if found is None:
        raise UnsupportedError(f"unknown recipe {name!r}{nearest(plain, RECIPES)}", known=RECIPES)
    return found
