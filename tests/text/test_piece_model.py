"""Our model bytes against the library's own reading of them."""

from __future__ import annotations

import numpy as np
import pytest
import sentencepiece

from halfbyte.errors import FormatError
from halfbyte.text.piece_model import piece_model


@pytest.mark.parametrize("odd", ["\u2581the", "é", "é" * 200])
def test_the_library_reads_every_piece_score_and_type(odd: str) -> None:
    tokens = ["<unk>", "a", "b", odd, "<s>"]
    scores = np.array([0, -1.5, -2.25, -3, 0], np.float32)
    types = np.array([2, 1, 1, 1, 3], np.int32)
    read = sentencepiece.SentencePieceProcessor(model_proto=piece_model(tokens, scores, types, 0, False))
    assert [read.id_to_piece(i) for i in range(5)] == tokens
    assert [read.get_score(i) for i in range(5)] == scores.tolist()
    assert [read.is_unknown(0), read.is_control(4), read.is_control(1)] == [True, True, False]
    assert read.encode("ab") == [1, 2]


@pytest.mark.parametrize(("odd", "message"), [("a\0b", "NUL"), ("x" * (1 << 21), "token 1 is 2097152 bytes long")])
def test_pieces_that_no_model_can_hold_are_refused(odd: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        piece_model(["a", odd], np.zeros(2, np.float32), np.ones(2, np.int32), 0, False)
