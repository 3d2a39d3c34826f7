"""`splitter_of`: the splitter for the tokens that the rules of a file list as added."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .rules import Flag
from .splitter import Edges, Splitter
from .vocabulary import TokenType, Vocabulary

_CONTROL = (TokenType.CONTROL, TokenType.UNKNOWN)
_EDGES = Flag.LSTRIP | Flag.RSTRIP | Flag.SINGLE_WORD


def splitter_of(
    vocabulary: Vocabulary, added: Mapping[int, Flag], special: bool, spell: Callable[[str], str] = str
) -> Splitter:
    """Finds `added` tokens, control tokens among them where `special`, in text where they are spelt by `spell`."""
    always: dict[str, int] = {}
    control: dict[str, int] = {}
    edges = {}
    for token, flags in added.items():
        text = spell(vocabulary.tokens[token])
        is_control = vocabulary.types[token] in _CONTROL
        if not text or (is_control and not special):
            continue
        (control if is_control else always)[text] = token
        if flags & _EDGES:
            edges[text] = Edges(Flag.LSTRIP in flags, Flag.RSTRIP in flags, Flag.SINGLE_WORD in flags)
    return Splitter(always, control, edges)
