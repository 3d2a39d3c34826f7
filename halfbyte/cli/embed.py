"""`halfbyte embed`: texts as vectors."""

from __future__ import annotations

from argparse import Namespace

from . import terminal
from .command import Argument, Command, Option
from .json_text import json_text
from .options import GPU, MODEL, THREADS, on_gpu
from .parser import UsageError
from .progress import Bar
from .text_file import read_text
from .typed_text import clean, message

AT_A_TIME = 64
"""Texts between two pieces of output."""

FILE = Option("--file", str, "Read texts from this file, one a line", "path of a UTF-8 text", otherwise="none")
POOLING = Option(
    "--pooling", str, "What becomes of a text's tokens: mean, cls or last", "name", otherwise="as the file says"
)
TRUNCATE = Option("--truncate", bool, "Cut texts that are longer than the model reads, instead of refusing them")
RAW = Option("--raw", bool, "Print vectors as the model makes them, not of length 1")


def run(values: Namespace) -> int:
    """Print one JSON object a text."""
    import halfbyte

    texts = _texts(values)
    with Bar() as bar:
        embedder = halfbyte.load_embedder(
            values.model, pooling=values.pooling, threads=values.threads, progress=bar, **on_gpu(values)
        )
    with embedder:
        for start in range(0, len(texts), AT_A_TIME):
            some = texts[start : start + AT_A_TIME]
            vectors = embedder.embed(some, normalize=not values.raw, truncate=values.truncate)
            for text, vector in zip(some, vectors, strict=True):
                # As few digits as give the same float32 again.
                terminal.line(json_text({"text": text, "embedding": [float(str(value)) for value in vector]}))
    return 0


def _texts(values: Namespace) -> list[str]:
    if values.text and values.file:
        raise UsageError("texts are given and a --file too: one of the two")
    if values.text:
        return [clean(text) for text in values.text]
    lines = (read_text(values.file) if values.file is not None else message(None, what="text")).splitlines()
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise UsageError("no text: every line is empty")
    return texts


COMMAND = Command(
    "embed",
    about="Make vectors of texts with an embedding model (BERT and its kin). Texts that mean alike have vectors that "
    "point alike. Each text becomes one line: a JSON object with the text and its embedding.",
    example='halfbyte embed all-minilm.gguf "A first text" "A second one"',
    run=run,
    arguments=(MODEL, Argument("TEXT", "the texts; none reads them from a pipe, one a line", many=True)),
    options=(FILE, POOLING, TRUNCATE, RAW, THREADS),
    gpu=GPU,
)
