"""One question has one answer: what is planned is what is placed and what is predicted.

`python -m tests.placing.test_one_answer 500` asks so many requests at random.
"""

from __future__ import annotations

import io
import json
import math
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from planner.commands.cli import main
from planner.errors import NoPlanError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.placing.planning import place
from planner.planning.plans import plan
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.placements import AnyDeployment, Placement
from planner.runtimes.engine_requests import machines_of
from planner.runtimes.predicting import predict
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.devices import Workload

CONFIG = (
    Path(__file__).parents[1] / "specs" / "huggingface" / "configs" / "Llama-3.1-70B_config.json"
)
SEEDS = range(9, 26)
"""Few, of every end and every runtime."""
ENGINES = ("vllm", "sglang", "trtllm", "roofline")
BATCHES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256)
ONCE = SolverOptions(proof="one")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question of an operator: so many requests a second, within targets, on a pool."""

    model: str
    topology: str
    engine: str
    workload: Workload
    targets: Targets
    rate: float
    batches: tuple[int, ...]

    @property
    def demand(self) -> float:
        return self.rate * self.workload.n_output_tokens


def asked_at_random(seed: int) -> Asked:
    draw = Random(seed)
    model = draw.choice(
        ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b", "mixtral-8x7b")
    )
    device, n_nodes = draw.choice(("h100", "h200", "a100", "b200")), draw.choice((1, 1, 2, 2, 3, 4))
    work = Workload(
        n_input_tokens=draw.choice((200, 1500, 6000)), n_output_tokens=draw.choice((100, 300, 900))
    )
    return Asked(
        model=model,
        topology=f"{device}-nvl8-x{n_nodes}",
        engine=draw.choice(ENGINES),
        workload=work,
        targets=Targets(
            tpot_s=draw.choice((0.006, 0.015, 0.03, 0.06)), ttft_s=draw.choice((0.2, 1.0, None))
        ),
        rate=10.0 ** draw.uniform(-0.5, 2.5),
        batches=tuple(sorted(draw.sample(BATCHES, 5))),
    )


def planned(asked: Asked) -> AnyDeployment | None:
    targets = Targets(
        tpot_s=asked.targets.tpot_s, ttft_s=asked.targets.ttft_s, demand_tokens_per_s=asked.demand
    )
    try:
        found = plan(
            load_architecture(asked.model),
            load_cluster(asked.topology),
            asked.engine,
            workload=asked.workload,
            targets=targets,
            batches=asked.batches,
            options=ONCE,
            confidence=0.0,
        )
    except NoPlanError:
        return None
    assert isinstance(found.deployment, (Deployment, EngineDeployment))
    return found.deployment


def placed(asked: Asked) -> Placement | None:
    try:
        return place(
            load_site(asked.topology),
            Serve(model=load_architecture(asked.model), demand_tokens_per_s=asked.demand),
            engine=asked.engine,
            workload=asked.workload,
            targets=asked.targets,
            batches=asked.batches,
            options=ONCE,
            confidence=0.0,
        )
    except NoPlanError:
        return None


def figures(one: AnyDeployment) -> tuple[object, ...]:
    """Degrees or mesh, batch, bytes and times of one replica."""
    if isinstance(one, Deployment):
        mesh = one.mesh
        phases = one.prefill, one.decode
        cut = mesh.label, mesh.n_devices, mesh.n_stages, one.weights_format, one.kv_format
        ways = [(phase.batch, phase.layout) for phase in phases]
        rate = one.output_tokens_per_s / one.n_replicas
        return (*cut, *ways, one.used_bytes, one.tpot_s, one.ttft_s, rate)
    degrees = one.n_tensor, one.n_data, one.n_stages, one.n_expert_parallel
    rate = one.output_tokens_per_s / one.n_replicas
    times = one.planned_tpot_s, one.planned_ttft_s, rate
    return (*degrees, one.formats, one.batch, one.chunk_tokens, one.used_bytes, *times)


def predicted(asked: Asked, one: EngineDeployment) -> tuple[object, ...]:
    """The same by `plan predict` of the replica's deployment on the whole topology."""
    table = deployments(
        formats=one.formats,
        n_tensor=one.n_tensor,
        n_data=one.n_data,
        n_stages=one.n_stages,
        n_expert_parallel=one.n_expert_parallel,
        batch=one.batch,
        chunk_tokens=one.chunk_tokens,
    )
    traffic = Traffic(
        n_input_tokens=asked.workload.n_input_tokens,
        n_output_tokens=asked.workload.n_output_tokens,
    )
    machines = machines_of(load_cluster(asked.topology), one.engine)
    found = predict(load_architecture(asked.model), machines, table, traffic)
    held = found.memory
    moved = held.activation_bytes + held.workspace_bytes
    used = held.weights_bytes + held.longest_cache_bytes + moved
    degrees = (found.degrees[name] for name in ("tensor", "data", "pipeline", "expert"))
    times = found.tpot_s.value, found.ttft_s.value, found.total_tokens_per_s
    return (*degrees, one.formats, found.n_running, one.chunk_tokens, used, *times)


def close(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) else a == b
        for a, b in zip(one, other, strict=True)
    )


def check(seed: int) -> str:
    """What a request has: `none`, `alike` replicas that all agree on, or a `mixed` placement.

    A placement may mix replicas, so it may serve what copies of one deployment cannot, and is
    never dearer. Where its replicas are alike it is the plan.
    """
    asked = asked_at_random(seed)
    best, found = planned(asked), placed(asked)
    if found is None:
        assert best is None, (asked, best)
        return "none"
    replicas = [found.recipes[one.recipe].deployment for one in found.replicas]
    for one in replicas:
        if isinstance(one, EngineDeployment):
            assert close(figures(one), predicted(asked, one)), asked
    rent = math.fsum(one.usd_per_hour for one in replicas)
    is_alike = all(close(figures(one), figures(replicas[0])) for one in replicas)
    if best is None:
        assert not is_alike, (asked, replicas[0])
        return "mixed"
    if not is_alike:
        assert rent < best.usd_per_hour * (1 - 1e-9), (asked, best.summary)
        return "mixed"
    assert close(figures(best), figures(replicas[0])), (asked, best, replicas[0])
    assert best.n_replicas == len(replicas), asked
    assert best.n_devices == found.n_used, asked
    assert math.isclose(best.usd_per_hour, rent), asked
    return "alike"


def test_requests_at_random_are_planned_placed_and_predicted_alike() -> None:
    found = [check(seed) for seed in SEEDS]
    assert {name: found.count(name) for name in set(found)}.keys() == {"none", "alike", "mixed"}
    assert found.count("alike") >= len(SEEDS) // 3


def said(*words: str) -> dict[str, Any]:
    """What a command answers in JSON."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert main([*words, "--json"]) == 0, words
    answer: dict[str, Any] = json.loads(out.getvalue())["answer"]
    return answer


def of_engine(one: dict[str, Any]) -> dict[str, Any]:
    """GPUs, degrees, batch, memory and times of one replica, as JSON says them."""
    degrees = {name: one[name] for name in ("n_tensor", "n_data", "n_stages", "n_expert_parallel")}
    times = {name: one[name] for name in ("planned_tpot_s", "planned_ttft_s", "used_bytes")}
    return {**degrees, **times, "batch": one["batch"], "chunk_tokens": one["chunk_tokens"]}


CHAT = ["--input", "1500", "--output", "300", "--ttft-target", "1s", "--latency-target", "40ms"]


@pytest.mark.parametrize(
    ("model", "rate", "n_gpus"), [("llama-3.1-70b", 8, 8), (str(CONFIG), 20, 16)]
)
def test_chat_on_sixteen_gpus_has_one_answer(model: str, rate: int, n_gpus: int) -> None:
    """8 requests a second take two replicas of 4 GPUs, 20 take four: whatever command is asked."""
    pool = ["--engine", "vllm", "--topology", "h100-nvl8-x2"]
    asked = ["--model", model, *pool, *CHAT, "--confidence", "0"]
    by_rate = said(*asked, "--rate", f"{rate}req/s")["deployment"]
    by_demand = said(*asked, "--demand", f"{rate * 300}tok/s")["deployment"]
    placed = said("place", *asked, "--rate", f"{rate}req/s")
    predicted = said(*by_rate["command"].split()[1:])
    ((recipe,), replicas) = placed["recipes"], placed["replicas"]
    assert (by_rate["n_tensor"], by_rate["batch"]) == (4, 73)
    assert by_rate["n_replicas"] == by_demand["n_replicas"] == len(replicas) == n_gpus // 4
    assert sum(len(one["ranks"]) for one in replicas) == n_gpus
    assert of_engine(by_rate) == of_engine(by_demand) == of_engine(recipe["deployment"])
    memory = predicted["memory"]
    held = (
        *("weights_bytes", "drafter_bytes", "longest_cache_bytes"),
        *("activation_bytes", "workspace_bytes"),
    )
    assert predicted["degrees"] == {"tensor": 4, "data": 1, "pipeline": 1, "expert": 1}
    assert predicted["batch"] == predicted["n_running"] == by_rate["batch"]
    assert predicted["tpot_s"] == by_rate["tpot_s"]
    assert predicted["ttft_s"] == by_rate["ttft_s"]
    assert sum(memory[name] for name in held) == pytest.approx(by_rate["used_bytes"])
    assert placed["served"][0]["usd_per_hour"] == pytest.approx(by_rate["usd_per_hour"])


if __name__ == "__main__":
    n_asked = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    kinds = [check(seed) for seed in range(n_asked)]
    for kind in dict.fromkeys(kinds):
        print(f"{kinds.count(kind)} of {n_asked} requests: {kind}")
