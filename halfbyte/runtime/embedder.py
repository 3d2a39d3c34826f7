"""`Embedder`: a loaded encoder, ready to make vectors of texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ContextExceededError, RequestError
from ..model.backend import Executable
from ..model.pooling import pooled
from ..model.spec import ModelSpec
from ..text import Tokenizer
from .inbox import CLOSED
from .prompts import token_ids
from .whole_texts import pack, step_of

Vectors = NDArray[np.float32]
Text = str | Sequence[int]


class Embedder:
    """Makes vectors of texts; `halfbyte.load_embedder` makes one. Any thread may call any method, several at once.

    `context` is the most tokens of one text, `pooling` how the states of its tokens become one vector, `spec` what the
    model is, `metadata` all that its file says.
    """

    def __init__(
        self,
        executable: Executable,
        tokenizer: Tokenizer,
        *,
        spec: ModelSpec,
        pooling: str,
        max_tokens: int,
        max_seqs: int,
        metadata: Mapping[str, object],
    ) -> None:
        self.tokenizer, self.spec, self.pooling, self.metadata = tokenizer, spec, pooling, metadata
        self.context = spec.context_length
        self._executable = executable
        self._max_tokens, self._max_seqs = max_tokens, max_seqs
        self._lock = Lock()
        self._closed = False

    def embed(self, texts: Sequence[Text], *, normalize: bool = True, truncate: bool = False) -> Vectors:
        """f32[n, D]: a vector for each text, of length 1 if to `normalize`; the same bits whatever texts are beside it.

        A text may be given as its token ids too, to which nothing is added. `truncate` cuts one that is longer than the
        context. Raises `ContextExceededError` for it otherwise, and `RequestError` for what is no list of texts, or
        where the model makes no single vector of a text.
        """
        return self.embed_counted(texts, normalize=normalize, truncate=truncate)[0]

    def embed_counted(
        self, texts: Sequence[Text], *, normalize: bool = True, truncate: bool = False
    ) -> tuple[Vectors, int]:
        """What `embed` gives, and the number of tokens that were read for it."""
        if self.pooling == "none":
            raise RequestError("this model makes a vector of each token: load it with pooling='mean', or ask states()")
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise RequestError(f"texts must be a list of strings, not {repr(texts)[:80]}")
        texts_ids = [self._ids(text, truncate) for text in texts]
        vectors = np.empty((len(texts_ids), self.spec.n_embd), np.float32)
        for index, states in self._run(texts_ids):
            vectors[index] = pooled(states, self.pooling)
        return unit(vectors) if normalize else vectors, sum(map(len, texts_ids))

    def states(self, text: str, *, truncate: bool = False) -> Vectors:
        """f32[T, D]: what the model makes of each token of one text. Raises as `embed` does."""
        ((_, states),) = self._run([self._ids(text, truncate)], every=True)
        return states

    def close(self) -> None:
        """Free memory and threads; may be called twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._executable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ids(self, text: Text, truncate: bool) -> list[int]:
        ids = self.tokenizer.encode(text) if isinstance(text, str) else self._checked(text)
        if not ids:
            raise RequestError("the text is empty, and this model puts no token around it")
        if len(ids) <= self.context:
            return ids
        if not truncate:
            raise ContextExceededError(
                f"the text has {len(ids)} tokens and the model reads {self.context}: shorten it, or ask with "
                f"truncate=True; it begins with {text[:40]!r}"
            )
        end = list(self.tokenizer.vocabulary.suffix) if self.tokenizer.vocabulary.add_eos else []
        return ids[: self.context - len(end)] + end

    def _checked(self, ids: Sequence[int]) -> list[int]:
        if not isinstance(ids, Sequence):
            raise RequestError(f"a text must be a string or a list of token ids, not {repr(ids)[:80]}")
        array, size = token_ids(ids), len(self.tokenizer.vocabulary.tokens)
        unknown = array[(array < 0) | (array >= size)]
        if len(unknown):
            raise RequestError(f"token {int(unknown[0])} is not in the vocabulary of 0..{size - 1}")
        checked: list[int] = array.tolist()
        return checked

    def _run(self, texts: Sequence[Sequence[int]], *, every: bool = False) -> Iterator[tuple[int, Vectors]]:
        """The states of each text that its vector is made of, or of every token: f32[rows, D]."""
        rows = "all" if every or self.pooling == "mean" else self.pooling
        for chosen in pack([len(ids) for ids in texts], self._max_tokens, self._max_seqs):
            batch, counts = step_of([texts[index] for index in chosen], self._executable.page_len, rows)
            states = np.empty((len(batch.logit_rows), self.spec.n_embd), np.float32)
            with self._lock:
                if self._closed:
                    raise RequestError(CLOSED)
                self._executable.run(batch, states)
            yield from zip(chosen, np.split(states, np.cumsum(counts)[:-1]), strict=True)


def unit(vectors: Vectors) -> Vectors:
    """Each row divided by its length; a row of zeros stays."""
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
