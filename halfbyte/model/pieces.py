"""`cut`: a program becomes shares for two backends, which take turns stage by stage.

A share is a program of its own with all ops of one place in order, so that a backend has one set of buffers and one
team of threads however often the other has its turn. What it reads of the other's comes in by `Receive`, what the other
reads of it is tapped; only rows of tokens ever cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from .backend import Place, Stage
from .check import check
from .program import (
    AddScaled,
    Attention,
    Combine,
    Dispatch,
    KvLayer,
    KvWrite,
    Linear,
    Op,
    Program,
    Receive,
    ShortConv,
    TakeRows,
    Tap,
)


@dataclass(frozen=True)
class Share:
    """What one backend computes of a program: `stages` are of its ops, in order, and leave none out."""

    program: Program
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Pieces:
    """The share of every place that has one, and in which order stages run: (place, number among its stages)."""

    shares: dict[Place, Share]
    order: tuple[tuple[Place, int], ...]


def cut(program: Program, places: Sequence[Place]) -> Pieces:
    """Shares of a sound program whose op i shall be at `places[i]`; see `settled` for those that cannot be."""
    work = _Cutting(program, settled(program, places))
    shares = {place: work.share(place) for place in work.ops}
    for share in shares.values():
        check(share.program)
    return Pieces(shares, tuple(work.order))


def settled(program: Program, places: Sequence[Place]) -> list[Place]:
    """The places with those changed that ops cannot have: where one must be with an op before it, that one decides.

    Together are what writes a KV layer and who looks at it, a route and all rows that it deals out, a value and what
    changes it in place (an adapter, or whatever the last op does to the logits), and a value with its tap.
    """
    leaders = _leaders(program)
    result: list[Place] = []
    for leader, place in zip(leaders, places, strict=True):
        result.append(place if leader is None else result[leader])
    return result


def _leaders(program: Program) -> Iterator[int | None]:
    """For each op the number of the op before it that it must be with."""
    writer: dict[str, int] = {}
    store: dict[int, int] = {}
    routed: set[str] = set()
    for index, op in enumerate(program.ops):
        dealt = [name for name in op.reads() if name in routed]
        if isinstance(op, Attention | ShortConv):
            yield store[op.layer]
        elif isinstance(op, Dispatch):
            yield writer[op.route]
        elif isinstance(op, AddScaled):
            yield writer[op.a]
        elif dealt or isinstance(op, Tap) or (program.logits in op.writes() and not isinstance(op, Linear)):
            yield writer[(dealt or op.reads())[0]]
        else:
            yield None
        if isinstance(op, KvWrite):
            store[op.layer] = index
        if (dealt or isinstance(op, Dispatch)) and not isinstance(op, Combine):
            routed.update(op.writes())
        writer.update(dict.fromkeys(op.writes(), index))


@dataclass
class _Cutting:
    """Shares in the making."""

    program: Program
    places: list[Place]
    ops: dict[Place, list[Op]] = field(default_factory=dict)
    order: list[tuple[Place, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        pairs = [(op, place) for op, place in zip(self.program.ops, self.places, strict=True)]
        self._home = {name: place for op, place in pairs for name in op.writes()}
        self._asked = _asked(self.program)
        self._abroad = {name for op, place in pairs for name in op.reads() if self._home[name] != place}
        assert self.program.logits not in self._abroad, "the logits are the caller's, and no other share's"
        self._stages: dict[Place, list[Stage]] = {}
        self._received: dict[Place, set[str]] = {}
        self._layers: dict[Place, list[int]] = {}
        for place, run in groupby((pair for pair in pairs if not isinstance(pair[0], Tap)), lambda pair: pair[1]):
            self._run(place, [op for op, _ in run])

    def _run(self, place: Place, run: list[Op]) -> None:
        """Append a stage. Taps come last, so that they stand between no ops that a backend might fuse."""
        ops, stages = self.ops.setdefault(place, []), self._stages.setdefault(place, [])
        received, start = self._received.setdefault(place, set()), len(ops)
        reads = dict.fromkeys(name for op in run for name in op.reads())
        receives = [name for name in reads if self._home[name] != place and name not in received]
        made = [name for op in run for name in op.writes()]
        sends = [name for name in made if name in self._abroad]
        # What is sent and tapped as well has two taps: one until it is fetched, one until the step ends.
        kept = [*sends, *(name for name in made if name in self.program.taps())]
        ops += [Receive(name, name in self._asked) for name in receives]
        ops += [self._renumbered(place, op) for op in run]
        ops += [Tap(name) for name in kept]
        received.update(receives)
        self.order.append((place, len(stages)))
        stages.append(Stage(start, len(ops), tuple(receives), tuple(sends)))

    def _renumbered(self, place: Place, op: Op) -> Op:
        """With the number that its KV layer has in the share."""
        if not isinstance(op, KvWrite | Attention | ShortConv):
            return op
        layers = self._layers.setdefault(place, [])
        if op.layer not in layers:
            layers.append(op.layer)
        return replace(op, layer=layers.index(op.layer))

    def share(self, place: Place) -> Share:
        """All of a place."""
        ops, whole = self.ops[place], self.program
        names = dict.fromkeys(name for op in ops for name in (*op.writes(), *op.reads()))
        kv_layers: tuple[KvLayer, ...] = tuple(whole.kv_layers[layer] for layer in self._layers.get(place, []))
        program = replace(
            whole,
            ops=tuple(ops),
            widths={name: whole.widths[name] for name in names},
            kv_layers=kv_layers,
            logits=whole.logits if self._home[whole.logits] == place else "",
        )
        return Share(program, tuple(self._stages[place]))


def _asked(program: Program) -> set[str]:
    """Values whose rows stand for asked-for tokens."""
    found: set[str] = set()
    for op in program.ops:
        if isinstance(op, TakeRows) or any(name in found for name in op.reads()):
            found.update(op.writes())
    return found
