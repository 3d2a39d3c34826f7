"""A converted encoder has the states of the original, several texts at a time."""

import json

import numpy as np
import pytest
import torch
import transformers

from halfbyte.cpu_kernels import executable
from halfbyte.errors import FormatError, UnsupportedError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.archs import ARCHS
from halfbyte.model.checkpoint_config import CheckpointConfig
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.pooling import POOLINGS
from halfbyte.model.reference import ReferenceExecutable
from tests.cpu_kernels.kernel_sets import DETECTED
from tests.model.batches import run_all, step
from tests.model.checkpoints.converted import convert
from tests.model.checkpoints.tiny_checkpoint import SIZES, make, prompts

TOLERANCE = 1e-4
PAGE_LEN = 16
TEXTS = prompts([50, 1, 23, 8])
CLASSES = ("BertModel", "BertForMaskedLM", "NomicBertModel")


@pytest.fixture(scope="module", params=CLASSES)
def original(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return folder, make(folder, getattr(transformers, request.param))


@pytest.fixture(scope="module", params=["reference", "kernels"])
def runner(original, request):
    bound = bind(open_gguf(convert(original[0])))
    sizes = {"n_pages": 20, "max_tokens": 100, "kv": KvTypes("f32", "f32")}
    if request.param == "reference":
        return ReferenceExecutable(bound.program, bound.weights, **sizes)
    return executable.build(bound.program, bound.weights, **sizes, isa=DETECTED, threads=2)


def states(runner, texts):
    """Of whole texts in one step."""
    sequences, page = [], 0
    for ids in texts:
        pages = -(-len(ids) // PAGE_LEN)
        sequences.append((ids, 0, list(range(page, page + pages))))
        page += pages
    together = run_all(runner, [step(sequences, PAGE_LEN)], SIZES["hidden_size"])
    return np.split(together, np.cumsum([len(ids) for ids in texts])[:-1])


def test_states_are_those_of_the_original(original, runner):
    for got, ids in zip(states(runner, TEXTS), TEXTS, strict=True):
        with torch.no_grad():
            wanted = original[1](torch.tensor(ids[None]), output_hidden_states=True).hidden_states[-1][0].numpy()
        assert np.std(wanted) > 0.3
        assert np.abs(got - wanted).max() < TOLERANCE


def test_a_text_has_the_same_states_alone(runner):
    for together, ids in zip(states(runner, TEXTS), TEXTS, strict=True):
        assert np.allclose(together, states(runner, [ids])[0], atol=1e-5)


def test_every_token_counts_for_every_other(runner):
    changed = TEXTS[0].copy()
    changed[-1] = (changed[-1] + 1) % SIZES["vocab_size"]
    (before,), (after,) = states(runner, [TEXTS[0]]), states(runner, [changed])
    assert (np.abs(after - before).max(axis=1) > 1e-5).all()


def test_nomics_own_config_says_the_same(tmp_path):
    folder = tmp_path / "own"
    make(folder, transformers.NomicBertModel)
    names = {
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
        "intermediate_size": "n_inner",
        "max_position_embeddings": "n_positions",
        "layer_norm_eps": "layer_norm_epsilon",
    }
    path = folder / "config.json"
    config = json.loads(path.read_text())
    own = {names[key]: config[key] for key in names} | {"rotary_emb_base": 1000, "activation_function": "swiglu"}
    own |= {key: config[key] for key in ("architectures", "vocab_size")}
    checkpoint = ARCHS["nomic-bert"].checkpoint
    newer, older = CheckpointConfig(config, path), CheckpointConfig(own, path)
    assert checkpoint.metadata(older).items() <= checkpoint.metadata(newer).items()
    assert checkpoint.tensors(older) == checkpoint.tensors(newer)
    assert newer.problems == older.problems == {}


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "cls"}, "cls"),
        (None, "mean"),
    ],
)
def test_pooling_is_what_sentence_transformers_would_do(tmp_path, settings, pooling):
    assert POOLINGS[pooling_type(tmp_path, settings)] == pooling


@pytest.mark.parametrize("settings", [{}, {"pooling_mode_max_tokens": True}, {"pooling_mode": "max"}, [1], "mean"])
def test_another_pooling_is_an_error_that_names_its_file(tmp_path, settings):
    with pytest.raises(FormatError, match=r"1_Pooling.config\.json"):
        pooling_type(tmp_path, settings)


def pooling_type(folder, settings):
    if settings is not None:
        modules = [{"path": ""}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps(settings))
    config = CheckpointConfig(SIZES, folder / "config.json")
    return ARCHS["bert"].checkpoint.metadata(config)["pooling_type"]


@pytest.mark.parametrize(
    ("arch", "key", "value"),
    [
        ("bert", "hidden_act", "relu"),
        ("bert", "position_embedding_type", "relative_key"),
        ("nomic-bert", "hidden_act", "gelu"),
    ],
)
def test_what_the_program_does_not_do_is_refused(tmp_path, arch, key, value):
    config = CheckpointConfig(SIZES | {key: value}, tmp_path / "config.json")
    with pytest.raises(UnsupportedError, match=value):
        ARCHS[arch].checkpoint.metadata(config)
