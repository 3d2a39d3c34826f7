"""How fast is halfbyte beside llama.cpp? `python -m bench.peers MODEL [--json]`

Both get the same file, threads, token ids and work: a prompt of 512 tokens read in one piece, then 128 tokens decoded
one by one from an almost empty context. Each runs in a child process of its own, in turn, so that neither's memory or
threads disturb the other and a machine that warms up or slows down does so for both. Figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = ("llama", "halfbyte")
RATES = ("prefill_tok_s", "decode_tok_s")


def run_peer(peer: str, python: str, job: dict[str, Any]) -> dict[str, Any]:
    """One child's answer; its last line is JSON. Raises `SystemExit` with the child's words if it fails."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    command = [python, str(HERE / f"peer_{peer}.py"), json.dumps(job)]
    child = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if child.returncode:
        raise SystemExit(f"error: {peer} ended with {child.returncode}\n{child.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return answer


def make_job(args: argparse.Namespace) -> dict[str, Any]:
    """The work both are given. The ids are random: speed does not depend on which tokens they are."""
    draw = random.Random(1)
    ids = [draw.randrange(200, 30_000) for _ in range(max(args.prompt, args.decode) + 1)]
    return {
        "model": str(Path(args.model).resolve()),
        "threads": args.threads,
        "prompt": args.prompt,
        "decode": args.decode,
        "repeats": args.repeats,
        "ids": ids,
    }


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Run the rounds and take medians over all of them."""
    pythons = {"llama": args.peer_python, "halfbyte": sys.executable}
    job = make_job(args)
    results: dict[str, dict[str, Any]] = {peer: {rate: [] for rate in RATES} for peer in PEERS}
    for _ in range(args.rounds):
        for peer in PEERS:
            answer = run_peer(peer, pythons[peer], job)
            results[peer]["engine"] = answer["engine"]
            for rate in RATES:
                results[peer][rate] += answer[rate]
    report: dict[str, Any] = {
        "model": Path(args.model).name,
        "threads": args.threads,
        "runs": args.rounds * args.repeats,
    }
    for peer in PEERS:
        report[peer] = {"engine": results[peer]["engine"]}
        report[peer] |= {rate: round(statistics.median(results[peer][rate]), 1) for rate in RATES}
    report["ratio"] = {rate: round(report["halfbyte"][rate] / report["llama"][rate], 2) for rate in RATES}
    return report


def show(report: dict[str, Any]) -> None:
    """The report as a small table."""
    print(f"{report['model']}, {report['threads']} threads, median of {report['runs']} runs, tokens a second")
    print(f"{'':<32}{'prefill':>10}{'decode':>10}")
    for peer in PEERS:
        row = report[peer]
        print(f"{row['engine']:<32}{row['prefill_tok_s']:>10}{row['decode_tok_s']:>10}")
    print(f"{'ratio':<32}{report['ratio']['prefill_tok_s']:>10}{report['ratio']['decode_tok_s']:>10}")


def main() -> None:
    """Parse, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="for both (default: all)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt (default: 512)")
    parser.add_argument("--decode", type=int, default=128, help="tokens to decode (default: 128)")
    parser.add_argument("--repeats", type=int, default=3, help="timed repeats in each child (default: 3)")
    parser.add_argument("--rounds", type=int, default=2, help="turns each child gets (default: 2)")
    parser.add_argument("--peer-python", default=sys.executable, help="Python with llama-cpp-python (default: this)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    report = compare(args)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


if __name__ == "__main__":
    main()
