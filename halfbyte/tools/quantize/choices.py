"""`Choices`: what a user decides about quantizing a model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ...quant.recipe import Recipe
from .override import Override


@dataclass(frozen=True)
class Choices:
    """A recipe and what departs from it; the first override that fits a name wins over the recipe."""

    recipe: Recipe
    overrides: tuple[Override, ...] = ()
    pure: bool = False
    keep_output: bool = False
    allow_requantize: bool = False

    def spelt(self, overrides: Sequence[Override] | None = None) -> str:
        """As one would type it."""
        words = [self.recipe.name]
        words += ["--pure"] * self.pure + ["--keep-output"] * self.keep_output
        for override in self.overrides if overrides is None else overrides:
            words += ["--type", str(override)]
        return shlex.join(words)
