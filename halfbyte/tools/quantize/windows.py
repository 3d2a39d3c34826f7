"""`cut_texts`: texts for calibration as runs of tokens, each read from an empty context."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import ConfigError
from ...text.tokenizer import Tokenizer


def cut_texts(
    tokenizer: Tokenizer, texts: Sequence[str], length: int, most: int | None = None
) -> list[NDArray[np.int32]]:
    """Windows of `length` tokens, i32[length] each; no window holds parts of two texts.

    The end of a text that fills no window is left out, since in short windows the first token, which many models treat
    in a way of its own, counts too much; a text that fills none at all is one shorter window. Where the tokenizer
    wants a begin token it takes the place of each window's first. `most` limits their number. Raises `ConfigError` for
    a text without a token.
    """
    windows: list[NDArray[np.int32]] = []
    for text in texts:
        ids = np.array(tokenizer.encode(text, eos=False) if text else [], np.int32)
        if len(ids) == 0:
            raise ConfigError("the text is empty: give one in the language and style that the model will meet")
        for start in range(0, max(1, len(ids) - length + 1), length):
            window = ids[start : start + length].copy()
            if tokenizer.add_bos and tokenizer.bos_id is not None:
                window[0] = tokenizer.bos_id
            windows.append(window)
    return windows[:most]
