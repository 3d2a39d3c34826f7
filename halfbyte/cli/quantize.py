"""`halfbyte quantize`: a model in fewer bits, as a new file."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from . import terminal
from .command import Argument, Command, Option
from .model import locate
from .options import FILE, MODEL, THREADS
from .parser import UsageError
from .plan_table import show_plan
from .progress import Bar
from .size import read_size
from .termination import unwinding
from .text_file import read_text

if TYPE_CHECKING:
    from ..formats import GGUFFile
    from ..tools.quantize.choices import Choices
    from ..tools.quantize.plan import Plan
    from ..tools.quantize.target import Target

RECIPE_NAMES = (
    "q2_k_s q2_k q3_k_s q3_k_m q3_k_l q4_0 q4_1 q4_k_s q4_k_m q5_0 q5_1 q5_k_s q5_k_m q6_k q8_0 iq1_s iq1_m iq2_xxs "
    "iq2_xs iq2_s iq2_m iq3_xxs iq3_xs iq3_s iq3_m iq4_xs iq4_nl tq1_0 tq2_0 q1_0 mxfp4 mxfp4_moe nvfp4 f16 bf16 f32"
)
OUT = Argument("OUT", "path of the new .gguf file")
RECIPE = Argument("RECIPE", f"which mix of formats: {RECIPE_NAMES}", optional=True)
TARGET_SIZE = Option(
    "--target-size", str, "Instead of a RECIPE, the best file of at most this size", "bytes, kB, MB, GB, MiB or GiB",
    otherwise="none",
)  # fmt: skip
TARGET_BPW = Option(
    "--target-bpw", float, "Instead of a RECIPE, the best file of so many bits a weight", "bits", low=1, high=16
)
TYPE = Option(
    "--type",
    str,
    "Give tensors whose name has REGEX in it this format, as in 'ffn_down=q6_k'; the first that fits wins, over the "
    "RECIPE too; may be given several times",
    "REGEX=FORMAT",
    otherwise="none",
    many=True,
)
PURE = Option("--pure", bool, "Give every tensor the one format that the RECIPE is named for")
KEEP_OUTPUT = Option("--keep-output", bool, "Leave the output matrix, or the embedding that serves as one, as it is")
IMATRIX = Option(
    "--imatrix", str, "Mind the columns that this importance matrix says count most", "path of a file", otherwise="none"
)
TEXTS = replace(
    FILE,
    what="Calibrate with this text, so that errors make up for each other: better, and slower; may be given several "
    "times",
    many=True,
)
CHUNKS = Option(
    "--chunks", int, "Read only so many windows of the text", "windows of 512 tokens", low=1, otherwise="all"
)
REQUANTIZE = Option("--allow-requantize", bool, "Take a source that is quantized already; what it lost stays lost")
DRY_RUN = Option("--dry-run", bool, "Show the format and size of every tensor and of the file, and write nothing")
FORCE = Option("--force", bool, "Replace OUT if it exists")


def run(values: Namespace) -> int:
    """Plan, and unless it is a dry run, write."""
    from ..cpu_kernels import threads
    from ..formats import open_gguf
    from ..tools.quantize.imatrix_file import read_imatrix
    from ..tools.quantize.quantizer import Quantizer

    choices, target = _choices(values), _target(values)
    texts = [read_text(path) for path in values.file or ()]
    matrix = None if values.imatrix is None else read_imatrix(values.imatrix)
    with unwinding(), open_gguf(locate(values.model)) as file, Bar() as bar:
        if not values.dry_run:
            _check_out(file, values)
        work = Quantizer(
            file,
            matrix=matrix,
            texts=texts,
            most_windows=values.chunks,
            threads=threads.count(values.threads),
            progress=bar,
        )
        plan, choices = work.plan(choices, target)
        _warn(plan, calibrated=matrix is not None or bool(texts))
        if not values.dry_run:
            terminal.note(_summary(file, plan, choices))
            work.write(plan, values.out)
    if values.dry_run:
        show_plan(plan, choices)
    else:
        terminal.line(values.out)
    return 0


def _choices(values: Namespace) -> Choices:
    from ..quant.recipes import recipe_named
    from ..tools.quantize.choices import Choices
    from ..tools.quantize.override import Override

    targets = [option.flag for option in (TARGET_SIZE, TARGET_BPW) if getattr(values, option.dest) is not None]
    if len(targets) + (values.recipe is not None) != 1:
        given = " and ".join(([values.recipe] if values.recipe else []) + targets)
        wrong = f"{given} together" if given else "RECIPE missing"
        raise UsageError(f"{wrong}; give one RECIPE or one target, for example: {COMMAND.example}")
    if values.chunks is not None and not values.file:
        raise UsageError(f"{CHUNKS.flag} counts windows of a text, and none is given; give one ({TEXTS.flag})")
    if values.recipe and values.out.lower() in RECIPE_NAMES.split():
        raise UsageError(f"the new file's path comes before the recipe: {values.recipe} {values.out}")
    if targets and values.pure:
        raise UsageError(f"{PURE.flag} and {targets[0]} together: a target is met by a mix of formats")
    return Choices(
        # With a target, tensors that are not measured follow a recipe all the same.
        recipe=recipe_named(values.recipe or "q4_k_m"),
        overrides=tuple(Override.parse(text) for text in values.type or ()),
        pure=values.pure,
        keep_output=values.keep_output,
        allow_requantize=values.allow_requantize,
    )


def _target(values: Namespace) -> Target | None:
    from ..tools.quantize.target import Target

    if values.target_size is not None:
        return Target(file_bytes=read_size(values.target_size, TARGET_SIZE.flag))
    return None if values.target_bpw is None else Target(bits_per_weight=values.target_bpw)


def _check_out(file: GGUFFile, values: Namespace) -> None:
    """Refuse at once what would be refused after all the work."""
    from ..tools.quantize.job import check_target

    check_target(file, values.out)
    if Path(values.out).exists() and not values.force:
        raise ConfigError(f"{values.out} exists already; give another name, or replace it (--force)", key="out")


def _warn(plan: Plan, *, calibrated: bool) -> None:
    from ..tools.quantize.plan import HUNGRY

    starved = [tensor for tensor in plan.tensors if tensor.target.name in HUNGRY and tensor.changes]
    if starved and not calibrated:
        formats = ", ".join(sorted({tensor.target.name for tensor in starved}))
        terminal.note(
            f"warning: {len(starved)} tensors become {formats}, which needs to know which columns count: give a text "
            "(--file) or an importance matrix (--imatrix), or the model may talk nonsense"
        )


def _summary(file: GGUFFile, plan: Plan, choices: Choices) -> str:
    before = sum(part.stat().st_size for part in file.parts)
    sizes = f"{before / 1e6:.1f} MB -> {plan.file_bytes / 1e6:.1f} MB"
    fallbacks = sum(tensor.fell_back for tensor in plan.tensors)
    more = f"; {fallbacks} tensors have rows that do not divide and get the next format up" if fallbacks else ""
    return f"{choices.recipe.name}: {sizes}, {plan.bits_per_weight:.2f} bits per weight{more}"


COMMAND = Command(
    "quantize",
    about="Write a model in fewer bits. Any GGUF program reads the file, and a recipe means what it means there: the "
    "same formats for the same tensors. With a target instead, every tensor is measured and gets the bits it is worth. "
    "The new file appears only when it is complete.",
    example="halfbyte quantize smollm2-135m small.gguf q4_k_m --allow-requantize --dry-run",
    run=run,
    arguments=(MODEL, OUT, RECIPE),
    options=(
        *(TARGET_SIZE, TARGET_BPW, TYPE, PURE, KEEP_OUTPUT, IMATRIX, TEXTS),
        *(CHUNKS, REQUANTIZE, DRY_RUN, FORCE, THREADS),
    ),
)
