"""Ask for 300 answers and gather the commands that start what is answered.

python -m tests.launch.answers > commands.jsonl            all of them
python -m tests.launch.answers --slice 0:50 > some.jsonl   some of them, by their numbers

Models × pools × roles × engines, unnamed ones too, drawn once for all. A line a deployment: what
was asked, how it ended, the engine, its version, the command; the last line sums up on stderr.
`python -m tests.launch.parsers vllm FOLDER < commands.jsonl` has the engine read them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from planner.commands.cli import main as run

MODELS = (
    *("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen3-32b", "qwen3-30b-a3b"),
    *("qwen3-235b-a22b", "deepseek-v3", "deepseek-r1", "kimi-k2", "gpt-oss-120b"),
    *("mixtral-8x7b", "mistral-large-2"),
)
POOLS = ("h100-nvl8-x4", "h200-nvl8-x4", "b200-nvl8-x2", "a100-nvl8-x2", "l40s-x8")
ROLES = ("together", "apart", "free")
ENGINES = ("", "vllm", "sglang", "trtllm")
N_ANSWERS = 300
_LENGTHS = ((1500, 300), (2000, 500), (4000, 1000))


def requests() -> list[list[str]]:
    """Command lines, the same ones each time."""
    every = list(itertools.product(MODELS, POOLS, ROLES, ENGINES))
    drawn = random.Random(19)
    found = []
    for model, pool, roles, engine in drawn.sample(every, N_ANSWERS):
        n_input, n_output = drawn.choice(_LENGTHS)
        words = ["--model", model, "--topology", pool, "--input", str(n_input)]
        words += ["--output", str(n_output), "--latency-target", "80ms", "--ttft-target", "8s"]
        words += ["--engine", engine] * bool(engine)
        if roles != "together":
            words += ["--roles", roles, "--rate", "1req/s"]
        found.append([*words, "--time-limit", "10s", "--json"])
    return found


def deployments(answer: Any) -> Iterator[dict[str, Any]]:
    """Everything in an answer that an engine is to start."""
    if isinstance(answer, dict):
        if answer.get("of") == "engine" and "launch" in answer:
            yield answer
        for key, value in answer.items():
            if key != "rule_costs":  # what no engine starts
                yield from deployments(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from deployments(value)


def answered(words: list[str]) -> tuple[int, list[dict[str, Any]], float]:
    """The exit code of one command line, the deployments of its answer, and its CPU seconds."""
    out, began = io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(words)
    found = json.loads(out.getvalue())["answer"] if out.getvalue() else {}
    return code, list(deployments(found)), time.process_time() - began


def main() -> int:
    """Ask; 1 if a deployment of an engine has no command."""
    parser = argparse.ArgumentParser(prog="python -m tests.launch.answers")
    parser.add_argument("--slice", default=":", help="of the requests, like 0:50")
    first, _, last = parser.parse_args().slice.partition(":")
    counts: Counter[str] = Counter()
    for words in requests()[slice(int(first or 0), int(last or N_ANSWERS))]:
        code, found, spent_s = answered(words)
        counts[f"exit {code}"] += 1
        for one in found:
            launch = one["launch"]
            counts["deployments"] += 1
            counts["without a command"] += launch is None
            line = {"asked": " ".join(words), "engine": one["engine"], "at": one["summary"]}
            line |= {
                "command": launch and launch["command"],
                "version": launch and launch["version"],
            }
            print(json.dumps(line), flush=True)
        if code not in (0, 1):
            print(f"exit {code} after {spent_s:.1f} s: plan {' '.join(words)}", file=sys.stderr)
    print(dict(counts), file=sys.stderr)
    return int(counts["without a command"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
