"""`Quantizer`: from a file and what a user wants to a plan, and from the plan to the new file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike

from ...cpu_kernels.encoding import CompiledSearch
from ...cpu_kernels.walking import CompiledWalk
from ...formats import GGUFFile, Typed
from ...model import bind
from ...model.backend import Progress
from .calibration import open_tapped
from .candidates import measured_candidates
from .choices import Choices
from .encoding import NearestCodes, RowEncoder
from .feedback import Feedback
from .feedback_work import with_feedback
from .imatrix import ImportanceMatrix
from .imatrix_fit import check_fits
from .job import quantize
from .plan import Plan, PlannedTensor, make_plan
from .target import Target, fit_target
from .windows import cut_texts

WINDOW = 512


class Quantizer:
    """`matrix` says which columns count; `texts`, if there are any, are read to let errors make up for each other."""

    def __init__(
        self,
        file: GGUFFile,
        *,
        matrix: ImportanceMatrix | None = None,
        texts: Sequence[str] = (),
        most_windows: int | None = None,
        threads: int = 1,
        backend: str = "cpu",
        progress: Progress | None = None,
    ) -> None:
        """Of texts the first `most_windows` windows of 512 tokens are read, None for all, by `backend`."""
        self.file, self.matrix = file, matrix
        self.texts, self.most_windows = tuple(texts), most_windows
        self.threads, self.backend, self.progress = threads, backend, progress

    def plan(self, choices: Choices, target: Target | None = None) -> tuple[Plan, Choices]:
        """What the new file will be, and the choices that make it so: with a target they are found by measuring.

        Raises what `check_fits`, `make_plan`, `measured_candidates` and `fit_target` do.
        """
        if self.matrix is not None:
            check_fits(self.matrix, self.file)
        calibration = None if self.matrix is None else _facts(self.matrix)
        if target is None:
            return make_plan(self.file, choices, calibration), choices
        # A first look refuses what no measurement would change, before minutes are spent on it.
        make_plan(self.file, choices, calibration)
        candidates = measured_candidates(
            self.file, choices, self._nearest, self.texts, threads=self.threads, progress=self.progress
        )
        fitted = fit_target(self.file, choices, candidates, target, calibration)
        return fitted.plan, fitted.choices

    def write(self, plan: Plan, path: str | PathLike[str]) -> None:
        """Make the file; see `job.quantize`."""
        if not self.texts or not any(tensor.changes for tensor in plan.tensors):
            self._run(plan, path, ((tensor, self._nearest) for tensor in plan.tensors))
            return
        feedback = Feedback(self._nearest.search, CompiledWalk(progress=self.progress))
        window = min(WINDOW, bind(self.file).context)
        with open_tapped(
            self.file.path, window=window, threads=self.threads, backend=self.backend, progress=self.progress
        ) as model:
            windows = cut_texts(model.tokenizer, self.texts, window, self.most_windows)
            self._run(plan, path, with_feedback(plan, model, windows, feedback, self._nearest, self.progress))

    def _run(self, plan: Plan, path: str | PathLike[str], work: Iterable[tuple[PlannedTensor, RowEncoder]]) -> None:
        quantize(self.file, plan, path, work, threads=self.threads, progress=self.progress)

    @cached_property
    def _nearest(self) -> NearestCodes:
        return NearestCodes(self.matrix, CompiledSearch(progress=self.progress))


def _facts(matrix: ImportanceMatrix) -> dict[str, object]:
    """What GGUF files say about the importance matrix they were made with."""
    return {
        "quantize.imatrix.file": "" if matrix.path is None else matrix.path.name,
        "quantize.imatrix.dataset": ", ".join(matrix.datasets),
        "quantize.imatrix.entries_count": Typed(len(matrix.entries), "u32"),
        "quantize.imatrix.chunks_count": Typed(matrix.chunk_count, "u32"),
    }
