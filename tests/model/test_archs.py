"""What sets one architecture apart from the others."""

import math

import numpy as np
import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.formats import Typed
from halfbyte.model.arch import Arch
from halfbyte.model.archs import ARCHS
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.program import AddVector, Attention, Embed, GatedAct, RmsNorm, Rope, Softcap
from halfbyte.model.reference import ReferenceExecutable
from tests.model.batches import run_all, whole_prompt_batches
from tests.source_tree import PACKAGE

V = 300
WINDOW = "gemma3.attention.sliding_window"


def logits(model, ids):
    ex = ReferenceExecutable(model.program, model.weights, n_pages=16, page_len=8, kv=KvTypes("f32", "f32"))
    return run_all(ex, whole_prompt_batches(ids, 8, [len(ids)]), V)


def ops(model, kind):
    return [op for op in model.program.ops if isinstance(op, kind)]


def test_gemma_has_a_window_on_all_but_every_sixth_layer(bound):
    model = bound("gemma3", n_layers=13, metadata={f"{WINDOW}_pattern": None})
    windows = [op.window for op in ops(model, Attention)]
    assert windows == [24] * 5 + [None] + [24] * 5 + [None] + [24]
    assert windows == [layer.window for layer in model.program.kv_layers]


@pytest.mark.parametrize(
    ("pattern", "local"),
    [
        (0, [True] * 3),
        (1, [False] * 3),
        (2, [True, False, True]),
        (Typed([False, True, True], "bool"), [False, True, True]),
    ],
)
def test_gemma_says_which_layers_have_the_window(bound, pattern, local):
    spec = bound("gemma3", metadata={f"{WINDOW}_pattern": pattern}).spec
    assert [layer.window is not None for layer in spec.layers] == local


def test_gemma_without_a_window_has_none_anywhere(bound):
    spec = bound("gemma3", metadata={WINDOW: None}).spec
    assert {layer.window for layer in spec.layers} == {None}


def test_gemma_turns_layers_with_a_window_by_their_own_base_and_never_stretches_them(bound):
    stretched = {"gemma3.rope.freq_base": 1e6, "gemma3.rope.scaling.type": "linear", "gemma3.rope.scaling.factor": 8.0}
    local, everywhere, _ = bound("gemma3", metadata=stretched).spec.layers
    assert local.rope.inv_freq[1] == pytest.approx(10000 ** (-1 / 16))
    assert everywhere.rope.inv_freq[1] == pytest.approx(1e6 ** (-1 / 16) / 8)
    other = bound("gemma3", metadata={"gemma3.rope.freq_base_swa": 500.0}).spec.layers[0]
    assert other.rope.inv_freq[1] == pytest.approx(500 ** (-1 / 16))


def test_gemma_norms_heads_before_turning_them(bound):
    model = bound("gemma3")
    norms = {op.out: op for op in ops(model, RmsNorm)}
    for rope in ops(model, Rope):
        assert norms[rope.x].groups == rope.heads
    assert len(norms) == 3 * 6 + 1


def test_gemma_scales_by_head_size_but_for_the_27b(bound):
    assert {op.scale for op in ops(bound("gemma3"), Attention)} == {1 / math.sqrt(32)}
    large = bound("gemma3", n_layers=62, n_embd=32, n_ff=32)
    assert {op.scale for op in ops(large, Attention)} == {1 / math.sqrt(8)}


def test_gemma_embeddings_are_scaled_and_its_gate_is_gelu(bound):
    model = bound("gemma3")
    assert ops(model, Embed)[0].scale == 8
    assert {op.act for op in ops(model, GatedAct)} == {"gelu_tanh"}
    assert ops(bound("llama"), Embed)[0].scale == 1
    assert {op.act for op in ops(bound("llama"), GatedAct)} == {"silu"}


def test_a_softcap_squeezes_the_logits(bound):
    ids = np.arange(9)
    free = logits(bound("gemma3"), ids)
    model = bound("gemma3", metadata={"gemma3.final_logit_softcapping": 2.0})
    assert ops(model, Softcap)[0].out == model.program.logits
    assert np.allclose(logits(model, ids), 2 * np.tanh(free / 2), atol=1e-5)
    assert not ops(bound("gemma3", metadata={"gemma3.final_logit_softcapping": 0.0}), Softcap)


def test_what_lies_outside_every_window_does_not_count(bound, rng):
    """Two layers with a window of 6 look back 10 positions together."""
    model = bound("gemma3", n_layers=2, window=6, metadata={f"{WINDOW}_pattern": 0})
    ids = rng.integers(0, V, 40)
    changed = ids.copy()
    changed[5] += 1
    moved = np.abs(logits(model, changed) - logits(model, ids)).max(axis=1)
    assert (moved[5:16] > 1e-3).all()
    assert moved[16:].max() < 1e-4
    assert moved[:5].max() < 1e-4


def test_a_window_wider_than_the_prompt_changes_nothing(bound, rng):
    ids = rng.integers(0, V, 20)
    narrow, wide, none = (
        logits(bound("gemma3", metadata={WINDOW: window, "gemma3.rope.freq_base_swa": 1e4}), ids)
        for window in (19, 20, None)
    )
    assert np.allclose(wide, none, atol=1e-5)
    assert np.allclose(narrow[:19], none[:19], atol=1e-5)
    assert not np.allclose(narrow[19], none[19], atol=1e-3)


def test_layers_may_differ_in_width_and_heads(bound, rng):
    """The second layer has half the feed-forward width and a KV head of its own for each head."""
    shapes = {"attn_k": (64, 64), "attn_v": (64, 64), "ffn_gate": (64, 64), "ffn_up": (64, 64), "ffn_down": (64, 64)}
    tensors = {f"blk.1.{stem}.weight": rng.uniform(-1, 1, shape) for stem, shape in shapes.items()}
    metadata = {
        "llama.feed_forward_length": Typed([128, 64, 128], "u32"),
        "llama.attention.head_count_kv": Typed([2, 4, 2], "u32"),
    }
    model = bound("llama", tensors=tensors, metadata=metadata)
    assert [kv.kv_heads for kv in model.program.kv_layers] == [2, 4, 2]
    assert np.isfinite(logits(model, np.arange(9))).all()


def test_qwen_is_a_llama_that_turns_halves(bound, rng):
    biases = ("attn_q", "attn_k", "attn_v")
    qwen, llama = bound("qwen2").program, bound("llama", biases=biases).program
    assert qwen.weight_names() == llama.weight_names()
    assert {op.table.kind for op in qwen.ops if isinstance(op, Rope)} == {"neox"}
    assert qwen.widths == llama.widths


def test_the_yarn_of_gpt_oss_is_not_cut_where_the_file_does_not_say(bound):
    key = "gpt-oss.rope.scaling.yarn_truncate"
    silent, cut, uncut = (bound("gpt-oss", metadata={key: said}).spec.layers[0].rope for said in (None, True, False))
    assert silent == uncut != cut


def test_granite_without_rope_knows_no_positions(bound):
    assert not ops(bound("granite", metadata={"granite.rope.scaling.finetuned": False}), Rope)
    assert ops(bound("granite"), Rope)


def test_the_gemma2_27b_has_a_scale_of_its_own_unless_the_file_says(bound):
    large = {"n_layers": 46, "n_embd": 64, "n_ff": 32}
    assert {op.scale for op in ops(bound("gemma2", **large), Attention)} == {1 / math.sqrt(16)}
    said = bound("gemma2", **large, metadata={"gemma2.attention.scale": 0.25})
    assert {op.scale for op in ops(said, Attention)} == {0.25}


def test_caps_of_gemma2_are_the_published_ones_where_the_file_does_not_say(bound):
    caps = ("gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping")
    model = bound("gemma2", metadata=dict.fromkeys(caps))
    assert (model.spec.attention_softcap, model.spec.final_softcap) == (50, 30)
    none = bound("gemma2", metadata=dict.fromkeys(caps, 0.0))
    assert (none.spec.attention_softcap, none.spec.final_softcap) == (None, None)


def test_a_file_may_have_one_token_type_or_none(bound):
    kept = bound("bert", tensors={"token_types.weight": np.zeros((1, 64))})
    without = bound("bert", tensors={"token_types.weight": None})
    assert {type(op) for op in kept.program.ops} - {type(op) for op in without.program.ops} == {AddVector}


@pytest.mark.parametrize(("arch", "causal"), [("bert", True), ("llama", False)])
def test_only_encoders_look_ahead(bound, arch, causal):
    with pytest.raises(UnsupportedError, match=r"attention\.causal"):
        bound(arch, metadata={f"{arch}.attention.causal": causal})


def test_every_architecture_file_is_in_the_table():
    files = {path.stem for path in (PACKAGE / "model/archs").glob("*.py")} - {"__init__"}
    assert files == {name.replace("-", "_") for name in ARCHS}
    assert all(isinstance(ARCHS[name], Arch) for name in ARCHS)


def test_a_program_can_be_read(bound):
    lines = list(bound("llama").program.describe())
    assert lines[0] == "Embed(table='token_embd.weight', out='embd', scale=1.0)"
    assert len(lines) == len(bound("llama").program.ops)
