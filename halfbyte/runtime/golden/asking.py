"""What tokenizer and reference answer now, as `GoldenVectors`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import FormatError, UnsupportedError
from ...formats import GGUFFile
from ...model import bind
from ...model.backend import Progress
from ...model.bind import BoundModel
from ...model.program import StepBatch
from ...model.reference import ReferenceExecutable
from ...text import Tokenizer, build_tokenizer
from .rows import Floats, Ints, Rows, choose_columns, summarise
from .sums import layout
from .texts import PROMPT, TEXTS
from .vectors import PROMPT_TOKENS, TEXT_IDS, GoldenVectors
from .watched import Watched


def ask(file: GGUFFile, progress: Progress | None = None, sums: Mapping[str, int] | None = None) -> GoldenVectors:
    """Golden vectors of a file as it is; `sums` are those of its tensors, None where nobody will compare them.

    The reference decodes each weight a few rows at a time, so memory is a few megabytes, whatever the model; a thousand
    million weights take 2 s (bf16) to 8 s (codes from a grid). Raises what `bind` does.
    """
    bound = bind(file)
    tokenizer = tokenizer_of(file)
    prompt = choose_prompt(bound, tokenizer)
    rows = reference_rows(file, bound, prompt, choose_columns(width(bound)), progress)
    of_tensors = np.array([value for _, value in sorted((sums or {}).items())], np.uint32)
    return GoldenVectors(TEXTS, ids_of_texts(tokenizer), layout(file), of_tensors, prompt, rows)


def tokenizer_of(file: GGUFFile) -> Tokenizer | None:
    """That of the file; None where it has none or one that we do not know."""
    try:
        return build_tokenizer(file.metadata)
    except UnsupportedError:
        return None
    except FormatError:
        if "tokenizer.ggml.tokens" in file.metadata:
            raise
        return None


def ids_of_texts(tokenizer: Tokenizer | None) -> tuple[Ints | None, ...]:
    """Ids of each of `TEXTS`, None for those that cannot be recorded."""
    found: list[Ints | None] = []
    left = TEXT_IDS
    for text in TEXTS:
        ids = None if tokenizer is None else np.array(tokenizer.encode(text), np.int32)
        found.append(None if ids is None or len(ids) > left else ids)
        left -= 0 if found[-1] is None else len(found[-1])
    return tuple(found)


def choose_prompt(bound: BoundModel, tokenizer: Tokenizer | None) -> Ints:
    """The beginning of a text, or any ids where no tokenizer gives some that the model has."""
    n = min(PROMPT_TOKENS, bound.context)
    ids = [] if tokenizer is None else tokenizer.encode(PROMPT)[:n]
    if ids and max(ids) < bound.program.vocab_size:
        return np.array(ids, np.int32)
    return np.random.default_rng(0).integers(0, bound.program.vocab_size, n).astype(np.int32)


def width(bound: BoundModel) -> int:
    """Of a row of what the program gives: V, or D of an encoder."""
    return bound.program.widths[bound.program.logits]


def reference_rows(
    file: GGUFFile, bound: BoundModel, prompt: Ints, columns: Ints, progress: Progress | None = None
) -> Rows:
    """What the reference answers to `prompt`."""
    file.whole()()
    weights = Watched(bound.weights, progress, "reference", file.forget)
    places = np.arange(len(prompt), dtype=np.int32)
    zero = np.zeros(1, np.int32)
    batch = StepBatch(
        ids=prompt,
        positions=places,
        seq_of=np.zeros_like(places),
        slots=places,
        page_table=zero[None],
        seq_len=zero + np.int32(len(prompt)),
        logit_rows=places,
    )
    runner = ReferenceExecutable(bound.program, weights, n_pages=1, page_len=len(prompt), lean=True)
    out: Floats = np.empty((len(prompt), width(bound)), np.float32)
    runner.run(batch, out)
    runner.close()
    return summarise(out, columns)
