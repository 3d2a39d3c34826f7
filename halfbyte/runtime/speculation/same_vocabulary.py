"""Whether two models mean the same by a token."""

from __future__ import annotations

import numpy as np

from ...errors import ConfigError
from ...text.vocabulary import TokenType, Vocabulary

_TEXT = (TokenType.NORMAL, TokenType.BYTE, TokenType.USER_DEFINED)
_ADVICE = "take a draft model of the same family, or none"


def check_same_vocabulary(model: Vocabulary, draft: Vocabulary) -> None:
    """Raise `ConfigError` unless every token that stands for text is the same in both.

    Control tokens may have other names, and either may have more tokens behind that stand for no text: models of one
    family differ in both.
    """
    common = min(len(model.tokens), len(draft.tokens))
    for longer, name in ((model, "the model"), (draft, "the draft model")):
        extra = [i for i in longer.ids_of(*_TEXT) if i >= common]
        if extra:
            raise ConfigError(
                f"the draft model has another vocabulary: it has {len(draft.tokens)} tokens, the model "
                f"{len(model.tokens)}, and token {extra[0]} of {name}, {longer.tokens[extra[0]]!r}, stands for text: "
                f"{_ADVICE}",
                key="draft_model",
            )
    texts = np.union1d(model.ids_of(*_TEXT), draft.ids_of(*_TEXT)).tolist()
    differing = [i for i in texts if model.tokens[i] != draft.tokens[i]]
    if differing:
        first = differing[0]
        raise ConfigError(
            f"the draft model has another vocabulary: {len(differing)} of {common} tokens differ, the first is token "
            f"{first}, for the draft model {draft.tokens[first]!r}, for the model {model.tokens[first]!r}: {_ADVICE}",
            key="draft_model",
        )
