"""`LoadCheck`: `load(check=True)`."""

from __future__ import annotations

from ...formats import GGUFFile
from ...model.backend import Progress
from ..config import LoadConfig
from ..llm import LLM
from .bare_answer import BareAnswer
from .self_check import SelfCheck, verify
from .tolerance import KV
from .vectors import PROMPT_TOKENS


class LoadCheck:
    """What needs no kernels, or other keys and values than the model is loaded with, is checked before it is."""

    def __init__(self, file: GGUFFile, config: LoadConfig, progress: Progress | None) -> None:
        """Raises `CheckError`."""
        self._check = SelfCheck(file, progress)
        self._last = config.kv == KV and config.context >= PROMPT_TOKENS
        verify(self._check, self._check.before_loading())
        if not self._last:
            with BareAnswer(
                file.path,
                threads=config.threads,
                backend=config.backend,
                isa=config.isa,
                progress=progress,
                **config.gpu_options,
            ) as answer:
                verify(self._check, self._check.of_kernels(answer))

    def finish(self, llm: LLM) -> None:
        """The rest, with the loaded model, which is closed where it fails. Raises `CheckError`."""
        if not self._last:
            return
        try:
            verify(self._check, self._check.of_kernels(lambda ids: llm.logits(ids, adapters=[])))
        except BaseException:
            llm.close()
            raise
