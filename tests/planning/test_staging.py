"""Models cut over mixed clusters, and published situations of layers on mixed machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from planner.errors import NoPlanError, RequestError, UnsettledError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.memory import cache_bytes
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.serving import Serving
from planner.solvers.solution import Status
from planner.specs.ask.stages import StagesRequest, StageWork
from planner.specs.files.engines import load_engine
from planner.specs.files.layer_files import load_layers
from planner.specs.files.reading import load_architecture
from planner.specs.records.devices import Workload
from planner_workshop.staging.asking import cut_stages, read_groups, served_formats
from planner_workshop.staging.groups import clock_of, unit_table
from planner_workshop.staging.machines.incumbents import Incumbent, Tries
from planner_workshop.staging.placing import place_layers, pool_of
from tests.clocks import spent_s
from tests.report.rendering import report_line

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "tests" / "specs" / "huggingface" / "configs"
MACHINES = ROOT / "examples" / "machines"
CHAT = Workload(n_input_tokens=2048, n_output_tokens=512)


def config(name):
    return load_architecture(str(CONFIGS / f"{name}_config.json"))


LLAMA, GEMMA, DEEPSEEK = map(config, ("Llama-3.1-405B", "gemma-3-27b-it", "DeepSeek-V3"))
PHI = config("Phi-3-mini-4k-instruct")
SITUATIONS = [
    (LLAMA, "h100-sxm:tp8x2,a100-80gb:tp4x3", {"batch": 16}),
    (GEMMA, "h100-sxm:tp2x2,l40s:tp1x4", {"batch": 32}),
    (DEEPSEEK, "h100-sxm:tp8x2,h200:tp8", {"batch": 64, "weights_format": "fp8_block"}),
]


@pytest.mark.parametrize(("model", "groups", "asked"), SITUATIONS)
def test_every_layer_is_in_one_stage_and_no_even_cut_is_as_good(model, groups, asked):
    plan = cut_stages(model, groups, workload=CHAT, **asked)
    places = [i for s in plan.stages for i in range(s.first_layer, s.first_layer + s.n_layers)]
    assert places == list(range(model.n_layers))
    assert [s.has_embedding for s in plan.stages] == [True] + [False] * (len(plan.stages) - 1)
    assert [s.has_head for s in plan.stages] == [False] * (len(plan.stages) - 1) + [True]
    held = sum((Counter(s.layers) for s in plan.stages), Counter())
    assert held == Counter({layer.name: layer.n_layers for layer in model.layers})
    assert all(s.held_bytes <= s.limit_bytes for s in plan.stages)
    assert plan.certificate.gap < 1e-6
    assert plan.bottleneck_s == pytest.approx(max(s.total_s for s in plan.stages))
    assert plan.latency_s == pytest.approx(sum(s.total_s for s in plan.stages))
    assert plan.even_s > 1.1 * plan.bottleneck_s


def test_solvers_agree_on_a_cut_over_unequal_groups():
    """Phi 3 mini: 32 layers on a group of two and two groups of one of another kind."""
    found = [
        cut_stages(PHI, "h100-sxm:tp2,l40s:tp1x2", batch=32, objective=goal, solver=solver)
        for goal, solver in (("latency", "highs"), ("latency", "cpsat"), ("bottleneck", "highs"))
    ]
    assert found[0].latency_s == pytest.approx(found[1].latency_s, rel=1e-9)
    assert found[2].bottleneck_s < found[0].bottleneck_s


def asked_of(model, groups, *, engine="vllm", weights=None, **work):
    """A request for a cut, as `cut_stages` makes it."""
    served_by = load_engine(engine)
    usual = {"phase": "decode", "batch": 1, "n_microbatches": 1}
    return StagesRequest(
        model=model,
        engine=served_by,
        groups=tuple(read_groups(groups, served_by)),
        work=StageWork(**{**usual, **work}),
        formats=served_formats(model, weights, None, "bf16"),
    )


def test_local_and_global_layers_take_different_times_and_caches():
    """At 32,768 tokens a layer with a window of 1024 holds 33 times less, and is sooner."""
    asked = asked_of(GEMMA, "h100-sxm:tp1", n_input_tokens=32_768, n_output_tokens=1)
    units = unit_table(asked)
    names = np.array(units.names)
    local, whole = (names == asked.model.layers[k].name for k in (0, 1))
    assert set(np.round(units.cache_bytes[0, whole] / units.cache_bytes[0, local][0], 0)) <= {
        30.0, 31.0, 32.0, 33.0,
    }  # fmt: skip
    assert units.run_s[0, whole].min() > units.run_s[0, local].max()


@pytest.mark.parametrize("model", [LLAMA, GEMMA, DEEPSEEK])
def test_units_add_up_to_a_whole_pass_of_the_engine(model):
    """As `plan predict` counts it: all operations of a pass, and what its layers take besides."""
    sizes = {"batch": 24, "n_input_tokens": 2048, "n_output_tokens": 512}
    asked = asked_of(model, "h200:tp8", engine="sglang", weights="fp8_block", **sizes)
    clock = clock_of(asked.groups[0], asked.engine)
    formats, engine = asked.formats, asked.engine
    serving = Serving(model=model, formats=formats, engine=engine, clock=clock)
    whole = serving.pass_time(
        deployments(formats=formats, n_tensor=8, batch=24.0),
        PassShape(n_decoding=24.0, context=2304.0),
    )
    assert unit_table(asked).run_s.sum() == pytest.approx(
        float(whole.total_s[0]) + float(serving.decode_host_s(np.array(24.0))), rel=1e-12
    )


@pytest.mark.parametrize("name", ["granite-4.0-h-small", "Qwen3-Next-80B-A3B"])
def test_units_hold_the_caches_and_the_states_of_all_layers(name):
    """A recurrent layer keeps a state for each sequence, one that attends to tokens a cache."""
    model = config(name)
    asked = asked_of(model, "h100-sxm:tp2", batch=3, n_input_tokens=2048, n_output_tokens=512)
    held = unit_table(asked).cache_bytes[0]
    table = deployments(formats=asked.formats, n_tensor=2)
    blocks = asked.engine.n_block_tokens
    cached = float(cache_bytes(model, table, asked.formats, 2560.0, blocks)[0])
    assert cached > 0.0
    assert held.sum() == pytest.approx(3 * (cached + model.state_bytes() / 2), rel=1e-9)


def test_a_tied_matrix_is_held_once_where_both_ends_are_in_one_stage():
    """Gemma's embedding is its head: on one group once, on two groups twice."""
    one = cut_stages(GEMMA, "h100-sxm:tp2", objective="latency")
    two = cut_stages(GEMMA, "h100-sxm:tp2x2", batch=1)
    matrix = GEMMA.vocab_size * GEMMA.d_model * 2.0 / 2
    assert (len(one.stages), len(two.stages)) == (1, 2)
    held = sum(s.weights_bytes for s in two.stages) - one.stages[0].weights_bytes
    assert held == pytest.approx(matrix, rel=1e-9)


def test_more_micro_batches_hold_more_caches():
    one, four = (cut_stages(PHI, "h100-sxm:tp2x2", batch=4, n_microbatches=n) for n in (1, 4))
    caches = [sum(s.cache_bytes for s in plan.stages) for plan in (one, four)]
    assert caches[1] == pytest.approx(4 * caches[0])
    assert four.tokens_per_s > one.tokens_per_s


def test_groups_that_share_a_server_hand_over_inside_it():
    """Two groups of four in one server of eight; four of them are in two servers."""
    near = cut_stages(PHI, "h100-sxm:tp4x2", batch=64)
    far = cut_stages(PHI, "h100-sxm:tp4x4", batch=64)
    assert 0 < near.stages[0].hand_s < far.stages[0].hand_s


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("l4:tp1x4", "weights and caches need 816 GB"),
        ("h100-sxm:tp8", "are missing"),
    ],
)
def test_what_does_not_fit_says_how_much_is_missing(groups, said):
    with pytest.raises(NoPlanError, match=said):
        cut_stages(LLAMA, groups)


def test_a_layer_that_is_too_large_for_a_device_is_named():
    """One layer of 256 experts in 16 bits is 22 GB; an L4 may take 20.7 GB."""
    with pytest.raises(NoPlanError, match="one layer `latent attention, experts` on l4 TP 1 needs"):
        cut_stages(DEEPSEEK, "l4:tp1x100", weights_format="bf16")


def test_all_that_is_wrong_with_a_request_is_said_at_once():
    with pytest.raises(RequestError) as caught:
        cut_stages(
            LLAMA, "h100-sxm:tp8", phase="x", objective="y", solver="z", batch=0,
            weights_format="fp3",
        )  # fmt: skip
    assert len(caught.value.problems) == 5


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("h100-sxm", "is no kind of group"),
        ("a100-80:tp8", "no such device or topology"),
        ("h100-nvl8-x1:tp8x2", "takes 16 devices, and `h100-nvl8-x1` has 8"),
        ("h100-sxm:tp8,h100-sxm:tp8", "is named twice"),
        ("h100-sxm:tp0", "has a zero"),
        (" , ", "is empty"),
        ("groq-lpu:tp4x2000", "are more than 1024 groups"),
    ],
)
def test_groups_that_cannot_be_read_are_refused_with_the_reason(text, fact):
    with pytest.raises(RequestError, match=fact):
        read_groups(text, load_engine("vllm"))


def test_heads_that_do_not_go_into_the_devices_are_refused():
    with pytest.raises(RequestError, match="heads are not a multiple"):
        cut_stages(LLAMA, "h100-sxm:tp3")


@pytest.mark.parametrize(
    ("name", "at_least", "most_gap", "most_s"),
    [
        ("single-cluster-24", 2045.6, 1e-9, 5),  # published 1289.6
        ("quality-10", 286.58, 1e-3, 10),  # proven so in 3803 s
        ("mixed-42", 5900.0, 0.03, 40),  # published 4892.2
        ("distributed-24", 1754.0, 0.09, 60),  # published 952.1 with these links
        ("distributed-pruned-24", 1754.0, 0.09, 60),  # published 1212.2 with these links
    ],
)
def test_published_situations_are_answered_in_seconds(name, at_least, most_gap, most_s):
    """CPU time where published runs of Gurobi took ten minutes to more than an hour."""
    layers = load_layers(MACHINES / f"{name}.toml")
    began_s = spent_s()
    found = place_layers(layers)
    assert spent_s() - began_s < most_s
    assert found.tokens_per_s >= at_least
    assert found.tokens_per_s >= layers.published_tokens_per_s * (1 - 1e-6)
    assert found.certificate.gap <= most_gap
    assert _flow(layers, found) == pytest.approx(found.tokens_per_s, rel=1e-6)


def _flow(layers, found):
    """The maximum flow once more, from the placement's own words, on a graph made here."""
    pool = pool_of(layers)
    index = {name: m for m, name in enumerate(pool.names)}
    graph = nx.DiGraph()
    for one in found.machines:
        m, last = index[one.machine], one.first_layer + one.n_layers
        rates = layers_of(layers, one.type)
        graph.add_edge(("in", m), ("out", m), capacity=round(rates[one.n_layers - 1] * 1e4))
        if one.first_layer == 0:
            graph.add_edge("s", ("in", m), capacity=round(pool.from_coordinator[m] * 1e4))
        if last == layers.n_layers:
            graph.add_edge(("out", m), "t", capacity=round(pool.to_coordinator[m] * 1e4))
        for other in found.machines:
            if other.first_layer == last:
                link = pool.links[m, index[other.machine]]
                graph.add_edge(("out", m), ("in", index[other.machine]), capacity=round(link * 1e4))
    return nx.maximum_flow_value(graph, "s", "t") / 1e4


def layers_of(layers, kind):
    return next(one.rates_tokens_per_s for one in layers.machines if one.type == kind)


def test_machines_that_cannot_hold_the_layers_say_how_many_are_missing(tmp_path):
    text = (MACHINES / "quality-10.toml").read_text(encoding="utf-8")
    path = tmp_path / "more.toml"
    path.write_text(text.replace("n_layers = 60", "n_layers = 100"), encoding="utf-8")
    with pytest.raises(NoPlanError, match="86 layers at most, 14 are missing"):
        place_layers(load_layers(path))


THREE = """
[layers]
name = "three"
n_layers = 2
source = "here"

[[machine]]
type = "box"
count = 3
rates = [8, 3]
source = "here"

[links]
between = { value = "1000 token/s", source = "here" }
"""


def three(tmp_path):
    """Three machines, 8 token/s with one layer, 3 with two; two layers: 8 + 3 at best."""
    path = tmp_path / "three.toml"
    path.write_text(THREE, encoding="utf-8")
    return load_layers(path)


def test_a_placement_has_its_request_and_who_proved_it(tmp_path):
    layers = three(tmp_path)
    found = place_layers(layers, gap=0.01, seed=3)
    assert (found.request.layers, found.request.gap, found.request.seed) == (layers, 0.01, 3)
    assert found.tokens_per_s == 11.0
    assert found.n_stages == 3
    assert found.idle == ()
    assert found.certificate.status == "optimal"
    assert "enumeration" in found.certificate.vouched_by
    assert found.certificate.n_candidates == 3 * 3  # each machine: one layer or the other, or both


def test_that_links_join_no_placement_is_proven_and_said(tmp_path):
    """One layer each and no links."""
    layers = three(tmp_path)
    kinds = tuple(replace(one, rates_tokens_per_s=(8.0,)) for one in layers.machines)
    apart = replace(layers, machines=kinds, matrix_tokens_per_s=((0.0,) * 3,) * 3)
    with pytest.raises(NoPlanError, match="join no placement from end to end, as is proven by"):
        place_layers(apart)


def test_links_that_are_not_of_every_machine_are_refused_all_at_once(tmp_path):
    few = replace(three(tmp_path), matrix_tokens_per_s=((1.0,), (1.0, 2.0, 3.0)))
    few = replace(few, to_coordinator_tokens_per_s=(1.0,))
    with pytest.raises(RequestError) as raised:
        place_layers(few)
    keys = [problem.key for problem in raised.value.problems]
    assert keys == ["to_coordinator_tokens_per_s", "matrix_tokens_per_s", "matrix_tokens_per_s[0]"]


def test_no_placement_found_is_none_that_could_not_be(tmp_path, monkeypatch):
    from planner_workshop.staging import placing

    found = placing.place(pool_of(three(tmp_path)), Tries())
    nothing = replace(found.proved, answer=None, status=Status.UNKNOWN, stopped_by="")
    monkeypatch.setattr(Incumbent, "proved", nothing)
    with pytest.raises(UnsettledError):
        place_layers(three(tmp_path))


def test_a_bound_by_one_solver_alone_is_not_called_optimal(tmp_path, monkeypatch):
    """Nothing but the flow program, by HiGHS, which is all the proof that is asked for."""
    from planner_workshop.staging import machines

    for step in ("improve", "enumerate_all", "sweep", "_rows"):
        monkeypatch.setattr(machines, step, lambda *_, **__: None)
    found = place_layers(three(tmp_path), proof="one")
    assert found.tokens_per_s == 11.0
    assert found.certificate.status == "unconfirmed"
    assert found.certificate.vouched_by == ()
    assert "says HiGHS 1.13.1 alone" in report_line(found)
    assert place_layers(three(tmp_path), proof="two").certificate.status == "optimal"


def test_a_time_limit_leaves_the_best_placement_and_bound_so_far():
    layers = load_layers(MACHINES / "distributed-24.toml")
    found = place_layers(layers, time_limit_s=4.0)
    assert found.certificate.status == "feasible"
    assert 0 < found.tokens_per_s <= 1754.39 <= found.certificate.bound
    assert found.certificate.wall_s < 30
