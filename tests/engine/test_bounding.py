"""Bounds of deployments: none is beyond what it bounds, and no answer knows of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner import NoPlanError, load_architecture, load_cluster, plan
from planner.equations.arrays import IntArray
from planner.estimates.serving.choices import EngineChoices, degrees
from planner.estimates.serving.deployments import DeploymentTable
from planner.estimates.serving.grids import BatchSpans, Look, nearest
from planner.estimates.serving.timer import Timer
from planner.estimates.serving.traffic import Drafts
from planner.programs.bounding import LOOKS
from planner.runtimes import engine_source
from planner.runtimes.engines import engine_candidates
from planner.specs.ask.engine import DraftOptions, PlanOptions
from planner.specs.ask.targets import DEFAULT_WORKLOAD, SolverOptions, Targets
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.devices import Workload

ASKED = {
    "workload": DEFAULT_WORKLOAD,
    "weights_formats": None,
    "kv_formats": None,
    "batches": DEFAULT_BATCHES,
    "chunks": None,
    "overlaps": ("none", "two-batch"),
    "objective": "cost",
    "confidence": None,
    "prefer": "objective",
    "drafting": None,
    "targets": Targets(tpot_s=0.03),
    "options": SolverOptions(),
}
MTP = DraftOptions(kind="mtp", acceptance=(0.8, 0.5), lookaheads=(1, 3))

LONG = Workload(n_input_tokens=5000, n_output_tokens=16)
SHORT = Workload(n_input_tokens=300, n_output_tokens=900)
CASES = [
    ("llama-3.1-70b", "h100-nvl8-x3", "vllm", {}),
    (
        "mixtral-8x7b",
        "h100-nvl8-x2",
        "trtllm",
        {"workload": Workload(n_input_tokens=5000, n_output_tokens=16)},
    ),
    (
        "qwen3-30b-a3b",
        "h200-nvl8-x2",
        "sglang",
        {"workload": replace(DEFAULT_WORKLOAD, hit_fraction=0.5)},
    ),
    (
        "llama-3.1-70b",
        "h100-nvl8-x2",
        "vllm",
        {"workload": replace(DEFAULT_WORKLOAD, n_shared_tokens=700, n_samples=6)},
    ),
    (
        "llama-3.1-8b",
        "h100-nvl8-x1",
        "sglang",
        {"workload": Workload(n_input_tokens=30, n_output_tokens=8)},
    ),
    (
        "deepseek-v3",
        "h200-nvl8-x3",
        "vllm",
        {"workload": Workload(n_input_tokens=300, n_output_tokens=900)},
    ),
    ("deepseek-v3", "h200-nvl8-x3", "sglang", {"drafting": MTP}),
]


@pytest.mark.parametrize(("model", "pool", "engine", "asked"), CASES)
def test_no_deployment_goes_below_its_bounds(model, pool, engine, asked):
    (some,) = engine_candidates(
        load_architecture(model), load_cluster(pool), engine, PlanOptions(**{**ASKED, **asked})
    )
    timer = Timer(model=some.model, clock=some.machines.clock, request=some.request)
    cuts = degrees(some.model, some.request)
    n_fitting = 0
    for block in timer.blocks(nearest(cuts, 20, 8)):
        for drafts in timer.drafts:
            rows, can = timer.in_chunks(block, drafts)
            exact = [
                timer.exact(rows.take(starts).with_chunk(chunk_tokens), drafts, 1.0)
                for starts, chunk_tokens in zip(can, timer.chunks, strict=True)
            ]
            n_fitting += sum(map(len, exact))
            for look in LOOKS:
                spans = BatchSpans(rows, can.copy())
                least, whose = bounds(timer, drafts, spans, look)
                for number, true in enumerate(exact):
                    own = whose[number][spans.of_row[places(spans.rows, true.table)]]
                    check(least.take(own), true, says=look.step == 1.0)
    assert n_fitting > 1000


def bounds(
    timer: Timer, drafts: Drafts | None, spans: BatchSpans, look: Look
) -> tuple[EngineChoices, IntArray]:
    """Bounds of all spans that may fit, and whose each is: by chunk and span, -1 without any."""
    chunk, span, first, last, n_left = spans.by(look)
    assert n_left.sum() == spans.can.sum()
    decode_s = timer.decode_s(spans.rows, drafts)
    fits, least = timer.least(
        spans.rows.take(first).with_chunk(timer.chunks[chunk]),
        drafts,
        1.0,
        last=spans.rows.batch[last],
        decode_s=(decode_s[first], decode_s[last]),
        reads=look.reads,
    )
    whose = np.full((len(spans.can), spans.of_row.max(initial=-1) + 1), -1)
    numbers = np.where(fits, fits.cumsum() - 1, -1)
    whose[chunk if look.reads else slice(None), span] = numbers
    return least, whose


def places(rows: DeploymentTable, some: DeploymentTable) -> IntArray:
    """The row that each of some deployments has, whatever the chunks."""
    names = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "batch", "overlaps")
    known = [tuple(one) for one in zip(*(getattr(rows, name) for name in names), strict=True)]
    index = {key: i for i, key in enumerate(known)}
    return np.array(
        [index[one] for one in zip(*(getattr(some, name) for name in names), strict=True)],
        dtype=np.int64,
    )


def check(bound: EngineChoices, true: EngineChoices, *, says: bool) -> None:
    """That no deployment is below its bound; where it `says` something not far above either."""
    for confidence in (None, 0.0, 0.9):
        low, high = (replace(one, confidence=confidence) for one in (bound, true))
        for name in ("tpot_high_s", "ttft_high_s", "place_s", "moving_bytes", "outside_error"):
            assert np.all(getattr(low, name) <= getattr(high, name)), name
    assert np.all(bound.table.batch >= true.table.batch)
    assert not says or not len(true) or np.median(bound.place_s / true.place_s) > 0.5


MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-120b")
POOLS = ("h100-nvl8-x1", "h200-nvl8-x2", "b200-nvl8-x1", "h100-nvl8-x3")
ENGINES = (("vllm",), ("sglang",), ("trtllm",), ("vllm", "sglang"))
OBJECTIVES = ("cost", "latency", "ttft", "throughput", "device-throughput", "devices", "rent")


def random_request(rng: np.random.Generator) -> tuple[tuple[object, ...], dict[str, object]]:
    """Arguments of `plan`: a small request with some limits."""
    limits: dict[str, object] = {}
    for name, share, values in (
        ("tpot_s", 0.6, (0.01, 0.03, 0.1)),
        ("ttft_s", 0.4, (0.2, 1.0)),
        ("demand_tokens_per_s", 0.3, (500.0, 20000.0)),
        ("min_batch", 0.2, (4, 64)),
        ("usd_per_token", 0.1, (1e-6, 1e-5)),
    ):
        if rng.random() < share:
            limits[name] = rng.choice(values).item()
    objective = OBJECTIVES[rng.integers(3 if "demand_tokens_per_s" in limits else 7)]
    model, pool = rng.choice(MODELS).item(), rng.choice(POOLS).item()
    engines = ENGINES[rng.integers(len(ENGINES))]
    asked = {
        "targets": Targets(**limits),
        "objective": objective,
        "batches": tuple(sorted(rng.choice(np.arange(1, 300), 6, replace=False).tolist())),
        "workload": Workload(
            n_input_tokens=int(rng.choice([200, 5000])), n_output_tokens=int(rng.choice([16, 1000]))
        ),
        "confidence": (None, None, 0.0, 0.8)[rng.integers(4)],
    }
    return (load_architecture(model), load_cluster(pool), engines), asked


def told(asked: tuple[object, ...], more: dict[str, object]) -> dict[str, object]:
    """What an answer says that bounds must not move."""
    try:
        found = plan(*asked, **more)
    except NoPlanError as error:
        return {one.name: one.reachable for one in error.conflict.obstacles}
    beside = {"inside": found.inside, "anywhere": found.anywhere}
    rivals = {one.runtime: one.objective for one in found.rivals}
    figures = {
        "is_optimal": float(found.certificate.status == "optimal"),
        "deployment": found.deployment,
        "n_ties": found.n_ties,
        "objective": found.certificate.objective,
        "bound": found.certificate.bound,
        **{f"next {i}": one.objective for i, one in enumerate(found.alternatives)},
        **{f"gain of {one.name}": one.gain_fraction for one in found.limits},
        **{f"best of {name}": value for name, value in rivals.items()},
        **{name: one and one.objective for name, one in beside.items()},
    }
    return {name: value for name, value in figures.items() if value is not None}


@pytest.mark.parametrize("seed", range(8))
def test_answers_are_the_same_with_and_without_bounds(monkeypatch, seed):
    asked, more = random_request(np.random.default_rng(seed))
    truth = told(asked, more)
    monkeypatch.setattr(engine_source, "MOST_TIMED", 0)
    found = told(asked, more)
    assert found.pop("deployment", None) == truth.pop("deployment", None)
    assert found == pytest.approx(truth, rel=1e-12, nan_ok=True)


def test_a_larger_pool_answers_by_the_same_truth_and_never_worse():
    model, targets = load_architecture("qwen3-32b"), Targets(tpot_s=0.03, ttft_s=0.5)
    found = [
        plan(
            model,
            load_cluster(f"h100-nvl8-x{n}"),
            workload=Workload(n_input_tokens=2000, n_output_tokens=1000),
            targets=targets,
            batches=(16, 128),
        )
        for n in (16, 17, 512)
    ]
    assert {one.deployment.engine for one in found} <= {"vllm", "sglang", "trtllm"}
    costs = [one.certificate.objective for one in found]
    assert costs[0] >= costs[1] >= costs[2]
    assert all(one.certificate.status == "optimal" for one in found)


def test_a_small_chunk_that_fits_where_the_usual_one_does_not_is_found_again():
    found = plan(
        load_architecture("qwen3-32b"),
        load_cluster("h100-nvl8-x2"),
        engine="vllm",
        workload=Workload(n_input_tokens=2000, n_output_tokens=1000),
        targets=Targets(tpot_s=0.06),
        batches=(248, 648),
    )
    median = found.anywhere.deployment
    assert (median.batch, median.chunk_tokens) == (648, 1024)
