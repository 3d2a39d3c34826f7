"""`halfbyte imatrix`: what a model's matrices multiply when it reads a text, for quantizing them well."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, HalfbyteError
from . import terminal
from .command import Command, Option
from .model import locate
from .options import FILE, MODEL, THREADS, WINDOW
from .parser import UsageError
from .progress import Bar
from .text_file import read_text

if TYPE_CHECKING:
    from ..tools.quantize.imatrix import ImportanceMatrix

FILES = replace(FILE, what="Read this text; may be given several times", many=True)
OUT = Option("--out", str, "Write the importance matrix to this file", "path", otherwise="none", short="-o")
EARLIER = Option(
    "--in", str, "Add this importance matrix to the result; may be given several times", "path", otherwise="none",
    many=True,
)  # fmt: skip
HEAD = Option("--process-output", bool, "Measure the output matrix too")
CHUNKS = Option("--chunks", int, "Read the first windows only", "windows", low=1, otherwise="all")


def run(values: Namespace) -> int:
    """Collect, merge, write."""
    for option in (FILES, OUT):
        if getattr(values, option.dest) is None:
            raise UsageError(f"{option.flag} missing; for example: {COMMAND.example}")
    from ..formats.new_file import check_place
    from ..tools.quantize.imatrix_file import read_imatrix, write_imatrix

    out = Path(values.out)
    # What would be refused after all the work is refused before it.
    check_place(out, OUT.flag)
    if out.exists():
        _check_replaceable(out)
    texts = [read_text(path) for path in values.file]
    earlier = [read_imatrix(path) for path in getattr(values, EARLIER.dest) or ()]
    matrix = _collect(values, texts)
    for other in earlier:
        matrix = matrix.merge(other)
    write_imatrix(matrix, out)
    terminal.line(f"{out}: {len(matrix.entries)} matrices, {matrix.chunk_count} windows of {matrix.chunk_size} tokens")
    return 0


def _check_replaceable(out: Path) -> None:
    """Let an importance matrix make way for a new one, but neither a model nor a text nor anything else."""
    from ..tools.quantize.imatrix_file import read_imatrix

    try:
        read_imatrix(out)
    except HalfbyteError:
        raise ConfigError(
            f"{out} exists already and is no importance matrix; give another name", key=OUT.flag
        ) from None


def _collect(values: Namespace, texts: list[str]) -> ImportanceMatrix:
    from ..tools.quantize.calibration import count_tokens, open_tapped
    from ..tools.quantize.imatrix_collect import collect
    from ..tools.quantize.windows import cut_texts

    path = locate(values.model)
    with (
        Bar() as bar,
        open_tapped(
            path, window=values.window, threads=values.threads, progress=bar, with_head=values.process_output
        ) as model,
    ):
        windows = cut_texts(model.tokenizer, texts, values.window, values.chunks)
        started = time.monotonic()
        matrix = collect(model, windows, datasets=[Path(text).name for text in values.file], progress=bar)
        tokens = count_tokens(windows)
    terminal.note(f"{tokens} tokens read, {tokens / (time.monotonic() - started):.0f} tokens/s")
    return matrix


COMMAND = Command(
    "imatrix",
    about="Measure which columns of a model's matrices count most: let the model read texts like those it will meet "
    "and add up the squares of what each matrix multiplies. The file that comes out (an importance matrix, as other "
    "GGUF programs have) makes quantizing better.",
    example="halfbyte imatrix smollm2-135m --file README.md -o imatrix.gguf",
    run=run,
    arguments=(MODEL,),
    options=(FILES, OUT, WINDOW, CHUNKS, HEAD, EARLIER, THREADS),
)
