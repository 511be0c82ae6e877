"""An audit compares what runs with what the same candidates could do."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import pairwise
from math import prod
from xml.etree import ElementTree

import pytest

from planner import RequestError
from planner.commands.cli import main
from planner.planning.audit import audit, audit_curves
from planner.specs.ask.request import Workload
from planner.specs.ask.targets import Speculation, layouts_of
from planner.specs.files.reading import load_cluster, load_model
from planner.verifier.audits import judge_audit
from tests.report.rendering import report_line, report_page, report_text

WORKLOAD = Workload(n_input_tokens=1024, n_output_tokens=256)


FORMATS = ("bf16", "fp8", "int8", "int4")


def audited(**seen):
    """The paper's question: Llama 3 70B in 16 bits on a DGX H100, which may take other formats."""
    return audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x1"),
        weights_format="bf16",
        allowed_formats=FORMATS,
        **({"workload": WORKLOAD} | seen),
    )


@pytest.fixture(scope="module")
def slow_and_small():
    return audited(speed_tokens_per_s=35.0, batch=8)


def test_what_runs_is_described_by_its_own_figures(slow_and_small):
    """8 × 35 tokens a second on eight devices: dollars and utilization by hand."""
    seen, cluster = slow_and_small.observed, slow_and_small.request.cluster
    assert seen.tpot_s == pytest.approx(1 / 35)
    rent = 8 * cluster.usd_per_hour / 3600
    assert seen.usd_per_token == pytest.approx(rent / 280)
    peak = 8 * cluster.device.peak_flop_per_s["bf16"]
    assert seen.mfu_fraction == pytest.approx(280 * 2 * 70.55e9 / peak, rel=0.01)


def test_a_utilization_stands_for_the_batch_that_it_implies():
    by_share = audited(speed_tokens_per_s=70.0, utilization_fraction=0.15).observed
    by_batch = audited(speed_tokens_per_s=70.0, batch=by_share.batch).observed
    assert by_share == by_batch
    assert by_share.mfu_fraction == pytest.approx(0.15, rel=0.01)


def test_the_frontier_is_no_worse_than_what_runs(slow_and_small):
    seen = slow_and_small.observed
    same_speed, same_cost = slow_and_small.equal_speed, slow_and_small.equal_cost
    assert same_speed.tpot_s <= seen.tpot_s
    assert slow_and_small.changes[0].usd_per_token < seen.usd_per_token
    assert same_cost.tpot_s < seen.tpot_s


def test_every_change_keeps_the_speed_and_all_of_them_together_gain_most(slow_and_small):
    seen, changes = slow_and_small.observed, slow_and_small.changes
    assert all(change.deployment.tpot_s <= seen.tpot_s * (1 + 1e-9) for change in changes)
    assert changes[0].name == "all of these"
    costs = [change.usd_per_token for change in changes]
    assert costs == sorted(costs)


def test_the_time_that_runs_is_split_into_what_is_possible_and_what_is_not_explained(
    slow_and_small,
):
    parts = dict(slow_and_small.excess)
    assert sum(parts.values()) == pytest.approx(slow_and_small.observed.tpot_s)
    assert parts["unexplained"] > 0


def test_a_layout_that_runs_explains_its_own_time_and_the_best_one_is_a_change():
    """The time is compared with the layout that is said, and changes are free to leave it."""
    palm, slices = load_model("palm-540b"), load_cluster("tpu-v4-4x4x4")
    runs = {"speed_tokens_per_s": 20.0, "batch": 64, "weights_format": "bf16"}
    free = audit(palm, slices, **runs)
    stated = audit(palm, slices, **runs, layouts=layouts_of("decode=WS1D/batch"))
    assert free.possible.decode.layout == "WS 2D"
    assert (stated.possible.decode.layout, stated.possible.decode.attention) == ("WS 1D", "batch")
    assert stated.possible.tpot_s > free.possible.tpot_s
    assert dict(stated.excess)["unexplained"] == 1 / 20 - stated.possible.tpot_s
    assert (stated.equal_speed, stated.equal_cost) == (free.equal_speed, free.equal_cost)
    assert stated.changes == free.changes
    assert judge_audit(stated)[1] == []
    assert judge_audit(replace(stated, possible=free.possible))[1]  # of another layout
    with pytest.raises(RequestError, match="cannot decode 64 sequences on 64 devices"):
        audit(palm, slices, **runs, layouts=layouts_of("decode=WS1D/heads/4"))
    with pytest.raises(RequestError, match="an audit is of decode"):
        audit(palm, slices, **runs, layouts=layouts_of("prefill=WS1D"))


def test_a_draft_model_is_a_change_like_others():
    found = audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x1"),
        speed_tokens_per_s=70.0,
        batch=16,
        weights_format="bf16",
        workload=WORKLOAD,
        speculation=Speculation(draft=load_model("llama-3-8b")),
    )
    drafted = next(change for change in found.changes if "llama-3-8b" in change.name)
    assert drafted.deployment.draft is not None


@pytest.mark.parametrize(
    ("draft", "fact"),
    [
        ("mixtral-8x7b", "has a vocabulary of 32000 tokens, `llama-3.1-70b` of 128256"),
        ("llama-3-8b", "attends to 8192 tokens at most"),
    ],
)
def test_a_draft_of_other_tokens_or_of_shorter_sequences_is_refused(draft, fact):
    with pytest.raises(RequestError) as caught:
        audit(
            load_model("llama-3.1-70b"),
            load_cluster("h100-nvl8-x1"),
            speed_tokens_per_s=30.0,
            batch=8,
            weights_format="bf16",
            workload=Workload(n_input_tokens=9000, n_output_tokens=256),
            speculation=Speculation(draft=load_model(draft)),
        )
    (problem,) = caught.value.problems
    assert (problem.where, problem.value) == ("--draft", draft)
    assert problem.fact.startswith(fact)


def test_the_report_says_how_far_and_what_helps(slow_and_small):
    text = report_text(slow_and_small, 110)
    assert "times the cost that its speed needs" in text.splitlines()[0]
    assert re.search(r"at equal speed .* [\d.]+ % cheaper", text)
    assert re.search(r"at equal cost .* [\d.]+ % faster", text)
    assert re.search(r"times +a batch of 8 instead of \d+", text)
    assert "fp8 weights" in text
    assert "unexplained" in text


def test_what_costs_as_much_as_what_runs_really_does(slow_and_small):
    """Cost counts decoded tokens on both sides, however few a request writes."""
    short = audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x1"),
        speed_tokens_per_s=35.0,
        batch=8,
        weights_format="bf16",
        workload=Workload(n_input_tokens=1024, n_output_tokens=2),
    )
    for found in (short, slow_and_small):
        cost = found.equal_cost.usd_per_decoded_token
        assert cost <= found.observed.usd_per_token * (1 + 1e-9)


def test_the_distance_in_cost_is_the_product_of_its_factors(slow_and_small):
    assert prod(part for _, part in slow_and_small.factors) == pytest.approx(
        slow_and_small.cost_factor
    )


def test_a_change_of_format_is_offered_where_it_is_allowed_and_as_published(slow_and_small):
    """bf16 is what runs and what is published, so that nothing is left to change unasked."""
    asked = {change.name for change in slow_and_small.changes}
    assert {"fp8 weights", "int4 weights", "fp8 KV cache"} <= asked
    seen = {"speed_tokens_per_s": 35.0, "batch": 8, "workload": WORKLOAD}
    llama, pool = load_model("llama-3-70b"), load_cluster("h100-nvl8-x1")
    unasked = audit(llama, pool, weights_format="bf16", **seen)
    assert not [change.name for change in unasked.changes if "weights" in change.name]
    assert len(audit_curves(unasked)) == 1
    back = audit(llama, pool, weights_format="int4", **seen)
    assert back.weights_formats == ("int4", "bf16")


def test_each_change_is_a_command_that_plans_it(slow_and_small, capsys):
    """At the same speed or better, in the formats and on the devices of the change."""
    seen = slow_and_small.observed
    assert len(slow_and_small.changes) >= 5
    for change in slow_and_small.changes[:3]:
        words = shlex.split(change.command)
        assert words[0] == "plan"
        assert main([*words[1:], "--quiet"]) == 0
        line = capsys.readouterr().out
        assert f"{change.deployment.weights_format} weights" in line
        assert float(re.search(r"TPOT ([\d.]+) ms", line)[1]) <= seen.tpot_s * 1e3 * 1.001


def test_a_price_of_the_users_own_is_in_the_commands(capsys):
    line = "audit --engine roofline --model llama-3-8b --topology h100-nvl8-x1 --weights bf16"
    said = ["--devices", "1", "--speed", "30tok/s", "--batch", "4", "--price", "$1.5/h"]
    assert main([*line.split(), *said]) == 0
    commands = capsys.readouterr().out.partition("\ntry\n")[2].splitlines()
    assert len(commands) >= 3
    assert all("--price '$1.5/h'" in command for command in commands)


def test_where_the_model_is_beaten_it_says_what_to_check_and_saves_from_its_own_cost():
    """The whole cache of 2000 tokens cannot be read so fast for 120 users."""
    found = audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x1"),
        speed_tokens_per_s=70.0,
        utilization_fraction=0.15,
        weights_format="bf16",
        allowed_formats=FORMATS,
        workload=Workload(n_input_tokens=2048, n_output_tokens=64),
    )
    assert found.cost_factor < 0.9
    assert found.baseline_usd_per_token == found.equal_speed.usd_per_decoded_token
    text = report_text(found, 100)
    assert "look at what was measured before changing anything" in " ".join(text.split())
    assert "Contexts shorter than 2080 tokens would explain" in " ".join(text.split())
    assert "dearer" in text
    assert re.search(r"savings are from \$[\d.]+/Mtoken, this model's least", text)


def test_what_is_close_to_the_least_cost_is_on_the_frontier(slow_and_small):
    best = slow_and_small.equal_speed
    close = replace(
        slow_and_small,
        observed=replace(slow_and_small.observed, usd_per_token=best.usd_per_decoded_token * 1.02),
    )
    assert "on the frontier" in report_line(close)
    assert "nothing to explain" in report_text(close, 100)


@pytest.fixture(scope="module")
def curves(slow_and_small):
    return audit_curves(slow_and_small)


class TestPicture:
    def test_the_curves_go_through_what_the_audit_found(self, slow_and_small, curves):
        """The cheapest point that is as fast, and the fastest that costs no more."""
        points, seen = curves[0].frontier.points, slow_and_small.observed
        as_fast = min(p.y for p in points if p.x <= seen.tpot_s)
        as_cheap = min(p.x for p in points if p.y <= seen.usd_per_token)
        assert as_fast == pytest.approx(slow_and_small.equal_speed.usd_per_decoded_token)
        assert as_cheap == pytest.approx(slow_and_small.equal_cost.tpot_s)

    def test_all_formats_are_never_worse_than_those_that_run(self, curves):
        own, free = (curve.frontier.points for curve in curves)
        for point in own[:: len(own) // 20]:
            assert any(
                one.x <= point.x * (1 + 1e-9) and one.y <= point.y * (1 + 1e-9) for one in free
            )

    def test_points_are_proved_and_in_order(self, curves):
        for curve in curves:
            assert curve.frontier.proof.status == "optimal"
            assert all(point.gap <= 1e-9 for point in curve.frontier.points)
            for slow, fast in pairwise(curve.frontier.points):
                assert fast.x < slow.x
                assert fast.y > slow.y

    def test_the_page_is_whole_and_has_the_point_and_its_two_rings(self, slow_and_small, curves):
        text = report_page(slow_and_small, curves=curves)
        ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
        for words in ("what runs", "at equal speed", "at equal cost"):
            assert text.count(f">{words}</text>") == 2  # logarithmic, linear
        assert text.count('class="ring"') == 4


@pytest.mark.parametrize(
    ("seen", "options", "said"),
    [
        # 141 GB on 85; 35 passes of 141 GB a second from 3.35 TB/s
        (
            {"speed_tokens_per_s": 35.0, "batch": 8, "n_devices": 1},
            {"--devices", "--speed"},
            "weights of 141 GB take 1.66 times that",
        ),
        # 800 · 3500 · 141 GFLOP a token of 8 · 990 TFLOP/s
        ({"speed_tokens_per_s": 3500.0, "batch": 400}, {"--speed"}, "2496 % MFU"),
        ({"speed_tokens_per_s": 500.0, "batch": 1}, {"--speed"}, "2.61 times what the memory"),
        ({"speed_tokens_per_s": 1.0, "batch": 2000}, {"--batch"}, "of 2080 tokens each"),
        (
            {"speed_tokens_per_s": 50.0, "utilization_fraction": 0.9},
            {"--utilization", "--speed"},
            "of 2080 tokens each",
        ),
    ],
)
def test_what_no_devices_can_do_is_refused_with_its_margin_and_the_nearest_that_some_can(
    monkeypatch, seen, options, said
):
    """The nearest is accepted, and whatever is a hundredth beyond it is not."""
    monkeypatch.setattr("planner.planning.audit.audited", lambda request, observed, *_: observed)
    monkeypatch.setattr("planner.planning.audit.judge_audit", lambda observed: (observed, []))
    workload = Workload(n_input_tokens=2048, n_output_tokens=64)
    with pytest.raises(RequestError) as caught:
        audited(workload=workload, **seen)
    problems = caught.value.problems
    assert {problem.where for problem in problems} == options
    assert any(said in problem.fact for problem in problems)
    keys = {
        "--speed": "speed_tokens_per_s",
        "--batch": "batch",
        "--utilization": "utilization_fraction",
        "--devices": "n_devices",
    }
    found = re.findall(r"`(--\w+) ([\d.e+]+)", problems[-1].remedy)
    option, value = found[0]
    mended = {**seen, keys[option]: float(value)}
    if "--devices" in options:
        mended["n_devices"] = 2
    for name in ("batch", "n_devices"):
        if name in mended:
            mended[name] = int(mended[name])
    assert audited(workload=workload, **mended).mfu_fraction < 1
    key = keys[option]
    beyond = mended[key] + 1 if key == "batch" else mended[key] * 1.01
    if "--devices" not in options:
        with pytest.raises(RequestError):
            audited(workload=workload, **{**mended, key: beyond})


def test_a_number_of_devices_that_no_mesh_has_names_the_nearest():
    with pytest.raises(RequestError, match="no mesh of `tpu-v4-4x8x8` has as many") as caught:
        audit(
            load_model("palm-62b"),
            load_cluster("tpu-v4-4x8x8"),
            speed_tokens_per_s=5.0,
            batch=4,
            n_devices=12,
        )
    (problem,) = caught.value.problems
    assert problem.remedy == "nearest: `--devices 8` or `--devices 16`"


def test_a_long_pipeline_is_compared_with_meshes_of_as_many_devices():
    """80 layers on 11 stages: ten would be as fast, but eleven run."""
    found = audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x4"),
        speed_tokens_per_s=9.0,
        batch=8,
        n_devices=11,
        weights_format="bf16",
        workload=WORKLOAD,
    )
    assert found.possible is not None
    assert found.possible.mesh.n_devices == 11


@pytest.mark.parametrize(
    ("seen", "option"),
    [
        ({"speed_tokens_per_s": 0.0, "batch": 8}, "--speed"),
        ({"speed_tokens_per_s": float("nan"), "batch": 8}, "--speed"),
        ({"speed_tokens_per_s": 70.0}, "--batch"),
        ({"speed_tokens_per_s": 70.0, "batch": 8, "utilization_fraction": 0.2}, "--batch"),
        ({"speed_tokens_per_s": 70.0, "utilization_fraction": 1.5}, "--utilization"),
        ({"speed_tokens_per_s": 70.0, "batch": 8, "n_devices": 9}, "--devices"),
        (
            {
                "speed_tokens_per_s": 70.0,
                "batch": 8,
                "workload": replace(WORKLOAD, n_output_tokens=1),
            },
            "--output",
        ),
    ],
)
def test_what_cannot_be_observed_is_refused_by_its_option(seen, option):
    with pytest.raises(RequestError) as caught:
        audited(**seen)
    assert option in {problem.where for problem in caught.value.problems}
