"""`measured_candidates`: a model put to the test with a text, for the formats that its tensors could have."""

from __future__ import annotations

from collections.abc import Sequence

from ...formats import GGUFFile
from ...model import bind
from ...model.backend import Progress
from ...quant.assign import is_output
from ...quant.roles import is_quantizable
from ...text import build_tokenizer
from .choices import Choices
from .curvature import measure_curvatures
from .encoding import RowEncoder
from .override import format_of
from .plan import FIXED, UNQUANTIZED
from .sample_text import TEXT
from .sensitivity import Candidate, sensitivities
from .windows import cut_texts

WINDOW = 128
WINDOWS = 8
"""A thousand tokens: the order of tensors is the same from a quarter of it on."""


def measured_candidates(
    file: GGUFFile,
    choices: Choices,
    encoder: RowEncoder,
    texts: Sequence[str] = (),
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> dict[str, list[Candidate]]:
    """Of every tensor that `choices` leave open; without `texts` a small one of our own is read.

    Raises `UnsupportedError` for a model we cannot run, `ConfigError` for tensors that it does not use.
    """
    shapes = {name: info.shape for name, info in file.tensors.items()}
    open_names = [
        name
        for name, info in file.tensors.items()
        if is_quantizable(name, info.shape)
        and info.format.name not in FIXED
        and (choices.allow_requantize or info.format.name in UNQUANTIZED)
        and format_of(name, choices.overrides) is None
        and not (choices.keep_output and is_output(name, shapes))
    ]
    bound = bind(file)
    windows = cut_texts(build_tokenizer(file.metadata), list(texts) or [TEXT], min(WINDOW, bound.context))
    some = windows[:: max(1, len(windows) // WINDOWS)][:WINDOWS]
    curvatures = measure_curvatures(bound.program, bound.weights, some, progress)
    return sensitivities(file, curvatures, open_names, encoder, threads=threads, progress=progress)
