"""Half of any coefficient of the account is seen by the arrays, before an answer goes out."""

from __future__ import annotations

from functools import cache
from inspect import isclass

import pytest

from planner.errors import SolverError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.runtimes.predicting import Speculating, predict
from planner.specs.files.reading import load_architecture
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.serving import feeding, held, kernels, layers, passes, ranks, rounds, turns
from planner.verifier.serving.kernels import Kernels
from planner.verifier.serving.ranks import Links
from planner.verifier.serving.rounds import Demand
from planner.verifier.serving.turns import Turns
from tests.report.predictions import machines

MTP = Speculating(kind="mtp", n_drafted=2, acceptance=(0.8, 0.5))
BLOCKS = ServedFormats(weights="fp8_block", experts="fp8_block", cache="bf16")
ROUTED = {"n_data": 16, "n_expert_parallel": 16}


@cache
def setting(topology, engine, model):
    return load_architecture(model), machines(topology, engine)


def drafted():
    """Experts over two nodes, two batches at once, drafts, and three waves."""
    model, found = setting("h200-nvl8-x2", "sglang", "deepseek-v3")
    table = deployments(formats=BLOCKS, batch=8, overlaps=True, n_redundant=16, **ROUTED)
    lengths = Traffic(
        n_input_tokens=2000, n_output_tokens=300, n_shared_tokens=640, n_samples=2, n_waves=3
    )
    return predict(model, found, table, lengths, speculating=MTP)


def staged():
    """A dense model in stages over two nodes, more than run at once, prompts in parts."""
    model, found = setting("h100-nvl8-x2", "vllm", "llama-3.1-70b")
    formats = ServedFormats(weights="bf16", experts="bf16", cache="fp8")
    table = deployments(formats=formats, batch=1500, n_tensor=2, n_stages=8, chunk_tokens=8192)
    return predict(model, found, table, Traffic(n_input_tokens=9000, n_output_tokens=200))


def halved(found):
    """Half of a figure, or of each of some."""
    if isinstance(found, tuple):
        return tuple(map(halved, found))
    if isinstance(found, dict):
        return {name: halved(one) for name, one in found.items()}
    return found / 2


COEFFICIENTS = [
    *((kernels, name) for name in ("STORED", "READ")),
    *((Kernels, name) for name in ("seconds", "error", "peak_of")),
    (held, "MOST_SCORED"),
    *((rounds, name) for name in ("weights_bytes", "activation_bytes", "cached_bytes")),
    (rounds, "draft_bytes"),
    *((rounds, name) for name in ("decode_beside_s", "prefill_beside_s", "engine_deviation")),
    *((layers, name) for name in ("_small_bytes", "cached_numbers")),
    *((Links, name) for name in ("collective_s", "send_s")),
    (passes, "HOST_ERROR"),
    (passes, "OF_A_MEDIAN"),
    (ranks, "ERRORS"),
    *((Turns, name) for name in ("rest_s", "queue_s", "met", "together_s")),
    (turns, "LENGTH_SPREAD"),
    *((feeding, name) for name in ("mean_highest", "levelled")),
    *((Demand, name) for name in ("n_new_tokens", "received_s", "n_kept_tokens", "n_held_tokens")),
    *((Demand, name) for name in ("n_positions", "n_yielded")),
]


def half_of(value):
    if isinstance(value, property):
        return property(lambda one: halved(value.fget(one)))
    if callable(value):
        return lambda *args, **named: halved(value(*args, **named))
    return halved(value)


@pytest.mark.parametrize(
    ("place", "name"),
    COEFFICIENTS,
    ids=[f"{place.__name__.rpartition('.')[2]}.{name}" for place, name in COEFFICIENTS],
)
def test_half_of_a_coefficient_is_seen(place, name, monkeypatch):
    value = place.__dict__[name] if isclass(place) else getattr(place, name)
    half = half_of(value)
    for one in (place, *(layers, passes) * (not isclass(place))):
        if one is place or getattr(one, name, None) is value:
            monkeypatch.setattr(one, name, half)
    with pytest.raises(SolverError, match="account"):
        assert drafted() != staged()  # one of them uses it


@pytest.mark.parametrize("known", [drafted, staged])
def test_as_it_is_both_agree(known):
    found = known()
    assert found.tpot_s.value > 0
