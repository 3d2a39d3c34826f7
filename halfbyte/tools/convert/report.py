"""`ConversionReport`: what was lost on the way from the checkpoint to the file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .values import Floats


@dataclass(frozen=True)
class Loss:
    """The largest error, the sums of the squares of weights and of errors, and how many weights became zero."""

    largest: float = 0.0
    squares: float = 0.0
    wrong: float = 0.0
    vanished: int = 0

    @property
    def relative(self) -> float:
        """Root of the mean square error, over that of the weights."""
        return math.sqrt(self.wrong / self.squares) if self.squares else 0.0

    def plus(self, other: Loss) -> Loss:
        """Of two pieces."""
        return Loss(
            max(self.largest, other.largest),
            self.squares + other.squares,
            self.wrong + other.wrong,
            self.vanished + other.vanished,
        )


def loss_of(before: Floats, after: Floats) -> Loss:
    """Compare weights with what their bytes stand for."""
    before, after = before.reshape(-1), after.reshape(-1)
    error = after - before
    vanished = 0
    if not after.all():
        vanished = int(np.count_nonzero(after == 0) - np.count_nonzero(before == 0))
    return Loss(
        largest=float(np.abs(error).max(initial=0.0)),
        squares=float(np.dot(before, before)),
        wrong=float(np.dot(error, error)),
        vanished=max(0, vanished),
    )


@dataclass
class TensorLoss:
    """Of one tensor. `widened`: kept in a wider format than was asked for, as it has weights that no half can hold."""

    name: str
    format: str
    loss: Loss = Loss()
    widened: bool = False


@dataclass
class ConversionReport:
    """Losses by tensor, in the order of the file; those without any are left out of `lossy`."""

    losses: dict[str, TensorLoss] = field(default_factory=dict)

    def add(self, name: str, format: str, loss: Loss) -> None:
        """A piece of a tensor, or all of it."""
        tensor = self.losses.setdefault(name, TensorLoss(name, format))
        tensor.loss = tensor.loss.plus(loss)

    @property
    def lossy(self) -> list[TensorLoss]:
        """Tensors that are not what they were, the worst first."""
        lossy = (tensor for tensor in self.losses.values() if tensor.loss.wrong)
        return sorted(lossy, key=lambda tensor: -tensor.loss.relative)

    @property
    def vanished(self) -> int:
        """Weights that became zero."""
        return sum(tensor.loss.vanished for tensor in self.losses.values())

    @property
    def widened(self) -> list[TensorLoss]:
        """Tensors that are kept in a wider format than was asked for."""
        return [tensor for tensor in self.losses.values() if tensor.widened]

    def lines(self, most: int = 5) -> Iterator[str]:
        """For people."""
        lossy = self.lossy
        yield f"{len(self.losses)} tensors, {len(self.losses) - len(lossy)} of them without any loss"
        for tensor in lossy[:most]:
            loss = tensor.loss
            yield f"{tensor.name} ({tensor.format}): relative error {loss.relative:.2e}, largest {loss.largest:.2e}"
        if self.vanished:
            yield f"{self.vanished} weights were so small that they became zero"
        for tensor in self.widened:
            yield f"{tensor.name} has weights beyond 65504, which no half can hold, and is kept as {tensor.format}"
