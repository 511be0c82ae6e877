"""Frontiers, comparisons and audits of engines: the staircase by enumeration, and the best."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.commands.cli import main
from planner.errors import NoPlanError, RequestError
from planner.planning.comparing import compare, frontiers
from planner.planning.engine_audit import audit_engine
from planner.planning.pareto import frontier
from planner.planning.plans import plan
from planner.programs.blocks import Objective
from planner.programs.engine import pose_engine
from planner.results.engines import EngineAudit
from planner.runtimes.engines import engine_candidates
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.targets import Degrees, SolverOptions, Targets
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.devices import Workload

WORK = Workload(n_input_tokens=2048, n_output_tokens=256)
POOL, ENGINE = "h100-nvl8-x1", "sglang"
SMALL = {"workload": WORK, "batches": (1, 8, 64), "chunks": (2048, 8192)}

model, cluster = cache(load_architecture), cache(load_cluster)


def staircase(name: str, x: str, y: str, targets: Targets) -> list[tuple[float, float]]:
    """Every pair that no other is as good as in both, slowest first, by enumeration."""
    (planner,) = engine_candidates(
        model(name),
        cluster(POOL),
        ENGINE,
        PlanOptions(
            **SMALL,
            targets=targets,
            weights_formats=None,
            kv_formats=None,
            objective=y,
            confidence=0.9,
            prefer="objective",
            options=SolverOptions(),
        ),
    )
    found = planner.choices
    posed = pose_engine(found, planner.request, Objective(objective=y))
    delay = {"latency": found.tpot_high_s, "ttft": found.ttft_high_s}[x]
    in_flight = found.table.batch * found.table.n_data
    n_out = planner.request.workload.n_output_tokens
    stay_s = found.ttft_high_s + (n_out - 1) * found.tpot_high_s
    price = stay_s / n_out / in_flight
    if y == "cost":
        price = price * found.table.n_devices * cluster(POOL).usd_per_hour / 3600.0
    if y == "device-throughput":
        price = price * found.table.n_devices
    kept = np.ones(len(found), dtype=bool)
    for limit in posed.program.limits:
        kept &= limit.column + limit.context[posed.program.column_context] <= limit.at_most
    stairs: list[tuple[float, float]] = []
    order = np.lexsort((price, delay))
    for i in order[kept[order]].tolist():
        if not stairs or price[i] < stairs[-1][1] * (1 - 1e-9):
            stairs.append((float(delay[i]), float(price[i])))
    return stairs[::-1]


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("qwen3-30b-a3b", "latency", "cost"),
        ("qwen3-8b", "ttft", "throughput"),
        ("qwen3-8b", "latency", "device-throughput"),
    ],
)
def test_the_frontier_is_the_staircase_of_all(name, x, y):
    targets = Targets(n_devices=6)
    found = frontier(
        model(name), cluster(POOL), ENGINE, x=x, y=y, targets=targets, confidence=0.9, **SMALL
    )
    expected = staircase(name, x, y, targets)
    ours = [(p.x, p.y if y == "cost" else 1.0 / p.y) for p in found.points]
    assert len(ours) == len(expected) > 3
    assert np.array(ours) == pytest.approx(np.array(expected), rel=1e-9)
    assert found.proof.status == "optimal"
    assert all(point.deployment.n_devices <= 6 for point in found.points)


def test_a_frontier_of_an_engine_has_its_own_axes():
    with pytest.raises(RequestError) as caught:
        frontier(model("qwen3-8b"), cluster(POOL), "vllm", x="cost", y="batch", alpha=-1.0)
    assert {problem.where for problem in caught.value.problems} >= {"--x", "--y", "--alpha"}


def test_nothing_that_fits_has_no_frontier():
    with pytest.raises(NoPlanError):
        frontier(model("deepseek-v3"), cluster(POOL), "vllm", **SMALL)


def test_engines_are_compared_by_their_own_plans():
    names = ("vllm", "sglang")
    found = compare(
        [model("qwen3-8b")],
        [cluster(POOL)],
        names,
        **SMALL,
        targets=Targets(tpot_s=0.02),
        confidence=None,
        prefer="objective",
        options=SolverOptions(),
    )
    each = [
        plan(model("qwen3-8b"), cluster(POOL), name, targets=Targets(tpot_s=0.02), **SMALL)
        for name in names
    ]
    assert [row.case.engine for row in found.rows] == list(names)
    assert [row.plan.deployment for row in found.rows] == [plan.deployment for plan in each]
    costs = [plan.deployment.usd_per_token for plan in each]
    assert found.best == costs.index(min(costs))
    assert found.rows[1 - found.best].loss_fraction == pytest.approx(max(costs) / min(costs) - 1)


def test_a_case_without_measured_kernels_says_so_beside_the_others():
    found = frontiers(
        [model("qwen3-8b")], [cluster(POOL), cluster("tpu-v4-2x2x1")], ["vllm"], **SMALL
    )
    assert found[0].frontier is not None
    assert found[1].frontier is None
    assert "tpu-v4" in found[1].reason


@cache
def audited(speed: float) -> EngineAudit:
    return audit_engine(
        model("qwen3-8b"),
        cluster(POOL),
        "vllm",
        speed_tokens_per_s=speed,
        degrees=Degrees(tensor=2),
        batch=8,
        workload=WORK,
    )


def test_what_runs_as_predicted_is_as_predicted():
    found = audited(50.0)
    expected = found.predicted.tpot_s
    again = replace(found, observed_tpot_s=expected.value)
    assert again.prediction_factor == pytest.approx(1.0)
    assert again.errors_off == pytest.approx(0.0, abs=1e-9)
    assert replace(found, observed_tpot_s=expected.high).errors_off == pytest.approx(1.0)
    assert found.prediction_factor == pytest.approx(1.0 / 50.0 / expected.value)


def test_the_best_of_an_audit_are_plans_of_the_pool():
    found = audited(50.0)
    best = plan(
        model("qwen3-8b"),
        cluster(POOL),
        "vllm",
        workload=WORK,
        targets=Targets(tpot_s=1 / 50.0),
        confidence=0.0,
        prefer="objective",
    )
    assert found.equal_speed is not None
    assert found.equal_speed.usd_per_token == pytest.approx(best.deployment.usd_per_token)
    assert found.cost_factor == pytest.approx(
        found.observed_usd_per_token / best.deployment.usd_per_token
    )
    assert found.equal_cost is not None
    assert found.equal_cost.usd_per_token <= found.observed_usd_per_token * (1 + 1e-9)
    assert found.same_devices is not None
    assert found.same_devices.n_devices <= 2
    assert found.same_devices.planned_tpot_s <= found.predicted.tpot_s.value * (1 + 1e-9)


def test_what_no_deployment_reaches_has_no_best():
    found = audited(1e5)
    assert found.equal_speed is None
    assert found.cost_factor is None
    assert found.command == ""


def test_what_does_not_fit_is_refused():
    asked = {"speed_tokens_per_s": 20.0, "degrees": Degrees(tensor=1), "batch": 4}
    with pytest.raises(RequestError, match="does not fit"):
        audit_engine(model("llama-3.1-70b"), cluster(POOL), "vllm", **asked)
    with pytest.raises(RequestError, match="--speed"):
        audit_engine(model("qwen3-8b"), cluster(POOL), **{**asked, "speed_tokens_per_s": 0.0})


def test_options_reach_the_frontier_and_its_files(tmp_path, capsys):
    table, page = tmp_path / "points.csv", tmp_path / "frontier.html"
    words = f"pareto --engine vllm --model qwen3-8b --topology {POOL} --batch 1,64 --chunk 2048"
    assert main([*words.split(), "--csv", str(table), "--html", str(page), "--json"]) == 0
    (curve,) = json.loads(capsys.readouterr().out)["answer"]["curves"]
    points = curve["frontier"]["points"]
    rows = table.read_text(encoding="utf-8").splitlines()
    assert len(rows) == len(points) + 1
    assert rows[0].startswith("engine,model,topology")
    assert points[0]["deployment"]["summary"] in page.read_text(encoding="utf-8")


def test_the_preferred_point_changes_with_the_worth_of_speed():
    found = [
        frontier(model("qwen3-8b"), cluster(POOL), "vllm", alpha=alpha, **SMALL)
        for alpha in (0.0, 100.0)
    ]
    assert found[0].preferred == 0
    assert found[1].preferred == len(found[1].points) - 1
    assert replace(found[0].points[0]) == found[1].points[0]
