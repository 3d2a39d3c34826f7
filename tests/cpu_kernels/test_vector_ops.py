"""The few vector ops that differ by instruction set, each against plain NumPy at its hardest inputs."""

import importlib

import numpy as np
import pytest
from llvmlite import ir

from halfbyte.cpu_kernels import isa
from tests.cpu_kernels.emitted import F32, I8, I16, I32, I64, Emitted, vectors

LANES = 16
HALF = ir.VectorType(I16, LANES)
EXTREMES = np.array([-128, -127, -1, 0, 1, 126, 127], np.int8)
RUNS = [name for name in isa.ISAS if isa.runs_here(isa.ISAS[name])]
DOTS = list(dict.fromkeys([*RUNS, "neon_dotprod", "generic"]))
"""NEON's signed dot product is played by plain LLVM where the machine has none."""


def lowering(name):
    return importlib.import_module(f"halfbyte.cpu_kernels.lowerings.{isa.ISAS[name].lowering}")


@pytest.mark.parametrize("bits", [7, 8])
@pytest.mark.parametrize("name", DOTS)
def test_sums_of_four_products_are_exact(name, bits, rng):
    cpu, features = isa.target(isa.ISAS[name]) if name in RUNS else ("", "")
    bytes_, ints = ir.VectorType(I8, 4 * LANES), ir.VectorType(I32, LANES)
    dot = lowering(name).dot4
    run = Emitted(
        lambda builder, *args: dot(builder, *args, bits), ints, ints, bytes_, bytes_, cpu=cpu, features=features
    )
    n = 500
    most = (1 << bits) - 1
    unsigned = rng.choice(np.array([0, 1, most // 2, most // 2 + 1, most - 1, most], np.uint8), (n, 4 * LANES))
    signed = rng.choice(EXTREMES, (n, 4 * LANES))
    unsigned[::2] = rng.integers(0, most + 1, (n // 2, 4 * LANES), dtype=np.uint8)
    signed[::3] = rng.integers(-128, 128, signed[::3].shape, dtype=np.int8)
    unsigned[-2:] = most
    signed[-2:] = np.array([[-128], [127]])
    acc = rng.integers(-(2**28), 2**28, (n, LANES), dtype=np.int32)
    products = unsigned.astype(np.int32) * signed.astype(np.int32)
    expected = acc + products.reshape(n, LANES, 4).sum(axis=2, dtype=np.int32)
    assert np.array_equal(run(acc, unsigned, signed, out=np.zeros_like(acc)), expected)


def active_on(name):
    """All lowerings of an instruction set, those it shares with others included."""
    lowerings = importlib.import_module("halfbyte.cpu_kernels.lowerings")
    active = lowerings.Active()
    active.use(isa.ISAS[name])
    return active


EVERY_BYTE = np.arange(256, dtype=np.uint8).reshape(4, 4 * LANES)
BYTES = ir.VectorType(I8, 4 * LANES)
FIELDS = [(4, 0), (2, 0), (1, 0), (1, 2), (1, 4), (2, 4)]
"""Bits of a field and the bit it is moved to, as packed formats need them."""


@pytest.mark.parametrize("name", RUNS)
def test_fields_of_bytes_are_moved_from_any_shift(name):
    cpu, features = isa.target(isa.ISAS[name])
    field = active_on(name).field
    for bits, to in FIELDS:
        for shift in range(8 - bits + 1):
            run = Emitted(
                lambda builder, v, s=shift, b=bits, t=to: field(builder, v, I64(s), b, t),
                BYTES,
                BYTES,
                cpu=cpu,
                features=features,
            )
            expected = (EVERY_BYTE >> shift & (1 << bits) - 1) << to
            assert np.array_equal(run(EVERY_BYTE, out=np.zeros_like(EVERY_BYTE)), expected), (bits, to, shift)


@pytest.mark.parametrize("name", RUNS)
def test_codes_are_exchanged_for_entries_of_a_table(name, rng):
    cpu, features = isa.target(isa.ISAS[name])
    look_up, entries = active_on(name).look_up, rng.permutation(256)[:16]
    run = Emitted(
        lambda builder, codes: look_up(builder, entries.tolist(), codes), BYTES, BYTES, cpu=cpu, features=features
    )
    codes = EVERY_BYTE % 16
    assert np.array_equal(run(codes, out=np.zeros_like(codes)), entries.astype(np.uint8)[codes])


def every_half():
    return vectors(np.arange(1 << 16), np.uint16, LANES)


def hard_floats(rng):
    """Every half, the middle between it and the next, what lies next to the middle, and any bits at all."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = ((halves[:-1].astype(np.float64) + halves[1:]) / 2).astype(np.float32)
    around = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    edges = np.float32([65504, 65519.996, 65520, 65536, 1e38, np.inf, 2**-24, 2**-25, 2**-26, 1e-45, 6.1e-5, 0])
    positive = np.concatenate([halves, middles, *around, edges])
    anything = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    return vectors(np.concatenate([positive, -positive, anything]), np.float32, LANES)


def test_halves_widen_by_their_bits():
    generic = lowering("generic")
    as_half = ir.VectorType(ir.HalfType(), LANES)
    run = Emitted(
        lambda builder, bits: generic.from_half(builder, builder.bitcast(bits, as_half)),
        ir.VectorType(F32, LANES),
        HALF,
    )
    halves = every_half()
    result = run(halves, out=np.zeros(halves.shape, np.float32))
    expected = halves.view(np.float16).astype(np.float32)
    numbers = ~np.isnan(expected)
    assert np.array_equal(result.view(np.uint32)[numbers], expected.view(np.uint32)[numbers])
    assert np.isnan(result[~numbers]).all()


def test_floats_narrow_to_the_nearest_half(rng):
    generic = lowering("generic")
    run = Emitted(
        lambda builder, value: builder.bitcast(generic.to_half(builder, value), HALF), HALF, ir.VectorType(F32, LANES)
    )
    floats = hard_floats(rng)
    result = run(floats, out=np.zeros(floats.shape, np.uint16))
    with np.errstate(over="ignore"):
        expected = floats.astype(np.float16)
    numbers = ~np.isnan(expected)
    assert np.array_equal(result[numbers], expected.view(np.uint16)[numbers])
    assert np.isnan(result.view(np.float16)[~numbers]).all()


def test_single_halves_convert_like_vectors(rng):
    generic = lowering("generic")
    widen = Emitted(lambda builder, bits: generic.from_half(builder, builder.bitcast(bits, ir.HalfType())), F32, I16)
    narrow = Emitted(lambda builder, value: builder.bitcast(generic.to_half(builder, value), I16), I16, F32)
    halves = rng.integers(0, 0x7C00, 500, dtype=np.uint16)
    floats = widen(halves[:, None], out=np.zeros((500, 1), np.float32))
    assert np.array_equal(floats[:, 0], halves.view(np.float16).astype(np.float32))
    assert np.array_equal(
        narrow(floats * 1.0003, out=np.zeros((500, 1), np.uint16)).view(np.float16),
        (floats * np.float32(1.0003)).astype(np.float16),
    )
