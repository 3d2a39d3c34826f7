"""`load_proposers`: who guesses tokens, as `LoadConfig` says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..formats import open_gguf
from ..model import BoundModel, bind
from ..text import Tokenizer, build_tokenizer
from .backends import BACKENDS, Job
from .fits import check_memory
from .guarded import GuardedExecutable
from .speculation.draft_model import DraftModel
from .speculation.ngram import NgramProposer
from .speculation.proposer import Proposer
from .speculation.same_vocabulary import check_same_vocabulary

MOST_TOKENS = 128
"""Of a step of the draft model, so that reading a prompt holds nobody up for long."""


def load_proposers(job: Job, tokenizer: Tokenizer, draft: Path | None) -> list[Proposer]:
    """For the model that `job` makes ready; `draft` is the file of a draft model.

    Raises what `load` raises, `ConfigError` for a draft model with another vocabulary among it.
    """
    proposers: list[Proposer] = [NgramProposer()] if job.config.speculation == "ngram" else []
    if draft is not None:
        proposers.append(_draft_model(job, tokenizer, draft))
    return proposers


def _draft_model(job: Job, tokenizer: Tokenizer, path: Path) -> DraftModel:
    with open_gguf(path) as file:
        bound = bind(file)
        check_same_vocabulary(tokenizer.vocabulary, build_tokenizer(file.metadata).vocabulary)
        own = _job(job, bound)
        check_memory(own)
        executable = BACKENDS[job.config.backend](own)
        return DraftModel(
            GuardedExecutable(executable, file.whole()),
            vocab_size=bound.program.vocab_size,
            model_vocab_size=job.program.vocab_size,
            context=own.config.context,
            max_tokens=own.config.step_tokens,
            max_seqs=job.max_seqs,
        )


def _job(job: Job, bound: BoundModel) -> Job:
    """As many tokens of KV as the model has, so that the draft model can follow wherever it goes. The CPU runs it."""
    tokens = max(MOST_TOKENS, job.max_seqs)
    config = replace(
        job.config,
        context=min(job.config.context, bound.spec.context_length),
        max_num_batched_tokens=min(tokens, job.config.step_tokens),
        gpu_layers=0,
        experts_on_cpu=False,
        kv_on_cpu=False,
    )
    own = Job(bound.program, bound.weights, config, job.progress)
    return replace(own, config=replace(config, kv_memory=job.n_pages * own.page_bytes))
