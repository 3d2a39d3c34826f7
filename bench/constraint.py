"""What does a constraint cost a token? `python -m bench.constraint MODEL [--json]`

For answers under a JSON schema, an expression and choices: milliseconds a token of finding its mask and choosing under
it, beside choosing without one, over the rows of logits that the model really gives; how many steps were not computed
because their tokens were forced; and the rate of whole answers beside answers without a constraint.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import halfbyte
from halfbyte.runtime.constraint.matcher import Matcher
from halfbyte.runtime.sampling.sampler import Sampler

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "required": ["street", "city"],
            "additionalProperties": False,
        },
        "hobbies": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "address", "hobbies"],
    "additionalProperties": False,
}
WISHES: dict[str, dict[str, Any]] = {
    "none": {},
    "schema": {"schema": PERSON},
    "regex": {"regex": r"([A-Z][a-z]+ ){3,60}\."},
    "any text": {"regex": r"(.|\n)*"},
    "choices": {"choices": [f"answer number {n}" for n in range(100)]},
}
QUESTION = [{"role": "user", "content": "Describe a person: name, age, address and hobbies, as JSON."}]


@contextmanager
def timed(kind: type, name: str, into: list[float]) -> Iterator[None]:
    """Seconds of every call of a method."""
    method = getattr(kind, name)

    def wrapped(*given: Any) -> Any:
        started = time.perf_counter()
        try:
            return method(*given)
        finally:
            into.append(time.perf_counter() - started)

    setattr(kind, name, wrapped)
    try:
        yield
    finally:
        setattr(kind, name, method)


def measure(llm: halfbyte.LLM, wish: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Figures of one kind of answer; the first finds its masks, those after it know them."""
    figures: dict[str, Any] = {}
    for turn in ("new", "known"):
        choosing: list[float] = []
        accepting: list[float] = []
        forcing: list[float] = []
        before = llm.metrics().steps
        with (
            timed(Sampler, "sample", choosing),
            timed(Matcher, "accept", accepting),
            timed(Matcher, "forced", forcing),
        ):
            answer = llm.chat(QUESTION, **wish, **params, seed=1, max_tokens=120)
        steps = llm.metrics().steps - before
        own = choosing[1:] or choosing
        figures[f"{turn}_ms"] = 1e3 * (sum(own) + sum(accepting) + sum(forcing)) / max(len(own), 1)
        figures[f"{turn}_median_ms"] = 1e3 * statistics.median(own)
        figures[f"{turn}_max_ms"] = 1e3 * max(own)
        figures |= {"tokens": len(answer.ids), "steps": steps}
        figures[f"{turn}_tok_s"] = len(answer.ids) / (answer.timings.decode_s or float("inf"))
    return figures


def main() -> None:
    """Prints a line a wish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with halfbyte.load(given.model, context=1024, speculation="off") as llm:
        llm.chat(QUESTION, regex="a", max_tokens=1)
        llm.chat(QUESTION, max_tokens=8)
        for kind, params in (("greedy", {"temperature": 0.0}), ("drawn", {"temperature": 0.8})):
            for name, wish in WISHES.items():
                found[f"{kind} {name}"] = figures = measure(llm, wish, params)
                if not given.json:
                    print(f"{kind:7} {name:9}", *(f"{key} {value:.3g}," for key, value in figures.items()))
    if given.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
