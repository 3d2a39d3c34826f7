"""One mixture of experts as a program, with every value kept for a look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfbyte.cpu_kernels import executable
from halfbyte.model.check import check
from halfbyte.model.program import (
    Combine,
    Dispatch,
    Embed,
    ExpertLinear,
    GatedAct,
    Linear,
    MoeRoute,
    Program,
    TakeRows,
    Tap,
)
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.products import batch_of, f32_weight, named, random_weight

TOKENS = 70
VALUES = ("scores", "route", "dealt", "gate", "up", "acted", "down", "mixed")


@dataclass(frozen=True)
class Mixture:
    """Sizes and choices; the embedding table has a row for every token."""

    experts: int = 6
    used: int = 2
    gate: str = "softmax"
    normalise: bool = True
    scale: float = 1.0
    format: str = "q8_0"
    width: int = 256
    hidden: int = 256
    bias: bool = False
    behind: bool = False
    """Whether only asked-for tokens reach the experts."""

    def program(self):
        x = "asked" if self.behind else "x"
        taken = (TakeRows("x", "asked"),) if self.behind else ()
        bias = {name: f"{name}.bias" if self.bias else None for name in ("gate", "up", "down")}
        ops = (
            Embed("table", "x"),
            *taken,
            Linear(x, "router", "scores"),
            MoeRoute("scores", "route", self.used, self.gate, self.normalise, self.scale),
            Dispatch(x, "route", "dealt"),
            ExpertLinear("dealt", "route", "w.gate", "gate", self.experts, bias["gate"]),
            ExpertLinear("dealt", "route", "w.up", "up", self.experts, bias["up"]),
            GatedAct("gate", "up", "acted", "silu"),
            ExpertLinear("acted", "route", "w.down", "down", self.experts, bias["down"]),
            Combine("down", "route", "mixed"),
            *(() if self.behind else (TakeRows("mixed", "asked"),)),
            Linear("mixed" if self.behind else "asked", "head", "logits"),
            *map(Tap, VALUES),
        )
        widths = dict.fromkeys(("x", "asked", "dealt", "down", "mixed"), self.width)
        widths |= dict.fromkeys(("gate", "up", "acted"), self.hidden)
        widths |= {"scores": self.experts, "route": 2 * self.used, "logits": TOKENS}
        program = Program(ops, widths, (), "logits", TOKENS)
        check(program)
        return program

    def weights(self, rng, table=None):
        shapes = {"gate": (self.hidden, self.width), "up": (self.hidden, self.width), "down": (self.width, self.hidden)}
        weights = {
            "table": f32_weight(rng.standard_normal((TOKENS, self.width)) if table is None else table),
            "router": f32_weight(rng.standard_normal((self.experts, self.width)) / self.width**0.5),
            "head": f32_weight(rng.standard_normal((TOKENS, self.width)) / self.width**0.5),
        }
        for seed, (name, (rows, columns)) in enumerate(shapes.items()):
            weights[f"w.{name}"] = random_weight(self.format, self.experts * rows, columns, seed)
            if self.bias:
                weights[f"{name}.bias"] = f32_weight(rng.standard_normal((self.experts, rows)))
        return weights


def build(program, weights, *, threads=1, isa_name=DETECTED):
    ready(isa_name)
    sizes = {"n_pages": 1, "max_tokens": TOKENS}
    return executable.build(program, named(weights), **sizes, threads=threads, isa=isa_name)


def run(runner, tokens=range(TOKENS)):
    """Logits and every kept value."""
    logits = np.full((len(tokens), TOKENS), np.nan, np.float32)
    runner.run(batch_of(tokens), logits)
    return {"logits": logits} | {name: runner.tapped(name).copy() for name in VALUES}


def reference(program, weights):
    return ReferenceExecutable(program, weights, n_pages=1, max_tokens=TOKENS)


def rows_of(route):
    """(token, expert) of every dealt row, in order."""
    used = route.shape[1] // 2
    pairs = [(int(expert), token) for token, row in enumerate(route) for expert in row[:used]]
    return [(token, expert) for expert, token in sorted(pairs)]
