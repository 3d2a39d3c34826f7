"""Speculation that drafts all it may, whether it pays or not."""

from __future__ import annotations

import numpy as np

from halfbyte.runtime.speculation import speculation as module
from halfbyte.runtime.speculation.draft_model import DraftModel
from halfbyte.runtime.speculation.ngram import NgramProposer
from halfbyte.runtime.speculation.speculation import Speculation
from tests.runtime.toy import VOCAB


class EagerStake:
    def allows(self, steps):
        return len(steps)

    def note(self, won):
        pass


class EagerTimes:
    base = 1.0
    calm = True

    def __init__(self, answers):
        pass

    def note(self, drafts, seconds):
        pass

    def least(self):
        return 1.0

    def curve(self, most):
        return np.ones(most + 1)


def be_eager(monkeypatch):
    """From here on every draft seems to pay."""
    monkeypatch.setattr(module, "Stake", EagerStake)
    monkeypatch.setattr(module, "StepTimes", EagerTimes)


def eager_ngram(**options) -> Speculation:
    return Speculation([NgramProposer()], **options)


def eager_model(executable, *, ngram=False, vocab_size=VOCAB, context=64, max_tokens=9, max_seqs=8) -> Speculation:
    """With `executable` for a draft model."""
    model = DraftModel(
        executable,
        vocab_size=vocab_size,
        model_vocab_size=VOCAB,
        context=context,
        max_tokens=max_tokens,
        max_seqs=max_seqs,
    )
    return Speculation([NgramProposer(), model] if ngram else [model])
