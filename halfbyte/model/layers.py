"""`ProgramBuilder`: the blocks that architectures are made of."""

from __future__ import annotations

from typing import Literal

from .appender import Appender
from .check import check
from .program import (
    Attention,
    Combine,
    Dispatch,
    Embed,
    EmbedPositions,
    ExpertLinear,
    GatedAct,
    KvLayer,
    KvWrite,
    Linear,
    MoeRoute,
    Program,
    Rope,
    ShortConv,
    Softcap,
)
from .read_spec import POSITION_EMBD, TOKEN_EMBD, TOKEN_TYPES
from .row_range import RowRange
from .spec import LayerSpec


class ProgramBuilder(Appender):
    """Makes whole blocks as the spec has them."""

    def embed(self) -> str:
        """[T, D] from ids."""
        out = self.value("embd", self.spec.n_embd)
        self.ops.append(Embed(TOKEN_EMBD, out, self.spec.embedding_scale))
        return out

    def embed_first_type(self) -> str:
        """[T, D] from ids, and what the first token type adds where the file has types."""
        x = self.embed()
        if TOKEN_TYPES not in self.tensors:
            return x
        return self.add_vector(x, RowRange(TOKEN_TYPES, 0, 1).name, "typed_embd")

    def positions(self) -> str:
        """[T, D] from positions."""
        out = self.value("position_embd", self.spec.n_embd)
        self.ops.append(EmbedPositions(POSITION_EMBD, out, self.spec.context_length))
        return out

    def attention(self, x: str, *, norm: Literal["none", "heads", "rows"] = "none") -> str:
        """[T, H*Cv], not yet projected: q, k and v of `x`, turned, stored and attended to.

        `norm`: q and k are normed before they are turned, each head by itself or all heads of a row together.
        """
        spec, layer = self.spec, self.spec.layers[self._layer]
        q, k, v = self._queries_keys_values(x, layer)
        if norm != "none":
            q = self.norm(q, "attn_q_norm", layer.n_head if norm == "heads" else 1)
            k = self.norm(k, "attn_k_norm", layer.n_head_kv if norm == "heads" else 1)
        q = self._rope(q, "attn_q_rope", layer.n_head, layer)
        k = self._rope(k, "attn_k_rope", layer.n_head_kv, layer)
        self.ops.append(KvWrite(k, v, self._layer))
        out = self.value("attn", layer.n_head * spec.value_length)
        sinks = f"{self.named('attn_sinks')}.weight"
        self.ops.append(
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
                softcap=spec.attention_softcap,
                sinks=sinks if sinks in self.tensors else None,
                causal=not spec.encoder,
            )
        )
        return out

    def _queries_keys_values(self, x: str, layer: LayerSpec) -> tuple[str, ...]:
        spec = self.spec
        sizes = {
            "attn_q": layer.n_head * spec.key_length,
            "attn_k": layer.n_head_kv * spec.key_length,
            "attn_v": layer.n_head_kv * spec.value_length,
        }
        if f"{self.named('attn_qkv')}.weight" in self.tensors:
            return self.linears(x, "attn_qkv", sizes)
        return tuple(self.linear(x, stem, n) for stem, n in sizes.items())

    def feed_forward_or_experts(self, x: str, *, fused: bool = False) -> str:
        """Experts where the file has them: of a model with experts some layers may have none."""
        mixed = self.spec.experts is not None and f"{self.named('ffn_gate_inp')}.weight" in self.tensors
        return self.experts(x) if mixed else self.feed_forward(x, fused=fused)

    def experts(self, x: str) -> str:
        """What the chosen experts make of `x`, each a gated feed-forward."""
        experts = self.spec.experts
        assert experts is not None, "the spec has no experts"
        scores = self.linear(x, "ffn_gate_inp", experts.count)
        route = self.value("ffn_route", 2 * experts.used)
        self.ops.append(MoeRoute(scores, route, experts.used, experts.gate, experts.normalise, experts.scale))
        rows = self.value("ffn_expert_rows", self.widths[x])
        self.ops.append(Dispatch(x, route, rows))
        gate = self._expert_linear(rows, route, "ffn_gate_exps", experts.n_ff)
        up = self._expert_linear(rows, route, "ffn_up_exps", experts.n_ff)
        gated = self.value("ffn_gated", experts.n_ff)
        self.ops.append(GatedAct(gate, up, gated, self.spec.act))
        down = self._expert_linear(gated, route, "ffn_down_exps", self.spec.n_embd)
        out = self.value("ffn_experts", self.spec.n_embd)
        self.ops.append(Combine(down, route, out))
        return out

    def _expert_linear(self, x: str, route: str, stem: str, n: int) -> str:
        assert self.spec.experts is not None
        out, name = self.value(stem, n), self.named(stem)
        bias = f"{name}.bias"
        self.ops.append(
            ExpertLinear(
                x, route, f"{name}.weight", out, self.spec.experts.count, bias if bias in self.tensors else None
            )
        )
        return out

    def short_conv(self, x: str) -> str:
        """[T, D], not yet projected: a filter over the last tokens between two gates, as LFM2 has it."""
        n_embd, taps = self.spec.n_embd, self.spec.layers[self._layer].taps
        assert taps is not None, "the layer has attention"
        parts = {"conv_before": n_embd, "conv_after": n_embd, "conv_x": n_embd}
        before, after, inner = self.linears(x, "shortconv.in_proj", parts)
        kept = self.mul(before, inner, "conv_kept")
        self.ops.append(KvWrite(None, kept, self._layer))
        filtered = self.value("conv", n_embd)
        self.ops.append(ShortConv(f"{self.named('shortconv.conv')}.weight", filtered, self._layer, taps))
        return self.mul(after, filtered, "conv_gated")

    def feed_forward(self, x: str, *, fused: bool = False) -> str:
        """`down(act(gate(x)) * up(x))`; `fused`: the file has the gate above the other in one matrix."""
        n_ff = self.spec.layers[self._layer].n_ff
        if fused:
            gate, up = self.linears(x, "ffn_up", {"ffn_gate": n_ff, "ffn_up": n_ff})
        else:
            gate, up = self.linear(x, "ffn_gate", n_ff), self.linear(x, "ffn_up", n_ff)
        gated = self.value("ffn_gated", n_ff)
        self.ops.append(GatedAct(gate, up, gated, self.spec.act))
        return self.linear(gated, "ffn_down", self.spec.n_embd)

    def finish(self, x: str, norm: str = "output_norm") -> Program:
        """Norm, head and softcap; a file without a head uses the embedding for it."""
        spec = self.spec
        x = self.norm(x, norm)
        logits = self.value("logits", spec.n_vocab)
        head = "output.weight" if "output.weight" in self.tensors else TOKEN_EMBD
        self.ops.append(Linear(x, head, logits, "output.bias" if "output.bias" in self.tensors else None))
        if spec.logit_scale != 1:
            logits = self.scale(logits, spec.logit_scale, "logits_scaled")
        if spec.final_softcap is not None:
            capped = self.value("logits_capped", spec.n_vocab)
            self.ops.append(Softcap(logits, capped, spec.final_softcap))
            logits = capped
        return self.program(logits)

    def program(self, logits: str) -> Program:
        """All that was appended, checked."""
        kv_layers = tuple(self._kv_layer(layer) for layer in self.spec.layers)
        program = Program(tuple(self.ops), self.widths, kv_layers, logits, self.spec.n_vocab, encoder=self.spec.encoder)
        check(program)
        return program

    def _kv_layer(self, layer: LayerSpec) -> KvLayer:
        spec = self.spec
        if layer.taps is not None:
            return KvLayer(1, 0, spec.n_embd, layer.taps, exact=True)
        return KvLayer(layer.n_head_kv, spec.key_length, spec.value_length, layer.window)

    def _rope(self, x: str, stem: str, heads: int, layer: LayerSpec) -> str:
        if layer.rope is None:
            return x
        out = self.value(stem, self.widths[x])
        self.ops.append(Rope(x, out, heads, layer.rope))
        return out
