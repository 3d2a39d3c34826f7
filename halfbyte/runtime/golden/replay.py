"""Golden vectors compared with what file, tokenizer and kernels give now: one `Finding` an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...formats import GGUFFile
from ...model.backend import Progress
from ...text import Tokenizer
from ...text.vocabulary import TokenType
from .finding import Finding
from .rows import Floats, Rows, summarise
from .sums import tensor_sums
from .tolerance import Tolerance
from .vectors import GoldenVectors

_SHOWN = 5


def compare_tensors(file: GGUFFile, golden: GoldenVectors, progress: Progress | None = None) -> Finding:
    """Whether all tensors are as they were written."""
    now = tensor_sums(file, progress)
    changed = [name for name, same in zip(sorted(file.tensors), now == golden.tensors, strict=True) if not same]
    if not changed:
        return Finding("tensors", f"{len(now)} tensors", True, "as they were written")
    names = ", ".join(changed[:_SHOWN]) + (f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")
    return Finding("tensors", f"{len(now)} tensors", False, f"{len(changed)} are not as they were written: {names}")


def compare_ids(tokenizer: Tokenizer | None, golden: GoldenVectors) -> Iterator[Finding]:
    """Whether texts become the ids that were written down."""
    for text, wanted in zip(golden.texts, golden.ids, strict=True):
        if wanted is None:
            continue
        got = [] if tokenizer is None else tokenizer.encode(text)
        item = f"ids of {_short(text)}"
        if got == wanted.tolist():
            yield Finding("token ids", item, True, f"{len(got)} tokens")
        else:
            yield Finding("token ids", item, False, _first_difference(got, wanted.tolist()))


def compare_round_trips(tokenizer: Tokenizer | None, texts: Sequence[str]) -> Iterator[Finding]:
    """Whether ids become a text that becomes the same ids, for files in which nothing is written down."""
    if tokenizer is None:
        return
    for text in texts:
        ids = tokenizer.encode(text, bos=False, eos=False)
        tells = _tells_its_text(tokenizer, ids)
        again = tokenizer.encode(tokenizer.decode(ids), bos=False, eos=False) if tells else ids
        note = f"{len(ids)} tokens and back" if tells else f"{len(ids)} tokens, which need not lead back"
        same = again == ids
        yield Finding("token ids", f"ids of {_short(text)}", same, note if same else _first_difference(again, ids))


def _tells_its_text(tokenizer: Tokenizer, ids: list[int]) -> bool:
    """Unknown tokens do not, and vocabularies that put a space before a text put one behind their own tokens too."""
    vocabulary = tokenizer.vocabulary
    own = vocabulary.ids_of(TokenType.USER_DEFINED) if vocabulary.add_space_prefix else ()
    return all(map(tokenizer.token_bytes, ids)) and set(ids).isdisjoint(own)


def compare_rows(golden: GoldenVectors, logits: Floats, tolerance: Tolerance) -> Iterator[Finding]:
    """Whether logits f32[T, V] behind the tokens of the prompt are those of the reference."""
    got = summarise(logits, golden.rows.columns)
    apart = golden.rows.distances(got)
    near = (apart <= tolerance.distance) & golden.rows.same_best(got, tolerance.distance)
    exempt = np.isfinite(apart) & (int(np.sum(~near)) <= tolerance.exempt * len(near))
    for index, distance in enumerate(apart):
        item = f"logits behind token {index + 1} of {len(apart)}"
        note = _describe(golden.rows, got, index, float(distance), tolerance)
        yield Finding("logits", item, bool(near[index] | exempt[index]), note)


def _describe(wanted: Rows, got: Rows, index: int, distance: float, tolerance: Tolerance) -> str:
    best, was = int(got.best[index]), int(wanted.best[index])
    likeliest = f"likeliest is {best}" if best == was else f"likeliest is {best} instead of {was}"
    if not np.isfinite(distance):
        return "not a number"
    return f"{likeliest}, {distance:.5f} from the reference, {tolerance.distance:g} allowed"


def _first_difference(got: list[int], wanted: list[int]) -> str:
    same = next((i for i, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(got), len(wanted)) if same is None else same
    return f"{_ids(got[at:])} instead of {_ids(wanted[at:])} from token {at + 1} on"


def _ids(ids: list[int]) -> str:
    return " ".join(map(str, ids[:_SHOWN])) + (" ..." if len(ids) > _SHOWN else "") if ids else "nothing"


def _short(text: str) -> str:
    return repr(text if len(text) <= 32 else f"{text[:31]}…")
