"""`Figures`: what was measured of a model on a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Divergence:
    """How far a model is from its base on the same tokens.

    `mean_kld` to `max_kld` are of KL(base || model) over the whole vocabulary, in nats a token; `top1` is the share of
    tokens where both find the same one likeliest.
    """

    base_perplexity: float
    base_perplexity_se: float
    mean_kld: float
    mean_kld_se: float
    median_kld: float
    p99_kld: float
    max_kld: float
    top1: float


@dataclass(frozen=True)
class Figures:
    """`perplexity` over `tokens` scored tokens of `windows` windows, `perplexity_se` its standard error."""

    tokens: int
    windows: int
    perplexity: float
    perplexity_se: float
    divergence: Divergence | None = None
