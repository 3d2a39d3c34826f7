"""Weights on their way from a checkpoint's types to a file's formats, and what is said of what they lost."""

import numpy as np
import pytest

from halfbyte.quant import FORMATS
from halfbyte.quant.bf16_to_f16 import bf16_to_f16
from halfbyte.quant.search import NUMPY
from halfbyte.tools.convert.encoding import DIRECT, Overflow, Unbounded, encode, encode_floats
from halfbyte.tools.convert.report import ConversionReport, Loss
from halfbyte.tools.convert.values import as_floats

RNG = np.random.default_rng(0)
ALL = np.arange(1 << 16, dtype=np.uint16)
STORED = {"BF16": np.uint16, "F16": np.float16, "F32": np.float32}


def stored(dtype, values):
    """Values as a checkpoint has them."""
    if dtype == "BF16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.asarray(values).astype(STORED[dtype])


def test_every_bf16_number_becomes_the_nearest_half():
    exact = as_floats(ALL, "BF16")
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = exact.astype(np.float16)
        halves, places, errors = bf16_to_f16(ALL)
    numbers = ~np.isnan(exact)
    assert np.array_equal(halves[numbers], wanted.view(np.uint16)[numbers])
    assert np.isnan(halves.view(np.float16)[~numbers]).all()
    finite = np.isfinite(exact[places])
    off = np.flatnonzero(np.isfinite(exact) & (wanted.astype(np.float32) != exact))
    assert np.array_equal(places[finite], off)
    assert np.array_equal(errors[finite], wanted[off].astype(np.float32) - exact[off])


def test_halves_are_decoded_to_the_bit():
    halves = ALL.view(np.uint8)
    assert np.array_equal(
        FORMATS["f16"].decode(halves).view(np.uint32), ALL.view(np.float16).astype(np.float32).view("u4")
    )
    finite = ALL[(ALL & 0x7C00) != 0x7C00]
    got = FORMATS["f16"].decode(finite.view(np.uint8))
    assert np.array_equal(got.view(np.uint32), finite.view(np.float16).astype(np.float32).view(np.uint32))


@pytest.mark.parametrize(("dtype", "format"), DIRECT)
def test_a_short_way_ends_where_the_long_one_does(dtype, format):
    values = RNG.standard_normal((70, 96)).astype(np.float32) * np.float32(10.0) ** RNG.integers(-9, 4, (70, 96))
    rows = stored(dtype, values)
    direct, short = encode(rows, dtype, FORMATS[format], NUMPY)
    through, long = encode_floats(rows, dtype, FORMATS[format], NUMPY)
    assert np.array_equal(direct.reshape(-1), through.reshape(-1))
    assert short.largest == long.largest
    assert short.vanished == long.vanished
    assert short.wrong == pytest.approx(long.wrong, rel=1e-5)


@pytest.mark.parametrize("format", ["f32", "f16", "bf16", "q8_0"])
@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_is_refused(dtype, format, bad):
    rows = stored(dtype, np.ones((3, 64)))
    rows[1, 5] = stored(dtype, [bad])[0]
    with pytest.raises(Unbounded):
        encode(rows, dtype, FORMATS[format], NUMPY)


@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_what_no_half_can_hold_is_noticed(dtype):
    rows = stored(dtype, np.ones((3, 64)))
    rows[2, 1] = stored(dtype, [70000.0])[0]
    with pytest.raises(Overflow):
        encode(rows, dtype, FORMATS["f16"], NUMPY)
    assert encode(rows, dtype, FORMATS["bf16"], NUMPY)[1].largest < 400


def test_losses_are_those_of_the_numbers():
    values = RNG.standard_normal((40, 64)).astype(np.float32)
    values[0, :5] = [1e-9, 0, -1e-9, 1e-8, 2.0**-24]
    data, loss = encode(values, "F32", FORMATS["f16"], NUMPY)
    error = data.reshape(40, -1).view(np.float16).astype(np.float64) - values
    assert loss.largest == np.abs(error).max()
    assert loss.wrong == pytest.approx((error**2).sum(), rel=1e-4)
    assert loss.squares == pytest.approx((values.astype(np.float64) ** 2).sum(), rel=1e-4)
    assert loss.vanished == 3


def test_a_report_names_the_worst_tensors_and_what_vanished():
    report = ConversionReport()
    report.add("sound", "f32", Loss(squares=4.0))
    report.add("worse", "q8_0", Loss(0.5, 4.0, 1.0, 2))
    report.add("bad", "q8_0", Loss(0.1, 400.0, 1.0))
    report.add("worse", "q8_0", Loss(0.25, 4.0, 1.0, 1))
    report.losses["sound"].widened = True
    lines = list(report.lines())
    assert lines[0] == "3 tensors, 1 of them without any loss"
    assert lines[1] == "worse (q8_0): relative error 5.00e-01, largest 5.00e-01"
    assert lines[2].startswith("bad (q8_0): relative error 5.00e-02")
    assert lines[3].startswith("3 weights were so small")
    assert lines[4].startswith("sound has weights beyond 65504")
    assert len(list(report.lines(most=1))) == 4
