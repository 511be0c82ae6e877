"""The second account of whole deployments agrees with the first: times, errors, bytes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.rules import cut_rules, is_valid
from planner.estimates.serving.traffic import Traffic
from planner.results.predictions import Prediction
from planner.runtimes.predicting import Speculating, predict
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.roles import DECODE, PREFILL, ROLES, TOGETHER
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.predictions import judge_prediction
from planner.verifier.serving.drafts import draft_of
from planner.verifier.serving.evaluation import loaded
from planner.verifier.serving.kernels import Kernels
from planner.verifier.serving.ranks import Links, Rank
from planner.verifier.serving.rounds import Demand, MemoryUse, UserTimes, memory_use, user_times
from tests.report.predictions import machines
from tests.specs.huggingface.published import UNTIMED

FOLDER = Path(__file__).parents[2] / "specs" / "huggingface" / "configs"
CONFIGS = [
    path
    for path in sorted(FOLDER.glob("*_config.json"))
    if "quant" not in path.name and path.stem.removesuffix("_config") not in UNTIMED
]
POOLS = ("h100-nvl8-x8", "h200-nvl8-x8", "b200-nvl8-x8", "h20-nvl8-x8", "mi300x-x8")
ENGINES = ("vllm", "sglang", "trtllm")
N_TRIES, N_MET = 400, 2

machines_of, cluster_of = cache(machines), cache(load_cluster)


def both(model, draw, role) -> tuple[Prediction, UserTimes, MemoryUse] | None:
    """A deployment at random by both accounts; None where the first refuses it."""
    weights, experts = draw.choice(("bf16", "fp8", "fp8_block", "int4")), draw.choice(("", "mxfp4"))
    formats = ServedFormats(
        weights=weights, experts=experts or weights, cache=draw.choice(("bf16", "fp8"))
    )
    table = deployments(
        formats=formats,
        n_tensor=draw.choice((1, 2, 4, 8, 16)),
        n_data=draw.choice((1, 1, 2, 8, 16)),
        n_stages=draw.choice((1, 1, 2, 3)),
        n_expert_parallel=draw.choice((1, 2, 8, 16, 32)),
        batch=draw.choice((1, 5, 64)),
        chunk_tokens=draw.choice((2048, 8192)),
        overlaps=draw.random() < 0.3,
    )
    if not is_valid(model, table)[0]:
        return None
    kind = draw.choice((None, "eagle", "medusa", "mtp"))
    kind = kind if kind != "mtp" or model.predictors else None
    asked = (
        Speculating(kind=kind, n_drafted=draw.choice((1, 3)), acceptance=(0.7, 0.4))
        if kind
        else None
    )
    pool, engine = draw.choice(POOLS), draw.choice(ENGINES)
    hits, shared = draw.choice((0.0, 0.4)), draw.choice((0.0, 500.0))
    samples = draw.choice((1, 1, 2, 5)) if role != PREFILL else 1
    hits = hits if role != DECODE else 0.0
    n_input, n_output = draw.choice((100, 3000, 20_000)), draw.choice((2, 300))
    n_waves = draw.choice((0, 1, 2, 10)) if role == TOGETHER else 0
    traffic = Traffic(
        n_input_tokens=n_input,
        n_output_tokens=n_output,
        hit_fraction=hits,
        n_shared_tokens=shared,
        n_samples=samples,
        role=role,
        n_waves=n_waves,
    )
    on = machines_of(pool, engine)
    often = draw.choice((1, 30))
    engine_rules = cut_rules().rules  # whether an engine serves the family is no matter of times
    on = replace(on, engine=replace(on.engine, n_polled_rounds=often, rules=engine_rules))
    try:
        found = predict(model, on, table, traffic, speculating=asked)
    except RequestError:
        return None
    cluster = cluster_of(pool)
    rank = Rank(
        model=model,
        formats=loaded(model, formats, on.engine),
        kernels=Kernels(on.device, on.kernels, on.engine),
        links=Links(cluster.fabric),
        n_small_kernels=on.engine.n_small_kernels,
        n_tensor=int(table.n_tensor[0]),
        n_data=int(table.n_data[0]),
        n_stages=int(table.n_stages[0]),
        n_expert_parallel=int(table.n_expert_parallel[0]),
        n_expert_tensor=int(table.n_expert_tensor[0]),
        exchanges=bool(table.exchanges[0]),
    )
    served = Demand(
        engine=on.engine,
        hbm_bytes=on.device.hbm_bytes,
        batch=int(table.batch[0]),
        chunk_tokens=int(table.chunk_tokens[0]),
        overlaps=bool(table.overlaps[0]),
        n_input_tokens=n_input,
        n_output_tokens=n_output,
        hit_fraction=hits,
        n_shared_tokens=shared,
        n_samples=samples,
        draft=draft_of(model, kind or "", asked.n_drafted if asked else 0, (0.7, 0.4)),
        role=role,
        n_waves=n_waves,
    )
    held = memory_use(rank, served)
    return found, user_times(rank, served, held.largest_batch), held


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_times_errors_and_bytes_are_those_of_who_predicts(path, role):
    model, draw, n_met = load_architecture(str(path)), Random(path.stem), 0
    for _ in range(N_TRIES):
        pair = both(model, draw, role)
        if pair is None:
            continue
        one, again, held = pair
        exact = {"rel": 1e-12}
        assert again.tpot_s == pytest.approx(one.tpot_s.value, **exact)
        assert again.ttft_s == pytest.approx(one.ttft_s.value, **exact)
        assert again.itl_s == pytest.approx(one.itl_s.value, **exact)
        assert again.queue_s == pytest.approx(one.queue_s, **exact)
        for error, times in ((again.tpot_error, one.tpot_s), (again.ttft_error, one.ttft_s)):
            assert times.value * (1 + error) == pytest.approx(times.high, **exact)
        ended = again.n_running * one.degrees["data"] / again.place_s
        assert ended * one.n_output_tokens == pytest.approx(one.total_tokens_per_s, **exact)
        assert [*again.passes] == [line.name for line in one.passes]
        assert judge_prediction(one)[1] == []
        memory = one.memory
        assert held.weights_bytes == pytest.approx(memory.weights_bytes, **exact)
        assert held.drafter_bytes == pytest.approx(memory.drafter_bytes, **exact)
        assert held.activation_bytes == pytest.approx(memory.activation_bytes, **exact)
        cached = again.n_running * held.held_bytes + held.shared_bytes
        assert cached == pytest.approx(memory.cache_bytes, **exact)
        assert held.largest_batch == memory.largest_batch
        n_met += 1
        if n_met == N_MET:
            break
    assert n_met
