"""Who plans where no engine is named: all that have measured kernels there, else the layouts."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from planner import (
    NoPlanError,
    Targets,
    Workload,
    load_architecture,
    load_cluster,
    load_model,
    place,
    plan as find,
)
from planner.estimates.serving.usual_engines import engines_of, why_no_engine
from planner.report.times import times_of
from planner.specs.ask.placement import Serve
from planner.specs.records.runtimes import ENGINES
from tests.report.rendering import report_text

FEW = (1, 8, 64)
SHORT = Workload(n_input_tokens=512, n_output_tokens=64)
MEASURED = ("a100-nvl8-x1", "h100-nvl8-x1", "h200-nvl8-x1", "b200-nvl8-x1", "b300-nvl8-x1")


@pytest.mark.parametrize("pool", [*MEASURED, "gb200-nvl72-x1", "l40s-x1"])
def test_every_engine_plans_on_devices_that_it_was_measured_on(pool):
    assert engines_of(load_model("llama-3.1-8b"), load_cluster(pool)) == ENGINES


@pytest.mark.parametrize(
    ("model", "pool", "why"),
    [
        ("llama-3.1-8b", "h20-nvl8-x1", "no engine's own kernels were measured on h20"),
        ("llama-3.1-8b", "h800-nvl8-x1", "no engine's own kernels were measured on h800"),
        ("llama-3.1-8b", "mi300x-x1", "no engine's own kernels were measured on mi300x"),
        ("palm-62b", "h100-nvl8-x1", "no engine starts palm-62b: it names no repository"),
        ("mt-nlg-530b", "h100-nvl8-x4", "no engine starts mt-nlg-530b: it names no repository"),
        ("llama-3.1-8b", "tpu-v4-2x2x2", ""),
    ],
)
def test_the_layouts_plan_where_no_engine_can_and_the_report_says_why(model, pool, why):
    asked, cluster = load_model(model), load_cluster(pool)
    assert not engines_of(asked, cluster)
    assert why_no_engine(asked, cluster) == why
    best = find(asked, cluster, batches=FEW, workload=SHORT)
    assert (
        best.deployment == find(asked, cluster, "roofline", batches=FEW, workload=SHORT).deployment
    )
    (times,) = times_of(best)
    assert (times.runtime, times.why) == ("roofline", why)
    assert why in " ".join(report_text(best, 100).split())


def test_the_default_is_all_engines_in_one_program():
    model, cluster = load_architecture("qwen3-32b"), load_cluster("h100-nvl8-x1")
    targets = Targets(tpot_s=0.03)
    unasked = find(model, cluster, targets=targets, batches=FEW)
    asked = find(model, cluster, ENGINES, targets=targets, batches=FEW)
    assert unasked.deployment == asked.deployment
    assert unasked.certificate.objective == asked.certificate.objective
    assert [one.runtime for one in unasked.rivals] == [one.runtime for one in asked.rivals]
    best = {
        name: find(model, cluster, name, targets=targets, batches=FEW, prefer="objective")
        for name in ENGINES
    }
    least = min(one.certificate.objective for one in best.values())
    assert unasked.certificate.objective == pytest.approx(least, rel=1e-12)
    for rival in unasked.rivals:
        assert rival.objective == pytest.approx(
            best[rival.runtime].certificate.objective, rel=1e-12
        )
    assert times_of(find(model, cluster, "roofline", batches=FEW))[0].why == ""


def test_an_engine_that_cannot_be_asked_so_is_left_out_and_named(plan):
    """vLLM deals the experts over all ranks or none: two groups of eight ranks are not of it."""
    line = "--model qwen3-30b-a3b --topology h100-nvl8-x1 --batch 1,8,64 --tp 8 --ep 2"
    ran = plan(f"{line} --json")
    assert ran.code == 0, ran
    rivals = [one["runtime"] for one in json.loads(ran.out)["answer"]["rivals"]]
    assert "vllm" not in rivals
    assert "vllm is left out" in " ".join(ran.err.split())
    named = plan(f"{line} --engine vllm,sglang")
    assert named.code == 2


def test_a_fault_that_all_engines_share_is_an_error(plan):
    ran = plan("--model qwen3-32b --topology h100-nvl8-x1 --chunk 0")
    assert ran.code == 2
    assert "--chunk" in ran.err


def test_an_option_of_layouts_is_refused_and_the_runtime_that_takes_it_is_named(plan):
    ran = plan("--model qwen3-32b --topology h100-nvl8-x1 --prefill-batch 4")
    assert ran.code == 2
    assert "--prefill-batch 4" in ran.err
    assert "--engine roofline" in ran.err


def test_a_hint_of_the_layouts_names_them_and_its_command_has_the_plan(plan):
    """Without the name another runtime would answer."""
    line = "--model llama-3.1-70b --topology h100-nvl8-x1 --batch 1,8,64 --latency-target 1ms"
    with pytest.raises(NoPlanError) as raised:
        find(
            load_model("llama-3.1-70b"),
            load_cluster("h100-nvl8-x1"),
            "roofline",
            targets=Targets(tpot_s=1e-3),
            batches=FEW,
        )
    command = shlex.split(raised.value.conflict.command)[1:]
    assert command[command.index("--engine") + 1] == "roofline"
    assert plan(f"{line} --engine roofline").code == 1
    assert plan(shlex.join(command)).code == 0


def test_an_audit_asks_which_engine_runs(plan):
    line = "audit --model llama-3.1-8b --topology h100-nvl8-x1 --speed 35tok/s --batch 8"
    ran = plan(line)
    assert ran.code == 2
    assert "vllm, sglang, trtllm or `roofline`" in " ".join(ran.err.split())
    assert plan(f"{line} --engine roofline --devices 1").code == 0


def test_a_placement_is_by_engines_of_all_models_or_by_layouts():
    cluster, limits = load_cluster("h100-nvl8-x1"), Targets(tpot_s=0.05)
    asked = {"targets": limits, "batches": FEW}
    served = place(cluster, [Serve(model=load_model("qwen3-8b"), replicas=1)], **asked)
    assert served.request.engines == ENGINES
    assert {one.engine for one in served.recipes} <= {*ENGINES}
    both = [load_model("qwen3-8b"), load_model("palm-8b")]
    mixed = place(cluster, [Serve(model=one, replicas=1) for one in both], **asked)
    assert mixed.request.engines == ("roofline",)


def test_a_model_of_the_user_s_own_is_served_once_it_names_its_repository():
    model, cluster = load_model("qwen3-8b"), load_cluster("h100-nvl8-x1")
    assert not engines_of(replace(model, repository=""), cluster)
    assert engines_of(replace(model, repository="me/mine"), cluster)


def test_a_spoilt_table_of_an_engine_is_told_and_not_planned_around(plan, folder):
    """Without that engine another would plan, and nobody would know why."""
    (folder / "kernels").mkdir()
    shipped = (Path(__file__).parents[2] / "kernels" / "h100-sxm-vllm.toml").read_text()
    spoilt = re.sub(r"floor_s = .*", 'floor_s = "x"', shipped)
    (folder / "kernels" / "h100-sxm-vllm.toml").write_text(spoilt)
    line = "--model qwen3-8b --topology h100-nvl8-x1 --batch 8 --quiet"
    ran = plan(line)
    assert ran.code == 2, ran
    assert "h100-sxm-vllm.toml: kernel[0].constants.floor_s" in ran.err
    assert plan(f"{line} --engine roofline").code == 0
    (folder / "kernels" / "h100-sxm-vllm.toml").unlink()
    assert plan(line).code == 0


def test_a_plan_of_layouts_rests_on_no_table_of_kernels(plan):
    line = "--engine roofline --model qwen3-8b --topology h100-nvl8-x1 --batch 8 --json"
    names = {one["name"] for one in json.loads(plan(line).out)["data"]}
    assert names == {"h100-nvl8-x1", "h100-sxm", "qwen3-8b"}


def test_a_comparison_ranks_by_what_it_shows(plan):
    """The simplest plan of an engine gives up something: that counts, not the best it could do."""
    line = "compare --engine roofline,vllm --model qwen3-32b --topology h100-nvl8-x1 --batch 64,256"
    line += " --confidence 0"
    answer = json.loads(plan(f"{line} --json").out)["answer"]
    costs = [row["plan"]["deployment"]["usd_per_token"] for row in answer["rows"]]
    engine = answer["rows"][1]["plan"]
    assert engine["given_up_fraction"] > 0
    assert answer["best"] == costs.index(min(costs))
    lost = [row["loss_fraction"] for row in answer["rows"]]
    assert lost == pytest.approx([cost / min(costs) - 1 for cost in costs], abs=1e-9)


def test_engines_and_layouts_are_no_one_program_and_no_engine_is_not_one(plan):
    ran = plan("--engine vllm,roofline --model qwen3-8b --topology h100-nvl8-x1")
    assert (ran.code, ran.err.count("--engine roofline")) == (2, 0)
    assert "names no engine" in plan("--engine , --model qwen3-8b").err
