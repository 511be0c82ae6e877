"""One question has one answer: what is placed is what is planned and what is predicted.

`python -m tests.placing.test_one_answer 50` asks 50 requests at random.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from random import Random

import pytest

from planner.errors import NoPlanError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.serving import Traffic
from planner.placing.planning import place
from planner.planning.plans import plan
from planner.results.engines import EngineDeployment
from planner.results.placements import Placement, Recipe
from planner.runtimes.engine_requests import machines_of
from planner.runtimes.predicting import predict
from planner.specs.architecture import Architecture
from planner.specs.placement_request import Serve
from planner.specs.pools import load_site
from planner.specs.reading import load_architecture, load_cluster
from planner.specs.records import Workload
from planner.specs.request import Targets

CONFIG = (
    Path(__file__).parents[1] / "specs" / "huggingface" / "configs" / "Llama-3.1-70B_config.json"
)
CHAT = Workload(n_input_tokens=1500, n_output_tokens=300)
TARGETS = Targets(tpot_s=0.04, ttft_s=1.0)
N_GATED = 5
SIZES = (1, 2, 4, 8, 16)


def figures(recipe: Recipe) -> tuple[object, ...]:
    """GPUs, degrees, batch, bytes and times of one replica."""
    one = recipe.deployment
    assert isinstance(one, EngineDeployment)
    degrees = one.n_tensor, one.n_data, one.n_stages, one.n_expert_parallel
    return (*degrees, one.batch, one.chunk_tokens, one.used_bytes, recipe.tpot_s, recipe.ttft_s)


def predicted(model: Architecture, topology: str, recipe: Recipe, work: Workload) -> tuple:
    """The same by `plan predict` of the replica's deployment on the whole topology."""
    one = recipe.deployment
    assert isinstance(one, EngineDeployment)
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
        n_input_tokens=work.n_input_tokens, n_output_tokens=work.n_output_tokens, hit_fraction=0.0
    )
    found = predict(model, machines_of(load_cluster(topology), recipe.engine), table, traffic)
    held = found.memory
    used = held.weights_bytes + held.cache_bytes + held.activation_bytes + held.workspace_bytes
    degrees = (found.degrees[name] for name in ("tensor", "data", "pipeline", "expert"))
    times = found.tpot_s.value, found.ttft_s.value
    return (*degrees, found.n_running, one.chunk_tokens, used, *times)


@pytest.mark.parametrize("rate", [8.0, 20.0])
def test_chat_on_sixteen_gpus_by_name_and_by_config_is_placed_as_predicted(rate: float) -> None:
    """8 requests a second take two replicas of 4 GPUs, 20 take four."""
    answers = []
    for name in ("llama-3.1-70b", str(CONFIG)):
        model = load_architecture(name)
        demand = rate * CHAT.n_output_tokens
        found = place(
            load_site("h100-nvl8-x2"),
            Serve(model=model, demand_tokens_per_s=demand),
            engine="vllm",
            workload=CHAT,
            targets=TARGETS,
        )
        (recipe,) = found.recipes
        assert figures(recipe) == pytest.approx(predicted(model, "h100-nvl8-x2", recipe, CHAT))
        answers.append((found.n_used, len(found.replicas), figures(recipe)))
    by_name, by_config = answers
    assert by_name[:2] == by_config[:2] == ((8, 2) if rate == 8.0 else (16, 4))
    assert by_config[2] == pytest.approx(by_name[2], rel=1e-3)


def asked_at_random(seed: int) -> dict:
    draw = Random(seed)
    work = Workload(
        n_input_tokens=draw.choice((200, 1500, 6000)), n_output_tokens=draw.choice((100, 300, 900))
    )
    return {
        "model": draw.choice(("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b")),
        "topology": draw.choice(("h100-nvl8-x1", "h100-nvl8-x2", "h200-nvl8-x2", "a100-nvl8-x2")),
        "engine": draw.choice(("vllm", "sglang", "trtllm")),
        "workload": work,
        "targets": Targets(
            tpot_s=draw.choice((0.015, 0.03, 0.06)), ttft_s=draw.choice((0.5, 2.0, None))
        ),
        "demand": draw.uniform(0.2, 30.0) * work.n_output_tokens,
        "batches": tuple(sorted(draw.sample((1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256), 5))),
    }


def placed(asked: dict) -> Placement | None:
    try:
        return place(
            load_site(asked["topology"]),
            Serve(model=load_architecture(asked["model"]), demand_tokens_per_s=asked["demand"]),
            engine=asked["engine"],
            workload=asked["workload"],
            targets=asked["targets"],
            batches=asked["batches"],
        )
    except NoPlanError:
        return None


def planned(asked: dict) -> dict[int, float]:
    """What the best deployment of at most so many GPUs serves, by size; none where none fits."""
    found = {}
    cluster = load_cluster(asked["topology"])
    for size in SIZES:
        if size > cluster.n_devices:
            continue
        targets = Targets(
            tpot_s=asked["targets"].tpot_s, ttft_s=asked["targets"].ttft_s, n_devices=size
        )
        try:
            best = plan(
                load_architecture(asked["model"]),
                cluster,
                asked["engine"],
                workload=asked["workload"],
                targets=targets,
                batches=asked["batches"],
                objective="throughput",
                prefer="objective",
            )
        except NoPlanError:
            continue
        found[size] = best.deployment.output_tokens_per_s
    return found


def check(seed: int) -> bool:
    """Whether a request has a placement; that, or that there is none, agrees with the plans.

    A placement may mix replicas, so it takes no more GPUs than copies of one plan; and no replica
    of it serves more than the plan of as many GPUs.
    """
    asked = asked_at_random(seed)
    model, n_devices = load_architecture(asked["model"]), load_cluster(asked["topology"]).n_devices
    rates, found = planned(asked), placed(asked)
    counts = {size: math.ceil(asked["demand"] / rate) for size, rate in rates.items()}
    alike = [size * n for size, n in counts.items() if size * n <= n_devices]
    if found is None:
        assert not alike, (seed, rates)
        return False
    assert found.n_used <= min(alike, default=n_devices), seed
    for recipe in found.recipes:
        assert figures(recipe) == pytest.approx(
            predicted(model, asked["topology"], recipe, asked["workload"])
        ), seed
        least = min((s for s in rates if s >= recipe.deployment.n_devices), default=None)
        if least is not None:
            assert recipe.deployment.output_tokens_per_s <= rates[least] * (1 + 1e-9), seed
    return True


def test_requests_at_random_are_placed_as_planned_and_predicted() -> None:
    n_placed = sum(check(seed) for seed in range(N_GATED))
    assert n_placed > 0


if __name__ == "__main__":
    n_asked = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    n_placed = sum(check(seed) for seed in range(n_asked))
    print(f"{n_asked} requests: {n_placed} placed as planned and predicted, the others by neither")
