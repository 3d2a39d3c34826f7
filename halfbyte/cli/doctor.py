"""`halfbyte doctor`: what this machine has for running models, and what is amiss."""

from __future__ import annotations

import os
import platform
from argparse import Namespace
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import HalfbyteError
from . import terminal
from .command import Argument, Command, Option
from .json_text import json_text
from .model import locate
from .options import JSON, MODEL_FORMS, THREADS
from .size import size_text

QUICK = Option("--quick", bool, "Measure nothing")


def run(values: Namespace) -> int:
    """Print what was found; with a model also what it would take and give."""
    found = examine(values)
    if values.json:
        terminal.line(json_text(found))
        return 0
    for name, fact in found.items():
        if isinstance(fact, dict):
            fact = ", ".join(f"{key} {value}" for key, value in fact.items())
        terminal.line(f"{name:<14} {fact}")
    return 0


def examine(values: Namespace) -> dict[str, Any]:
    """Facts by name, in the order in which they are shown."""
    from ..cpu_kernels import isa, threads
    from ..hub import cache_folder
    from ..runtime.memory import free_memory

    used = threads.count(values.threads)
    free = free_memory()
    found: dict[str, Any] = {
        "halfbyte": f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}",
        "cpu": _cpu_name(),
        "isa": _isas(isa),
        "threads": f"{used} ({_cores()})",
        "memory": f"{size_text(free)} free" if free is not None else "the system does not tell",
        "huge_pages": _huge_pages(),
        "cache": _cache(cache_folder()),
        "kernels": _kernels(isa.detect()),
        "gpu": _gpu(),
    }
    gb_s = None
    if not values.quick:
        from ..cpu_kernels.bandwidth import read_gb_s

        gb_s = read_gb_s(used)
        found["read"] = f"{gb_s:.1f} GB/s with {used} threads, the ceiling of decoding"
    if values.model is not None:
        found |= _model(values.model, gb_s, values.threads)
    return found


def _cpu_name() -> str:
    try:
        rows = Path("/proc/cpuinfo").read_text().splitlines()
        return next(row.partition(":")[2].strip() for row in rows if row.startswith(("model name", "Model")))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _isas(isa: Any) -> str:
    best = isa.detect().name
    others = [name for name in isa.ISAS if name != best and isa.runs_here(isa.ISAS[name])]
    forced = os.environ.get("HALFBYTE_ISA")
    why = " (HALFBYTE_ISA says so)" if forced else ""
    return f"{best}{why}; {', '.join(others) or 'no other'} would run too"


def _cores() -> str:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{os.cpu_count()} logical cores, {allowed} of them allowed; hyper-threads and a container's quota counted"


def _huge_pages() -> str:
    try:
        modes = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return "not known here"
    mode = modes.partition("[")[2].partition("]")[0]
    return mode if mode != "never" else "never: decoding would be faster with madvise"


def _cache(folder: Path) -> str:
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else []
    writable = os.access(folder if folder.exists() else folder.parent, os.W_OK)
    return f"{folder}, {size_text(sum(sizes))}{'' if writable else '; NOT WRITABLE: set HALFBYTE_CACHE'}"


def _kernels(isa: Any, needed: tuple[str, ...] = ()) -> str:
    from ..cpu_kernels.object_cache import folder_for

    folder = folder_for(isa)
    here = {file.stem for file in folder.glob("*.o")} if folder.is_dir() else set()
    if not needed:
        return f"{len(here)} compiled in {folder}"
    missing = sorted(set(needed) - here)
    return f"{len(needed) - len(missing)} of {len(needed)} compiled" + "; the first start makes the others" * bool(
        missing
    )


def _gpu() -> str:
    from ..gpu_offload.cuda_card import require_driver, require_extra

    try:
        require_extra()
        _, card = require_driver()
    except HalfbyteError as error:
        return f"none: {error}"
    return f"{card.name}, compute capability {'.'.join(map(str, card.capability))}"


def _model(name: str, gb_s: float | None, threads: int | None) -> dict[str, Any]:
    import halfbyte

    from ..cpu_kernels import isa

    path = locate(name)
    plan = halfbyte.plan(path, threads=threads)
    found = {
        "model": path.name,
        "takes": f"{size_text(plan.total)} with a context of {plan.context}",
        "its_kernels": _kernels(isa.detect(), plan.kernels),
    }
    if gb_s is not None:
        found["decode"] = f"about {plan.tokens_per_second(gb_s):.0f} tokens/s"
    return found


COMMAND = Command(
    "doctor",
    about="Show what this machine has for running models: CPU, cores, kernels, GPU, and how fast its memory is read.",
    example="halfbyte doctor",
    run=run,
    arguments=(Argument("MODEL", f"tell what this model would take and give: {MODEL_FORMS}", optional=True),),
    options=(THREADS, QUICK, JSON),
)
