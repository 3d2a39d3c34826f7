"""Tokens that end a generation, known by their text: files name one of them and often mean three."""

from __future__ import annotations

from collections.abc import Callable, Mapping

SURE_ENDS = (
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<turn|>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[e~[",
)
"""Nobody writes these by accident, so they are control tokens even where a converter typed them otherwise."""

PLAIN_ENDS = (
    "</s>",
    "<eos>",
    "[EOS]",
    "<|tool_response>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<reponame>",
    "<REPO>",
    "<|file_sep|>",
)
"""These end a generation where the file types them as control tokens; Gemma's `</s>`, for one, is a piece of HTML."""

_CALLS = {"<|return|>": "<|call|>", "<|flush|>": "<|calls|>"}


def find_turn_ends(ids: Mapping[str, int], is_control: Callable[[int], bool]) -> frozenset[int]:
    """Ids of all well-known end tokens in a vocabulary given as text to id."""
    found = {ids[text] for text in SURE_ENDS if text in ids}
    found |= {ids[text] for text in PLAIN_ENDS if text in ids and is_control(ids[text])}
    # Formats with a token that ends the whole answer use <|end|> between its parts.
    if any(ends in ids and calls in ids for ends, calls in _CALLS.items()):
        found.discard(ids.get("<|end|>", -1))
    return frozenset(found)
