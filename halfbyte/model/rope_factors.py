"""The divisor of each pair's frequency, stored as a tensor because converters compute it."""

from __future__ import annotations

import numpy as np

from ..formats import GGUFFile
from .metadata import Metadata
from .rope import Factors

NAME = "rope_freqs.weight"
LONG, SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
FACTORS = (NAME, LONG, SHORT)
_MAX_PAIRS = 1 << 11


def read_rope_factors(gguf: GGUFFile, metadata: Metadata) -> Factors | None:
    """One positive factor a pair, None where the file has none; `metadata` gets the problems.

    Of models with long and short ones (LongRoPE, arXiv 2402.13753) those that the context asks for.
    """
    name = NAME
    if LONG in gguf.tensors or SHORT in gguf.tensors:
        trained = metadata.integer("context_length")
        original = metadata.integer("rope.scaling.original_context_length", trained)
        name = LONG if (metadata.context or trained) > original else SHORT
        if name not in gguf.tensors:
            metadata.problem(name, "is missing")
    return _read(gguf, metadata, name) if name in gguf.tensors else None


def _read(gguf: GGUFFile, metadata: Metadata, name: str) -> Factors | None:
    info = gguf.tensors[name]
    n_rot = metadata.values.get(f"{metadata.arch}.rope.dimension_count", 2 * info.n_elements)
    if info.n_elements > _MAX_PAIRS or n_rot != 2 * info.n_elements:
        metadata.problem(name, f"has {info.n_elements} factors for {n_rot} channels that turn")
        return None
    factors = info.format.decode(gguf.tensor_data(name)).reshape(-1)
    if not np.all(np.isfinite(factors)) or factors.min() <= 0:
        metadata.problem(name, "holds factors that are not positive numbers")
        return None
    return tuple(factors.tolist())
