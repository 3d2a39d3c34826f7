"""Does the engine keep its promises? `python -m bench.engine MODEL [--row NAME ...] [--json]`

Each row is a promise with the ratio that decides it. Prompts are random tokens and answers as long as asked for: speed
does not depend on which tokens they are. Times are those of the caller, medians where something is repeated.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from bench.subject import CODE, Subject, Watch, percentile, seconds, system_text, tokens
from halfbyte import LLM, Completion

Figures = dict[str, Any]


def together(answers: list[Completion]) -> float:
    """Tokens a second of answers that began at the same time, from the first token of any to the last of any."""
    start = min(answer.timings.first_token_s for answer in answers)
    end = max(answer.timings.first_token_s + answer.timings.decode_s for answer in answers)
    return sum(answer.timings.completion_tokens - 1 for answer in answers) / (end - start)


def streams(subject: Subject) -> Figures:
    """Eight answers at once beside one."""
    one, eight = [], []
    with subject.load(prefix_cache=False) as llm:
        for seed in range(5):
            prompts = [tokens(16, 8 * seed + i) for i in range(8)]
            one.append(together([llm.generate(prompts[0], max_tokens=64)]))
            eight.append(together(llm.generate(prompts, max_tokens=64)))
    alone, all_of_them = statistics.median(one), statistics.median(eight)
    return {"ratio": all_of_them / alone, "one_tok_s": alone, "eight_tok_s": all_of_them}


def mixed(subject: Subject) -> Figures:
    """Sixteen requests of different lengths, all in one step where they fit, and eight of them."""
    draw = random.Random(4)
    asked = [(tokens(draw.randint(20, 400), i), draw.randint(20, 120)) for i in range(16)]

    def apart(llm: LLM) -> None:
        for prompt, max_tokens in asked:
            llm.generate(prompt, max_tokens=max_tokens)

    def at_once(llm: LLM) -> None:
        for stream in [llm.stream(prompt, max_tokens=max_tokens) for prompt, max_tokens in asked]:
            stream.collect()

    with subject.load(prefix_cache=False, max_num_seqs=16) as llm:
        alone = min(seconds(lambda: apart(llm)) for _ in range(2))
        sixteen = min(seconds(lambda: at_once(llm)) for _ in range(3))
    with subject.load(prefix_cache=False, max_num_seqs=8) as llm:
        eight = min(seconds(lambda: at_once(llm)) for _ in range(3))
    times = {"apart_s": alone, "at_once_s": sixteen, "at_once_8_seqs_s": eight}
    return {"ratio": alone / sixteen, "ratio_8_seqs": alone / eight, **times}


def turns(llm: LLM, seed: int, count: int) -> list[float]:
    """Seconds to the first token of each turn of a chat."""
    messages = [{"role": "system", "content": system_text(llm, seed)}]
    waits = []
    for turn in range(count):
        messages.append({"role": "user", "content": f"Tell me more about river {turn}, please."})
        answer = llm.chat(messages, max_tokens=40)
        messages.append({"role": "assistant", "content": answer.text})
        waits.append(answer.timings.first_token_s)
    return waits


def chat(subject: Subject) -> Figures:
    """A long system prompt: the worst of the turns 2 to 5 beside the first."""
    with subject.load() as llm:
        waits = [turns(llm, seed, 5) for seed in range(5)]
    by_turn = [statistics.median(column) for column in zip(*waits, strict=True)]
    return {"ratio": max(by_turn[1:]) / by_turn[0], "first_token_s": by_turn}


def one_turn(subject: Subject, folder: str) -> float:
    """A chat's first turn, in a process of its own."""
    with subject.load(disk_cache=folder) as llm:
        return turns(llm, 1, 1)[0]


def disk(subject: Subject) -> Figures:
    """The same first turn in a new process."""
    first: list[float] = []
    second: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            for waits in (first, second):
                with ProcessPoolExecutor(1, get_context("spawn")) as process:
                    waits.append(process.submit(one_turn, subject, folder).result())
    cold, warm = statistics.median(first), statistics.median(second)
    return {"ratio": warm / cold, "first_token_s": [cold, warm]}


def note_gaps(llm: LLM, prompt: list[int], max_tokens: int, into: list[tuple[float, float]]) -> None:
    """Stream, and note the seconds between tokens and when they ended."""
    before = None
    for event in llm.stream(prompt, max_tokens=max_tokens):
        now = time.perf_counter()
        if before is not None:
            into += [((now - before) / len(event.ids), now)] * len(event.ids)
        before = now


def stalled(llm: LLM, seed: int) -> Figures:
    """Four answers of 400 tokens, and a prompt of 4,000 tokens in the middle."""
    notes: list[tuple[float, float]] = []
    asked = [(llm, tokens(32, 9 * seed + i), 400, notes) for i in range(4)]
    readers = [threading.Thread(target=note_gaps, args=one) for one in asked]
    for reader in readers:
        reader.start()
    while len(notes) < 400:
        time.sleep(0.001)
    start = time.perf_counter()
    wait = llm.generate(tokens(4000, seed), max_tokens=1).timings.first_token_s
    for reader in readers:
        reader.join()
    gaps = [gap for gap, _ in notes]
    worst, usual = percentile(gaps, 0.99), statistics.median(gaps)
    without = statistics.median(gap for gap, end in notes if not start <= end <= start + wait)
    figures = {"ratio": worst / usual, "ratio_to_median_without": worst / without, "p99_s": worst, "median_s": usual}
    return {**figures, "median_without_s": without, "longest_s": max(gaps), "prompt_s": wait}


def stall(subject: Subject) -> Figures:
    """A long prompt arrives while answers are under way; the worse of two runs."""
    with subject.load(prefix_cache=False) as llm:
        return max((stalled(llm, seed) for seed in range(2)), key=lambda figures: float(figures["ratio"]))


def forks(subject: Subject) -> Figures:
    """Pages of eight answers to one prompt beside those of one."""
    with subject.load() as llm, llm.stream(tokens(2000, 1), max_tokens=200) as stream:
        next(stream)
        one = llm._engine.status().pages_used
        children = [stream.fork(seed=i, temperature=1.0) for i in range(7)]
        for child in children:
            next(child)
        all_of_them = llm._engine.status().pages_used
        for child in children:
            child.close()
    return {"ratio": all_of_them / one, "pages_one": one, "pages_eight": all_of_them}


def speculation(subject: Subject) -> Figures:
    """Text that repeats with speculation and without."""
    return speculated(subject, CODE + CODE[:40], temperature=0.0)


def adverse(subject: Subject) -> Figures:
    """Text that nobody can foresee, though it looks as if, with speculation and without."""
    return speculated(subject, CODE, temperature=1.5, top_k=0, top_p=1.0)


def speculated(subject: Subject, text: str, **options: Any) -> Figures:
    """Rates of decoding, in turn."""
    with subject.load(prefix_cache=False) as without, subject.load(prefix_cache=False, speculation="ngram") as with_it:
        rates: list[list[float]] = [[], []]
        for seed in range(7):
            for llm, into in zip((without, with_it), rates, strict=True):
                answer = llm.generate(text, max_tokens=120, seed=seed, min_p=0.0, **options)
                into.append(answer.timings.decode_tok_s)
    plain, fast = map(statistics.median, rates)
    return {"ratio": fast / plain, "without_tok_s": plain, "with_tok_s": fast}


def cancel(subject: Subject) -> Figures:
    """Time from closing a stream inside a prompt to free pages, beside the longest chunk of that prompt."""
    waits, chunks = [], []
    with subject.load(prefix_cache=False) as llm:
        watch = Watch(llm)
        llm.generate(tokens(4000, 99), max_tokens=1)
        chunks = [end - start for start, end, _ in watch.runs[:-1]]
        for number in range(5):
            stream = llm.stream(tokens(4000, number))
            time.sleep(sum(chunks) * (number + 1) / 7)
            start = time.perf_counter()
            stream.close()
            while llm._engine.status().pages_used:
                time.sleep(0.0001)
            waits.append(time.perf_counter() - start)
    return {"ratio": max(waits) / max(chunks), "longest_s": max(waits), "chunk_s": max(chunks)} | {
        "median_s": statistics.median(waits)
    }


def overhead(subject: Subject) -> Figures:
    """Milliseconds from the end of a step's computing to the start of the next one's, eight streams."""
    figures: Figures = {}
    for name, temperature in (("greedy", 0.0), ("drawn", 0.8)):
        with subject.load(prefix_cache=False) as llm:
            watch = Watch(llm)
            llm.generate([tokens(16, i) for i in range(8)], max_tokens=300, temperature=temperature)
        runs = [run for run in watch.runs if run[2] == 8]
        between = [1e3 * (after[0] - before[1]) for before, after in pairwise(runs)]
        figures |= {f"{name}_median_ms": statistics.median(between), f"{name}_p99_ms": percentile(between, 0.99)}
    return {"ratio": figures["greedy_median_ms"] / 0.3, **figures}


class Row(NamedTuple):
    """A promise: the ratio that `measure` gives is at least or at most `goal`."""

    what: str
    sign: str
    goal: float
    measure: Callable[[Subject], Figures]

    def kept(self, figures: Figures) -> bool:
        """Whether the figures are good enough."""
        return bool(figures["ratio"] >= self.goal if self.sign == ">=" else figures["ratio"] <= self.goal)


ROWS = {
    "streams": Row("8 streams together / one", ">=", 3.0, streams),
    "mixed": Row("16 mixed requests one by one / at once", ">=", 2.5, mixed),
    "chat": Row("first token, turns 2-5 / turn 1", "<=", 0.15, chat),
    "disk": Row("first token, new process with disk cache / turn 1", "<=", 0.25, disk),
    "stall": Row("a long prompt arrives: p99 gap / median gap", "<=", 3.0, stall),
    "forks": Row("pages of 8 forks / one", "<=", 1.2, forks),
    "speculation": Row("speculation on text that repeats / without", ">=", 1.8, speculation),
    "adverse": Row("speculation on adverse text / without", ">=", 0.98, adverse),
    "cancel": Row("cancel inside a prompt / one chunk", "<=", 1.0, cancel),
    "overhead": Row("engine's time between steps / 0.3 ms", "<=", 1.0, overhead),
}


def rounded(value: Any) -> Any:
    """Four digits of every number."""
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def show(name: str, row: Row, figures: Figures) -> None:
    """One line, and the figures behind it."""
    verdict = f"{figures['ratio']:.3g} {'yes' if row.kept(figures) else 'NO'}"
    print(f"{name:<12} {row.what:<52} {row.sign} {row.goal:<5g} {verdict}", flush=True)
    for key, value in figures.items():
        if key != "ratio":
            print(f"{'':<14}{key}: {rounded(value)}", flush=True)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--row", action="append", choices=ROWS, help="rows to measure (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="threads (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    subject = Subject(str(Path(args.model).resolve()), args.threads)
    report = {}
    for name in args.row or ROWS:
        figures = ROWS[name].measure(subject)
        goal = f"{ROWS[name].sign} {ROWS[name].goal:g}"
        report[name] = {"goal": goal, "kept": ROWS[name].kept(figures)} | {k: rounded(v) for k, v in figures.items()}
        if not args.json:
            show(name, ROWS[name], figures)
    if args.json:
        print(json.dumps({"model": Path(args.model).name, "threads": args.threads, "rows": report}, indent=2))


if __name__ == "__main__":
    main()
