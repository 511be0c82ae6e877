"""What `plan` answers beside the frontiers that were measured, of one server.

    python -m research.sets.frontier

Each case is a model on a device at one pair of lengths of `silicon_sample.csv`, and three limits
of TPOT: quartiles of its rows' own. A measured layout gives in_flight · OSL / (TTFT + (OSL − 1)
TPOT) tokens a second; between two loads it is on the line between their logarithms.
The frontier at a limit is the most that a layout gives a GPU there, within the loads that it was
measured at. `plan` is asked as a user would ask, for most tokens a second of a device: with all
degrees that engines take, and with those that were measured in that case (no stages; DP where a
row has it). The answer is as planned: predicted, biases off. Within 0.85 to 1.15 is what is
wished for; what lies outside says how its layout differs from every row.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.commands.cli import main as plan
from research.sets.folds import rows
from research.sets.predicted import CLUSTERS, formats
from research.sets.rows import Served

WISHED = (0.85, 1.15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Rows of one model in one format on one device.

    Args:
        model: as rows name it.
        name: as `plan` knows it.
        weights: as its source names them; any of the sources' where empty.
    """

    model: str
    name: str
    gpu: str
    n_input: int
    n_output: int
    weights: str = ""


CASES = (
    Case(model="gpt-oss-120b", name="gpt-oss-120b", gpu="h100-sxm", n_input=1024, n_output=1024),
    Case(model="Qwen3-235B-A22B", name="qwen3-235b-a22b", gpu="h200", n_input=1000, n_output=1000),
    Case(model="DeepSeek-V3", name="deepseek-v3", gpu="h200", n_input=1024, n_output=1024),
    Case(
        model="Llama-3.1-70B",
        name="llama-3.1-70b",
        gpu="h100-sxm",
        n_input=1024,
        n_output=1024,
        weights="fp8",
    ),
    Case(
        model="Llama-3.1-70B",
        name="llama-3.1-70b",
        gpu="b200",
        n_input=1024,
        n_output=1024,
        weights="fp8",
    ),
)

Layout = tuple[str, int, int, int]
"""Engine, TP, DP, EP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What `plan` says.

    Args:
        tokens_per_s: of a device.
        outside: settings that too little was measured of; the answer counts at the upper end of
            its interval for them.
        anywhere: the best of all at what is predicted, no interval counted; None where it is this.
    """

    layout: Layout
    n_stages: int
    batch: int
    weights: str
    tpot_ms: float
    tokens_per_s: float
    outside: str = ""
    anywhere: Answer | None = None


def measured(case: Case) -> list[Served]:
    wanted = (case.model, case.gpu, case.n_input, case.n_output, "S")
    return [
        row
        for row in rows()
        if (row.series.model, row.series.gpu, row.n_input, row.n_output, row.series.set_name)
        == wanted
        and case.weights in ("", row.series.weights)
    ]


def layout_of(row: Served) -> Layout:
    return (row.series.engine, row.tensor, row.data, row.expert)


def tokens_per_s(row: Served) -> float:
    """Of a device, as measured."""
    n_output = row.series.mean_length * row.n_output
    each_s = (row.ttft_ms + (n_output - 1.0) * row.tpot_ms) / 1e3
    return row.in_flight * n_output / each_s / row.n_devices


def limits(found: Sequence[Served]) -> list[float]:
    """Of TPOT [ms]: rows' own."""
    times = sorted({row.tpot_ms for row in found})
    return [times[round(share * (len(times) - 1))] for share in (0.25, 0.5, 0.75)]


def frontier(found: Sequence[Served], limit_ms: float) -> tuple[float, Layout]:
    """Most tokens a second of a device within a limit, and what gives it."""
    curves: dict[Layout, list[Served]] = defaultdict(list)
    for row in found:
        curves[layout_of(row)].append(row)
    return max(_at(curve, limit_ms) for curve in curves.values())


def _at(curve: Sequence[Served], limit_ms: float) -> tuple[float, Layout]:
    """0 where even the least load takes longer; that of the most where none does."""
    by_load = sorted(curve, key=lambda row: row.tpot_ms)
    times = np.log([row.tpot_ms for row in by_load])
    rates = np.log([tokens_per_s(row) for row in by_load])
    limit = np.log(limit_ms * (1 + 1e-9))
    reached = float(np.exp(np.interp(limit, times, rates))) if limit >= times[0] else 0.0
    return reached, layout_of(by_load[0])


def ask(case: Case, found: Sequence[Served], limit_ms: float, *more: str) -> Answer | str:
    """The answer, or why there is none."""
    share = found[0].series.mean_length
    served = [formats(row) for row in found]
    weights = {
        one.weights if row.series.is_dense else one.experts
        for row, one in zip(found, served, strict=True)
    }
    command = [
        *("--model", case.name, "--topology", CLUSTERS[case.gpu]),
        *("--engine", ",".join(sorted({row.series.engine for row in found}))),
        *("--weights", ",".join(sorted(weights))),
        *("--kv", ",".join(sorted({one.cache for one in served}))),
        *(
            "--input",
            str(round(share * case.n_input)),
            "--output",
            str(round(share * case.n_output)),
        ),
        *("--latency-target", f"{limit_ms:.4g}ms", "--objective", "device-throughput", *more),
    ]
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        status = plan([*command, "--json"])
    if status:
        return (wrong.getvalue() or said.getvalue()).strip()
    answer = json.loads(said.getvalue())["answer"]
    other = answer["anywhere"]
    return replace(
        _answer(answer["deployment"]), anywhere=_answer(other["deployment"]) if other else None
    )


def _answer(best: dict[str, Any]) -> Answer:
    return Answer(
        layout=(best["engine"], best["n_tensor"], best["n_data"], best["n_expert_parallel"]),
        n_stages=best["n_stages"],
        batch=best["batch"],
        weights=best["formats"]["experts"],
        tpot_ms=1e3 * best["planned_tpot_s"],
        tokens_per_s=best["output_tokens_per_s"]
        / (best["n_tensor"] * best["n_data"] * best["n_stages"]),
        outside=", ".join(f"{one['property']} {one['value']}" for one in best["outside"]),
    )


def differs(answer: Answer, found: Sequence[Served]) -> str:
    """How an answer's layout is none that was measured; empty if it is one."""
    engine, tensor, data, expert = answer.layout
    own = [row for row in found if row.series.engine == engine]
    parts = [
        *([f"PP {answer.n_stages}"] if answer.n_stages > 1 else []),
        *([f"TP {tensor}"] if tensor not in {row.tensor for row in own} else []),
        *([f"DP {data}"] if data not in {row.data for row in own} else []),
        *([f"EP {expert}"] if expert not in {row.expert for row in own} else []),
    ]
    load = answer.batch * data / (tensor * data * answer.n_stages)
    most = max((row.in_flight / row.n_devices for row in own), default=0.0)
    if load > most:
        parts.append(f"{load:.0f} requests in flight a device, at most {most:.0f} measured")
    return ", ".join(parts)


def lines(case: Case) -> Iterator[str]:
    found = measured(case)
    kinds = ["--pp", "1"]
    if all(row.data == 1 for row in found):
        kinds += ["--dp", "1"]
    for limit_ms in limits(found):
        best, layout = frontier(found, limit_ms)
        for kind, more in (("any", []), ("as measured", kinds)):
            answer = ask(case, found, limit_ms, *more)
            name = f"{case.model} {case.gpu} {limit_ms:6.1f} ms {kind:11s}"
            if isinstance(answer, str):
                yield f"{name} measured {best:7.0f}: {answer.splitlines()[0]}"
                continue
            yield f"{name} measured {best:7.0f} by {_text(layout)}"
            yield f"  planned {_beside(answer, best, found)}"
            if answer.anywhere is not None:
                yield f"  at what is predicted anywhere {_beside(answer.anywhere, best, found)}"


def _beside(answer: Answer, best: float, found: Sequence[Served]) -> str:
    """An answer over the frontier; outside of what is wished for with what may be its cause."""
    ratio = answer.tokens_per_s / best
    causes = [differs(answer, found)]
    if answer.outside:
        causes.append(f"little measured of {answer.outside}")
    cause = "; ".join(filter(None, causes)) or "times"
    is_within = WISHED[0] <= ratio <= WISHED[1]
    return (
        f"{answer.tokens_per_s:7.0f} by {_text(answer.layout)}"
        f"{f' PP {answer.n_stages}' * (answer.n_stages > 1)}: {ratio:.2f}"
        f"{'' if is_within else ' OUTSIDE: ' + cause}"
    )


def _text(layout: Layout) -> str:
    engine, tensor, data, expert = layout
    return f"{engine} TP {tensor} DP {data} EP {expert}"


def main() -> None:
    for case in CASES:
        for line in lines(case):
            print(line, flush=True)


if __name__ == "__main__":
    main()
