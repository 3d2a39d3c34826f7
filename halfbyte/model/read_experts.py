"""What the metadata of a mixture of experts say, and what an absent key means."""

from __future__ import annotations

from typing import Literal

from ..errors import UnsupportedError
from .metadata import Metadata
from .spec import Experts

MAX_EXPERTS = 1024
_MAX_WIDTH = 1 << 20
_GATES: dict[int, tuple[Literal["softmax", "sigmoid"], bool]] = {
    1: ("softmax", False),
    2: ("sigmoid", False),
    3: ("softmax", True),
}
"""`expert_gating_func`: the gate, and whether the weights of the chosen add up to one whatever else is said.

3 is a softmax over the scores of the chosen alone, which is one over all scores divided by the sum of the chosen.
"""


def read_experts(metadata: Metadata, *, always: bool = False) -> Experts | None:
    """The experts of a model, None where it has none; problems are left in `metadata`.

    Without keys that say otherwise the gate is a softmax, the weights of the chosen add up to one, and an expert is as
    wide as `feed_forward_length`; a file of an architecture that `always` has some must say how many. Raises
    `UnsupportedError` for a gate we do not have and experts chosen by groups.
    """
    low, default = (1, None) if always else (0, 0)
    count = metadata.integer("expert_count", default, low=low, high=MAX_EXPERTS)
    if count == 0:
        return None
    if metadata.integer("expert_group_count", 1, low=0) > 1:
        raise UnsupportedError(f"{metadata.arch}.expert_group_count: experts chosen by groups are not supported")
    used = metadata.integer("expert_used_count")
    if used > count:
        metadata.problem(f"{metadata.arch}.expert_used_count", f"is {used} of {count} experts")
    number = metadata.integer("expert_gating_func", 1, low=0)
    if number not in _GATES:
        known = [f"{known} ({gate})" for known, (gate, _) in _GATES.items()]
        raise UnsupportedError(
            f"{metadata.arch}.expert_gating_func: unknown way {number} to weigh experts", known=known
        )
    gate, of_chosen = _GATES[number]
    own_width = metadata.has("expert_feed_forward_length")
    return Experts(
        count,
        used,
        metadata.integer("expert_feed_forward_length" if own_width else "feed_forward_length", high=_MAX_WIDTH),
        gate,
        of_chosen or metadata.flag("expert_weights_norm", True),
        metadata.number("expert_weights_scale", 0.0, low=0.0) or 1.0,
    )
