"""`measure`: a model on a text, alone or beside a base model."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...model.backend import Progress
from ...runtime.bare import BareModel
from ...runtime.purpose import check_writes
from .figures import Figures
from .pieces import Pieces
from .softmax import Softmax
from .tally import Tally
from .vocabulary import check_alike
from .windows import Windows


def measure(
    model: BareModel,
    text: str,
    *,
    base: BareModel | None = None,
    most_windows: int | None = None,
    progress: Progress | None = None,
) -> Figures:
    """Perplexity of `model` on `text` in windows of `model.window`, and its divergence from `base`.

    `progress("score", done, windows)` is told of every window. Raises `ConfigError` for a text shorter than a window
    and a base with another vocabulary, `FormatError` where a model's logits are no numbers, `UnsupportedError` for an
    encoder.
    """
    for each in (model, *([] if base is None else [base])):
        check_writes(each.program, each.path)
    tokenizer = model.tokenizer
    ids = np.array(tokenizer.encode(text, eos=False), np.int32)
    if base is not None:
        check_alike(model, base, ids, text)
    bos_id = tokenizer.bos_id if tokenizer.add_bos else None
    return score(model, Windows(ids, model.window, bos_id, most_windows), base, progress)


def score(
    model: BareModel, windows: Windows, base: BareModel | None = None, progress: Progress | None = None
) -> Figures:
    """The figures of text that is cut already; memory is four bytes for each of its tokens and some 100 MB."""
    models = (model,) if base is None else (model, base)
    pieces = [Pieces(each, windows.first, windows.length - 1) for each in models]
    tally = Tally(len(windows) * windows.scored, base is not None)
    for number, ids in enumerate(windows):
        if progress is not None:
            progress("score", number, len(windows))
        for place, (own, *other) in enumerate(_rows(pieces, ids), windows.first):
            _check(model, own, number, place)
            if base is not None:
                _check(base, other[0], number, place)
            tally.add(int(ids[place + 1]), own, other[0] if other else None)
    if progress is not None:
        progress("score", len(windows), len(windows))
    return tally.figures(len(windows))


def _rows(pieces: list[Pieces], ids: NDArray[np.int32]) -> Iterator[list[Softmax]]:
    """For each scored token of a window the probabilities that each model gives."""
    for logits in zip(*(piece.of(ids) for piece in pieces), strict=True):
        for rows in zip(*logits, strict=True):
            yield [Softmax.of(row) for row in rows]


def _check(model: BareModel, row: Softmax, window: int, place: int) -> None:
    if not math.isfinite(row.total):
        raise FormatError(
            f"gives logits that are no numbers behind token {place} of window {window}: its weights are damaged, or "
            "hold NaN or infinity",
            path=model.path,
        )
