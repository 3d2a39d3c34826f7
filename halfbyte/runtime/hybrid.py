"""`HybridExecutable`: a program of which two backends compute a share each, in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..model.backend import OwnsLogits, Place, Span, StagedExecutable
from ..model.pieces import Pieces
from ..model.program import AddScaled, Program, StepBatch
from .sampling.candidates import Best

OF_ALL = ("backend", "gpu", "isa", "threads")
"""Facts that are not of one side."""


class Choosing(Protocol):
    """Who finds the best of logits: the host's share, or where it has none what is there for it alone."""

    def top_k_rows(
        self, logits: NDArray[np.float32], ks: Sequence[int], peaks: NDArray[np.float32] | None = None
    ) -> list[Best | None]:
        """See `Executable`; `peaks` f32[R, ..] are the largest of every 16 logits of a row, where known."""

    def info(self) -> dict[str, str | int]:
        """Facts for people: isa, threads."""

    def close(self) -> None:
        """Let go of the threads; may be called twice."""


class Closing(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Let go of everything; may be called twice."""


class HybridExecutable:
    """See `model.backend.Executable`. Owns its sides; a page is that of the CPU and behind it that of the GPU.

    Where the GPU is lost, its side raises `ResourceError` in this step and at the beginning of every later one.
    """

    def __init__(
        self,
        pieces: Pieces,
        sides: Mapping[Place, StagedExecutable],
        chooser: Choosing,
        *,
        about: Mapping[str, str | int] | None = None,
        device: Closing | None = None,
    ) -> None:
        """`chooser` may be the CPU's side itself; `about` are facts for `info`; `device` is closed in the end."""
        self._pieces, self._chooser = pieces, chooser
        self._sides = dict(sorted(sides.items()))
        self._about, self._device = dict(about or {}), device
        first, *others = self._sides.values()
        assert all((side.n_pages, side.page_len) == (first.n_pages, first.page_len) for side in others)
        self.n_pages, self.page_len = first.n_pages, first.page_len
        self.page_bytes = sum(side.page_bytes for side in self._sides.values())
        self._owner = next(place for place, share in pieces.shares.items() if share.program.logits)
        self._home = {name: place for place, share in pieces.shares.items() for name in share.program.taps()}
        self._adapters = {place: _adapters(share.program) for place, share in pieces.shares.items()}
        self._turns = [self._turn(index) for index in range(len(pieces.order))]
        self._logits: NDArray[np.float32] | None = None

    def run(self, batch: StepBatch, logits: NDArray[np.float32]) -> None:
        """Run one step; writes `logits` f32[R, V], row r for token `batch.logit_rows[r]`."""
        for place, side in self._sides.items():
            side.begin(self._known(batch, place), logits if place == self._owner else None)
        for place, number, arriving in self._turns:
            for name in arriving:
                np.copyto(self._sides[place].receive(name), self._sides[self._home[name]].sent(name))
            self._sides[place].run_stage(number)
        for side in self._sides.values():
            side.finish()
        self._logits = logits

    def _known(self, batch: StepBatch, place: Place) -> StepBatch:
        """Without the last adapters, if a side has nothing of them."""
        if batch.adapter_scales is None:
            return batch
        return replace(batch, adapter_scales=batch.adapter_scales[:, : self._adapters[place]])

    def logits_memory(self, rows: int, vocab_size: int) -> NDArray[np.float32]:
        """Of the side that makes them."""
        owner = self._sides[self._owner]
        if isinstance(owner, OwnsLogits):
            return owner.logits_memory(rows, vocab_size)
        return np.empty((rows, vocab_size), np.float32)

    def _turn(self, index: int) -> tuple[Place, int, tuple[str, ...]]:
        """A stage, and what is brought before it runs.

        That is what the stage before sent, whenever it is read: a GPU has the room for it once. From a CPU, which keeps
        all it sends until the step ends, it is what the stage receives.
        """
        place, number = self._pieces.order[index]
        if place == "gpu" or index == 0:
            return place, number, self._pieces.shares[place].stages[number].receives
        before, last = self._pieces.order[index - 1]
        return place, number, self._pieces.shares[before].stages[last].sends

    def tapped(self, name: str) -> NDArray[np.float32]:
        """What a tapped value was in the last step."""
        return self._sides[self._home[name]].tapped(name)

    def expect(self, ks: Sequence[int]) -> None:
        """Passed on to the CPU where it makes the logits."""
        expect = getattr(self._sides[self._owner], "expect", None)
        if expect is not None:
            expect(ks)

    def top_k(self, logits: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best of f32[V], best first."""
        best = self.top_k_rows(np.ascontiguousarray(logits)[None], [k])[0]
        assert best is not None, "k is at least 1"
        return best

    def top_k_rows(self, logits: NDArray[np.float32], ks: Sequence[int]) -> list[Best | None]:
        """`top_k` of each row with its own k, None for 0; by the CPU, with the peaks that the GPU may have noted."""
        peaks: NDArray[np.float32] | None = None
        if logits is self._logits:
            peaks = getattr(self._sides[self._owner], "peaks", None)
        if peaks is None or len(peaks) < len(logits):
            return self._chooser.top_k_rows(logits, ks)
        return self._chooser.top_k_rows(logits, ks, peaks)

    def copy_page(self, source: int, target: int) -> None:
        """Copy all KV layers of one page."""
        for side in self._sides.values():
            if side.page_bytes:
                side.copy_page(source, target)

    def read_page(self, page: int, out: NDArray[np.uint8]) -> None:
        """Copy all KV layers of a page into `out` u8[page_bytes]."""
        for side, part in self._parts(out):
            side.read_page(page, part)

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Make a page what `read_page` gave, of an executable cut in the same place."""
        for side, part in self._parts(data):
            side.write_page(page, part)

    def _parts(self, page: NDArray[np.uint8]) -> list[tuple[StagedExecutable, NDArray[np.uint8]]]:
        """What each side has of a page."""
        assert page.shape == (self.page_bytes,), page.shape
        parts, start = [], 0
        for side in self._sides.values():
            if side.page_bytes:
                parts.append((side, page[start : start + side.page_bytes]))
            start += side.page_bytes
        return parts

    def trace(self, on: bool) -> None:
        """Record from the next step on, or stop."""
        for side in self._sides.values():
            side.trace(on)

    def spans(self) -> list[Span]:
        """What both recorded since the last call, step by step; the GPU counts as one more thread."""
        first = {"cpu": 0, "gpu": int(self._chooser.info()["threads"])}
        spans = [
            span._replace(thread=first[place] + span.thread)
            for place, side in self._sides.items()
            for span in side.spans()
        ]
        return sorted(spans, key=lambda span: span.step)

    def info(self) -> dict[str, str | int]:
        """Facts of the CPU, sums of both, and those of the GPU with `gpu_` before their names.

        `isa` names both sides and where the program is cut: what one cut computed is of no use to another.
        """
        host, sides = self._chooser.info(), {place: side.info() for place, side in self._sides.items()}
        gpu = sides.get("gpu", {})
        sums = {key: sum(int(own.get(key, 0)) for own in sides.values()) for key in ("packed_bytes", "kv_bytes")}
        own = {f"gpu_{key}": value for key, value in gpu.items() if key not in OF_ALL}
        isas = " + ".join(str(own["isa"]) for own in sides.values())
        kernels = " ".join(dict.fromkeys(word for own in sides.values() for word in str(own["kernels"]).split()))
        backend = "cuda+cpu" if "cpu" in sides else "cuda"
        named = {"backend": backend, "isa": f"{isas} ({self._mark()})", "kernels": kernels}
        return {**host, **named, **sums, **own, **self._about}

    def _mark(self) -> str:
        """The same for the same cut of the same program; people see how many layers it leaves to the GPU."""
        cut = [(place, self._pieces.shares[place].stages[number]) for place, number in self._pieces.order]
        mark = blake2b(repr(cut).encode(), digest_size=4).hexdigest()
        return f"{self._about['gpu_layers']} layers, {mark}" if "gpu_layers" in self._about else mark

    def close(self) -> None:
        """Let go of both sides; may be called twice."""
        for side in self._sides.values():
            side.close()
        self._chooser.close()
        if self._device is not None:
            self._device.close()


def _adapters(program: Program) -> int:
    """One more than the largest number of an adapter."""
    return 1 + max((op.adapter for op in program.ops if isinstance(op, AddScaled)), default=-1)
