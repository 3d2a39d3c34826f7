"""Mixtures of experts: near the reference, bit-equal to plain products, and equal however they are run."""

from dataclasses import replace

import numpy as np
import pytest

from halfbyte.model.check import check
from halfbyte.model.program import Embed, Linear, Program, TakeRows, Tap
from tests.cpu_kernels.kernel_sets import EXPERTS, ISAS_HERE
from tests.cpu_kernels.lowered import overlapping_lives, races
from tests.cpu_kernels.mixtures import TOKENS, VALUES, Mixture, build, reference, rows_of, run
from tests.cpu_kernels.products import batch_of, f32_weight, random_weight, weight_of
from tests.cpu_kernels.programs import distance, poison

# Relative L2 of a value against the reference, which does not round the inputs of quantized matrices. Measured: 5.0e-5
# at most, with float matrices 4e-7.
QUANTIZED, FLOATS = 2.5e-4, 3e-6


@pytest.fixture
def built():
    made = []

    def make(*args, **options):
        made.append(build(*args, **options))
        poison(made[-1])
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def near(found, wanted, format_name):
    for name in ("logits", *VALUES):
        bound = QUANTIZED if format_name not in ("f32", "f16", "bf16") else FLOATS
        assert found[name].shape == wanted[name].shape
        assert distance(found[name], wanted[name]) < bound, name


@pytest.mark.parametrize("format_name", EXPERTS)
@pytest.mark.parametrize(
    ("gate", "normalise", "used"), [("softmax", True, 2), ("softmax", False, 5), ("sigmoid", True, 8)]
)
def test_every_value_is_what_the_reference_has(built, rng, format_name, gate, normalise, used):
    mixture = Mixture(8, used, gate, normalise, 1.5, format_name, bias=used == 5)
    program, weights = mixture.program(), mixture.weights(rng)
    near(run(built(program, weights, threads=2)), run(reference(program, weights)), format_name)


@pytest.mark.parametrize("isa_name", ISAS_HERE)
def test_every_instruction_set(built, rng, isa_name):
    mixture = Mixture()
    program, weights = mixture.program(), mixture.weights(rng)
    alone = run(built(program, weights, isa_name=isa_name))
    near(alone, run(reference(program, weights)), "q8_0")
    assert np.array_equal(run(built(program, weights, isa_name=isa_name, threads=2))["logits"], alone["logits"])


@pytest.mark.parametrize("used", range(1, 9))
def test_the_same_bits_for_any_number_of_tokens_and_threads(built, rng, used):
    mixture = Mixture(8, used, format=("q8_0", "q4_k", "mxfp4", "f16")[used % 4], bias=used % 2 == 0)
    program, weights = mixture.program(), mixture.weights(rng)
    runners = [built(program, weights, threads=threads) for threads in (1, 2, 3)]
    whole = run(runners[0])
    for count, runner in zip((1, 2, 3, 5, 9, 17, 34, TOKENS), [*runners[1:], *runners] * 2, strict=False):
        start = count * 7 % (TOKENS - count + 1)
        poison(runner)
        part = run(runner, range(start, start + count))
        for name in ("logits", "route", "mixed"):
            assert np.array_equal(part[name], whole[name][start : start + count]), (count, name)


def dense_program(mixture):
    """Every token times the matrices of every expert, by plain products."""
    names = [f"{name}.{expert}" for name in ("gate", "up") for expert in range(mixture.experts)]
    bias = {name: f"bias.{name}" if mixture.bias else None for name in names}
    ops = (
        Embed("table", "x"),
        *(Linear("x", f"w.{name}", name, bias[name]) for name in names),
        TakeRows("x", "asked"),
        Linear("asked", "head", "logits"),
        *map(Tap, names),
    )
    widths = dict.fromkeys(("x", "asked"), mixture.width) | dict.fromkeys(names, mixture.hidden)
    program = Program(ops, widths | {"logits": TOKENS}, (), "logits", TOKENS)
    check(program)
    return program


def single_weights(mixture, weights):
    found = {name: weights[name] for name in ("table", "head")}
    n = mixture.hidden
    for name in ("gate", "up"):
        for expert in range(mixture.experts):
            rows = weights[f"w.{name}"].data[expert * n : (expert + 1) * n]
            found[f"w.{name}.{expert}"] = weight_of(mixture.format, rows, (n, mixture.width))
            if mixture.bias:
                found[f"bias.{name}.{expert}"] = f32_weight(weights[f"{name}.bias"].decode()[expert])
    return found


@pytest.mark.parametrize("format_name", EXPERTS)
@pytest.mark.parametrize("hidden", [41, 96])
def test_rows_are_bit_equal_to_a_plain_product_with_their_experts_matrix(built, rng, format_name, hidden):
    """Of any length: rows that fill no tile are followed by the next expert's."""
    mixture = Mixture(5, 2, format=format_name, hidden=hidden, bias=hidden == 41)
    weights = mixture.weights(rng) if hidden % 32 == 0 and format_name != "q4_k" else None
    if weights is None:  # what goes down has no whole blocks
        weights = replace(mixture, format="f32").weights(rng)
        for seed, name in enumerate(("gate", "up")):
            weights[f"w.{name}"] = random_weight(format_name, 5 * hidden, mixture.width, seed)
    found = run(built(mixture.program(), weights, threads=2))
    program = dense_program(mixture)
    dense = built(program, single_weights(mixture, weights))
    dense.run(batch_of(range(TOKENS)), np.empty((TOKENS, TOKENS), np.float32))
    dealt = rows_of(found["route"])
    for name in ("gate", "up"):
        for row, (token, expert) in enumerate(dealt):
            assert np.array_equal(found[name][row], dense.tapped(f"{name}.{expert}")[token])


def test_sums_are_the_references_to_the_bit(built, rng):
    mixture = Mixture(8, 5, format="f32")
    found = run(built(mixture.program(), mixture.weights(rng), threads=3))
    route, rows = found["route"], found["down"]
    expected = np.zeros_like(found["mixed"])
    places = {pair: row for row, pair in enumerate(rows_of(route))}
    for token in range(TOKENS):
        for j in range(5):
            expected[token] += route[token, 5 + j] * rows[places[token, int(route[token, j])]]
    assert np.array_equal(found["mixed"], expected)


@pytest.mark.parametrize("used", [1, 3])
def test_experts_that_nobody_chooses_and_one_that_all_choose(built, rng, used):
    mixture = Mixture(7, used, format="q4_k")
    program, weights = mixture.program(), mixture.weights(rng)
    table = np.abs(weights["table"].decode()) + 0.1
    router = weights["router"].decode().copy()
    router[[1, 4]], router[2] = -5, 5
    weights |= {"table": f32_weight(table), "router": f32_weight(router)}
    found = run(built(program, weights, threads=2))
    chosen = found["route"][:, :used]
    assert (chosen == 2).any(axis=1).all()
    assert not np.isin(chosen, [1, 4]).any()
    near(found, run(reference(program, weights)), "q4_k")
    assert np.array_equal(run(built(program, weights), [5])["logits"], found["logits"][5:6])


def test_behind_the_asked_for_rows(built, rng):
    mixture = Mixture(behind=True, format="mxfp4")
    program, weights = mixture.program(), mixture.weights(rng)
    runner = built(program, weights, threads=2)
    whole = run(runner)
    near(whole, run(reference(program, weights)), "mxfp4")
    batch = replace(batch_of(range(TOKENS)), logit_rows=np.array([69, 3, 3, 40], np.int32))
    logits = np.empty((4, TOKENS), np.float32)
    runner.run(batch, logits)
    assert np.array_equal(logits, whole["logits"][[69, 3, 3, 40]])
    assert runner.tapped("gate").shape == (8, mixture.hidden)
    runner.run(replace(batch, logit_rows=np.zeros(0, np.int32)), logits[:0])
    assert runner.tapped("gate").shape == (0, mixture.hidden)


@pytest.mark.parametrize("format_name", ["f32", "q8_0"])
def test_calls_that_share_memory_have_a_barrier_between_and_no_value_is_overwritten_alive(built, rng, format_name):
    mixture = Mixture(format=format_name)
    program = mixture.program()
    untapped = replace(program, ops=tuple(op for op in program.ops if not isinstance(op, Tap)))
    for each in (program, untapped):
        runner = built(each, mixture.weights(rng), threads=2)
        assert races(runner) == []
        assert overlapping_lives(runner) == []


def test_a_token_is_said_to_read_the_matrices_it_uses(built, rng):
    facts = [
        built(mixture.program(), mixture.weights(rng)).info()["packed_bytes"]
        for mixture in (Mixture(8, 1), Mixture(8, 2), Mixture(8, 8), Mixture(16, 2))
    ]
    router = 4 * 16 * 256
    assert facts[2] - facts[1] == 6 * (facts[1] - facts[0])
    assert facts[3] - facts[1] in (0, router)
