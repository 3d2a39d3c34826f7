"""`with_feedback`: the tensors of a plan in the order in which a calibration learns about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...model.backend import Progress
from ...runtime.bare import BareModel
from ...runtime.memory import free_memory
from .calibration import readers_of
from .encoding import FeedbackCodes, RowEncoder
from .feedback import Feedback
from .hessian import Hessian
from .moments import moments
from .one_blas_thread import one_blas_thread
from .plan import Plan, PlannedTensor

LEAST_BUDGET = 1 << 30


def with_feedback(
    plan: Plan,
    model: BareModel,
    windows: Sequence[NDArray[np.int32]],
    feedback: Feedback,
    others: RowEncoder,
    progress: Progress | None = None,
) -> Iterator[tuple[PlannedTensor, RowEncoder]]:
    """Each tensor with its encoder; those that the model (of `open_tapped`) does not tap go to `others`."""
    left = {tensor.name: tensor for tensor in plan.tensors}
    changing = {
        value: names
        for value, names in readers_of(model).items()
        if any(name in left and left[name].changes for name in names)
    }
    for moment in moments(model, windows, budget_bytes=_budget(), values=list(changing), progress=progress):
        codes = FeedbackCodes(feedback, Hessian.of(moment.total))
        # While tensors are encoded, but not while the text is read.
        with one_blas_thread():
            for name in moment.weights:
                if name in left:
                    yield left.pop(name), codes
    for tensor in left.values():
        yield tensor, others


def _budget() -> int:
    """Bytes of moments at a time; the text is read once for each such part of the model, so half of what is free."""
    return max(LEAST_BUDGET, (free_memory() or 0) // 2)
