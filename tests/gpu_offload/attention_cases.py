"""Shapes and options of attention, on pages out of order that a step before has filled."""

from __future__ import annotations

from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import Attention, KvLayer, KvWrite
from tests.gpu_offload.kv_stage import Stage, random_values
from tests.model.batches import step

PLAIN = {"heads": 4, "kv_heads": 2, "key_size": 32, "value_size": 32}
KINDS = {
    "plain": PLAIN,
    "one head": PLAIN | {"heads": 1, "kv_heads": 1},
    "as many kv heads": PLAIN | {"kv_heads": 4},
    "seven heads share one": PLAIN | {"heads": 7, "kv_heads": 1},
    "eleven heads share one": PLAIN | {"heads": 22},
    "whole units": PLAIN | {"heads": 8, "value_size": 64},
    "two units": PLAIN | {"key_size": 64, "value_size": 128},
    "an odd size": PLAIN | {"key_size": 33, "value_size": 35},
    "eighty": PLAIN | {"key_size": 80, "value_size": 80},
    "sizes of no unit": PLAIN | {"key_size": 20, "value_size": 12},
    "keys wider than values": PLAIN | {"key_size": 128, "value_size": 20},
    "values wider than keys": PLAIN | {"key_size": 8, "value_size": 100},
    "wide": PLAIN | {"heads": 2, "kv_heads": 1, "key_size": 256, "value_size": 256},
    "soft cap": PLAIN | {"softcap": 5.0, "scale": 1.0},
    "far apart": PLAIN | {"scale": 4.0},
    "negative": PLAIN | {"scale": -1.0},
    **{f"window of {n}": PLAIN | {"window": n} for n in (1, 17, 40, 1000)},
    "window, soft cap and odd sizes": {**PLAIN, "heads": 6, "value_size": 12, "window": 19, "softcap": 2.0},
    "sinks": PLAIN | {"heads": 6, "sinks": 2.0},
    "sinks that take all": PLAIN | {"sinks": 200.0},
    "sinks, window and soft cap": PLAIN | {"heads": 7, "kv_heads": 1, "sinks": 1.0, "window": 18, "softcap": 3.0},
    "both ways": PLAIN | {"causal": False},
}
TYPES = {
    "f16": KvTypes(),
    "f32": KvTypes("f32", "f32"),
    "q8_0/q4_0": KvTypes("q8_0", "q4_0"),
    "q4_0/q8_0": KvTypes("q4_0", "q8_0"),
}
OF_OTHER_TYPES = {"plain": TYPES, "an odd size": TYPES, "sinks": TYPES, "wide": ("f16", "q8_0/q4_0")}
"""Kinds that are tried with other types than halves; each size is a kernel to be compiled."""
PAIRS = [(kind, types) for types in TYPES for kind in KINDS if types in OF_OTHER_TYPES.get(kind, ("f16",))]
PAGES = [[3, 7, 1, 0, 10], [6, 2], [4, 9, 5, 8, 11]]


def attention_stage(
    device,
    rng,
    *,
    heads,
    kv_heads,
    key_size,
    value_size,
    scale=0.3,
    window=None,
    softcap=None,
    sinks=None,
    causal=True,
    types=None,
    product=None,
):
    """A stage that stores and attends."""
    shape = (heads, kv_heads, key_size, value_size, scale, window, softcap)
    attend = Attention("q", "o", 0, *shape, sinks=None if sinks is None else "sinks", causal=causal)
    widths = {"q": heads * key_size, "k": kv_heads * key_size, "v": kv_heads * value_size, "o": heads * value_size}
    weights = {} if sinks is None else {"sinks": rng.normal(0, sinks, (1, heads))}
    layers = [KvLayer(kv_heads, key_size, value_size, window)]
    return Stage(device, [KvWrite("k", "v", 0), attend], widths, layers, types=types, weights=weights, product=product)


def tokens(starts_and_counts):
    """A step of sequences on `PAGES`, each from a start on."""
    return step([([1] * n, start, PAGES[s]) for s, (start, n) in starts_and_counts.items()], 16)


def store(stage, rng, batch):
    """Keys and values of earlier tokens, on both sides."""
    widths = {name: stage.program.widths[name] for name in "kv"}
    values = random_values(rng, batch, widths)
    stage.run(batch, values, ops=stage.ops[:1], prompt=True)
    stage.expected(batch, values, ops=stage.ops[:1])


def attend(stage, rng, batch, **options):
    """What a step's tokens attend to: by the device, and by the reference."""
    values = random_values(rng, batch, {name: stage.program.widths[name] for name in "qkv"})
    return stage.run(batch, values, **options).get("o"), stage.expected(batch, values)["o"]
