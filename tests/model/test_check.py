"""The checker finds each way in which a program can be broken."""

import dataclasses

import pytest

from halfbyte.model.check import check, weight_shapes
from halfbyte.model.program import (
    Add,
    Attention,
    Embed,
    GatedAct,
    KvLayer,
    KvWrite,
    Linear,
    Op,
    Program,
    RmsNorm,
    Rope,
    RopeTable,
    Scale,
    Softcap,
    TakeRows,
)

TABLE = RopeTable("neox", (1.0, 0.1))
OPS = (
    Embed("table", "x"),
    RmsNorm("x", "norm", "n", 1e-6),
    Linear("n", "wq", "q", "bq"),
    Linear("n", "wk", "k"),
    Linear("n", "wv", "v"),
    Rope("q", "qr", 2, TABLE),
    Rope("k", "kr", 1, TABLE),
    KvWrite("kr", "v", 0),
    Attention("qr", "a", 0, heads=2, kv_heads=1, key_size=4, value_size=3, scale=0.5),
    TakeRows("a", "at"),
    TakeRows("x", "xt"),
    Linear("at", "wo", "o"),
    Add("o", "xt", "s"),
    Linear("s", "up", "u"),
    GatedAct("u", "u", "g", "silu"),
    Scale("g", "gs", 2.0),
    Linear("gs", "head", "l"),
    Softcap("l", "logits", 30.0),
)
WIDTHS = {"x": 6, "n": 6, "q": 8, "k": 4, "v": 3, "qr": 8, "kr": 4, "a": 6, "at": 6, "xt": 6, "o": 6, "s": 6}
WIDTHS |= {"u": 10, "g": 10, "gs": 10, "l": 50, "logits": 50}
SOUND = Program(OPS, WIDTHS, (KvLayer(1, 4, 3),), "logits", 50)


def with_op(index, **changes):
    ops = list(OPS)
    ops[index] = dataclasses.replace(ops[index], **changes)
    return dataclasses.replace(SOUND, ops=tuple(ops))


def with_ops(change):
    ops = list(OPS)
    change(ops)
    return dataclasses.replace(SOUND, ops=tuple(ops))


@dataclasses.dataclass(frozen=True)
class Novel(Op):
    x: str
    out: str
    READS = ("x",)


def test_a_sound_program_passes_and_says_what_weights_it_wants():
    check(SOUND)
    shapes = weight_shapes(SOUND)
    assert list(shapes) == SOUND.weight_names()
    assert shapes["table"] == (50, 6)
    assert shapes["norm"] == (1, 6)
    assert (shapes["wq"], shapes["bq"]) == ((8, 6), (1, 8))
    assert shapes["head"] == (50, 10)


BROKEN = {
    "reads 'n' before it is written": with_ops(lambda ops: ops.insert(0, ops.pop(2))),
    "writes 'x' a second time": with_ops(lambda ops: ops.insert(1, Embed("table", "x"))),
    "'x' is never read": dataclasses.replace(SOUND, ops=OPS[:1]),
    "'extra' has a width but is never written": dataclasses.replace(SOUND, widths=WIDTHS | {"extra": 1}),
    "'q' has no width": dataclasses.replace(SOUND, widths={k: v for k, v in WIDTHS.items() if k != "q"}),
    "attended to before it is written": with_ops(lambda ops: ops.insert(9, ops.pop(7))),
    "KV layer 0 is written twice": with_ops(lambda ops: ops.insert(8, ops[7])),
    "KV layer 1 is never written": dataclasses.replace(SOUND, kv_layers=SOUND.kv_layers * 2),
    "there is no KV layer 3": with_op(7, layer=3),
    "mixes rows of all tokens": with_op(12, b="x"),
    "wants rows of all tokens": with_op(10, x="at"),
    "not made for the asked-for rows": dataclasses.replace(SOUND, logits="v"),
    "50 wide for a vocabulary of 51": dataclasses.replace(SOUND, vocab_size=51),
    "op 18 (Novel): is of an unknown kind": with_ops(lambda ops: ops.append(Novel("l", "z"))),
    "weight 'wk' is used as (8, 6) and as (4, 6)": with_op(2, weight="wk"),
    "4 groups do not divide 6": with_op(1, groups=4),
    "eps is nan": with_op(1, eps=float("nan")),
    "3 heads do not divide 8": with_op(5, heads=3),
    "6 channels turn in heads of 4": with_op(5, table=RopeTable("norm", (1.0, 0.1, 0.01))),
    "values that are not finite": with_op(5, table=RopeTable("norm", (float("inf"),))),
    "'n' is 6 wide, KV layer 0 holds 1 heads of 4": with_op(7, k="n"),
    "key_size is 8, of KV layer 0 4": with_op(8, key_size=8),
    "window is 5, of KV layer 0 None": with_op(8, window=5),
    "'qr' is 8 wide, not 3 heads of 4": with_op(8, heads=3),
    "scale is inf": with_op(8, scale=float("inf")),
    "softcap is 0.0": with_op(8, softcap=0.0),
    "cap is -1.0": with_op(17, cap=-1.0),
    "widths differ: o 6, x 6, s 7": dataclasses.replace(with_op(12, b="x"), widths=WIDTHS | {"s": 7}),
    "widths differ: at 6, u 10, g 10": with_op(14, gate="at"),
    "widths differ: g 10, gs 9": dataclasses.replace(SOUND, widths=WIDTHS | {"gs": 9}),
}


@pytest.mark.parametrize("said", BROKEN)
def test_it_finds(said):
    with pytest.raises(AssertionError) as caught:
        check(BROKEN[said])
    assert said in str(caught.value)


def test_several_faults_are_reported_together():
    program = dataclasses.replace(with_op(17, cap=-1.0), vocab_size=51)
    with pytest.raises(AssertionError, match=r"vocabulary of 51.*cap is -1\.0"):
        check(program)
