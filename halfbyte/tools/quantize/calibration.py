"""`open_tapped`: a model that keeps what its matrices multiply, of every token it reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError
from ...model.backend import Progress
from ...model.program import Program
from ...model.taps import all_rows, head_of, linear_inputs, routes_of, with_taps
from ...runtime.bare import BareModel

_NO_ROWS = np.empty(0, np.int32)


def open_tapped(
    path: str | PathLike[str],
    *,
    window: int = 512,
    threads: int | None = None,
    backend: str = "cpu",
    isa: str | None = None,
    progress: Progress | None = None,
    with_head: bool = False,
    weights: Collection[str] | None = None,
) -> BareModel:
    """A `BareModel` that taps the inputs of `weights`, None for every matrix, but of the head only `with_head`.

    The values take `4 * window * width` bytes each. Raises what `BareModel` raises, and `ConfigError` for a weight that
    is no matrix.
    """
    rewrite = partial(_tap, with_head=with_head, weights=weights)
    return BareModel(path, window=window, threads=threads, backend=backend, isa=isa, progress=progress, rewrite=rewrite)


def _tap(program: Program, with_head: bool, weights: Collection[str] | None) -> Program:
    whole = all_rows(program)
    inputs = linear_inputs(whole)
    if weights is None:
        weights = [name for name in inputs if with_head or name != head_of(program)]
    unknown = [name for name in weights if name not in inputs]
    if unknown:
        raise ConfigError(f"{unknown[0]!r} is no matrix of the model", key=unknown[0])
    values, routes = [inputs[name] for name in weights], routes_of(whole)
    return with_taps(whole, [*values, *(routes[value][0] for value in values if value in routes)])


def readers_of(model: BareModel) -> dict[str, tuple[str, ...]]:
    """Each tapped value to the weights that multiply it, such as queries, keys and values of a layer."""
    inputs = linear_inputs(model.program)
    found = {value: tuple(name for name, read in inputs.items() if read == value) for value in model.program.taps()}
    return {value: names for value, names in found.items() if names}  # routes are kept for whoever sorts by expert


def read_window(model: BareModel, ids: NDArray[np.int32]) -> None:
    """Let the model read a window, for what it taps alone: no logit is computed."""
    model.logits(ids, _NO_ROWS)


def count_tokens(windows: Sequence[NDArray[np.int32]]) -> int:
    """Tokens of all windows."""
    return sum(map(len, windows))
