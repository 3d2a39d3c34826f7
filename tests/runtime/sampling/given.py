"""Candidates and samplers that several tests start from."""

import numpy as np

from halfbyte.runtime.sampling.candidates import Candidates
from halfbyte.runtime.sampling.params import SamplingParams
from halfbyte.runtime.sampling.sampler import Sampler
from tests.runtime.toy import ToyExecutable

SELECT = ToyExecutable().top_k
PROBABILITIES = [0.5, 0.25, 0.15, 0.06, 0.04]
EVERY_STEP_OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


def row_of(probabilities):
    """A whole row f32[V]."""
    with np.errstate(divide="ignore"):
        return np.log(np.array(probabilities)).astype(np.float32)


def ranked(logits, ids=None, *, many=False):
    """Candidates best first; as arrays where `many`."""
    ids = np.arange(len(logits), dtype=np.int32) if ids is None else np.array(ids, np.int32)
    order = np.lexsort((ids, -np.array(logits, np.float64)))
    ids, logits = ids[order], np.array(logits, np.float64)[order]
    return Candidates(ids, logits) if many else Candidates(ids.tolist(), logits.tolist())


def shares(candidates):
    """Probability of each id."""
    probabilities = np.exp(candidates.log_probabilities())
    return dict(zip(np.asarray(candidates.ids).tolist(), probabilities.tolist(), strict=True))


def sampler(prompt=(), capacity=100, *, spell=lambda token: b"", **params):
    return Sampler(SamplingParams(**params), SELECT, prompt=np.array(prompt, np.int32), capacity=capacity, spell=spell)
