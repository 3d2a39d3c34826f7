"""`halfbyte quantize`: a model in fewer bits, as a new file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from . import terminal
from .command import Argument, Command, Option
from .model import locate
from .options import MODEL, THREADS
from .parser import UsageError
from .plan_table import show_plan
from .progress import Bar

if TYPE_CHECKING:
    from ..formats import GGUFFile
    from ..tools.quantize.choices import Choices
    from ..tools.quantize.plan import Plan

RECIPE_NAMES = (
    "q2_k_s q2_k q3_k_s q3_k_m q3_k_l q4_0 q4_1 q4_k_s q4_k_m q5_0 q5_1 q5_k_s q5_k_m q6_k q8_0 iq1_s iq1_m iq2_xxs "
    "iq2_xs iq2_s iq2_m iq3_xxs iq3_xs iq3_s iq3_m iq4_xs iq4_nl tq1_0 tq2_0 q1_0 mxfp4 mxfp4_moe nvfp4 f16 bf16 f32"
)
OUT = Argument("OUT", "path of the new .gguf file")
RECIPE = Argument("RECIPE", f"how many bits: {RECIPE_NAMES}", optional=True)
TYPE = Option(
    "--type",
    str,
    "Give tensors whose name has REGEX in it this format, as in 'ffn_down=q6_k'; the first that fits wins over the "
    "recipe",
    "REGEX=FORMAT",
    otherwise="none",
    many=True,
)
PURE = Option("--pure", bool, "Give every tensor the recipe's one format, important or not")
KEEP_OUTPUT = Option("--keep-output", bool, "Leave the output matrix, or the embedding that serves as one, as it is")
REQUANTIZE = Option("--allow-requantize", bool, "Take a source that is quantized already; what it lost stays lost")
DRY_RUN = Option("--dry-run", bool, "Show the format and size of every tensor and of the file, and write nothing")
FORCE = Option("--force", bool, "Replace OUT if it exists")


def run(values: Namespace) -> int:
    """Plan, and unless it is a dry run, write."""
    from ..formats import open_gguf
    from ..tools.quantize.plan import make_plan

    choices = _choices(values)
    source = locate(values.model)
    with open_gguf(source) as file:
        plan = make_plan(file, choices)
        if values.dry_run:
            show_plan(plan, choices)
        else:
            _write(file, plan, choices, values)
    return 0


def _choices(values: Namespace) -> Choices:
    from ..quant.recipes import recipe_named
    from ..tools.quantize.choices import Choices
    from ..tools.quantize.override import Override

    if values.recipe is None:
        raise UsageError(f"RECIPE missing; for example: {COMMAND.example}")
    return Choices(
        recipe=recipe_named(values.recipe),
        overrides=tuple(Override.parse(text) for text in values.type or ()),
        pure=values.pure,
        keep_output=values.keep_output,
        allow_requantize=values.allow_requantize,
    )


def _write(file: GGUFFile, plan: Plan, choices: Choices, values: Namespace) -> None:
    from ..cpu_kernels import threads
    from ..cpu_kernels.encoding import CompiledSearch
    from ..tools.quantize.encoding import NearestCodes
    from ..tools.quantize.job import check_target, quantize

    out = Path(values.out)
    check_target(file, out)
    if out.exists() and not values.force:
        raise ConfigError(f"{out}: exists already; give another name, or replace it (--force)", key="out")
    before = sum(part.stat().st_size for part in file.parts)
    terminal.note(f"{file.path} -> {out}: {before / 1e6:.1f} MB -> {plan.file_bytes / 1e6:.1f} MB, {choices.spelt()}")
    with Bar() as bar:
        encoding = NearestCodes(search=CompiledSearch(progress=bar))
        quantize(file, plan, out, encoding, threads=threads.count(values.threads), progress=bar)
    terminal.line(str(out))


COMMAND = Command(
    "quantize",
    about="Write a model in fewer bits. Files are read by any GGUF program, and a recipe means what it means there: "
    "the same formats for the same tensors. The new file appears only when it is complete.",
    example="halfbyte quantize smollm2-135m small.gguf q4_k_m --allow-requantize --dry-run",
    run=run,
    arguments=(MODEL, OUT, RECIPE),
    options=(TYPE, PURE, KEEP_OUTPUT, REQUANTIZE, DRY_RUN, FORCE, THREADS),
)
