"""`token_view`: the tokens of an answer, coloured by how likely the model found them, and what else might have come."""

from __future__ import annotations

import math
from typing import Any

from ..errors import RequestError
from .conversation import Conversation

ALTERNATIVES = 4
MOST_ROWS = 24
COLOURS = ((0.9, "green"), (0.6, "cyan"), (0.3, "yellow"), (0.1, "magenta"), (0.0, "red"))
"""From this probability on."""


def token_view(conversation: Conversation, everything: bool = False) -> Any:
    """The last answer for rich to draw: its text, and a table of the tokens that were least certain, or of all.

    Raises `RequestError` where there is no answer of this session.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    turn, llm = conversation.last_answer(), conversation.llm
    if not turn.ids:
        raise RequestError("the last answer comes from a file; /retry makes one whose tokens are known")
    score = llm.score([*turn.prompt_ids, *turn.ids], logprobs=ALTERNATIVES)
    tokens = score.tokens[-len(turn.ids) :]
    text = Text()
    for token in tokens:
        text.append(_spell(conversation, token.token), style=_colour(token.logprob))
    chosen = list(tokens) if everything else sorted(tokens, key=lambda token: token.logprob)[:MOST_ROWS]
    rows = Table("token", "probability", "likeliest", title=None if everything else "least certain tokens")
    for token in chosen:
        others = ", ".join(f"{_shown(conversation, other)} {_percent(logprob)}" for other, logprob in token.top)
        rows.add_row(
            Text(_shown(conversation, token.token), style=_colour(token.logprob)), _percent(token.logprob), Text(others)
        )
    return Group(text, rows)


def _colour(logprob: float) -> str:
    return next(colour for least, colour in COLOURS if math.exp(logprob) >= least)


def _percent(logprob: float) -> str:
    return f"{math.exp(logprob):.1%}"


def _spell(conversation: Conversation, token: int) -> str:
    return conversation.llm.detokenize([token], special=True)


def _shown(conversation: Conversation, token: int) -> str:
    return repr(_spell(conversation, token))
