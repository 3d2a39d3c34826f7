"""`Curvature`: how much errors in a tensor's weights move the model's answers, for every tensor from one measurement.

For small errors d of the weights, the KL divergence between the answers before and after is `sum F_ij * d_ij^2 / 2`
where errors are independent, F the diagonal of the Fisher information: the mean square of the gradient of the log
probability of a token drawn from the model's own answer. One pass back through the model gives that of all tensors;
each is kept as the outer product of what its rows and its columns have of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.backend import Progress, Weight
from ...model.gradient import backward
from ...model.kv_types import KvTypes
from ...model.program import Program, StepBatch
from ...model.reference_kv import PagedKv
from ...model.reference_ops import OPS
from ...model.reference_state import Floats, State
from ...model.reverse import Reverse
from ...model.row_range import row_range

AT_ONCE = 2
_PAGE = 16


@dataclass(frozen=True)
class Curvature:
    """F ~ `rows[i] * columns[j]`, f64[N] and f64[M], per token; rows of a table that no text had are zero."""

    rows: NDArray[np.float64]
    columns: NDArray[np.float64]

    def divergence(self, rows: NDArray[np.intp], errors: Floats) -> float:
        """Nats a token, were all rows as wrong as the sample f32[n, M] of `rows`; `errors` are squared."""
        mean = self.rows[rows] @ (errors.astype(np.float64) @ self.columns) / self.rows[rows].sum()
        return float(self.rows.sum() * mean / 2)


Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
Curvatures = Mapping[str, tuple[Curvature, ...]]
"""Of every tensor the program uses: a table that is the output too has two."""


def measure_curvatures(
    program: Program,
    weights: Mapping[str, Weight],
    windows: Sequence[NDArray[np.int32]],
    progress: Progress | None = None,
) -> Curvatures:
    """From `windows` of text, i32[T] each and of any lengths; the second half of each answers.

    Memory is that of the values of two windows and one decoded weight. `progress("sensitivity", done, windows)`.
    """
    sums: dict[str, dict[str, Pair]] = defaultdict(dict)
    rng = np.random.default_rng(0)
    answers = 0
    for start in range(0, len(windows), AT_ONCE):
        if progress is not None:
            progress("sensitivity", start, len(windows))
        batch = _step(windows[start : start + AT_ONCE])
        _add(sums, program, weights, batch, rng)
        answers += len(batch.logit_rows)
    if progress is not None:
        progress("sensitivity", len(windows), len(windows))
    return {name: tuple(_normed(*pair, answers) for pair in kinds.values()) for name, kinds in sums.items()}


def _normed(rows: NDArray[np.float64], columns: NDArray[np.float64], answers: int) -> Curvature:
    total = max(columns.sum(), np.finfo(np.float64).tiny)
    return Curvature(rows / answers, columns / total)


def _add(
    sums: dict[str, dict[str, Pair]],
    program: Program,
    weights: Mapping[str, Weight],
    batch: StepBatch,
    rng: np.random.Generator,
) -> None:
    heights = _heights(weights)

    def put(name: str, kind: str, rows: NDArray[np.float64], columns: NDArray[np.float64]) -> None:
        before = sums[name].get(kind)
        sums[name][kind] = (rows, columns) if before is None else (before[0] + rows, before[1] + columns)

    def matrix(name: str, g: Floats, x: Floats, first: int) -> None:
        # The squares of `g.T @ x` summed over columns and over rows, without the matrix itself.
        part = row_range(name)
        rows = np.zeros(heights[part.tensor])
        rows[part.start + first :][: g.shape[1]] = _sums(g, x)
        put(part.tensor, "matrix", rows, _sums(x, g))

    def table(name: str, ids: NDArray[np.int32], g: Floats) -> None:
        seen, places = np.unique(ids, return_inverse=True)
        gradient = np.zeros((len(seen), g.shape[1]))
        np.add.at(gradient, places, g)
        rows = np.zeros(weights[name].shape[0])
        rows[seen] = (gradient**2).sum(axis=1)
        put(name, "table", rows, (gradient**2).sum(axis=0))

    kv = PagedKv(program.kv_layers, batch.page_table.size, _PAGE, KvTypes("f32", "f32"))
    state = State(batch, kv, weights, _OneDecoded())
    for op in program.ops:
        OPS[type(op)](op, state)
    logits = state.values.pop(program.logits)
    backward(program, Reverse(state, matrix, table), _drawn_less_expected(logits, rng))


def _heights(weights: Mapping[str, Weight]) -> dict[str, int]:
    """Rows of each tensor: of one that is used in parts, all of them together."""
    heights: dict[str, int] = defaultdict(int)
    for name, weight in weights.items():
        part = row_range(name)
        heights[part.tensor] = max(heights[part.tensor], part.start + weight.shape[0])
    return heights


def _sums(a: Floats, b: Floats) -> NDArray[np.float64]:
    """f64[N] for a [T, N]: what each column of `a` has of `sum (a.T @ b)^2`."""
    sums: NDArray[np.float64] = np.einsum("tn,tn->n", (b @ b.T) @ a, a, dtype=np.float64)
    return sums


def _drawn_less_expected(logits: Floats, rng: np.random.Generator) -> Floats:
    """Gradient of the log probability of a token drawn for each row, in place of the logits."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    for row in logits:
        row /= row.sum(dtype=np.float64)
        drawn = min(int(np.searchsorted(np.cumsum(row, dtype=np.float64), rng.random())), len(row) - 1)
        np.negative(row, out=row)
        row[drawn] += 1
    return logits


def _step(windows: Sequence[NDArray[np.int32]]) -> StepBatch:
    """All windows in one step, each a sequence."""
    lengths = np.array([len(ids) for ids in windows], np.int32)
    pages = -(-int(lengths.max()) // _PAGE)
    window = np.repeat(np.arange(len(windows), dtype=np.int32), lengths)
    places = np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])
    return StepBatch(
        ids=np.concatenate(list(windows)).astype(np.int32),
        positions=places,
        seq_of=window,
        slots=window * np.int32(pages * _PAGE) + places,
        page_table=np.arange(len(windows) * pages, dtype=np.int32).reshape(len(windows), pages),
        seq_len=lengths,
        logit_rows=np.flatnonzero(places >= lengths[window] // 2).astype(np.int32),
    )


class _OneDecoded(dict[str, Floats]):
    """Forgets the weight before: all of them decoded would take several times the file."""

    def __setitem__(self, name: str, weight: Floats) -> None:
        self.clear()
        super().__setitem__(name, weight)
