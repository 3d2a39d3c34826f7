"""`Mask`: which tokens may come next."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW = 2048
"""So many are looked at one by one; of more, the whole row is."""


class Mask:
    """`bits` u32[ceil(V / 32)], the lowest bit first; it is never written to again."""

    def __init__(self, bits: NDArray[np.uint32]) -> None:
        self._bits = bits
        self._octets = bits.view(np.uint8).data
        self.count = int(np.bitwise_count(bits).sum())

    @property
    def few(self) -> bool:
        """Whether to look at `ids`."""
        return self.count <= FEW

    @cached_property
    def ids(self) -> NDArray[np.int32]:
        """The tokens, ascending [n]."""
        return np.flatnonzero(self._open).astype(np.int32)

    def allowed(self, tokens: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Those of `tokens` that may come, in their order."""
        known: NDArray[np.int32] = tokens[tokens < 32 * len(self._bits)].astype(np.int32)
        bits: NDArray[np.uint32] = self._bits[known >> 5] >> (known & 31).astype(np.uint32)
        allowed: NDArray[np.int32] = known[(bits & 1) != 0]
        return allowed

    def first(self, best: tuple[NDArray[np.int32], NDArray[Any]], count: int) -> tuple[list[int], list[float]]:
        """Of tokens and their logits the first `count` that may come, or as many as there are."""
        # One by one: with caches that a model has just swept, a few calls of NumPy take 100 us, and this takes 15.
        octets = self._octets
        ids: list[int] = []
        logits: list[float] = []
        for token, logit in zip(best[0].tolist(), best[1].tolist(), strict=True):
            if token >> 3 < len(octets) and octets[token >> 3] >> (token & 7) & 1:
                ids.append(token)
                logits.append(logit)
                if len(ids) == count:
                    break
        return ids, logits

    def masked(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """A copy of the row f32[V] with -inf for all others; NaN, which is never chosen, stays."""
        caps = _caps(self)[: len(row)]
        closed = np.empty(len(row), np.float32)
        np.minimum(row[: len(caps)], caps, out=closed[: len(caps)])
        closed[len(caps) :] = -np.inf
        return closed

    @property
    def _open(self) -> NDArray[np.bool_]:
        return np.unpackbits(self._bits.view(np.uint8), bitorder="little").view(np.bool_)

    def caps(self) -> NDArray[np.float32]:
        """What each logit may be at most: anything or -inf [32 * len(bits)]."""
        # Copying where a mask allows would branch at every token: 1 ms of 150,000, and the least of two numbers 0.05.
        signs = (~self._open).astype(np.uint32) << np.uint32(31)
        caps: NDArray[np.float32] = (signs | np.uint32(0x7F800000)).view(np.float32)
        return caps


@lru_cache(maxsize=16)
def _caps(mask: Mask) -> NDArray[np.float32]:
    """Kept for a few masks alone: they take 32 times the memory of the bits."""
    return mask.caps()
