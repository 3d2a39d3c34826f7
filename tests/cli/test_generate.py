from __future__ import annotations

import os
import sys

import pytest

from halfbyte.cli import terminal, typed_text


def test_tokens_alone_go_to_stdout(run, loaded) -> None:
    done = run("generate", "m.gguf", "Hi", "--threads", "2", "--context", "99")
    assert (done.code, done.out) == (0, "<Hi>\n")
    assert done.err == "[prompt 3 tokens (1 cached), prefill 4 tok/s, answer 4 tokens, decode 1.5 tok/s]\n"
    assert (loaded[0].model, loaded[0].closed) == ("m.gguf", True)
    assert (loaded[0].options["context"], loaded[0].options["threads"]) == (99, 2)


def test_options_reach_the_library_and_those_left_out_are_none(run, loaded) -> None:
    run("generate", "m", "x", "--top-k=5", "--seed", "7", "--stop", "a", "--stop", "b", "-n", "9")
    assert loaded[0].calls == [
        (
            "x",
            {
                "max_tokens": 9,
                "stop": ["a", "b"],
                "temperature": 0.0,
                "top_k": 5,
                "top_p": None,
                "seed": 7,
            },
        )
    ]


def test_settings_reach_the_library(run, loaded) -> None:
    words = ["--set", "repeat_penalty=1.1", "--set=logit_bias=5:-inf,7:2", "--set", "samplers=top-k, temperature"]
    assert run("generate", "m", "x", *words, "--top-k", "9", "--set", "top_k=4").code == 0
    given = {name: value for name, value in loaded[0].calls[0][1].items() if value is not None}
    assert given == {
        "max_tokens": 256,
        "stop": [],
        "temperature": 0.0,
        "top_k": 4,
        "repeat_penalty": 1.1,
        "logit_bias": {5: -float("inf"), 7: 2.0},
        "samplers": ["top_k", "temperature"],
    }


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("repeat_penalty=0", "repeat_penalty must be a finite number from 1e-06"),
        ("repeat_penlty=1", "did you mean 'repeat_penalty'"),
        ("samplers=topk", "did you mean 'top_k'"),
        ("logit_bias=5", "'5' is not TOKEN:NUMBER"),
        ("dry_sequence_breakers=.", "'.' is no JSON list of texts"),
        ("mirostat=1.5", "'1.5' is not a whole number"),
    ],
)
def test_a_wrong_setting_is_told_before_a_model_is_loaded(run, loaded, setting: str, hint: str) -> None:
    done = run("generate", "m", "x", "--set", setting)
    assert (done.code, loaded) == (1, [])
    assert hint in done.err


def test_adapters_are_paths_with_scales(run, loaded) -> None:
    assert run("generate", "m", "x", "--load", "adapters=a.gguf, dir/b.gguf=0.5").code == 0
    assert loaded[0].options["adapters"] == [("a.gguf", 1.0), ("dir/b.gguf", 0.5)]
    done = run("generate", "m", "x", "--load", "adapters=a.gguf=much")
    assert (done.code, len(loaded)) == (1, 1)
    assert "'much' is no number: write PATH or PATH=SCALE" in done.err


def test_a_setting_written_as_an_option_is_told_how(run) -> None:
    done = run("generate", "m", "x", "--repeat-penalty", "1.1")
    assert done.code == 2
    assert "--repeat-penalty is a setting: write --set repeat_penalty=VALUE" in done.err


def test_options_may_stand_before_between_and_behind_arguments(run, loaded) -> None:
    for words in (["-n", "2", "m", "x"], ["m", "-n", "2", "x"], ["m", "x", "-n", "2"]):
        assert run("generate", *words).out == "<x\n"


@pytest.mark.parametrize(
    ("prompt", "piped", "expected"),
    [
        (["Translate:"], b"bonjour\n", "Translate:\nbonjour"),
        ([], b"bonjour\r\n", "bonjour"),
        (["-"], b"two\nlines\n", "two\nlines"),
        ([], b"kept\n\n", "kept\n"),
        (["x"], b"", "x"),
        ([], b"\xffbad", "\N{REPLACEMENT CHARACTER}bad"),
        (["x\udcff"], None, "x\N{REPLACEMENT CHARACTER}"),
        (["x"], None, "x"),
    ],
)
def test_piped_text_is_put_behind_the_prompt(
    run, loaded, prompt: list[str], piped: bytes | None, expected: str
) -> None:
    assert run("generate", "m", *prompt, piped=piped).code == 0
    assert loaded[0].calls[0][0] == expected


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be waited for there")
def test_a_pipe_that_stays_silent_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(typed_text, "PATIENCE_S", 0.05)
    said: list[str] = []
    monkeypatch.setattr(terminal, "note", lambda text: (said.append(text), os.close(writing)))
    with open(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert typed_text.message("x", what="prompt") == "x"
    assert said == ["waiting for piped text; if none is meant to come, add < /dev/null"]


def test_special_tokens_count_only_where_asked_for(run, loaded) -> None:
    run("generate", "m", "ab", "--special")
    assert loaded[0].calls[0][0] == [97, 98]


def test_json_holds_log_probabilities_where_asked_for(run, loaded) -> None:
    done = run("generate", "m", "Hi", "--json", "--set", "logprobs=1", "-n", "1")
    assert done.json["logprobs"] == [{"token": 60, "logprob": -0.5, "top": [[60, -0.5]]}]


def test_json_is_one_object(run, loaded) -> None:
    done = run("generate", "m", "Hi", "--json")
    assert done.err == ""
    assert done.json == {
        "text": "<Hi>",
        "ids": [60, 72, 105, 62],
        "finish_reason": "stop",
        "prompt_ids": [1, 2],
        "seed": 7,
        "timings": {
            "prompt_tokens": 3,
            "cached_tokens": 1,
            "completion_tokens": 4,
            "first_token_s": 0.5,
            "prefill_s": 0.5,
            "decode_s": 2.0,
            "drafted_tokens": 0,
            "accepted_tokens": 0,
            "prefill_tok_s": 4.0,
            "decode_tok_s": 1.5,
        },
    }
