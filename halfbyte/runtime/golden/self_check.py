"""`SelfCheck`: does this machine get out of a model what the reference does?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...errors import CheckError, FormatError
from ...formats import GGUFFile
from ...model import bind
from ...model.backend import Progress
from .asking import ask, reference_rows, tokenizer_of, width
from .finding import Finding, Part
from .replay import compare_ids, compare_round_trips, compare_rows, compare_tensors
from .rows import Floats, Ints
from .sums import layout
from .tolerance import tolerance_of
from .vectors import PREFIX, read

Answer = Callable[[Ints], Floats]
"""Kernels: ids i32[T] to logits f32[T, V], of an encoder states [T, D]."""


class SelfCheck:
    """Compares with the golden vectors in the file, or where it has none with what the reference answers now."""

    def __init__(self, file: GGUFFile, progress: Progress | None = None) -> None:
        """Raises what `bind` does. Without golden vectors it takes some seconds for a thousand million weights."""
        self._file, self._progress = file, progress
        self._bound = bind(file)
        self._tokenizer = tokenizer_of(file)
        found = read(file)
        self.stale = found is not None and found.layout != layout(file)
        """Whether the file has golden vectors of other tensors: a program that rewrote it has copied them."""
        self.recorded = found is not None and not self.stale
        self._golden = found if found is not None and self.recorded else ask(file, progress)
        self._refuse_what_does_not_fit()

    def _refuse_what_does_not_fit(self) -> None:
        golden, program = self._golden, self._bound.program
        fits = golden.prompt.max() < program.vocab_size and len(golden.prompt) <= self._bound.context
        fits &= golden.rows.columns.min() >= 0 and golden.rows.columns.max() < width(self._bound)
        if not fits or (self.recorded and len(golden.tensors) != len(self._file.tensors)):
            raise FormatError(f"{PREFIX}* are not of this model: the file is damaged", path=self._file.path)

    @property
    def encoder(self) -> bool:
        """Whether the model makes states of whole texts instead of logits."""
        return self._bound.program.encoder

    def before_loading(self) -> Iterator[Finding]:
        """What needs no kernels: tensors and token ids."""
        if self.recorded:
            yield compare_tensors(self._file, self._golden, self._progress)
            yield from compare_ids(self._tokenizer, self._golden)
        else:
            yield from compare_round_trips(self._tokenizer, self._golden.texts)

    def of_kernels(self, answer: Answer) -> Iterator[Finding]:
        """Logits; keys and values must be kept as halves."""
        logits = answer(self._golden.prompt)
        yield from compare_rows(self._golden, logits, tolerance_of(self._bound.program))

    def causes(self, parts: set[Part]) -> Iterator[str]:
        """What it may mean that something of these parts failed; for logits the reference is asked again."""
        if "tensors" in parts:
            yield "the file is damaged, or another program changed weights in it: fetch or convert it again"
        if "token ids" in parts:
            yield (
                "the vocabulary, merges or pre-tokenizer in the file were changed, or this version reads them "
                "differently: fetch or convert the file again, or run the version that wrote it"
            )
        if "logits" in parts and "tensors" not in parts:
            yield self._cause_of_logits()

    def _cause_of_logits(self) -> str:
        if self.recorded:
            rows = self._golden.rows
            now = reference_rows(self._file, self._bound, self._golden.prompt, rows.columns, self._progress)
            if not (rows.distances(now) <= tolerance_of(self._bound.program).distance).all():
                return (
                    "metadata that the answers depend on were changed, or this version reads them differently: fetch "
                    "or convert the file again, or run the version that wrote it"
                )
        return (
            "the reference answers as it should, so it is the kernels of this machine: empty their cache "
            "($HALFBYTE_CACHE) and try again; if that does not help, report it with the output of `halfbyte bench`"
        )


def verify(check: SelfCheck, findings: Iterator[Finding]) -> None:
    """Raise `CheckError` for the first of `findings` that failed."""
    wrong = next((finding for finding in findings if not finding.ok), None)
    if wrong is not None:
        cause = " ".join(check.causes({wrong.part}))
        raise CheckError(f"the check failed at {wrong.item}: {wrong.note}; {cause}", item=wrong.item)
