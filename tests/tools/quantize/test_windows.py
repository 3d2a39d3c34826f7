"""Texts cut for calibration."""

import numpy as np
import pytest

from halfbyte.errors import ConfigError
from halfbyte.formats import open_gguf
from halfbyte.text import build_tokenizer
from halfbyte.tools.quantize.windows import cut_texts
from tests.model.tiny import make_tiny_gguf


@pytest.fixture
def tokenizer(tmp_path):
    def make(bos):
        path = make_tiny_gguf(tmp_path / "m.gguf", metadata={"tokenizer.ggml.add_bos_token": bos})
        with open_gguf(path) as file:
            return build_tokenizer(file.metadata)

    return make


def test_windows_are_the_text_in_order_without_its_last_part(tokenizer):
    plain = tokenizer(False)
    ids = plain.encode("zyxwvu" * 5)
    windows = cut_texts(plain, ["zyxwvu" * 5], 8)
    assert [len(window) for window in windows] == [8] * (len(ids) // 8)
    assert np.concatenate(windows).tolist() == ids[: len(ids) // 8 * 8]


def test_a_text_that_fills_no_window_is_a_shorter_one(tokenizer):
    plain = tokenizer(False)
    assert [window.tolist() for window in cut_texts(plain, ["zy"], 8)] == [plain.encode("zy")]


def test_a_text_of_one_window_is_one_window(tokenizer):
    assert [len(window) for window in cut_texts(tokenizer(False), ["zyxw"], 4)] == [4]


def test_every_window_begins_as_the_model_wants(tokenizer):
    marked = tokenizer(True)
    ids = marked.encode("zyxwvu" * 4)
    windows = cut_texts(marked, ["zyxwvu" * 4], 8)
    assert len(windows) > 1
    assert all(window[0] == marked.bos_id for window in windows)
    assert np.concatenate([window[1:] for window in windows]).tolist() == [
        token for place, token in enumerate(ids[: 8 * len(windows)]) if place % 8
    ]


def test_no_window_holds_two_texts_and_the_first_ones_count(tokenizer):
    plain = tokenizer(False)
    windows = cut_texts(plain, ["zyxw", "vuzyxwvuzy"], 4)
    assert ["".join(plain.token_text(token) for token in window) for window in windows] == ["zyxw", "vuzy", "xwvu"]
    assert len(cut_texts(plain, ["zyxw", "vuzyxwvuzy"], 4, most=2)) == 2


@pytest.mark.parametrize("bos", [False, True])
def test_an_empty_text_is_refused(tokenizer, bos):
    with pytest.raises(ConfigError, match="the text is empty"):
        cut_texts(tokenizer(bos), ["zyx", ""], 8)
