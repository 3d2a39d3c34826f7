"""`SpanLog`: when each kernel of a traced step ran."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ..model.backend import Span
from .calls import Call, Packed, Ref
from .device import Device
from .mode import Prepared

KEPT_STEPS = 1000


class SpanLog:
    """Traced steps run kernel by kernel and wait for each, which takes longer than a step that is not traced."""

    def __init__(self, device: Device) -> None:
        self.on = False
        self._device = device
        self._steps = 0
        self._spans: deque[list[Span]] = deque(maxlen=KEPT_STEPS)
        self._current: list[Span] = []

    def begin(self) -> None:
        """A step begins."""
        self._current = []

    def around(self, prepared: Prepared, run: Callable[[], None]) -> None:
        """Run a call and note how long it took."""
        self._device.synchronize()
        start = time.perf_counter()
        run()
        self._device.synchronize()
        self._current.append(Span(_label(prepared), self._steps, 0, start, time.perf_counter()))

    def end(self) -> None:
        """The step is done."""
        if self._current:
            self._spans.append(self._current)
        self._steps += 1

    def take(self) -> list[Span]:
        """All that was noted since the last call."""
        spans = [span for step in self._spans for span in step]
        self._spans.clear()
        return spans


def _label(prepared: Prepared) -> str:
    call = prepared.call
    if not isinstance(call, Call):
        return f"multiply {call.writes[0] if call.writes else ''}"
    subjects = [operand.weight for operand in call.operands if isinstance(operand, Packed)]
    subjects += [operand.value for operand in call.operands if isinstance(operand, Ref)]
    kernel = call.kernel if isinstance(call.kernel, str) else "linear"
    return f"{kernel} {subjects[0].removesuffix('.weight') if subjects else ''}"
