"""The report of a plan, as text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from planner.report.paint import write
from planner.results.deployments import Division
from planner.results.plans import LimitUse
from planner.specs.ask.targets import Targets
from planner.specs.records.devices import Link, LinkedFabric, Provenance, Workload
from tests.report.examples import CERTIFICATE, DECODE, DEPLOYMENT, MESH, PLAN, PREFILL, REQUEST
from tests.report.rendering import report_line, report_text

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (80, 100)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_is_the_one_that_was_reviewed(width):
    """To accept a change: `python -m tests.report.test_terminal`, and read the difference."""
    golden = (GOLDEN / f"plan-{width}.txt").read_text(encoding="utf-8")
    assert report_text(PLAN, width) + "\n" == golden


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120])
def test_no_line_is_wider_than_asked_nor_ends_in_a_blank(width):
    lines = report_text(PLAN, width).splitlines()
    if width >= 80:  # below that the columns of two phases do not fit any more
        assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


def test_every_default_of_the_request_is_printed():
    text = report_text(PLAN, 100)
    for fact in (
        "tiny-7b",
        "toy-4x4x4",
        "2048 in, 64 out",
        "latency: each request alone",
        "decode 1:128, prefill 1",
        "bf16 or int8",
        "TPOT ≤ 30 ms, cost ≤ $50/Mtoken, decode batch ≥ 16",
        "highs, gap 0 %, time limit 10 s, 1 thread, seed 0",
    ):
        assert fact in text


def test_a_request_without_targets_says_so():
    text = report_text(replace(PLAN, request=replace(REQUEST, targets=Targets())), 100)
    assert re.search(r"targets +none", text)


def test_both_phases_print_layout_attention_parts_and_rates():
    text = report_text(PLAN, 100)
    for fact in ("WG XYZ  E_x F_yz", "WS 2D  E_x F_yz", "x=2 yz=16", "50.0 %", "35.7 %", "6.1 %"):
        assert fact in text
    assert re.search(r"tokens/s +10200 +2290", text)  # 2048 / 0.2 s, 64 / 0.028 s


def test_bars_are_as_long_as_their_shares():
    """Compute takes half of a prefill, the network 30 %: bars of 10 and 6 columns of 20."""
    lines = report_text(PLAN, 100).splitlines()
    compute = next(line for line in lines if line.strip().startswith("compute"))
    network = next(line for line in lines if line.strip().startswith("network"))
    assert compute.split()[5] == "█" * 10
    assert network.split()[5] == "█" * 6


def test_memory_adds_up_to_the_capacity():
    text = report_text(PLAN, 100)
    assert re.search(r"free +10.5 GB +32.8 %", text)
    assert re.search(r"in all +32 GB", text)


def test_what_binds_is_marked_with_what_it_costs():
    text = report_text(PLAN, 100)
    assert re.search(r"TPOT +≤ 30 ms +28 ms +binds: ≤ 33 ms would gain 8 %", text)
    assert text.count("binds") == 1


def test_a_limit_whose_price_is_unknown_is_not_said_to_bind():
    use = LimitUse(
        name="tpot", used=0.03, limit=0.03, dimension="s", relief=1.1, gain_fraction=None
    )
    assert "binds" not in report_text(replace(PLAN, limits=(use,)), 100)


def test_the_certificate_accounts_for_every_candidate():
    text = report_text(PLAN, 100)
    assert "12,345 in 27 ways to use the pool" in text
    assert re.search(r"− 12,000 +memory", text)
    assert re.search(r"= 45 +solver", text)


def test_an_unproven_plan_does_not_call_itself_optimal():
    proof = replace(CERTIFICATE, status="feasible", gap=0.03, bound=38.8e-6)
    text = report_text(replace(PLAN, certificate=proof), 100)
    assert "not proven to be the best" in text
    assert "optimal" not in text
    assert "gap 3 %" in text


def test_a_plan_within_a_gap_claims_no_more_than_the_gap():
    proof = replace(CERTIFICATE, gap=0.02, bound=39.2e-6)
    text = report_text(replace(PLAN, certificate=proof), 100)
    assert "within 2 % of the best" in text
    assert "is better" not in text


def test_assumed_constants_are_counted_and_named():
    assert re.search(r"assumed +2: memory.reserve, torus.hop", report_text(PLAN, 100))


def test_a_constant_of_many_links_is_named_once():
    links = tuple(Provenance(key=f"link[{i}].latency", source="assumed") for i in range(28))
    text = report_text(replace(PLAN, provenance=(*PLAN.provenance, *links)), 100)
    assert re.search(r"assumed +30: memory.reserve, torus.hop, 28 × link.latency", text)


def test_copies_of_the_cache_are_those_that_its_ways_leave():
    """32 devices: 8 ways leave 4 copies, 32 ways none, one way is a copy on each device."""
    decode = replace(DECODE, n_kv_ways=8)
    text = report_text(replace(PLAN, deployment=replace(DEPLOYMENT, decode=decode)), 100)
    assert re.search(r"KV cache +not cut, 32 copies +cut 8 ways, 4 copies\n", text)


def division(things: str, n_things: int, n_parts: int) -> Division:
    return Division(things=things, n_things=n_things, n_parts=n_parts)


def test_heads_experts_and_layers_that_come_out_uneven_are_named_by_phase():
    layers = division("layers", 61, 4)
    prefill = replace(PREFILL, divisions=(division("KV heads", 1, 32), layers))
    decode = replace(DECODE, divisions=(layers, division("experts", 60, 32)))
    text = report_text(
        replace(PLAN, deployment=replace(DEPLOYMENT, prefill=prefill, decode=decode)), 100
    )
    text = " ".join(text.split())
    assert (
        "uneven prefill: 1 KV head on 32 devices (32 have the same), 61 layers in 4 stages "
        "(16 at most); decode: 61 layers in 4 stages (16 at most), 60 experts on 32 devices "
        "(2 at most)" in text
    )
    both = replace(DEPLOYMENT, prefill=replace(prefill, divisions=decode.divisions), decode=decode)
    assert "uneven both phases: 61 layers" in " ".join(
        report_text(replace(PLAN, deployment=both), 100).split()
    )
    assert "uneven" not in report_text(PLAN, 100)


def test_the_columns_of_the_phases_do_not_touch_where_lines_are_narrowest():
    phases = report_text(PLAN, 60).partition("\nphases\n")[2].partition("  overlap")[0]
    head, *facts = phases.splitlines()[:5]
    place = head.index("decode")
    assert [line for line in facts if not re.fullmatch(r".*\S  +", line[:place])] == []


def test_the_largest_batch_offered_says_so_because_a_larger_one_may_be_better():
    decode = replace(DECODE, batch=128)  # of 1 to 128; prefill had no choice
    text = report_text(replace(PLAN, deployment=replace(DEPLOYMENT, decode=decode)), 100)
    assert re.search(r"batch +1 +128, largest offered\n", text)
    assert "largest" not in report_text(PLAN, 100)


def test_one_output_token_leaves_nothing_to_decode():
    alone = replace(REQUEST, workload=Workload(n_input_tokens=2048, n_output_tokens=1))
    text = report_text(replace(PLAN, request=alone), 100)
    assert "2048 in, 1 out: prefill writes it, decode never runs" in text


def test_prefill_batches_of_the_request_are_not_called_the_policys():
    asked = replace(REQUEST, prefill_batches=(7,))
    text = report_text(replace(PLAN, request=asked), 100)
    assert "latency: in the batches asked for" in text
    assert "each request alone" not in text


def test_listed_links_are_not_called_switched_nor_their_places_counted():
    fabric = LinkedFabric(
        devices=("a", "b"),
        links=(Link(a="a", b="b", bytes_per_s=5e10, latency_s=1e-6),),
        activation_network="ring",
        bulk_network="ring",
    )
    pool = replace(REQUEST.cluster, fabric=fabric)
    mesh = replace(
        MESH, label="in one group", axes=(2, 1, 1), is_torus=False, n_devices=2, n_positions=1
    )
    plan = replace(
        PLAN,
        request=replace(REQUEST, cluster=pool),
        deployment=replace(DEPLOYMENT, mesh=mesh, decode=replace(DECODE, n_kv_ways=2)),
    )
    assert "  mesh          2 in one group, the widest links of the pool\n" in report_text(
        plan, 100
    )


def test_a_pipeline_prints_its_stages_and_micro_batches():
    mesh = replace(MESH, label="in 4 stages of 8", axes=(8, 1, 1), is_torus=False, n_stages=4)
    best = replace(DEPLOYMENT, mesh=mesh, decode=replace(DECODE, n_microbatches=4))
    text = report_text(replace(PLAN, deployment=best), 100)
    assert "switched, 4 pipeline stages" in text
    assert re.search(r"in parts +1 micro-batch +4 micro-batches", text)


def test_the_line_is_the_plan_and_what_it_costs():
    assert report_line(PLAN) == (
        "32 devices 2×4×4, int8 weights, prefill WG XYZ batch 1, decode WS 2D batch 64: "
        "TPOT 28 ms, TTFT 200 ms, $40/Mtoken, $96/h"
    )


def test_text_on_a_pipe_carries_no_colour(capsys):
    import sys

    write(report_text(PLAN, 100), sys.stdout)
    assert "\x1b" not in capsys.readouterr().out


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for columns in WIDTHS:
        path = GOLDEN / f"plan-{columns}.txt"
        path.write_text(report_text(PLAN, columns) + "\n", encoding="utf-8")
