"""vLLM on H100 under inference-perf, as inference-sim (BLIS) measured it to calibrate itself.

What the harness did is not what its profiles ask for, and is replayed as it was:

* inference-perf 0.2 does not know `num_unique_system_prompts`, `num_users_per_system_prompt` and
  `enable_multi_turn_chat`, and its own record of the run has ten groups of ten prompts instead,
  which share a beginning and are sent in turn. There is no conversation: every prompt after the
  first hundred is cached but for its last block.
* Its "constant" load draws exponential gaps and stretches them to the stage: arrivals at random.
* It takes the time of every line of the stream, of empty ones too: an answer of N tokens is
  2 (N + 1) events, the last two of its end. What it calls TPOT and ITL is of events: a token takes
  (2 N + 1) / (N − 1) times as long, and half of all gaps are nothing.
* Since 0.14 vLLM composes a pass while the one before it runs.

The last two of these four can be seen in the rows: (e2e − TTFT) / TPOT is 2 N + 1 within 1 %, and
the times to the first token of a row reach over one pass from two passes on.

Sources: inference-sim/training at ed5c1d2, `default_args`: `profile.yaml` and `results/` of each
run, and the times between arrival and line that its `output/fit/coefficients.json` gives, 9.3 ms on
average with the rest of a pass; kubernetes-sigs/inference-perf v0.2.0, `load_timer.py`,
`completion.py`, `config.py` and `reportgen/base.py`; vLLM 0.14.0, release notes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.runtimes.predicting import predict
from planner.specs.records.roles import Station
from research.fleet.deviations import Deviation, deviation, table
from research.fleet.replaying import (
    DATA,
    Replayed,
    Requests,
    Server,
    architecture,
    poisson,
    replay,
    station,
)
from tests.report.predictions import machines

BLOCK = 16
"""Tokens of a block of vLLM's cache: what is found of a prompt are whole ones."""

NAMES = {
    "meta-llama/Llama-2-7b-hf": "Llama-2-7b-hf",
    "meta-llama/Llama-2-70b-hf": "Llama-2-70b-hf",
    "codellama/CodeLlama-34b-Instruct-hf": "CodeLlama-34b-Instruct-hf",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
}

FITTED = "Llama-2-7b-hf"
"""Whose rows `request` of `engines/common` was fitted to."""

N_SEEDS = 5
"""Replays of a row: near its places in service p99 of one run is half or twice that of another."""

PUBLISHED = {
    "TTFT mean": "BLIS 22.8/18.5, Vidur 16.3/13.6 (11 rows), AIConfigurator 0.9 793/-",
    "TTFT p99": "BLIS 34.9/28.3, Vidur 13.6/8.2 (11 rows)",
    "ITL mean": "BLIS 21.8/19.9, Vidur 11.1/4.0 (11 rows), AIConfigurator 0.9 21.1/-",
    "e2e mean": "BLIS 24.0/20.8",
}
"""Mean and median errors that inference-sim publishes of 40 such rows, in per cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of one run.

    Args:
        n_sent, n_answered: requests; what is missing timed out after 300 s.
        n_system: tokens that prompts of a group share.
        ms: what was measured, by column.
    """

    model: str
    n_tensor: int
    load: str
    number: int
    rate_per_s: float
    n_sent: int
    n_answered: int
    n_groups: int
    n_prompts: int
    n_system: int
    n_input: int
    n_output: int
    ms: dict[str, float]

    @property
    def name(self) -> str:
        return f"{self.model} TP{self.n_tensor} {self.load} {self.rate_per_s:g}/s"

    @property
    def is_overloaded(self) -> bool:
        return self.load == "reasoning"

    @property
    def n_events(self) -> int:
        """Gaps between events that the harness counts in one answer."""
        return 2 * self.n_output + 1

    @property
    def events_a_token(self) -> float:
        return self.n_events / (self.n_output - 1)


@cache
def stages() -> tuple[Stage, ...]:
    """All rows."""
    with (DATA / "blis_stages.csv").open(newline="") as file:
        return tuple(
            Stage(
                model=NAMES[row["model"]],
                n_tensor=int(row["tp"]),
                load=row["load"],
                number=int(row["stage"]),
                rate_per_s=float(row["rate_per_s"]),
                n_sent=int(row["sent"]),
                n_answered=int(row["answered"]),
                n_groups=int(row["groups"]),
                n_prompts=int(row["groups"]) * int(row["prompts_per_group"]),
                n_system=int(row["system_tokens"]),
                n_input=round(float(row["prompt_tokens"])),
                n_output=int(row["output_tokens"]),
                ms={name[:-3]: float(row[name]) for name in row if name.endswith("_ms")},
            )
            for row in csv.DictReader(file)
        )


def server(stage: Stage) -> Server:
    """vLLM as it was started: its options are in the runs' `exp-config.yaml`."""
    return Server(
        model=stage.model,
        topology="h100-nvl8-x1",
        engine="vllm",
        n_tensor=stage.n_tensor,
        most_running=128,
        chunk_tokens=2048,
    )


def requests(stage: Stage, seed: int = 1) -> Requests:
    """What the harness sent: in the first stage every prompt is new once."""
    whole = (stage.n_input - 1) // BLOCK * BLOCK
    shared = stage.n_system // BLOCK * BLOCK
    n_new = stage.n_prompts if stage.number == 0 else 0
    new = [0] * stage.n_groups + [shared] * (stage.n_prompts - stage.n_groups)
    return Requests(
        arrival_s=poisson(stage.n_sent, stage.rate_per_s, seed),
        n_input=[stage.n_input] * stage.n_sent,
        n_output=[stage.n_output] * stage.n_sent,
        n_cached=new[:n_new] + [whole] * (stage.n_sent - n_new),
    )


def as_run(stage: Stage) -> Station:
    return station(server(stage), stage.n_input, stage.n_input + stage.n_output)


def typed(stage: Stage, *, is_cached: bool = True) -> float | None:
    """TPOT by `plan predict --rate`, with `--hit-rate` of what was cached [ms]; None if overloaded.

    Who types what the profiles ask for, and not what was sent, has every prompt read.
    """
    hit = (stage.n_input - 1) // BLOCK * BLOCK / stage.n_input if is_cached else 0.0
    one = server(stage)
    degrees = {"n_tensor": one.n_tensor, "batch": one.most_running}
    found = predict(
        architecture(one.model),
        machines(one.topology, one.engine),
        deployments(formats=one.formats, chunk_tokens=one.chunk_tokens, **degrees),
        Traffic(n_input_tokens=stage.n_input, n_output_tokens=stage.n_output, hit_fraction=hit),
        requests_per_s=stage.rate_per_s,
    )
    assert found.load is not None
    return None if found.load.tpot_s is None else 1e3 * found.load.tpot_s


def typed_error(chosen: Sequence[Stage], *, is_cached: bool = True) -> Deviation:
    """Of TPOT, where it is said to be carried."""
    both = [(typed(one, is_cached=is_cached), measured(one)["ITL mean"]) for one in chosen]
    carried = [(found, was) for found, was in both if found is not None]
    return deviation([found for found, _ in carried], [was for _, was in carried])


def measured(stage: Stage) -> dict[str, float]:
    """What the harness measured, of tokens where it counted events [ms]."""
    ms, each = stage.ms, stage.events_a_token
    return {
        "TTFT mean": ms["ttft_mean"],
        "TTFT p50": ms["ttft_p50"],
        "TTFT p90": ms["ttft_p90"],
        "TTFT p99": ms["ttft_p99"],
        "TPOT p50": ms["event_p50"] * each,
        "TPOT p99": ms["event_p99"] * each,
        "ITL mean": ms["event_mean"] * each,
        "ITL p99 of events": ms["event_gap_p99"],
        "e2e mean": ms["e2e_mean"],
        "e2e p99": ms["e2e_p99"],
    }


def predicted(stage: Stage, found: Replayed) -> dict[str, float]:
    """The same quantities of a replay [ms]."""
    among_tokens = 1.0 - 0.01 * stage.events_a_token
    ttft, tpot, e2e = (1e3 * x for x in (found.ttft_s, found.tpot_s, found.e2e_s))
    return {
        "TTFT mean": float(ttft.mean()),
        "TTFT p50": float(np.quantile(ttft, 0.5)),
        "TTFT p90": float(np.quantile(ttft, 0.9)),
        "TTFT p99": float(np.quantile(ttft, 0.99)),
        "TPOT p50": float(np.quantile(tpot, 0.5)),
        "TPOT p99": float(np.quantile(tpot, 0.99)),
        "ITL mean": 1e3 * found.gaps.mean_s,
        "ITL p99 of events": 1e3 * found.gaps.percentile_s(among_tokens),
        "e2e mean": float(e2e.mean()),
        "e2e p99": float(np.quantile(e2e, 0.99)),
    }


Pair = tuple[Stage, dict[str, float]]


def errors(pairs: Sequence[Pair]) -> dict[str, Deviation]:
    """By quantity."""
    return {
        name: deviation(
            [found[name] for _, found in pairs], [measured(stage)[name] for stage, _ in pairs]
        )
        for name in measured(pairs[0][0])
    }


def replayed(chosen: Sequence[Stage], n_seeds: int = 1) -> list[Pair]:
    """Stages with the medians of so many replays, for nobody kept when requests came."""
    return [(one, middle(draws(one, as_run(one), n_seeds))) for one in chosen]


def draws(stage: Stage, one: Station, n_seeds: int) -> list[dict[str, float]]:
    """Replays of a stage, each with arrivals of its own."""
    seeds = range(1, n_seeds + 1)
    return [predicted(stage, replay(one, requests(stage, seed))) for seed in seeds]


def middle(found: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


def report() -> Iterator[str]:
    """Every row that was not overloaded, and errors by what may explain them."""
    carried = [one for one in stages() if not one.is_overloaded]
    pairs = []
    yield f"vLLM on H100 under inference-perf (BLIS): measured → simulated, median of {N_SEEDS}, ms"
    for stage in carried:
        each = draws(stage, as_run(stage), N_SEEDS)
        was, found = measured(stage), middle(each)
        pairs.append((stage, found))
        shown = "  ".join(f"{name} {was[name]:.4g}→{found[name]:.4g}" for name in was)
        late = [one["TTFT p99"] for one in each]
        yield (
            f"  {stage.name:44} stage {stage.number}  {shown}"
            f"  (TTFT p99 of one run {min(late):.4g} to {max(late):.4g})"
        )
    yield f"all {len(pairs)} rows; beside: mean/median errors that others publish of 40 such rows"
    yield from table(errors(pairs), PUBLISHED)
    for name, of_group in (
        (
            f"rows of models that nothing was fitted to; {FITTED} has 32 KV heads besides, and "
            "attention was measured with 8 at most",
            [pair for pair in pairs if pair[0].model != FITTED],
        ),
        (
            "first stages: prompts are new, and kernels are still compiled while clients wait",
            [pair for pair in pairs if pair[0].number == 0],
        ),
        ("second stages", [pair for pair in pairs if pair[0].number == 1]),
    ):
        yield f"{name}: {len(of_group)}"
        yield from table(errors(of_group))
    as_typed = {
        "TPOT, cached": typed_error(carried),
        "TPOT, all read": typed_error(carried, is_cached=False),
    }
    yield "as `plan predict --rate` has it, of those that it says are carried"
    yield from table(as_typed)
    left = [one.name for one in stages() if one.is_overloaded]
    yield f"left out: {', '.join(left)}: more came than was served, and clients gave up after 300 s"
