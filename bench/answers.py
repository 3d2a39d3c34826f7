"""Does halfbyte answer as llama.cpp did? `python -m bench.answers MODEL REFERENCE.json TEXTS_DIR`

Compares token ids, the mean negative log likelihood of each text, the best next token where the recording was sure of
it, and greedy continuations up to the first step that was a close call. Exits with 1 if anything differs by more than
its limit. The recording's format is described in `bench/README.md`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import halfbyte

NLL_LIMIT = 0.005  # relative; both sides quantize activations, each in its own way
SURE_GAP = 0.5  # log probability between the recorded best and second token
CLOSE_CALL = 0.3  # logits between best and second at a greedy step

# llama.cpp takes this piece for a control token though the Gemma file does not, and splits it in plain text.
RETYPED = "</s>"


@dataclass(frozen=True)
class Row:
    """One comparison: what, of which text, the figure, the limit, and whether it holds."""

    what: str
    name: str
    figure: str
    limit: str
    holds: bool


def compare_ids(llm: Any, name: str, text: str, recorded: list[int], *, special: bool) -> Row:
    """Token ids of a text; a span that llama.cpp retypes is counted apart."""
    ours = list(map(int, llm.tokenize(text, special=special)))
    differing = retyped = 0
    for tag, a, b, c, d in difflib.SequenceMatcher(None, ours, recorded, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        text_a, text_b = llm.detokenize(ours[a:b]), llm.detokenize(recorded[c:d])
        known = text_a == text_b and RETYPED in text_a
        retyped += known
        differing += not known
    figure = f"{differing} spans differ" + (f", {retyped} retyped" if retyped else "")
    return Row("ids, special" if special else "ids", name, figure, "0", differing == 0)


def compare_likelihood(llm: Any, name: str, text: dict[str, Any]) -> Iterator[Row]:
    """Mean negative log likelihood and the best next tokens over the recorded window."""
    ids = text["ids"][: text["window"]]
    logits = llm.logits(ids)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted, dtype=np.float64).sum(axis=1, keepdims=True))
    mean = float(-log_probs[np.arange(len(ids) - 1), ids[1:]].mean())
    error = mean / text["mean_nll"] - 1
    yield Row("mean nll", name, f"{mean:.4f} ({error:+.3%})", f"{NLL_LIMIT:.1%}", abs(error) <= NLL_LIMIT)

    sure = {int(p): top[0][0] for p, top in text["top"].items() if top[0][1] - top[1][1] >= SURE_GAP}
    hits = sum(int(logits[p].argmax()) == best for p, best in sure.items())
    yield Row("top-1", name, f"{hits} of {len(sure)}", "all", hits == len(sure))


def compare_greedy(llm: Any, name: str, prompt: dict[str, Any]) -> Row:
    """A greedy continuation, step by step until the recording's first close call."""
    recorded = prompt["greedy_ids"]
    sure = next((i for i, gap in enumerate(prompt["margins"]) if gap < CLOSE_CALL), len(recorded))
    done = llm.generate(prompt["ids"], max_tokens=len(recorded), temperature=0.0)
    ours = list(map(int, done.ids))
    if done.finish_reason == "stop" and len(ours) == len(recorded) - 1:
        ours.append(recorded[-1])  # the recording keeps the token that ended it
    same = next((i for i, (a, b) in enumerate(zip(ours, recorded, strict=False)) if a != b), len(ours))
    figure = f"{same} of {len(recorded)} steps"
    if same < len(recorded):
        figure += f", then a gap of {prompt['margins'][same]:.2f}"
    return Row("greedy", name, figure, f"{sure}", same >= sure)


def read_messages(texts: Path) -> dict[str, list[dict[str, str]]]:
    """The conversations behind those prompts that the file's own chat template rendered."""
    prompts = json.loads((texts / "prompts.json").read_text(encoding="utf-8"))
    return {prompt["name"]: prompt["messages"] for prompt in prompts if "messages" in prompt}


def compare(llm: Any, recording: dict[str, Any], texts: Path) -> Iterator[Row]:
    """All rows of the table, in the recording's order."""
    for name, text in recording["texts"].items():
        plain = (texts / name).read_text(encoding="utf-8")
        yield compare_ids(llm, name, plain, text["ids"], special=False)
        yield compare_ids(llm, name, plain, text["ids_special"], special=True)
        yield from compare_likelihood(llm, name, text)
    messages = read_messages(texts)
    for name, prompt in recording["prompts"].items():
        if name in messages:
            same = list(llm.chat(messages[name], max_tokens=1).prompt_ids) == prompt["ids"]
            yield Row("chat ids", name, "equal" if same else "differ", "equal", same)
        yield compare_ids(llm, name, prompt["rendered"], prompt["ids"], special=True)
        yield compare_greedy(llm, name, prompt)


def main() -> int:
    """Parse, compare, print; 1 if anything missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.answers", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("reference", type=Path, help="recorded answers, JSON")
    parser.add_argument("texts", type=Path, help="folder of the recorded texts")
    parser.add_argument("--backend", default="cpu", help="who computes: cpu or reference (default: cpu)")
    parser.add_argument("--isa", default=None, help="instruction set (default: the best this CPU has)")
    parser.add_argument("--threads", type=int, default=None, help="threads (default: physical cores)")
    args = parser.parse_args()
    recording = json.loads(args.reference.read_text(encoding="utf-8"))
    rows = []
    with halfbyte.load(args.model, context=2048, threads=args.threads, backend=args.backend, isa=args.isa) as llm:
        for row in compare(llm, recording, args.texts):
            print(f"{'ok  ' if row.holds else 'MISS'} {row.what:<13} {row.name:<14} {row.figure:<35} limit {row.limit}")
            rows.append(row)
    missed = sum(not row.holds for row in rows)
    print(f"{len(rows) - missed} of {len(rows)} hold for {recording['model']}, recorded from {recording['engine']}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
