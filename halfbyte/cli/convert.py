"""`halfbyte convert`: a Hugging Face checkpoint as a GGUF file."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from . import terminal
from .command import Argument, Command, Option
from .conversion_table import show_conversion
from .options import THREADS
from .parser import UsageError
from .progress import Bar
from .quantize import RECIPE_NAMES
from .size import read_size
from .termination import unwinding

if TYPE_CHECKING:
    from ..tools.convert.conversion import Conversion, ConversionChoices

SOURCE = Argument("SOURCE", "folder with config.json and weights, hf:OWNER/REPO, or folder of a PEFT adapter")
OUT = Option("--out", str, "Path of the new .gguf file", "path", otherwise="from SOURCE's name and --type", short="-o")
TYPE = Option(
    "--type", str, f"Which mix of formats the weights get: {RECIPE_NAMES}", "name of a recipe", otherwise="f16"
)
SPLIT_SIZE = Option(
    "--split-size", str, "Write several files with at most so many bytes of tensors each",
    "bytes, kB, MB, GB, MiB or GiB", otherwise="one file",
)  # fmt: skip
METADATA = Option(
    "--metadata",
    str,
    "Put this into the file's metadata, over what the converter finds; a VALUE that is JSON is taken as such, else as "
    "text; may be given several times",
    "KEY=VALUE",
    otherwise="none",
    many=True,
)
MERGE_LORA = Option(
    "--merge-lora", str, "Add this PEFT adapter to the weights; several times for several", "folder", otherwise="none",
    many=True,
)  # fmt: skip
BASE = Option(
    "--base", str, "The checkpoint that an adapter belongs to", "folder or hf:OWNER/REPO",
    otherwise="as the adapter says",
)  # fmt: skip
VOCAB_ONLY = Option("--vocab-only", bool, "Write the metadata and the tokenizer without any weights")
DRY_RUN = Option("--dry-run", bool, "Show every tensor with its source and the size of the file, and write nothing")
FORCE = Option("--force", bool, "Replace the new file if it exists")


def run(values: Namespace) -> int:
    """Look, plan, and unless it is a dry run, write."""
    from ..hub.checkpoint import resolve_checkpoint
    from ..tools.convert.checkpoint_folder import is_adapter

    with unwinding(), Bar() as bar:
        folder = resolve_checkpoint(values.source, bar)
        if is_adapter(folder):
            return _convert_adapter(folder, values)
        from ..tools.convert.conversion import Conversion

        if values.base is not None:
            raise UsageError(f"{BASE.flag} is for adapters, and {values.source} is none")
        conversion = Conversion(folder, _choices(values))
        if values.dry_run:
            show_conversion(conversion)
            return 0
        out = _out(values, folder)
        terminal.note(_summary(conversion))
        _write(conversion, out, values, bar)
    return 0


def _write(conversion: Conversion, out: Path, values: Namespace, bar: Bar) -> None:
    from ..cpu_kernels import threads

    written = conversion.write(out, threads=threads.count(values.threads), progress=bar)
    for line in written.report.lines():
        terminal.note(line)
    for path in written.paths:
        terminal.line(str(path))


def _convert_adapter(folder: Path, values: Namespace) -> int:
    from ..hub.checkpoint import resolve_checkpoint
    from ..tools.convert.adapter import convert_adapter

    wrong = [flag for flag in ("split_size", "merge_lora", "vocab_only", "dry_run") if getattr(values, flag)]
    if wrong:
        raise UsageError(f"{', '.join('--' + flag.replace('_', '-') for flag in wrong)}: not for an adapter")
    out = _out(values, folder)
    base = None if values.base is None else resolve_checkpoint(values.base)
    convert_adapter(folder, base, out, type=_type(values), metadata=_metadata(values))
    terminal.line(str(out))
    return 0


def _choices(values: Namespace) -> ConversionChoices:
    from ..hub.checkpoint import repository_of
    from ..tools.convert.conversion import ConversionChoices

    split = None if values.split_size is None else read_size(values.split_size, SPLIT_SIZE.flag)
    return ConversionChoices(
        name=repository_of(values.source),
        type=_type(values),
        metadata=_metadata(values),
        split_bytes=split,
        vocab_only=values.vocab_only,
        merge_lora=tuple(Path(folder) for folder in values.merge_lora or ()),
    )


def _type(values: Namespace) -> str:
    return "f16" if values.type is None else str(values.type)


def _metadata(values: Namespace) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for text in values.metadata or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{METADATA.flag} {text!r} is not KEY=VALUE, as in general.name=Mine")
        pairs[key] = _value(value)
    return pairs


def _value(text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if value is None or isinstance(value, dict) else value


def _out(values: Namespace, folder: Path) -> Path:
    """Where the file goes; refused at once where it would be after all the work."""
    from ..hub.checkpoint import repository_of
    from ..tools.convert.target import check_target, parts_at

    default = f"{repository_of(values.source) or folder.resolve().name}-{_type(values)}.gguf"
    out = Path(values.out if values.out is not None else default)
    check_target(out, (folder, *map(Path, values.merge_lora or ())))
    there = [out] if out.exists() else parts_at(out) if values.split_size else []
    if there and not values.force:
        raise ConfigError(f"{there[0]} exists already; give another name, or replace it (--force)", key="out")
    return out


def _summary(conversion: Conversion) -> str:
    plan = conversion.plan
    size = f"{plan.tensor_bytes / 1e6:.1f} MB of weights as {conversion.recipe.name}"
    return f"{conversion.folder.class_name} -> {conversion.arch}: {len(plan.tensors)} tensors, {size}"


COMMAND = Command(
    "convert",
    about="Make a GGUF file of a Hugging Face checkpoint or a PEFT adapter. Every tensor must be accounted for, the "
    "tokenizer must give the ids of the original, and the file carries answers by which `halfbyte check` tells on any "
    "machine whether it computes what it should. It appears only when it is complete.",
    example="halfbyte convert hf:Qwen/Qwen3-0.6B -o qwen3-0.6b.gguf --type q4_k_m",
    run=run,
    arguments=(SOURCE,),
    options=(*(OUT, TYPE, SPLIT_SIZE, METADATA, MERGE_LORA, BASE, VOCAB_ONLY, DRY_RUN, FORCE, THREADS),),
)
