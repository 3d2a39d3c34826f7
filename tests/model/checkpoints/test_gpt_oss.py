"""What is said of gpt-oss by its config alone."""

import pytest

from halfbyte.errors import UnsupportedError
from halfbyte.model.archs import ARCHS
from halfbyte.model.checkpoint_config import CheckpointConfig
from halfbyte.model.rope import YARN_CUT
from tests.model.checkpoints.tiny_checkpoint import SIZES

CONFIG = SIZES | {"head_dim": 16, "sliding_window": 20, "num_local_experts": 5, "num_experts_per_tok": 2}


@pytest.mark.parametrize(("more", "cut"), [({}, True), ({"truncate": True}, True), ({"truncate": False}, False)])
def test_a_file_always_says_whether_yarn_is_cut(tmp_path, more, cut):
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64} | more
    config = CheckpointConfig(CONFIG | {"rope_parameters": yarn}, tmp_path / "config.json")
    assert ARCHS["gpt-oss"].checkpoint.metadata(config)[YARN_CUT] is cut


@pytest.mark.parametrize("key", ["swiglu_alpha", "swiglu_limit"])
def test_a_gate_that_is_clamped_elsewhere_is_refused(tmp_path, key):
    config = CheckpointConfig(CONFIG | {key: 6.0}, tmp_path / "config.json")
    with pytest.raises(UnsupportedError, match="swiglu_limit"):
        ARCHS["gpt-oss"].checkpoint.metadata(config)
