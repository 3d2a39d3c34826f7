"""Runs of calls that one launch does: see `kernels/chain.cuh`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from .calls import Call, Multiply, Shared, Sizes

BODIES = {"linear": "Linear", "norm": "Normal", "elementwise": "Elementwise"}
"""Kernels that have a body there."""
MOST_CALLS = 16
MOST_TOKENS = 0
"""With more, a product's registers are too many to share a kernel with others, and it is long enough to stand alone."""
_INSTRUCTION = np.dtype(
    [("kind", np.int32), ("pieces", np.int32), ("next", np.int32), ("product", np.int32), ("words", np.uint64, 20)]
)
_STATIC_BYTES = 4096
"""Shared memory that a chain has besides."""
Arguments = tuple[int | float, ...]


@dataclass(frozen=True)
class Chain:
    """Calls that follow each other, of which at least one is a product."""

    calls: tuple[Call, ...]

    def kernel(self, sizes: Sizes) -> str:
        """The instance with the bodies of all calls."""
        return f"chain<{', '.join(self._bodies(sizes))}>"

    def shared(self, sizes: Sizes) -> int:
        """Dynamic shared memory of a block."""
        return self.ring(sizes) + max(_of(call.shared, sizes) - _of(call.ring, sizes) for call in self.calls)

    def ring(self, sizes: Sizes) -> int:
        """Of it the rings, which all products use in turn."""
        return max(_of(call.ring, sizes) for call in self.calls)

    def fits(self, sizes: Sizes, shared_bytes: int) -> bool:
        """Whether it pays, and a block has room for it."""
        return sizes.tokens <= MOST_TOKENS and self.shared(sizes) + _STATIC_BYTES <= shared_bytes

    def program(self, sizes: Sizes, arguments: Sequence[Arguments]) -> NDArray[np.uint8]:
        """The instructions; `arguments` are those of each call."""
        bodies = self._bodies(sizes)
        products = [index for index, call in enumerate(self.calls) if _of(call.ring, sizes)]
        program = np.zeros(len(self.calls), _INSTRUCTION)
        for index, (call, words) in enumerate(zip(self.calls, arguments, strict=True)):
            row = program[index]
            row["kind"], row["pieces"] = bodies.index(_body(call, sizes)), call.grid(sizes)[1]
            row["next"] = next((other for other in products if other > index), 0)
            row["product"] = index in products
            row["words"][: len(words)] = list(map(_word, words))
        return program.view(np.uint8)

    def _bodies(self, sizes: Sizes) -> list[str]:
        return sorted({_body(call, sizes) for call in self.calls})


def chained(calls: Sequence[Call | Multiply]) -> Iterator[Call | Multiply | Chain]:
    """The same calls in order, those that one launch can do together."""
    for can, run in groupby(calls, _has_body):
        if not can:
            yield from run
            continue
        members = [call for call in run if isinstance(call, Call)]
        for start in range(0, len(members), MOST_CALLS):
            part = members[start : start + MOST_CALLS]
            if len(part) > 1 and any(call.ring for call in part):
                yield Chain(tuple(part))
            else:
                yield from part


def _has_body(call: Call | Multiply) -> bool:
    if not isinstance(call, Call):
        return False
    if isinstance(call.kernel, str):
        return _stem(call.kernel) in BODIES
    return bool(call.ring)


def _stem(kernel: str) -> str:
    return kernel.partition("<")[0]


def _body(call: Call, sizes: Sizes) -> str:
    kernel = call.kernel if isinstance(call.kernel, str) else call.kernel(sizes)
    stem = _stem(kernel)
    return BODIES[stem] + kernel.removeprefix(stem)


def _of(shared: Shared, sizes: Sizes) -> int:
    return shared if isinstance(shared, int) else shared(sizes)


def _word(argument: int | float) -> int:
    if isinstance(argument, float):
        return int(np.float32(argument).view(np.uint32))
    return int(argument) & 0xFFFF_FFFF_FFFF_FFFF
