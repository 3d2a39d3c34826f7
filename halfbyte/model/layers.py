"""`ProgramBuilder`: the blocks that architectures are made of.

A method appends ops and returns the name of the value it made. Weights and values inside a layer are named
`blk.<i>.<stem>`, as GGUF does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .check import check
from .program import (
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
    Softcap,
    TakeRows,
)
from .read_spec import TOKEN_EMBD
from .spec import LayerSpec, ModelSpec


class ProgramBuilder:
    """Appends ops to a program; `tensors` are the names that the file has."""

    def __init__(self, spec: ModelSpec, tensors: Collection[str]) -> None:
        self._spec = spec
        self._tensors = tensors
        self._ops: list[Op] = []
        self._widths: dict[str, int] = {}
        self._layer = -1

    def layers(self) -> Iterator[int]:
        """Enter one layer after the other."""
        for layer in range(self._spec.n_layers):
            self._layer = layer
            yield layer
        self._layer = -1

    def embed(self) -> str:
        """[T, D] from ids."""
        out = self._value("embd", self._spec.n_embd)
        self._ops.append(Embed(TOKEN_EMBD, out, self._spec.embedding_scale))
        return out

    def norm(self, x: str, stem: str, groups: int = 1) -> str:
        """`x` normed by the weight `stem`."""
        out = self._value(stem, self._widths[x])
        self._ops.append(RmsNorm(x, f"{self._named(stem)}.weight", out, self._spec.rms_eps, groups))
        return out

    def linear(self, x: str, stem: str, n: int) -> str:
        """[.., n]; the bias is added where the file has one."""
        bias = f"{self._named(stem)}.bias"
        out = self._value(stem, n)
        self._ops.append(Linear(x, f"{self._named(stem)}.weight", out, bias if bias in self._tensors else None))
        return out

    def add(self, a: str, b: str) -> str:
        """`a + b`."""
        out = self._value(f"{b.rpartition('.')[2]}_sum", self._widths[a])
        self._ops.append(Add(a, b, out))
        return out

    def attention(self, x: str, *, norm_heads: bool = False) -> str:
        """[T, H*Cv], not yet projected: q, k and v of `x`, turned, stored and attended to.

        With `norm_heads` each head of q and k is normed before it is turned.
        """
        spec, layer = self._spec, self._spec.layers[self._layer]
        q = self.linear(x, "attn_q", layer.n_head * spec.key_length)
        k = self.linear(x, "attn_k", layer.n_head_kv * spec.key_length)
        v = self.linear(x, "attn_v", layer.n_head_kv * spec.value_length)
        if norm_heads:
            q = self.norm(q, "attn_q_norm", layer.n_head)
            k = self.norm(k, "attn_k_norm", layer.n_head_kv)
        q = self._rope(q, "attn_q_rope", layer.n_head, layer)
        k = self._rope(k, "attn_k_rope", layer.n_head_kv, layer)
        self._ops.append(KvWrite(k, v, self._layer))
        out = self._value("attn", layer.n_head * spec.value_length)
        self._ops.append(
            Attention(
                q,
                out,
                self._layer,
                heads=layer.n_head,
                kv_heads=layer.n_head_kv,
                key_size=spec.key_length,
                value_size=spec.value_length,
                scale=spec.attention_scale,
                window=layer.window,
            )
        )
        return out

    def asked_rows(self, *values: str) -> tuple[str, ...]:
        """In the last layer only the asked-for rows of `values`: nothing after attention looks at other tokens."""
        if self._layer < self._spec.n_layers - 1:
            return values
        return tuple(self._take_rows(value) for value in values)

    def feed_forward(self, x: str) -> str:
        """`down(act(gate(x)) * up(x))`."""
        n_ff = self._spec.layers[self._layer].n_ff
        gate = self.linear(x, "ffn_gate", n_ff)
        up = self.linear(x, "ffn_up", n_ff)
        gated = self._value("ffn_gated", n_ff)
        self._ops.append(GatedAct(gate, up, gated, self._spec.act))
        return self.linear(gated, "ffn_down", self._spec.n_embd)

    def finish(self, x: str) -> Program:
        """Norm, head and softcap; a file without a head uses the embedding for it."""
        spec = self._spec
        x = self.norm(x, "output_norm")
        logits = self._value("logits", spec.n_vocab)
        head = "output.weight" if "output.weight" in self._tensors else TOKEN_EMBD
        self._ops.append(Linear(x, head, logits, "output.bias" if "output.bias" in self._tensors else None))
        if spec.final_softcap is not None:
            capped = self._value("logits_capped", spec.n_vocab)
            self._ops.append(Softcap(logits, capped, spec.final_softcap))
            logits = capped
        kv_layers = tuple(
            KvLayer(layer.n_head_kv, spec.key_length, spec.value_length, layer.window) for layer in spec.layers
        )
        program = Program(tuple(self._ops), self._widths, kv_layers, logits, spec.n_vocab)
        check(program)
        return program

    def _named(self, stem: str) -> str:
        return stem if self._layer < 0 else f"blk.{self._layer}.{stem}"

    def _value(self, stem: str, width: int) -> str:
        name = self._named(stem)
        assert name not in self._widths, f"{name} is made twice"
        self._widths[name] = width
        return name

    def _rope(self, x: str, stem: str, heads: int, layer: LayerSpec) -> str:
        out = self._value(stem, self._widths[x])
        self._ops.append(Rope(x, out, heads, layer.rope))
        return out

    def _take_rows(self, x: str) -> str:
        out = self._value(f"{x.rpartition('.')[2]}_rows", self._widths[x])
        self._ops.append(TakeRows(x, out))
        return out
