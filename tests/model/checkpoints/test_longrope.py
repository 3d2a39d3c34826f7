"""Models that turn long contexts by other factors than short ones: the context that a file is opened with decides."""

import numpy as np
import pytest

from halfbyte.errors import FormatError
from halfbyte.formats import open_gguf
from halfbyte.model import bind
from halfbyte.model.kv_types import KvTypes
from halfbyte.model.reference import ReferenceExecutable
from tests.model.batches import run_side_by_side
from tests.model.checkpoints.converted import convert
from tests.model.checkpoints.tiny_checkpoint import SIZES, answers, make, prompts

ORIGINAL = 40
FACTORS = {"short_factor": [1.0, 1.2] * 4, "long_factor": [2.0, 3.0] * 4, "original_max_position_embeddings": ORIGINAL}
ROPE = FACTORS | {"rope_type": "longrope", "rope_theta": 500.0}
CASES = {
    "phi3": ("Phi3", {"rope_parameters": ROPE, "original_max_position_embeddings": ORIGINAL}),
    "llama": ("Llama", {"rope_parameters": ROPE | {"attention_factor": 1.3}}),
}


@pytest.fixture(scope="module", params=list(CASES))
def original(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    name, config = CASES[request.param]
    model = make(folder, name, **config)
    return model, open_gguf(convert(folder))


def error(original, context, lengths):
    model, file = original
    bound, texts = bind(file, context), prompts(lengths)
    runner = ReferenceExecutable(bound.program, bound.weights, n_pages=30, page_len=8, kv=KvTypes("f32", "f32"))
    got = run_side_by_side(runner, texts, SIZES["vocab_size"])
    return max(np.abs(a - b).max() for a, b in zip(got, answers(model, texts), strict=True))


def test_a_short_context_turns_by_the_short_factors(original):
    """The original decides by the length of each text."""
    assert error(original, ORIGINAL, [ORIGINAL, 23]) < 1e-4
    assert error(original, ORIGINAL, [ORIGINAL + 1]) > 1e-2


@pytest.mark.parametrize("context", [ORIGINAL + 1, None])
def test_a_longer_one_by_the_long_factors(original, context):
    assert error(original, context, [70, 41]) < 1e-4
    assert error(original, context, [ORIGINAL]) > 1e-2


def test_factors_that_are_missing_or_too_few_are_named(bound):
    with pytest.raises(FormatError, match=r"rope_factors_long\.weight is missing"):
        bound("phi3", metadata=CONTEXT, tensors={"rope_factors_short.weight": np.ones(8)})
    with pytest.raises(FormatError, match=r"rope_factors_long\.weight has 7 factors for 16 channels"):
        bound("phi3", metadata=CONTEXT, tensors={"rope_factors_long.weight": np.ones(7)})


CONTEXT = {"phi3.rope.scaling.original_context_length": ORIGINAL, "phi3.rope.dimension_count": 16}
