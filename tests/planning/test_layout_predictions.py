"""What a prediction of layouts tells besides a plan, by hand."""

from __future__ import annotations

import pytest

from planner import Targets, Workload, load_model, load_topology, plan
from planner.specs.ask.targets import Degrees, Layouts, PhaseLayout
from planner.verifier.layouts.predictions import layout_prediction
from tests.planning import layout_arrays

D_MODEL, D_FF, HEADS, D_HEAD, LAYERS, BF16 = 18432, 73728, 64, 256, 118, 2


@pytest.fixture(scope="module")
def palm():
    """Prefill of one sequence of 2048 tokens over heads, decode of 64 over the batch, X = 4."""
    return layout_prediction(
        plan(
            load_model("palm-540b"),
            load_topology("tpu-v4-4x4x4"),
            "roofline",
            workload=Workload(n_input_tokens=2048, n_output_tokens=64),
            targets=Targets(
                degrees=Degrees(tensor=64),
                layouts=Layouts(
                    prefill=PhaseLayout(name="WS 2D", attention="heads"),
                    decode=PhaseLayout(name="WS 2D", attention="batch"),
                ),
            ),
            weights_formats=("int8",),
            batches=(64,),
            prefill_batches=(1,),
            objective="throughput",
        )
    )


def test_a_parallel_block_sends_what_appendix_a_says(palm):
    """T E/X twice over yz; over x what F, queries, keys and values are made into, and back.

    Attention over the batch moves queries, keys and values to their sequences, and heads back.
    """
    assert palm.plan.deployment.storage == "E_x F_yz"
    over_x, over_yz = 3 / 4, 15 / 16
    queries, cached = HEADS * D_HEAD, 2 * D_HEAD

    def of(n_tokens: int, width: float, share: float) -> float:
        return LAYERS * n_tokens * width * BF16 * share

    def shared(n_tokens: int) -> dict[tuple[str, str], float]:
        residual = of(n_tokens, D_MODEL / 4, over_yz)
        return {
            ("all-gather", "yz"): residual,
            ("reduce-scatter", "yz"): residual,
            ("reduce-scatter", "x"): of(n_tokens, (2 * D_FF + queries + cached) / 16, over_x),
            ("all-gather", "x"): of(n_tokens, (D_FF + queries) / 16, over_x),
        }

    keys = {("all-gather", "xyz"): of(2048, cached, 63 / 64)}
    moved = {("all-to-all", "xyz"): of(64, (2 * queries + cached) / 64, 63 / 64)}
    for traffic, expected in (
        (palm.prefill_traffic, shared(2048) | keys),
        (palm.decode_traffic, shared(64) | moved),
    ):
        found = {(one.kind, one.axes): one.received_bytes for one in traffic}
        assert found == pytest.approx(expected)


def test_the_longest_context_fills_what_a_decode_pass_leaves(palm):
    """One sequence a chip: 2 × 256 numbers a layer and token; one token more does not fit."""
    memory, per_token = palm.plan.deployment.memory, LAYERS * 2 * D_HEAD * BF16
    decode_bytes = memory.weights_bytes + memory.reserve_bytes
    room = memory.capacity_bytes - decode_bytes
    most, working = room / per_token, 64 * 2**20  # activations of a pass are a few megabytes
    assert most - working / per_token < palm.longest_context <= most


def test_the_toy_model_is_table_1_of_erdil():
    """234 tokens a second on 26 GPUs: Llama 3 70B in 16 bits."""
    best = plan(
        load_model("llama-3-70b"),
        load_topology("h100-erdil2025-x4"),
        "erdil2025",
        weights_formats=("bf16",),
        batches=(8,),
        objective="latency",
    )
    toy = layout_prediction(best).toy
    assert 1 / toy.token_s == pytest.approx(234.3, abs=0.05)
    assert toy.n_devices == pytest.approx(26.1, abs=0.05)
    assert toy.n_requests == pytest.approx(1e15 / 3.3e12)


def test_palm_in_int8_is_as_good_as_its_paper_says():
    """ "Without noticeable quality loss", [Pope2022] §3.6: a limit of 1 % leaves it on 64 chips."""
    best = plan(
        load_model("palm-540b"),
        load_topology("tpu-v4-4x4x8"),
        "roofline",
        targets=Targets(tpot_s=0.03, min_batch=64, quality_loss_fraction=0.01),
        objective="devices",
        batches=(64,),
    )
    assert (best.deployment.weights_format, best.deployment.n_devices) == ("int8", 64)


ASKED = {
    "as searched": ("palm-62b", "tpu-v4-4x4x4", {}),
    "gathered": ("palm-62b", "tpu-v4-4x4x4", {"prefill": "WG XYZ"}),
    "experts": ("qwen3-30b-a3b", "tpu-v4-2x2x2", {}),
    "stages": ("llama-3.1-70b", "h100-nvl8-x2", {"pipeline": 2}),
    "windows": ("gpt-oss-120b", "h100-nvl8-x1", {}),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("batch", [1, 64])
def test_the_account_sends_and_holds_what_the_arrays_of_the_search_do(name, batch):
    model, pool, given = ASKED[name]
    layouts = Layouts(prefill=PhaseLayout(name=given.get("prefill")))
    best = plan(
        load_model(model),
        load_topology(pool),
        "roofline",
        workload=Workload(n_input_tokens=2000, n_output_tokens=200),
        targets=Targets(degrees=Degrees(pipeline=given.get("pipeline")), layouts=layouts),
        batches=(batch,),
        prefill_batches=(batch,),
        objective="throughput",
    )
    mine, other = layout_prediction(best), layout_arrays.predicted(best)
    assert mine.longest_context == other.longest_context > 0
    for name in ("prefill_traffic", "decode_traffic"):
        here, there = (
            {(it.kind, it.axes): it.received_bytes for it in getattr(one, name)}
            for one in (mine, other)
        )
        assert here == pytest.approx(there, rel=1e-9)
