"""What `load` refuses before it reads a byte."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import halfbyte
from halfbyte import ConfigError, FormatError, UnsupportedError
from tests.model.tiny import tiny_model


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"contxt": 1}, ConfigError, "unknown keyword 'contxt'; did you mean 'context'"),
        ({"n_threads": 1}, ConfigError, "'n_threads'; did you mean 'threads'"),
        ({"context": 0}, ConfigError, "context must be an integer of at least 1, not 0"),
        ({"context": 2**31}, ConfigError, "context must be"),
        ({"context": True, "threads": 1.5}, ConfigError, "context must be .*; threads must be"),
        ({"max_num_batched_tokens": -1}, ConfigError, "max_num_batched_tokens"),
        ({"max_num_seqs": "8"}, ConfigError, "max_num_seqs"),
        ({"prefix_cache": 1}, ConfigError, "prefix_cache must be True or False"),
        ({"isa": 5}, ConfigError, "isa must be a string"),
        ({"progress": 5}, ConfigError, "progress must be a function"),
        ({"kv": "q3"}, UnsupportedError, r"kv='q3'.*known: f16"),
        ({"kv": "q8_0/"}, UnsupportedError, r"kv='q8_0/'.*known: f16"),
        ({"backend": "cpuu"}, UnsupportedError, r"did you mean 'cpu'.*known: cpu, reference"),
    ],
)
def test_keywords_that_are_misspelt_or_impossible(options, error, message):
    with pytest.raises(error, match=message):
        halfbyte.load("there-is-no-such-file.gguf", **options)


def test_an_empty_isa_is_not_taken_for_none(tmp_path):
    with pytest.raises(ConfigError, match="unknown isa ''"):
        halfbyte.load(tiny_model(tmp_path), isa="")


def test_counts_may_be_numpy_integers(tmp_path):
    options = {"context": 32, "threads": 1, "max_num_batched_tokens": 8, "max_num_seqs": 2}
    path = tiny_model(tmp_path)
    with halfbyte.load(path, **{name: np.int64(value) for name, value in options.items()}) as llm:
        assert llm.info()["threads"] == 1
        assert type(llm.context) is int


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="there is no file"):
        halfbyte.load(tmp_path / "model.gguf")
    with pytest.raises(ConfigError, match="did you mean 'smollm2-135m'"):
        halfbyte.load("smollm2-135")
    with pytest.raises(ConfigError, match="model must be a path or a name"):
        halfbyte.load(5)


def test_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(FormatError, match=r"model\.gguf"):
        halfbyte.load(path)


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be cut there")
def test_a_file_cut_while_in_use_ends_the_request_and_not_the_process(tmp_path):
    path = tiny_model(tmp_path)
    with halfbyte.load(path, context=32, threads=1) as llm:
        assert llm.generate([1, 2, 3], max_tokens=2).ids
        os.truncate(path, 100)
        with pytest.raises(FormatError, match="shorter since it was opened"):
            llm.generate([1, 2, 3], max_tokens=2)
