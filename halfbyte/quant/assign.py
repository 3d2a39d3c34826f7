"""`formats_for`: a recipe applied to the tensors of one model, and what stands in where rows do not divide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .block import BlockFormat
from .formats import FORMATS
from .recipe import ModelFacts, Place, Recipe
from .roles import ATTN_V, EMBEDDING, OUTPUT, OUTPUT_NAME, is_quantizable, layer_of, role_of

FALLBACKS: dict[str, str] = {
    "q2_k": "q4_0",
    "q3_k": "q4_0",
    "tq1_0": "q4_0",
    "tq2_0": "q4_0",
    "q1_0": "q4_0",
    "q4_k": "q5_0",
    "q5_k": "q5_1",
    "q6_k": "q8_0",
    "iq1_s": "iq4_nl",
    "iq1_m": "iq4_nl",
    "iq2_xxs": "iq4_nl",
    "iq2_xs": "iq4_nl",
    "iq2_s": "iq4_nl",
    "iq3_xxs": "iq4_nl",
    "iq3_s": "iq4_nl",
    "iq4_xs": "iq4_nl",
    "nvfp4": "iq4_nl",
}
"""Where a row does not divide into blocks: the nearest format of shorter blocks that loses nothing."""

LAST_RESORT = "f16"

Shapes = Mapping[str, Sequence[int]]
"""Tensor names to shapes in GGUF order: the length of a row first."""


def fitting(name: str, columns: int) -> BlockFormat:
    """The format of that name, or what stands in for it where rows of `columns` do not divide into its blocks."""
    format = FORMATS[name]
    if columns % format.block_len:
        format = FORMATS[FALLBACKS.get(name, LAST_RESORT)]
    return format if columns % format.block_len == 0 else FORMATS[LAST_RESORT]


def wishes_for(recipe: Recipe, shapes: Shapes, facts: ModelFacts, *, pure: bool = False) -> dict[str, str]:
    """The format a recipe wants for every tensor it touches, whether or not rows divide; all others stay as they are.

    `pure` wants the recipe's base format for all of them.
    """
    names = [name for name, shape in shapes.items() if is_quantizable(name, shape)]
    n_values = sum(role_of(name) == ATTN_V for name in shapes)
    seen: Counter[str] = Counter()
    wishes = dict.fromkeys(names, recipe.base)
    for name in () if pure else sorted(names, key=lambda name: (layer_of(name), name)):
        role, shape = role_of(name), shapes[name]
        place = Place(role, seen[role], layer_of(name), n_values, len(shape) > 2 and shape[2] > 1, facts)
        seen[role] += 1
        wishes[name] = _for_output(recipe, shape[0], facts) if is_output(name, shapes) else _for_layer(recipe, place)
    return wishes


def formats_for(recipe: Recipe, shapes: Shapes, facts: ModelFacts, *, pure: bool = False) -> dict[str, BlockFormat]:
    """The format of every tensor the recipe touches, as its shape allows."""
    wishes = wishes_for(recipe, shapes, facts, pure=pure)
    return {name: fitting(wish, shapes[name][0]) for name, wish in wishes.items()}


def is_output(name: str, shapes: Shapes) -> bool:
    """Whether a tensor makes the logits: the output matrix, or the embedding of a model that has none."""
    return role_of(name) == OUTPUT or (role_of(name) == EMBEDDING and OUTPUT_NAME not in shapes)


def _for_output(recipe: Recipe, columns: int, facts: ModelFacts) -> str:
    """Rows that do not divide get eight bits even where a fallback of the recipe's own would do."""
    base = FORMATS[recipe.base]
    if base.block_len > 1 and (columns % base.block_len or facts.arch == "falcon"):
        return "q8_0"
    return recipe.output


def _for_layer(recipe: Recipe, place: Place) -> str:
    chosen = recipe.choose(place)
    if recipe.precious and place.role == ATTN_V and place.facts.eighty_layers and chosen in ("q3_k", "q4_k"):
        return "q5_k"
    return chosen
