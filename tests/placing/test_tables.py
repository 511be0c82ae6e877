"""Replicas of users' tables: placed as the rows say, proved, and read again from the answer."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.errors import NoPlanError, RequestError
from planner.placing.asking import placement_request
from planner.placing.planning import place, task_of
from planner.placing.repairing import repair
from planner.placing.searching import offered
from planner.placing.table_rows import undominated
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.deployment_tables import load_table
from planner.specs.files.ledger import recording
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture, load_connector
from planner.specs.files.state import SlowDevices, State
from planner.specs.records.devices import Workload
from planner.specs.records.roles import ROLES, RoleOptions
from planner.verifier.certificates import RECOUNTED
from planner.verifier.placing.placements import checks_of, judge_placement
from tests.report.rendering import report_text

ROWS = """\
name,model,kind,devices,role,engine,rate_req_s,ttft_ms,tpot_ms,batch,weights,kv,memory_bytes,usd_per_hour,input,output
tp2,llama-3.1-70b,h100-sxm,2,together,vllm,0.9,420,21,16,fp8,bf16,,,1500,300
tp4,llama-3.1-70b,h100-sxm,4,together,vllm,2.4,310,27,32,bf16,bf16,70e9,,1500,300
tp8,llama-3.1-70b,h100-sxm,8,together,vllm,6.1,250,34,96,bf16,bf16,66e9,,1500,300
tp8 slow,llama-3.1-70b,h100-sxm,8,together,vllm,5.9,250,34,96,bf16,bf16,66e9,,1500,300
tp16,meta-llama/Meta-Llama-3.1-70B,H100-SXM,16,together,sglang,13,200,33,200,bf16,bf16,66e9,40,1500,300
tp8 long,llama-3.1-70b,h100-sxm,8,together,vllm,1.1,950,44,96,bf16,bf16,66e9,,8000,300
tp1,llama-3.1-8b,h100-sxm,1,together,vllm,8,60,11,64,bf16,bf16,60e9,,1500,300
b200,llama-3.1-70b,b200,8,together,vllm,30,200,20,200,bf16,bf16,66e9,,1500,300
big,llama-3.1-70b,h100-sxm,1,together,vllm,90,20,2,200,bf16,bf16,140e9,,1500,300
odd,llama-3.1-70b,h100-sxm,12,together,vllm,90,20,2,200,bf16,bf16,60e9,,1500,300
"""
CHAT = Workload(n_input_tokens=1500, n_output_tokens=300)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def _place(table, model="llama-3.1-70b", *, site="h100-nvl8-x4", **asked):
    wish = {
        key: asked.pop(key)
        for key in ("demand_tokens_per_s", "replicas", "weights_formats", "kv_formats")
        if key in asked
    }
    keywords = {"engine": f"table:{table}", "workload": CHAT, **asked}
    return place(load_site(site), Serve(model=load_architecture(model), **wish), **keywords)


def _names(placement):
    return sorted(placement.recipes[one.recipe].deployment.name for one in placement.replicas)


def test_the_most_is_placed_of_what_rows_say(table):
    """Of 32 devices two of 16 serve 26 requests a second, four of 8 only 24.4."""
    placed = _place(table)
    assert _names(placed) == ["tp16", "tp16"]
    assert placed.output_tokens_per_s == pytest.approx(2 * 13 * 300)
    assert placed.certificate.status == "optimal"
    (recipe,) = placed.recipes
    assert (recipe.engine, recipe.span, recipe.pieces) == ("sglang", "leaf", (8, 8))
    assert [len(one.nodes) for one in placed.replicas] == [2, 2]
    assert (recipe.tpot_s, recipe.ttft_s) == (0.033, 0.2)


def test_a_demand_is_met_at_the_least_rent_of_rows_that_say_their_own(table):
    """8 requests/s: 16 devices at $40 an hour are dearer than 8 and 4 at the price of devices."""
    placed = _place(table, demand_tokens_per_s=8 * 300)
    assert _names(placed) == ["tp4", "tp8"]
    price = load_site("h100-nvl8-x4").groups[0].cluster.usd_per_hour
    assert placed.used("rent") == pytest.approx(12 * price)
    cheap = table.with_name("cheap.csv")
    cheap.write_text(ROWS.replace("66e9,40,", "66e9,4,"), encoding="utf-8")
    assert _names(_place(cheap, demand_tokens_per_s=8 * 300)) == ["tp16"]
    assert _place(cheap, demand_tokens_per_s=8 * 300).used("rent") == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"targets": Targets(tpot_s=0.0275)}, ["tp4"] * 8),
        ({"targets": Targets(tpot_s=0.0265)}, ["tp2"] * 16),
        ({"targets": Targets(ttft_s=0.26, tpot_s=0.034)}, ["tp16"] * 2),
        ({"targets": Targets(min_batch=97)}, ["tp16"] * 2),
        ({"weights_formats": ("fp8",)}, ["tp2"] * 16),
        ({"most_devices": 8}, ["tp8"] * 4),
        ({"targets": Targets(quality_loss_fraction=0.0), "most_devices": 2}, None),
        ({"targets": Targets(tpot_s=0.02)}, None),
        ({"kv_formats": ("fp8",)}, None),
    ],
    ids=str,
)
def test_targets_and_formats_screen_rows(table, asked, names):
    if names is None:
        with pytest.raises(NoPlanError):
            _place(table, **asked)
    else:
        assert _names(_place(table, **asked)) == names


def test_the_least_latency_is_of_the_quickest_row(table):
    assert _names(_place(table, replicas=1, objective="latency")) == ["tp2"]


def test_rows_that_cannot_be_placed_are_counted_aloud(table):
    with recording() as ledger:
        _place(table)
    said = [one.fact for one in ledger.remarks if one.where == str(table)]
    assert said[0].startswith("3 of 10 rows are of other models, requests of other lengths")
    assert "1 rows hold more than a device has, the first in line 10: left out" in said
    assert any("no whole nodes, the first in line 11" in one for one in said)


def test_rows_of_roles_that_are_not_asked_for_are_counted_aloud(table):
    table.write_text(ROWS.replace("sxm,2,together", "sxm,2,decode"), encoding="utf-8")
    with recording() as ledger:
        _place(table)
    said = [one.fact for one in ledger.remarks if one.where == str(table)]
    assert "1 rows are of other roles than together, the first in line 2: left out" in said


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ({"model": "llama-3.1-405b"}, "has no row of it: its rows are of `llama-3.1-70b`"),
        (
            {"workload": Workload(n_input_tokens=1, n_output_tokens=1)},
            "its rows are of `1500/300`, `8000/300`",
        ),
        ({"site": "a100-nvl8-x1"}, "has no row of a kind that the pool has"),
        ({"site": "tpu-v4-4x4x4"}, "is a torus"),
    ],
    ids=str,
)
def test_a_table_without_a_row_of_what_is_asked_says_what_it_has(table, asked, fact):
    with pytest.raises(RequestError) as caught:
        _place(table, **asked)
    assert any(fact in one.fact for one in caught.value.problems)


def test_a_format_that_nobody_knows_is_refused_by_its_line(table):
    table.write_text(ROWS.replace("fp8,bf16", "f8,bf16"), encoding="utf-8")
    with pytest.raises(RequestError, match=r"line 2 `f8`  of `weights` is no number format"):
        _place(table)


def test_slow_devices_are_not_what_rows_were_timed_on(table):
    """Rows say what devices do at full speed: a node at half of it gets no replica."""
    slow = State(slow=(SlowDevices(devices=("node0",), speed_fraction=0.5),))
    placed = _place(table, state=slow)
    assert all("node0" not in one.nodes for one in placed.replicas)
    assert placed.output_tokens_per_s == pytest.approx((13 + 6.1) * 300)


def test_rows_and_engines_are_chosen_among_replica_by_replica(table):
    placed = _place(table, engine=("vllm", f"table:{table}"), most_devices=8, site="h100-nvl8-x1")
    alone = _place(table, engine="vllm", most_devices=8, site="h100-nvl8-x1")
    assert placed.output_tokens_per_s >= alone.output_tokens_per_s
    assert placed.output_tokens_per_s >= 6.1 * 300


def test_an_answer_is_read_and_verified_without_the_file(table):
    placed = _place(table, demand_tokens_per_s=8 * 300)
    text = dumps(answer_json(placed))
    table.unlink()
    again = read_answer(text, shown="answer").answer
    assert again == placed
    assert judge_placement(again)[1] == []
    carried = [row.name for row in placed.request.deployments[0].rows]
    assert carried == ["tp2", "tp4", "tp8", "tp16", "big", "odd"]  # the slower row is of no use


def _altered(placement, **changes):
    first, *others = placement.recipes
    deployment = replace(first.deployment, **changes)
    return replace(placement, recipes=(replace(first, deployment=deployment), *others))


@pytest.mark.parametrize(
    "changes",
    [
        {"requests_per_s": 7.0},
        {"tpot_s": 0.01},
        {"ttft_s": 0.01},
        {"usd_per_hour": 1.0},
        {"usd_per_token": 1e-9},
        {"output_tokens_per_s": 9e9},
        {"batch": 1},
        {"weights_format": "fp8"},
        {"weights_bytes": 1.0},
        {"memory_bytes": 1.0},
        {"name": "tp3"},
        {"engine": "trtllm"},
        {"model": "llama-3.1-8b"},
        {"line": 3},
        {"line": 99},
        {"role": "decode"},
        {"further": {"power": 1.0}},
    ],
    ids=str,
)
def test_the_verifier_reads_every_field_again(table, changes):
    placed = _place(table, most_devices=8)
    assert judge_placement(placed)[1] == []
    assert judge_placement(_altered(placed, **changes))[1] != []


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ({"targets": Targets(tpot_s=0.03)}, "exceeds"),
        ({"targets": Targets(min_batch=99)}, "below"),
        ({"workload": Workload(n_input_tokens=8000, n_output_tokens=300)}, "requests of 1500"),
        ({"engines": ("vllm",)}, "none of vllm"),
        ({"deployments": ()}, "no line"),
    ],
    ids=str,
)
def test_the_verifier_holds_rows_against_what_was_asked(table, asked, fact):
    placed = _place(table, most_devices=8)
    other = replace(placed, request=replace(placed.request, **asked))
    assert any(fact in one.fact for one in judge_placement(other)[1])


def test_a_repair_needs_no_file(table):
    placed = _place(table, most_devices=8)
    table.unlink()
    state = State(failed=(placed.replicas[0].ranks[0].device,))
    repaired = repair(placed, state=state)
    assert repaired.placement.output_tokens_per_s < placed.output_tokens_per_s
    moved = [one for one in repaired.changes if one.fate == "kept"]
    assert len(moved) == 3


def test_the_report_says_whose_times_they_are(table):
    text = " ".join(report_text(_place(table), 100).split())
    assert f"times rows of {table}" in text
    assert "whatever the links of the pool" in text
    assert "tp16, line 6 of" in text


def test_undominated_rows_are_those_that_brute_force_keeps(table):
    """A row goes exactly where another of its replica is no worse in everything."""
    rows = load_table(f"table:{table}").rows
    drawn = [
        replace(rows[0], line=9 * i + j, requests_per_s=1 + (i * 7) % 5, tpot_s=1 + (j * 5) % 7)
        for i in range(9)
        for j in range(9)
    ]
    kept = undominated(drawn)
    points = {(one.requests_per_s, one.tpot_s) for one in drawn}
    front = {
        (rate, tpot)
        for rate, tpot in points
        if not any(r >= rate and t <= tpot and (r, t) != (rate, tpot) for r, t in points)
    }
    assert sorted((one.requests_per_s, one.tpot_s) for one in kept) == sorted(front)
    assert undominated([replace(one, engine=str(one.line)) for one in drawn]) != kept


AICONFIGURATOR = Path(__file__).parent / "aiconfigurator"
ANSWERS = [
    (row["model"], int(row["n_devices"]), float(row["requests_per_s"]))
    for row in csv.DictReader(
        (AICONFIGURATOR / "answers.csv").read_text(encoding="utf-8").splitlines()
    )
]
ASKED = {
    "qwen3-32b": ("h200", "h200-nvl8", Targets(ttft_s=1.0, tpot_s=0.03)),
    "llama-3.1-70b": ("h100", "h100-nvl8", Targets(ttft_s=2.0, tpot_s=0.04)),
}


@pytest.mark.parametrize(("model", "n_devices", "theirs"), ANSWERS)
def test_aggregated_rows_of_another_tool_serve_what_it_says_or_more(model, n_devices, theirs):
    """Of its aggregated replicas, on as many GPUs; where its best is of pairs it may be less."""
    device, site, targets = ASKED[model]
    placed = _place(
        AICONFIGURATOR / f"{model}-{device}-agg.csv",
        model,
        site=f"{site}-x{-(-n_devices // 8)}",
        targets=targets,
        workload=Workload(n_input_tokens=4000, n_output_tokens=1000),
        limits={"devices": n_devices},
    )
    share = placed.output_tokens_per_s / 1000 / theirs
    assert share >= (1 - 1e-3 if (model, n_devices) not in PAIRED else 0.9)


PAIRED = {("qwen3-32b", 24), ("qwen3-32b", 32), ("llama-3.1-70b", 32)}
"""Where its own best is of pairs of workers."""


def _asked(model, *, targets):
    """What its rows of all roles are asked for, on six nodes."""
    device, site, _ = ASKED[model]
    return {
        "cluster": load_site(f"{site}-x6"),
        "engine": [f"table:{AICONFIGURATOR}/{model}-{device}-{of}.csv" for of in (*SORTS, "agg")],
        "workload": Workload(n_input_tokens=4000, n_output_tokens=1000),
        "targets": targets,
        "objective": "throughput",
    }


def _offered(model, *, targets):
    """Configurations of all roles that aiconfigurator's rows make, on six nodes."""
    request = placement_request(
        models=load_architecture(model),
        **_asked(model, targets=targets),
        state=None,
        limits=None,
        batches=None,
        most_devices=None,
        roles=RoleOptions(name="free", connector=load_connector("wire")),
        options=SolverOptions(),
    )
    return offered(task_of(request, None), whole=True).configurations


SORTS = ("prefill", "decode")


def _most_by_devices(configurations, role, n_devices):
    """Requests per second that replicas of a role serve on so many devices, by dynamic program."""
    most = [0.0] * (n_devices + 1)
    for n in range(1, n_devices + 1):
        fitting = [one for one in configurations if one.role == role and one.n_devices <= n]
        each = [most[n - one.n_devices] + one.output_tokens_per_s / 1000 for one in fitting]
        most[n] = max([most[n - 1], *each])
    return most


def _composed(configurations, n_devices):
    """The most that replicas of all roles serve, if whoever reads hands over to all who write."""
    whole, reads, writes = (_most_by_devices(configurations, role, n_devices) for role in ROLES)
    return max(
        whole[n_devices - a - b] + min(reads[a], writes[b])
        for a in range(n_devices + 1)
        for b in range(n_devices + 1 - a)
    )


@pytest.mark.parametrize(("model", "n_devices", "theirs"), ANSWERS)
def test_its_own_rows_placed_freely_serve_what_it_says_or_more(model, n_devices, theirs):
    """Replicas of all roles, which and how many and where: proved, and judged."""
    asked = _asked(model, targets=ASKED[model][2])
    limits = {"devices": n_devices}
    free = {"roles": "free", "connector": load_connector("wire")}
    options = SolverOptions(sort_price=0.0)
    placed = place(models=load_architecture(model), **asked, limits=limits, **free, options=options)
    reached = placed.certificate.bound / 1000  # up to 0.5 % of it is given up for fewer nodes
    assert placed.output_tokens_per_s / 1000 >= reached * (1 - 0.005)
    assert placed.certificate.status == "optimal"
    assert reached >= theirs * (1 - 1e-3)  # it rounds to three digits
    most = _composed(_offered(model, targets=asked["targets"]), n_devices)
    assert reached == pytest.approx(most, rel=1e-6)
    if (model, n_devices) == ("qwen3-32b", 28):
        assert reached >= 25.9
    if (model, n_devices) == ("llama-3.1-70b", 14):
        assert reached >= 5.3


def test_a_role_hands_over_the_cache_of_a_prompt():
    """64 layers of 8 key and 8 value heads of 128 numbers of 2 bytes, for 4,000 tokens."""
    offered = _offered("qwen3-32b", targets=ASKED["qwen3-32b"][2])
    handed = {one.handed_bytes for one in offered if one.role != "together"}
    assert handed == {64 * 2 * 8 * 128 * 2 * 4000}
    assert {one.kv_format for one in offered if one.role != "together"} == {"bf16"}
    assert {one.handed_bytes for one in offered if one.role == "together"} == {0.0}
    assert all(one.tpot_s == 0.0 < one.ttft_s for one in offered if one.role == "prefill")
    assert all(one.ttft_s == 0.0 < one.tpot_s for one in offered if one.role == "decode")
    assert {one.engine for one in offered} == {"trtllm"}


def test_the_command_places_verifies_and_proves(table, tmp_path, capsys):
    said = ["--model", "llama-3.1-70b", "--topology", "h100-nvl8-x4", "--engine", f"table:{table}"]
    lengths = ["--input", "1500", "--output", "300"]
    assert main(["place", *said, *lengths, "--rate", "8req/s", "--json"]) == 0
    saved = tmp_path / "placement.json"
    saved.write_text(capsys.readouterr().out, encoding="utf-8")
    table.unlink()
    assert main(["verify", str(saved), "--prove"]) == 0
    assert "searched again: optimal, rent" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("asked", "summary"),
    [
        ("", "1 replica on 16 of 32 free devices: 3900 token/s, $40/h"),
        ("--objective latency", "1 replica on 2 of 32 free devices: 270 token/s, $5.9/h"),
        ("--latency-target 30ms", "1 replica on 4 of 32 free devices: 720 token/s, $11.8/h"),
        ("--objective throughput --max-rent 30USD/h", "1 replica on 8 of 32 free devices"),
        ("--rate 11.8req/s", "2 replicas on 18 of 32 free devices: 4170 token/s, $45.9/h"),
    ],
)
def test_a_plan_is_of_the_rows_that_are_best_in_what_it_is_asked(table, asked, summary, capsys):
    """Without a demand one replica, of the objectives that plans have; with one, however many.

    Of 4170 token/s 85 % are 11.8 requests a second.
    """
    said = ["--model", "llama-3.1-70b", "--topology", "h100-nvl8-x4", "--engine", f"table:{table}"]
    formats = ["--weights", "bf16,fp8", "--max-quality-loss", "9%"]
    lengths = ["--input", "1500", "--output", "300", "--quiet"]
    assert main([*said, *formats, *lengths, *asked.split()]) == 0
    assert capsys.readouterr().out.startswith(summary)


def test_the_least_cost_per_token_is_of_one_replica(table):
    found = _place(table, replicas=1, objective="cost")
    rate, rent = found.output_tokens_per_s, found.served[0].usd_per_hour
    assert found.certificate.objective == pytest.approx(rent / 3600 / rate)
    assert not judge_placement(found)[1]
    assert judge_placement(replace(found, served=(replace(found.served[0], usd_per_hour=1.0),)))[1]
    for asked in ({"replicas": 2}, {"demand_tokens_per_s": 900.0}, {}):
        with pytest.raises(RequestError, match="is that of one replica"):
            _place(table, objective="cost", **asked)


def test_what_was_not_recounted_is_not_said_to_be(table):
    """Seconds of a row are what it says: nobody counts them again."""
    word = "each replica of a table is a row of it, word for word"
    of_rows, of_engine = _place(table), _place(table, engine="vllm")
    assert word in of_rows.certificate.verified
    assert RECOUNTED not in of_rows.certificate.verified
    assert RECOUNTED in of_engine.certificate.verified
    recipes = (*of_rows.recipes, *of_engine.recipes)
    assert checks_of([RECOUNTED], recipes) == (RECOUNTED, word)


@pytest.mark.parametrize("option", ["--tp 4", "--chunk 512", "--prefer objective", "--draft eagle"])
def test_options_that_rows_have_decided_are_refused(table, option, capsys):
    said = ["--model", "llama-3.1-70b", "--topology", "h100-nvl8-x4", "--engine", f"table:{table}"]
    assert main([*said, *option.split()]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"`{option}` means nothing to a table" in told


@pytest.mark.parametrize("command", [["predict"], ["pareto"], ["compare"], ["audit"]], ids=str)
def test_other_commands_refuse_a_table_by_name(table, command, capsys):
    said = ["--model", "llama-3.1-70b", "--topology", "h100-nvl8-x4", "--engine", f"table:{table}"]
    assert main([*command, *said]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "lists replicas, which are placed: write `plan --engine" in told
    assert "no such engine" not in told
