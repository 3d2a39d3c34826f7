"""Programs of one op or a few, on float32 weights: for shapes and functions that no architecture has yet."""

from __future__ import annotations

import numpy as np

from halfbyte.cpu_kernels import executable
from halfbyte.model.check import check
from halfbyte.model.program import Attention, Embed, KvLayer, KvWrite, Linear, Program, TakeRows
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED, ready
from tests.cpu_kernels.products import f32_weight, named

SIZE = 333
"""Width, vocabulary and number of table rows alike. Fills no vector."""
SHOW = (TakeRows("y", "shown"), Linear("shown", "one", "logits"))
"""Makes "y" the logits, by a product with the unit matrix, which is exact."""


def on_table(table, *ops, kv_layers=(), widths=None, encoder=False):
    """A program that starts with the table's rows as "x" and ends with `ops`; its weights, and a unit matrix "one"."""
    ops = (Embed("table", "x"), *ops)
    widths = {name: SIZE for op in ops for name in op.writes()} | (widths or {})
    program = Program(ops, widths, kv_layers, ops[-1].out, SIZE, encoder)
    check(program)
    values = {"table": table, "one": np.eye(SIZE)}
    return program, {name: f32_weight(values[name]) for name in program.weight_names() if name in values}


def attention_program(
    rng,
    *,
    heads,
    kv_heads,
    key_size,
    value_size,
    window=None,
    softcap=None,
    scale=0.3,
    sinks=None,
    causal=True,
    exact=False,
):
    """Queries, keys and values are products of the rows; the attended values another product.

    `sinks` is about how large they are. `exact` makes products that take channels of a row as they are, so that whoever
    rounds them rounds the same numbers.
    """
    layer = KvLayer(kv_heads, key_size, value_size, window)
    sizes = {"q": heads * key_size, "k": kv_heads * key_size, "v": kv_heads * value_size}
    shape = (heads, kv_heads, key_size, value_size, scale, window, softcap)
    attend = Attention("q", "o", 0, *shape, sinks=None if sinks is None else "sinks", causal=causal)
    ops = [*(Linear("x", f"w{name}", name) for name in sizes), KvWrite("k", "v", 0), attend]
    ops += [TakeRows("o", "asked"), Linear("asked", "wo", "y")]
    widths = sizes | {"o": heads * value_size, "asked": heads * value_size}
    table = rng.standard_normal((SIZE, SIZE))
    program, weights = on_table(table, *ops, kv_layers=(layer,), widths=widths, encoder=not causal)
    for name, size in sizes.items():
        chosen = np.eye(SIZE)[rng.integers(0, SIZE, size)]
        weights[f"w{name}"] = f32_weight(chosen if exact else rng.standard_normal((size, SIZE)) / SIZE**0.5)
    weights["wo"] = f32_weight(rng.standard_normal((SIZE, heads * value_size)))
    if sinks is not None:
        weights["sinks"] = f32_weight(rng.normal(0, sinks, heads))
    return program, weights


def build(program, weights, *, threads=1, n_pages=8, kv=None):
    ready()
    sizes = {"n_pages": n_pages, "max_tokens": SIZE}
    return executable.build(program, named(weights), **sizes, threads=threads, isa=DETECTED, kv=kv)


def reference(program, weights, n_pages=8, kv=None):
    return ReferenceExecutable(program, weights, n_pages=n_pages, kv=kv)
