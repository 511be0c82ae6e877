"""Single values of [Erdil2025]'s program, one case a row: equal but for the tenth digit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from planner.equations.economics.collectives import (
    ALL_REDUCE,
    ALL_TO_ALL,
    POINT_TO_POINT,
    collective_s,
)
from planner.equations.economics.transformer import touched_fraction
from planner.equations.economics.work import matrix_bytes
from planner.specs.records.economics import DecodePass
from research.economics import facts, rows
from research.economics.model import toy
from research.economics.model.casework import FINAL, FULL, best_layout, breakdown, latency_s
from research.economics.model.cost import usd_per_token
from research.economics.model.presented import latency_as_presented_s
from research.economics.model.speculation import speculative_latency_s
from research.economics.rows import Row

LATENCIES = rows.of_table("POINT-new", "POINT-final")
PRESENTED = rows.of_table("POINT-paper(Eq29-44)")
BREAKDOWNS = rows.of_table("BREAKDOWN")
TOYS = rows.of_table("POINT-toy(sec2.2)")
COLLECTIVES = rows.of_table("POINT-collective")
MATRICES = rows.of_table("POINT-matmul_rw")
EXPERTS = rows.of_table("POINT-active-experts")
SPECULATIONS = rows.of_table("POINT-spec", "NOTEBOOK")
CLAIMED = (
    *LATENCIES,
    *PRESENTED,
    *BREAKDOWNS,
    *TOYS,
    *COLLECTIVES,
    *MATRICES,
    *EXPERTS,
    *SPECULATIONS,
)
TO_THE_TENTH_DIGIT = 1e-9


def same(row: Row) -> object:
    return pytest.approx(row.value, rel=TO_THE_TENTH_DIGIT)


def device_of(row: Row) -> str:
    parts = (part.strip() for part in row.settings.split(";"))
    return next(part for part in parts if part in facts.constants()["gpus"])


def decode_of(row: Row) -> DecodePass:
    settings = row.assignments
    return facts.decode(
        row.name,
        device_of(row),
        n_context_tokens=float(settings["S"]),
        n_scored_tokens=float(settings["q"]),
    )


def point_of(row: Row) -> tuple[float, float]:
    return float(row.assignments["N"]), float(row.assignments["B"])


@pytest.mark.parametrize("row", LATENCIES, ids=str)
def test_latency_of_a_point_equals_the_programs(row: Row):
    casework = FULL if row.table == "POINT-new" else FINAL
    casework = replace(casework, has_stages=row.assignments["use_pp"] == "True")
    assert latency_s(decode_of(row), *point_of(row), casework=casework) == same(row)


@pytest.mark.parametrize("row", PRESENTED, ids=str)
def test_latency_by_the_printed_equations_equals_the_programs(row: Row):
    assert latency_as_presented_s(decode_of(row), *point_of(row)) == same(row)


TERMS: Mapping[str, Callable[..., object]] = {
    "latency": lambda found, layout: found.latency_s,
    "two_d": lambda found, layout: found.is_2d,
    "PP": lambda found, layout: layout.n_stages,
    "TP": lambda found, layout: found.degrees.n_per_stage,
    "EP": lambda found, layout: found.degrees.n_expert,
    "TPff": lambda found, layout: found.degrees.n_ffn,
    "a": lambda found, layout: layout.attention_scale_down,
    "TPattn": lambda found, layout: found.n_attention,
    "kernel": lambda found, layout: found.launch_s,
    "net_attn": lambda found, layout: found.attention_network_s,
    "net_ff": lambda found, layout: found.ffn_network_s,
    "net_ep": lambda found, layout: found.expert_network_s,
    "net_pp": lambda found, layout: found.pipeline_network_s,
    "mem": lambda found, layout: found.memory_s,
    "flop": lambda found, layout: found.compute_s,
}


@pytest.mark.parametrize("row", BREAKDOWNS, ids=str)
def test_every_term_of_a_best_layout_equals_the_programs(row: Row):
    decode, point = decode_of(row), point_of(row)
    casework = replace(FULL, has_stages=row.assignments["use_pp"] == "True")
    _, layout = best_layout(decode, *point, casework=casework)
    found = breakdown(decode, *point, layout, casework=casework)
    assert TERMS[row.quantity](found, layout) == same(row)


@pytest.mark.parametrize("row", TOYS, ids=str)
def test_the_toy_model_with_sustained_rates_equals_the_programs(row: Row):
    system = toy.figure_1_system(facts.model(row.name), facts.device(device_of(row)))
    assert toy.latency_s(system, *point_of(row)) == same(row)


KINDS = {"allreduce": ALL_REDUCE, "all-to-all": ALL_TO_ALL, "p2p": POINT_TO_POINT}


@pytest.mark.parametrize("row", COLLECTIVES, ids=lambda row: f"{row} {row.settings}")
def test_time_of_a_collective_equals_the_programs(row: Row):
    ranks, nodes, n_bytes = (float(row.assignments[key]) for key in ("ranks", "nodes", "bytes"))
    device = facts.device(device_of(row))
    assert collective_s(KINDS[row.name], n_bytes, (ranks, nodes), device) == same(row)


@pytest.mark.parametrize("row", MATRICES, ids=str)
def test_traffic_of_a_matrix_product_equals_the_programs(row: Row):
    m, k, n = (float(part.split("=")[1]) for part in row.name.split(";"))
    settings = row.assignments
    model = replace(
        facts.model("Llama_3_70B"),
        weight_bytes=float(settings["wp"]),
        activation_bytes=float(settings["ap"]),
    )
    assert matrix_bytes(model, (m, k), n, float(settings["tp"])) == same(row)


@pytest.mark.parametrize("row", EXPERTS, ids=str)
def test_share_of_touched_experts_equals_the_programs(row: Row):
    sparsity, n_tokens = (float(part.split("=")[1]) for part in row.name.split(";"))
    assert touched_fraction(n_tokens, sparsity) == same(row)


@pytest.mark.parametrize("row", SPECULATIONS, ids=str)
def test_speculative_latency_equals_the_programs(row: Row):
    """The notebook's values have eight digits; its second is the price at its first's point."""
    same_point = (row.table, row.name)
    of_point = next(other for other in SPECULATIONS if (other.table, other.name) == same_point)
    settings = of_point.assignments
    target, draft = (
        facts.decode(name, device_of(of_point), n_context_tokens=float(settings["S"]))
        for name in row.name.split(" <- ")
    )
    n, b = point_of(of_point)
    latency = speculative_latency_s(
        target,
        draft,
        (n, b),
        acceptance=float(settings["p"]),
        draft_lengths=range(2, int(settings["gamma_max"]) + 1),
    )
    if row.quantity == "cost":
        latency = usd_per_token(latency, n, b, target.device) * 1e6
    digits = 5e-7 if row.table == "NOTEBOOK" else TO_THE_TENTH_DIGIT
    assert latency == pytest.approx(row.value, rel=digits)
