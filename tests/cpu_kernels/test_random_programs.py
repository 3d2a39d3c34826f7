"""Programs no architecture would write: whatever ops follow each other, the answer is the reference's."""

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.cpu_kernels import executable
from halfbyte.model.check import check
from halfbyte.model.program import (
    Act,
    Add,
    AddVector,
    Combine,
    Dispatch,
    Embed,
    EmbedPositions,
    ExpertLinear,
    GatedAct,
    LayerNorm,
    Linear,
    MoeRoute,
    Mul,
    Program,
    RmsNorm,
    Scale,
    Softcap,
    TakeRows,
)
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.products import batch_of, f32_weight, named, random_weight
from tests.cpu_kernels.programs import distance, poison

WIDTH, ROWS, LENGTH, EXPERTS = 64, 40, 16, 5
ACTS = ("silu", "gelu_tanh", "gelu", "relu")
GATES = (*ACTS, "swiglu_oai")
# Relative L2 against the reference, which does not round the inputs of quantized matrices. Measured: 1.4e-4 at most.
BUDGET = 7e-4


def random_mixture(rng, x, out):
    """A few ops on rows of experts. Scores are of the first value, which nobody rounds: who is chosen is never near."""
    used, scores, route, dealt = int(rng.integers(1, EXPERTS + 1)), f"{out}.scores", f"{out}.route", [f"{out}.0"]
    ops = [
        Linear("v0", "router", scores),
        MoeRoute(scores, route, used, str(rng.choice(["softmax", "sigmoid"])), bool(rng.integers(2)), 1.2),
        Dispatch(x, route, dealt[0]),
    ]

    def pick():
        return dealt[rng.integers(len(dealt))]

    makers = [
        lambda new: ExpertLinear(pick(), route, f"e{rng.integers(2)}", new, EXPERTS, rng.choice([None, "biases"])),
        lambda new: ExpertLinear(pick(), route, "ef", new, EXPERTS),
        lambda new: GatedAct(pick(), pick(), new, str(rng.choice(GATES))),
        lambda new: Linear(pick(), "q0", new),
        lambda new: Add(pick(), pick(), new),
        lambda new: AddVector(pick(), "bias", new),
        lambda new: RmsNorm(pick(), "norm1", new, 1e-6),
    ]

    def append(make):
        ops.append(make(f"{out}.{len(dealt)}"))
        dealt.append(ops[-1].out)

    for _ in range(4):
        append(makers[rng.integers(len(makers))])
    while len(unread := [value for value in dealt if not any(value in op.reads() for op in ops)]) > 1:
        append(lambda new, unread=unread: Add(unread[0], unread[1], new))
    return [*ops, Combine(dealt[-1], route, out)]


def width_of(op):
    """Of what an op of a random program writes."""
    return {MoeRoute: 2 * getattr(op, "used", 0)}.get(type(op), EXPERTS if op.out.endswith("scores") else WIDTH)


def random_program(rng):
    """A dozen or so ops on whatever came before; in the end all that nobody read is added up."""
    ops, values, read = [Embed("table", "v0", 1.5)], ["v0"], set()

    def append(make):
        made = make(f"v{len(values)}")
        ops.extend(made if isinstance(made, list) else [made])
        read.update(name for op in ops for name in op.reads())
        values.append(ops[-1].out)

    def pick():
        return values[int(rng.integers(max(0, len(values) - 5), len(values)))]

    def norm(out):
        groups = int(rng.choice([1, 1, 4]))
        return RmsNorm(pick(), f"norm{groups}", out, 1e-6, groups)

    makers = [
        norm,
        norm,
        lambda out: Linear(pick(), f"q{rng.integers(2)}", out, rng.choice([None, "bias"])),
        lambda out: Linear(pick(), "f", out),
        lambda out: Add(pick(), pick(), out),
        lambda out: Add(pick(), pick(), out),
        lambda out: GatedAct(pick(), pick(), out, str(rng.choice(GATES))),
        lambda out: Act(pick(), out, str(rng.choice(ACTS))),
        lambda out: LayerNorm(pick(), "norm1", out, 1e-6, rng.choice([None, "bias"])),
        lambda out: EmbedPositions("places", out, ROWS),
        lambda out: AddVector(pick(), "bias", out),
        lambda out: Mul(pick(), pick(), out),
        lambda out: Scale(pick(), out, 0.7),
        lambda out: Softcap(pick(), out, 3.0),
        lambda out: random_mixture(rng, pick(), out),
    ]
    for _ in range(LENGTH):
        append(makers[rng.integers(len(makers))])
    while len(unread := [value for value in values if value not in read]) > 1:
        append(lambda out, unread=unread: Add(unread[0], unread[1], out))
    last = values[-1]
    ops += [TakeRows(last, "asked"), Linear("asked", "head", "logits")]
    widths = {op.out: width_of(op) for op in ops} | {"logits": ROWS}
    program = Program(tuple(ops), widths, (), "logits", ROWS)
    check(program)
    return program


def random_weights(program, rng):
    weights = {
        "table": f32_weight(rng.standard_normal((ROWS, WIDTH))),
        "places": random_weight("q8_0", ROWS, WIDTH, 2),
        "norm1": f32_weight(rng.uniform(0.5, 1.5, WIDTH)),
        "norm4": f32_weight(rng.uniform(0.5, 1.5, WIDTH // 4)),
        "bias": f32_weight(rng.standard_normal(WIDTH)),
        "f": f32_weight(rng.standard_normal((WIDTH, WIDTH)) / 8),
        "router": f32_weight(rng.standard_normal((EXPERTS, WIDTH)) / 8),
        "ef": f32_weight(rng.standard_normal((EXPERTS * WIDTH, WIDTH)) / 8),
        "e0": random_weight("q8_0", EXPERTS * WIDTH, WIDTH, 2),
        "e1": random_weight("mxfp4", EXPERTS * WIDTH, WIDTH, 3),
        "biases": f32_weight(rng.standard_normal((EXPERTS, WIDTH))),
        "q0": random_weight("q8_0", WIDTH, WIDTH, 0),
        "q1": random_weight("q4_1", WIDTH, WIDTH, 1),
        "head": f32_weight(rng.standard_normal((ROWS, WIDTH)) / 8),
    }
    return {name: weights[name] for name in program.weight_names()}


def logits_of(runner, rows=ROWS):
    logits = np.full((rows, ROWS), np.nan, np.float32)
    runner.run(replace(batch_of(range(rows)), positions=np.arange(rows, dtype=np.int32)), logits)
    return logits


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed):
    rng = np.random.default_rng(seed)
    program = random_program(rng)
    weights = random_weights(program, rng)
    ready()
    sizes = {"n_pages": 1, "max_tokens": ROWS}
    runners = [executable.build(program, named(weights), **sizes, threads=threads, isa=DETECTED) for threads in (1, 3)]
    assert races(runners[0]) == []
    assert overlapping_lives(runners[0]) == []
    for runner in runners:
        poison(runner)
    alone, together = (logits_of(runner) for runner in runners)
    few = logits_of(runners[1], 3)
    for runner in runners:
        runner.close()
    expected = logits_of(ReferenceExecutable(program, weights, n_pages=1))
    assert distance(alone, expected) < BUDGET
    assert np.array_equal(together, alone)
    assert np.array_equal(few, alone[:3])
