"""`Finding`: one item of a check, right or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["tensors", "token ids", "logits"]


@dataclass(frozen=True)
class Finding:
    """`item` says what was compared, `note` what was found; `part` groups findings with the same causes."""

    part: Part
    item: str
    ok: bool
    note: str
