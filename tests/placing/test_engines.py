"""Replicas of serving engines: what is placed is what the engine's own evaluation says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.commands.cli import main
from planner.errors import NoPlanError, RequestError, SolverError
from planner.placing.asking import placement_request
from planner.placing.floorplans import floorplan_of
from planner.placing.planning import place, task_of
from planner.placing.repairing import repair
from planner.placing.searching import offered
from planner.planning.plans import plan
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import load_pool, load_site
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.files.state import LinkState, SlowDevices, State
from planner.specs.records.devices import Workload
from planner.verifier.findings import refuse
from planner.verifier.placing.placements import judge_placement
from tests.report.rendering import report_page, report_text

CHAT = Workload(n_input_tokens=1500, n_output_tokens=300)
TARGETS = Targets(tpot_s=0.04, ttft_s=1.0)
OPTIONS = SolverOptions()


def _place(site="h100-nvl8-x2", model="llama-3.1-70b", **asked):
    wish = {key: asked.pop(key) for key in ("demand_tokens_per_s", "replicas") if key in asked}
    keywords = {"engine": "vllm", "workload": CHAT, "targets": TARGETS, **asked}
    pool = load_site(site) if isinstance(site, str) else site
    return place(pool, Serve(model=load_architecture(model), **wish), **keywords)


def test_a_replica_is_what_the_engine_itself_is_planned_to_be():
    """The best of four devices: the same degrees, batch, memory and times as a plan has."""
    placed = _place(replicas=1, most_devices=4, limits={"devices": 4})
    (recipe,) = placed.recipes
    alone = plan(
        load_architecture("llama-3.1-70b"),
        load_cluster("h100-nvl8-x2"),
        "vllm",
        workload=CHAT,
        targets=replace(TARGETS, n_devices=4),
        objective="throughput",
        prefer="objective",
    ).deployment
    assert recipe.deployment == replace(alone, command=recipe.deployment.command)
    assert (recipe.engine, recipe.span, recipe.pieces) == ("vllm", "node", (4,))


@pytest.mark.parametrize("name", ["llama-3.1-minitron-4b-width", "llama-3.1-minitron-4b-depth"])
def test_a_pruned_model_that_is_asked_for_by_itself_loses_nothing_of_itself(name):
    placed = _place("h100-nvl8-x1", name, replicas=1)
    assert placed.recipes[0].deployment.quality_loss_fraction == 0.0
    alone = plan(load_architecture(name), load_cluster("h100-nvl8-x1"), "vllm", workload=CHAT)
    assert alone.deployment.quality_loss_fraction == 0.0


def test_what_does_not_fit_under_the_engine_is_not_placed():
    """Half of a node's memory holds no 70 billion numbers of 16 bits on two devices."""
    for one in _place(demand_tokens_per_s=2400.0).recipes:
        assert one.deployment.used_bytes <= one.deployment.capacity_bytes
        assert one.deployment.n_devices > 2


@pytest.mark.parametrize(
    ("state", "slower"),
    [
        (State(slow=(SlowDevices(devices=("node0", "node1"), speed_fraction=0.5),)), "speed"),
        (
            State(
                links=(
                    LinkState(part="scale_up", names=("node0", "node1"), bandwidth_fraction=0.1),
                )
            ),
            "links",
        ),
    ],
    ids=["slow devices", "narrow links"],
)
def test_slow_devices_and_narrow_links_make_replicas_slower(state, slower):
    """The same shape on the same number of devices serves less, and its channels say why."""
    asked = {"replicas": 1, "limits": {"devices": 8}, "targets": Targets(tpot_s=0.03)}
    well, worse = _place(**asked), _place(state=state, **asked)
    assert worse.output_tokens_per_s < 0.9 * well.output_tokens_per_s
    (recipe,) = worse.recipes
    if slower == "speed":
        assert recipe.speed_fraction == 0.5
    else:
        narrow, wide = (one.recipes[0].counted_bytes_per_s["scale_up"] for one in (worse, well))
        assert narrow == pytest.approx(0.1 * wide)
        assert {c.counted_bytes_per_s for c in worse.replicas[0].channels} == {narrow}


def test_a_replica_over_nodes_has_whole_groups_in_each():
    """405 billion numbers of 16 bits take more than a node: ranks fill one after the other."""
    placed = _place("h100-fat-tree-x4", "llama-3.1-405b", replicas=1, targets=Targets())
    (recipe,), (replica,) = placed.recipes, placed.replicas
    one = recipe.deployment
    assert sum(recipe.pieces) == one.n_devices > 8
    homes = [rank.node for rank in replica.ranks]
    first = 0
    for size in recipe.pieces:
        assert len({*homes[first : first + size]}) == 1
        first += size
    rows: dict[tuple[int, int], set[str]] = {}
    for rank in replica.ranks:
        rows.setdefault((rank.stage, rank.axes[1]), set()).add(rank.node)
    assert one.n_tensor > 8 or all(len(nodes) == 1 for nodes in rows.values())


def test_of_several_engines_each_replica_has_the_best():
    """What two engines serve together is what the better one serves alone."""
    alone = [
        _place(engine=name, demand_tokens_per_s=4000.0, confidence=0.0).certificate.objective
        for name in ("vllm", "sglang")
    ]
    both = _place(engine=("vllm", "sglang"), demand_tokens_per_s=4000.0, confidence=0.0)
    assert both.certificate.objective <= min(alone) * (1 + 1e-9)
    assert {one.engine for one in both.recipes} <= {"vllm", "sglang"}


def test_pieces_that_do_not_divide_each_other_are_counted_node_by_node():
    """Replicas of three devices: a row of eight for each node, of which every one takes three."""
    site = load_site("h100-nvl8-x1")
    request = placement_request(
        site,
        Serve(model=load_architecture("llama-3.1-8b"), replicas=1),
        engine="vllm",
        workload=CHAT,
        targets=Targets(),
        state=None,
        objective="throughput",
        limits=None,
        batches=(64,),
        most_devices=3,
        options=OPTIONS,
    )
    found = offered(task_of(request, None), whole=True)
    threes = [one for one in found.configurations if one.pattern.pieces == (3,)]
    posed = replace(found, configurations=tuple(threes)).posed(task_of(request, None).aim())
    program = posed.program
    assert len(threes) > 0
    assert {*program.free.tolist()} == {8}
    assert {*program.uses.amount.tolist()} == {3}


def test_engines_are_refused_by_name_where_they_have_nothing_to_say():
    with pytest.raises(RequestError, match="is a torus") as caught:
        _place("tpu-v4-4x4x4")
    assert caught.value.problems[0].where == "--engine"
    with pytest.raises(RequestError) as unknown:
        _place(engine="vlm")
    assert unknown.value.problems[0].where == "--engine"
    with pytest.raises(NoPlanError) as none:
        _place(replicas=1, targets=Targets(tpot_s=1e-4))
    assert none.value.conflict.obstacles[0].name == "targets llama-3.1-70b"


def test_an_answer_is_read_back_and_says_who_runs_it():
    placed = _place(demand_tokens_per_s=2400.0)
    read = read_answer(dumps(answer_json(placed)), shown="answer").answer
    assert read.recipes == placed.recipes
    assert read.request == placed.request
    text = report_text(placed, 100)
    assert "under vLLM" in text
    page = report_page(placed, floorplan=floorplan_of(load_site("h100-nvl8-x2"), None))
    assert "TP 4" in page
    assert json.loads(dumps(answer_json(placed)))["answer"]["recipes"][0]["engine"] == "vllm"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("usd_per_hour", 1.0),
        ("output_tokens_per_s", 1e6),
        ("batch", 7),
        ("n_tensor", 3),
        ("used_bytes", 1e12),
        ("planned_tpot_s", 0.001),
        ("capacity_bytes", 1e12),
        ("weights_bytes", 1.0),
    ],
)
def test_an_altered_recipe_of_an_engine_is_refused(field, value):
    placed = _place(demand_tokens_per_s=2400.0)
    (recipe,) = placed.recipes
    altered = replace(recipe, deployment=replace(recipe.deployment, **{field: value}))
    assert judge_placement(placed)[1] == []
    with pytest.raises(SolverError):
        refuse(judge_placement(replace(placed, recipes=(altered,)))[1])


def test_a_repair_keeps_the_engine_and_moves_what_failed():
    """A device of a replica fails: its node has spare ones, and one shard moves."""
    before = _place(demand_tokens_per_s=1500.0, confidence=0.0)
    (replica,) = before.replicas
    lost = replica.ranks[0].device
    found = repair(before, state=State(failed=(lost,)))
    assert "engines" in found.request.inherited
    assert {one.engine for one in found.placement.recipes} == {"vllm"}
    (move,) = found.moves
    assert move.n_bytes == before.recipes[0].deployment.weights_bytes
    assert found.changes[0].fate == "patched"
    spare = repair(before, state=State(failed=("node1/gpu7",)))
    assert spare.moves == ()


def test_two_engines_do_not_share_shards():
    """A replica that stands under vLLM is loaded anew under SGLang."""
    before = _place(replicas=1)
    found = repair(before, state=State(), engine="sglang")
    assert found.request.changed == ("engines",)
    assert found.moved_bytes > 0


def test_a_pool_of_several_leaves_and_kinds_is_placed_on():
    """Kinds that the engine has no kernels of take nothing, and the others all."""
    pool = load_pool("h100-fat-tree-x4")
    placed = place(
        pool,
        Serve(model=load_architecture("llama-3.1-8b"), replicas=3),
        engine="vllm",
        workload=CHAT,
        targets=Targets(tpot_s=0.02),
        state=State(busy=("node0/gpu{0..2}",)),
    )
    assert len(placed.replicas) == 3
    refuse(judge_placement(placed)[1])


LENGTHS = ["--input", "1500", "--output", "250"]
WISH = ["--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", *LENGTHS, "--batch", "64"]


def _answered(words, capsys):
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_rate_of_requests_is_the_demand_of_what_they_write(capsys, tmp_path, monkeypatch):
    """8 requests a second of 250 tokens are 2,000 tokens a second; in a repair likewise."""
    monkeypatch.chdir(tmp_path)
    for said in (
        ["--rate", "8req/s"],
        ["--rate", "llama-3.1-8b=8req/s"],
        ["--demand", "2000tok/s"],
    ):
        code, answer = _answered(["place", *WISH, *said], capsys)
        assert code == 0
        assert answer["request"]["models"][0]["demand_tokens_per_s"] == 2000.0
    (tmp_path / "stands.json").write_text(json.dumps(answer), encoding="utf-8")
    (tmp_path / "state.toml").write_text('failed = ["node0/gpu7"]\n', encoding="utf-8")
    asked = ["repair", "stands.json", "--state", "state.toml", "--rate", "4req/s"]
    code, repaired = _answered(asked, capsys)
    assert code == 0
    assert repaired["request"]["wanted"]["models"][0]["demand_tokens_per_s"] == 1000.0
    code, both = _answered(["place", *WISH, "--rate", "8req/s", "--demand", "9tok/s"], capsys)
    assert code == 2
    assert both["answer"]["problems"][0]["where"] == "--rate"
