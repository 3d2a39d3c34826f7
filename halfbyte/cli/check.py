"""`halfbyte check`: does a model answer on this machine as it should?"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from . import terminal
from .command import Command
from .json_text import json_text
from .model import locate
from .options import GPU, JSON, MODEL, THREADS, on_gpu
from .progress import Bar

if TYPE_CHECKING:
    from ..runtime.golden.finding import Finding
    from ..runtime.golden.self_check import SelfCheck

PASSED, NOT_PASSED = 0, 1


def run(values: Namespace) -> int:
    """Check, print a line for each item, and where one failed what that may mean."""
    from ..formats import open_gguf
    from ..runtime.golden.self_check import SelfCheck

    path = locate(values.model)
    with open_gguf(path) as file, Bar() as bar:
        check = SelfCheck(file, bar)
        if not values.json:
            _say_how(check)
        findings = []
        for finding in _findings(check, path, values, bar):
            findings.append(finding)
            if not values.json:
                terminal.line(f"{'ok    ' if finding.ok else 'FAILED'}  {finding.item}: {finding.note}")
        failed = [finding for finding in findings if not finding.ok]
        causes = list(check.causes({finding.part for finding in failed}))
    if values.json:
        facts = {"ok": not failed, "recorded": check.recorded, "items": list(map(asdict, findings)), "causes": causes}
        terminal.line(json_text(facts))
    else:
        _conclude(findings, failed, causes)
    return NOT_PASSED if failed else PASSED


def _findings(check: SelfCheck, path: Path, values: Namespace, bar: Bar) -> Iterator[Finding]:
    import halfbyte

    gpu = on_gpu(values)
    yield from check.before_loading()
    if check.encoder:
        from ..runtime.golden.bare_answer import BareAnswer

        with BareAnswer(path, threads=values.threads, progress=bar, **gpu) as answer:
            yield from check.of_kernels(answer)
    else:
        with halfbyte.load(path, threads=values.threads, progress=bar, **gpu) as llm:
            yield from check.of_kernels(llm.logits)


def _say_how(check: SelfCheck) -> None:
    if check.stale:
        terminal.note("the file's golden vectors are of other tensors: another program copied them when it rewrote it")
    if not check.recorded:
        terminal.note(
            "the file has no golden vectors of its own, so damage to it may go unnoticed; the reference is asked what "
            "kernels should give"
        )


def _conclude(findings: list[Finding], failed: list[Finding], causes: list[str]) -> None:
    terminal.line(f"{len(failed)} of {len(findings)} failed" if failed else f"all {len(findings)} passed")
    for cause in causes:
        terminal.line(f"maybe: {cause}")


COMMAND = Command(
    "check",
    about="Compare what a model gives on this machine with the golden vectors that were written into its file when it "
    "was made: sums of its tensors, token ids of some texts, logits of a short prompt. A file without them is compared "
    "with what the reference computes now, slowly and without kernels. The exit code is 1 where anything differs.",
    example="halfbyte check smollm2-135m",
    run=run,
    arguments=(MODEL,),
    options=(THREADS, JSON),
    gpu=GPU,
)
