"""What is left to lose decides how many drafts may be tried, and a step without any always may."""

from __future__ import annotations

import numpy as np

from halfbyte.runtime.speculation.draft_length import draft_lengths
from halfbyte.runtime.speculation.stake import START, Stake

RISKS = np.array([0.0, 0.5, START + 1.0])


def test_what_is_left_may_be_put_at_risk():
    stake = Stake()
    assert stake.allows(RISKS) == 2
    assert stake.allows(RISKS[:2]) == 2


def test_a_step_without_drafts_is_allowed_when_more_was_lost_than_there_was():
    stake = Stake()
    stake.note(-START - 5.0)
    allowed = stake.allows(RISKS)
    assert allowed == 1
    assert draft_lengths([[0.9, 0.9]], (1 + RISKS)[:allowed], 1) == [0]
