"""Deployable layouts under the reference model: the rules, the times, the bytes, the choice."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, inf

import numpy as np
import pytest

from planner.equations.economics.transformer import kv_bytes_per_token, n_params
from planner.equations.speculation import expected_tokens
from planner.errors import RequestError
from planner.estimates.economics.choices import choices, tables_of
from planner.estimates.economics.degrees import (
    attention_degrees,
    expert_degrees,
    ffn_padding,
    grids,
    stage_counts,
    tensor_degrees,
)
from planner.estimates.economics.passes import LayoutRows, all_ways, pass_latency_s
from planner.estimates.economics.tables import footprints
from planner.results.erdil2025 import Split
from planner.runtimes.erdil_requests import economics_device, economics_model, left_out
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.economics import (
    MEMORY_RULES,
    Drafting,
    EconomicsModel,
    EconomicsRequest,
    QuantizedModel,
)
from planner.verifier.runtimes.erdil_passes import count_bytes, count_pass
from research.economics import facts
from research.economics.model.casework import Layout, breakdown

DENSE, MIXTURE = facts.model("Llama_3_70B"), facts.model("DeepSeek_V3")
BATCHES = np.array([1, 2, 3, 7, 16, 60, 128, 500, 1024])


def way_of(ways: LayoutRows, row: int) -> Split:
    return Split(
        n_stages=int(ways.n_stages[row]),
        n_tensor=int(ways.n_tensor[row]),
        n_expert=int(ways.n_expert[row]),
        n_attention=int(ways.n_attention[row]),
    )


def ways_of(*rows: tuple[int, int, int, int]) -> LayoutRows:
    columns = np.array(rows).T
    return LayoutRows(
        n_stages=columns[0], n_tensor=columns[1], n_expert=columns[2], n_attention=columns[3]
    )


def test_a_stage_is_part_of_a_node_that_divides_it_or_whole_nodes():
    assert tensor_degrees(40, 8) == (1, 2, 4, 8, 16, 24, 32, 40)
    assert tensor_degrees(144, 72) == (1, 2, 3, 4, 6, 8, 9, 12, 18, 24, 36, 72, 144)
    assert tensor_degrees(6, 8) == (1, 2, 4)


def test_no_stage_is_without_a_layer_and_no_shorter_pipeline_is_as_full():
    """Ten layers over four stages are 3, 3, 3 and 1; over six they are 2 each, as over five."""
    assert stage_counts(10, 64) == (1, 2, 3, 4, 5, 10)
    assert stage_counts(10, 4) == (1, 2, 3, 4)


def test_experts_are_spread_over_divisors_or_over_all_devices_of_a_stage():
    assert expert_degrees(MIXTURE, 24) == (1, 2, 4, 8, 24)
    assert expert_degrees(MIXTURE, 512) == (1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert expert_degrees(DENSE, 24) == (1,)


def test_attention_ranks_divide_the_devices_and_the_heads():
    assert attention_degrees(DENSE, 24) == (1, 2, 4, 8)
    assert attention_degrees(MIXTURE, 512) == (1, 2, 4, 8, 16, 32, 64, 128)


def test_what_does_not_divide_counts_as_the_fullest():
    """256 experts over 24 devices are 11 on the fullest; 2048 columns over 24 ranks are 86."""
    of_experts, of_columns = ffn_padding(MIXTURE, np.array([24, 24]), np.array([24, 1]))
    assert of_experts == pytest.approx(11 * 24 / 256)
    assert of_columns == pytest.approx(86 * 24 / 2048)


@pytest.mark.parametrize("n_ranks", [4, 8, 12, 16, 24, 64, 96, 512])
def test_grids_cut_both_dimensions_and_every_node_has_an_equal_block(n_ranks: int):
    found = grids(n_ranks, 8, d_rows=8192, d_columns=n_ranks)
    assert found
    for grid in found:
        assert grid.rows * grid.columns == n_ranks
        assert 8192 % grid.rows == 0
        assert grid.rows % grid.node_rows == grid.columns % grid.node_columns == 0
        assert grid.node_rows * grid.node_columns == ceil(n_ranks / 8)
        assert n_ranks // (grid.node_rows * grid.node_columns) <= 8


def test_the_squarest_grid_of_96_ranks_is_8_by_12_either_way_round():
    """The residual stream of 12288 has twelve parts, a model of 8192 has none: 8 × 12 only."""
    shapes = {(g.rows, g.columns) for g in grids(96, 8, d_rows=12288, d_columns=96)}
    assert shapes == {(8, 12), (12, 8)}
    assert {(g.rows, g.columns) for g in grids(96, 8, d_rows=8192, d_columns=96)} == {(8, 12)}


@pytest.mark.parametrize("context", [0.0, 100_000.0])
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        # stages divide the layers, all devices of a stage the experts
        ("Llama_3_70B", [(1, 8, 1, 8), (1, 8, 1, 2), (2, 16, 1, 4), (8, 4, 1, 1), (1, 64, 1, 16)]),
        ("Mixtral_8x22B", [(1, 8, 8, 8), (1, 32, 8, 8), (2, 16, 8, 4), (7, 8, 8, 2)]),
        ("DeepSeek_V3", [(1, 16, 16, 8), (1, 64, 64, 1), (2, 128, 128, 32)]),
    ],
)
def test_where_the_degrees_are_those_of_the_paper_so_is_the_time(name, rows, context):
    """The reference takes real degrees: given integers that divide everything, they are equal.

    Its experts are spread as wide as can be from two requests an active expert's share on;
    batches here are beyond that, and multiples of the stages. It knows grids only with
    √ranks on √nodes, so that only what it does in one dimension is compared.
    """
    decode, ways = facts.decode(name, n_context_tokens=context), ways_of(*rows)
    batches = np.array([112, 448, 896])
    latency = np.concatenate([pass_latency_s(decode, ways_of(row), batches) for row in rows])
    n_devices = ways.n_devices[:, None].astype(float)
    layout = Layout(
        n_stages=ways.n_stages[:, None].astype(float),
        attention_scale_down=(ways.n_tensor / ways.n_attention)[:, None],
    )
    reference = breakdown(decode, n_devices, batches, layout)
    in_1d = ~reference.is_2d
    assert in_1d.mean() > 0.5
    assert latency[in_1d] == pytest.approx(reference.latency_s[in_1d], rel=1e-9)


def test_on_square_grids_in_one_node_two_dimensions_are_the_papers():
    """Experts on 2 × 2 of 64 devices, attention on 2 × 2: Eqs. 39-44 as they stand."""
    decode, ways = facts.decode("GPT_4"), ways_of((1, 64, 16, 4))
    layout = Layout(n_stages=np.ones(1), attention_scale_down=np.full(1, 16.0))
    reference = breakdown(decode, 64.0, np.array([4096.0]), layout)
    assert reference.is_2d.all()
    by_hand = count_pass(decode, way_of(ways, 0), 4096)
    assert by_hand.ffn_shape == by_hand.attention_shape == "2D 2×2"
    assert pass_latency_s(decode, ways, np.array([4096]))[0] == pytest.approx(
        reference.latency_s, rel=1e-12
    )


@pytest.mark.parametrize("n_scored", [1.0, 4.0])
@pytest.mark.parametrize("context", [0.0, 100_000.0])
@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("Llama_3_70B_8_bit", "V100"),
        ("GPT_4", "H100"),
        ("Mixtral_8x22B", "A100"),
        ("DeepSeek_V3", "H100"),
        ("Falcon", "TPU_v4"),
    ],
)
def test_arrays_and_the_scalar_recount_agree_on_drawn_layouts(name, device, context, n_scored):
    decode = facts.decode(name, device, n_context_tokens=context, n_scored_tokens=n_scored)
    every = all_ways(decode, 256, most_stages=1024)
    drawn = np.random.default_rng(7).choice(len(every), 40, replace=False)
    latency = pass_latency_s(decode, every, BATCHES)[drawn]
    ways = every.take(drawn)
    for row, column in product(range(len(ways)), range(len(BATCHES))):
        way, batch = way_of(ways, row), int(BATCHES[column])
        if np.isfinite(latency[row, column]):
            assert latency[row, column] == pytest.approx(
                count_pass(decode, way, batch).total_s, rel=1e-12
            )
        else:
            tokens = ceil(batch / way.n_stages)
            few = way.n_expert > 1 and tokens < 2 * decode.model.sparsity
            assert few or way.n_stages > batch
    for rule in MEMORY_RULES:
        bytes_held = footprints(decode.model, ways, BATCHES, n_cached_tokens=context, rule=rule)
        counted = [
            [
                sum(
                    count_bytes(
                        decode.model,
                        way_of(ways, row),
                        int(batch),
                        n_cached_tokens=context,
                        rule=rule,
                    )
                )
                for batch in BATCHES
            ]
            for row in range(len(ways))
        ]
        assert bytes_held.total_bytes(slice(None)) == pytest.approx(np.array(counted), rel=1e-12)


def test_layouts_that_are_no_product_are_refused():
    ways = ways_of((1, 4, 1, 1), (1, 4, 1, 2), (1, 4, 2, 1))
    with pytest.raises(ValueError, match="same ranks"):
        pass_latency_s(facts.decode("Mixtral_8x7B"), ways, BATCHES)


def test_the_busiest_device_holds_whole_layers_and_its_ranks_of_attention():
    """Ten layers in four stages: three on the fullest; attention on one of two devices."""
    toy = replace(DENSE, n_layers=10, weight_bytes=1.0)
    ways = ways_of((4, 2, 1, 1))
    found = footprints(toy, ways, np.array([1, 8]), n_cached_tokens=1000.0, rule="in-flight")
    attention = 8192 * (64 + 16) * 128 + 64 * 128 * 8192
    ffn = 3 * 8192 * 28672
    assert found.weights_bytes[0] == 3 * (attention + ffn / 2) + 128256 * 8192 / 2
    one_request = 3 * 2 * 8 * 128 * 2 * 1000 / 2
    assert found.total_bytes(0)[1] - found.total_bytes(0)[0] == pytest.approx(7 * one_request)


def test_the_paper_counts_even_shares_and_one_microbatch():
    ways = ways_of((4, 2, 1, 1))
    found = footprints(DENSE, ways, np.array([8]), n_cached_tokens=1000.0, rule="one-microbatch")
    caches = kv_bytes_per_token(DENSE) * 1000 * 2
    assert found.total_bytes(0)[0] == pytest.approx((2 * n_params(DENSE) + caches) / 8)


SMALL_DRAFT = replace(
    facts.model("Llama_3_8B"), name="draft", n_layers=6, d_model=1024, d_ff=3584, n_heads=8
)
SMALL_MIXTURE = replace(
    facts.model("Mixtral_8x7B"), name="mixture", n_layers=10, d_model=2048, d_ff=6000, n_heads=12
)


def small_request(rule: str, hbm_bytes: float, context: float) -> EconomicsRequest:
    """A mixture of three billion parameters on eight devices in nodes of four."""
    device = replace(facts.device("H100"), n_devices_per_node=4, hbm_bytes=hbm_bytes)
    target, draft = (
        replace(facts.decode("Llama_3_8B"), model=model, device=device, n_context_tokens=context)
        for model in (SMALL_MIXTURE, SMALL_DRAFT)
    )
    return EconomicsRequest(
        served=(QuantizedModel(weights_format="bf16", target=target, draft=draft),),
        n_devices=8,
        batches=(1, 3, 8, 24),
        n_cached_tokens=context,
        drafting=Drafting(lookaheads=(2, 4)),
        memory=rule,
    )


def layouts_by_hand(model: EconomicsModel, n_devices: int) -> list[Split]:
    """Every layout on exactly so many devices, by the rules and without their code."""
    found = []
    for n_stages, n_tensor in ((p, n_devices // p) for p in range(1, n_devices + 1)):
        if n_stages * n_tensor != n_devices or n_tensor not in (1, 2, 4, 8):
            continue
        in_fullest = ceil(model.n_layers / n_stages)
        if ceil(model.n_layers / in_fullest) != n_stages:
            continue
        for e, t in product(range(1, n_tensor + 1), repeat=2):
            spreads = e <= model.n_experts and (model.n_experts % e == 0 or e == n_tensor)
            if n_tensor % e or n_tensor % t or model.n_heads % t or not spreads:
                continue
            found.append(Split(n_stages=n_stages, n_tensor=n_tensor, n_expert=e, n_attention=t))
    return found


def fastest_by_hand(request: EconomicsRequest, n_stages: int, n_tensor: int, batch: int) -> float:
    """The fastest token over every layout, draft and lookahead that fits, one after the other."""
    served, rule = request.served[0], request.memory
    n_devices, best = n_stages * n_tensor, inf

    def bytes_of(model: EconomicsModel, way: Split) -> float:
        cached = request.n_cached_tokens
        return sum(count_bytes(model, way, batch, n_cached_tokens=cached, rule=rule))

    drafts = [
        (way, bytes_of(SMALL_DRAFT, way), count_pass(served.draft, way, batch).total_s)
        for way in layouts_by_hand(SMALL_DRAFT, n_devices)
        if way.n_stages <= batch
    ]
    for way in layouts_by_hand(SMALL_MIXTURE, n_devices):
        few = way.n_expert > 1 and ceil(batch / n_stages) < 2 * SMALL_MIXTURE.sparsity
        if (way.n_stages, way.n_tensor) != (n_stages, n_tensor) or n_stages > batch or few:
            continue
        own = bytes_of(SMALL_MIXTURE, way)
        if own <= request.hbm_bytes:
            best = min(best, count_pass(served.target, way, batch).total_s)
        for n_drafted, (_, draft_bytes, draft_s) in product((2, 4), drafts):
            both = own + draft_bytes if rule == "in-flight" else max(own, draft_bytes)
            if both <= request.hbm_bytes:
                scored = replace(served.target, n_scored_tokens=n_drafted + 1.0)
                round_s = count_pass(scored, way, batch).total_s + n_drafted * draft_s
                best = min(best, round_s / expected_tokens(n_drafted, 0.8))
    return best


@pytest.mark.parametrize("rule", MEMORY_RULES)
@pytest.mark.parametrize(
    ("hbm_bytes", "context"), [(80e9, 0.0), (2.0e9, 0.0), (2.3e9, 2000.0), (1.4e9, 500.0)]
)
def test_the_fastest_that_fits_is_found_for_every_split_and_batch(rule, hbm_bytes, context):
    """Against every combination, in plain loops, with memory from ample to scarce."""
    request = small_request(rule, hbm_bytes, context)
    found = choices(request, tables_of(request))
    ways = zip(found.ways.n_stages, found.ways.n_tensor, found.batch, strict=True)
    times = dict(zip(map(tuple, np.array(list(ways)).tolist()), found.token_s, strict=True))
    n_checked = 0
    for n_stages, n_tensor in product((1, 2, 3, 4, 5), (1, 2, 4, 8)):
        if n_stages * n_tensor > 8:
            continue
        for batch in request.batches:
            expected = fastest_by_hand(request, n_stages, n_tensor, batch)
            assert times.get((n_stages, n_tensor, batch), inf) == pytest.approx(expected, rel=1e-12)
            n_checked += expected < inf
    assert n_checked > 5


@pytest.mark.parametrize(
    ("name", "weights_format", "theirs"),
    [
        ("llama-3-70b", "bf16", "Llama_3_70B"),
        ("llama-3-70b", "fp8", "Llama_3_70B_8_bit"),
        ("llama-3-70b", "int4", "Llama_3_70B_4_bit"),
        ("llama-3-8b", "bf16", "Llama_3_8B"),
        ("mistral-large-2", "bf16", "Mistral_Large_2"),
        ("mixtral-8x22b", "bf16", "Mixtral_8x22B"),
        ("gpt-4-speculated", "bf16", "GPT_4"),
        ("deepseek-v3", "fp8", "DeepSeek_V3"),
    ],
)
def test_our_model_files_become_the_papers_records(name, weights_format, theirs):
    found, expected = economics_model(load_model(name), weights_format), facts.model(theirs)
    assert replace(found, name="", title="") == replace(expected, name="", title="")


def test_what_the_reference_model_cannot_say_is_said():
    assert left_out(load_model("llama-3-70b")) == ()
    assert "first layers without experts" in left_out(load_model("deepseek-v3"))
    assert "windows of attention" in left_out(load_model("gpt-oss-120b"))


@pytest.mark.parametrize(
    ("pool", "theirs"),
    [("h100-nvl8-x4", "H100"), ("a100-nvl8-x4", "A100"), ("v100-nvl8-x4", "V100")],
)
def test_our_pools_have_the_papers_halved_bandwidths_and_its_rule_for_rates(pool, theirs):
    found = economics_device(load_cluster(pool), ("bf16", "fp8", "int4"))
    expected = facts.device(theirs)
    for name in ("scale_up", "scale_out"):
        key = f"{name}_all_reduce_bytes_per_s"
        assert getattr(found, key) == getattr(expected, key)
    assert found.n_devices_per_node == expected.n_devices_per_node
    assert found.kernel_launch_s == expected.kernel_launch_s
    gain = expected.peak_flop_per_s[8.0] / expected.peak_flop_per_s[16.0]
    assert found.peak_flop_per_s[8.0] == pytest.approx(gain * found.peak_flop_per_s[16.0], rel=1e-3)
    assert found.peak_flop_per_s[4.0] == found.peak_flop_per_s[8.0]


def test_a_torus_is_refused():
    with pytest.raises(RequestError, match="not made of nodes"):
        economics_device(load_cluster("tpu-v4-4x4x4"), ("bf16",))
