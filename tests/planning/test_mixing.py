"""A demand served by replicas of several sorts: never dearer than alike ones, or any others."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner import (
    Serve,
    SolverOptions,
    Targets,
    Workload,
    compare,
    load_architecture,
    load_model,
    load_topology,
    place,
    plan,
    verify,
)
from planner.commands.cli import main
from planner.errors import RequestError
from planner.placing.planning import task_of
from planner.placing.searching import offered
from planner.planning import mixing
from planner.planning.proving import proved as proved_again
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.verifier.comparisons import judge_comparison
from planner.verifier.plans import judge_plan
from tests.report.rendering import report_text

MODEL, POOL = load_model("llama-3.1-70b"), load_topology("h100-nvl8-x4")
WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=256)
LOWERED = {"weights_formats": ("bf16", "fp8", "int4"), "kv_formats": ("bf16", "fp8")}


def planned(demand, **asked):
    targets = Targets(tpot_s=0.040, demand_tokens_per_s=demand)
    usual = {"workload": WORKLOAD, "engine": "roofline", "confidence": 0.0}
    keywords = {"targets": targets, **usual, **asked}
    return plan(MODEL, POOL, **keywords)


@cache
def usual(demand, *, is_lowered=False):
    """The plan of a demand in the formats published, or in lower ones too."""
    return planned(demand, **(LOWERED if is_lowered else {}))


def rent(answer):
    mix = answer.cheaper_mix
    return mix.certificate.objective if mix else answer.deployment.usd_per_hour


@pytest.mark.parametrize("demand", [3000.0, 8000.0])
@pytest.mark.parametrize("formats", [{}, LOWERED], ids=["published", "lowered"])
def test_a_plan_is_never_dearer_than_a_placement(demand, formats):
    found = place(
        POOL,
        Serve(model=MODEL, demand_tokens_per_s=demand, **formats),
        engine="roofline",
        workload=WORKLOAD,
        targets=Targets(tpot_s=0.040),
        confidence=0.0,
    )
    answer = usual(demand, is_lowered=bool(formats))
    assert rent(answer) <= found.certificate.objective * (1 + 1e-9)
    assert answer.mix.certificate.vouched_bound <= rent(answer) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("demand", "formats", "known"),
    [(12_000.0, LOWERED, 17.70), (5500.0, LOWERED, 8.85), (5500.0, {}, 17.70), (8000.0, {}, 23.60)],
)
def test_known_rents_are_reached(demand, formats, known):
    """The least that anybody has found for these demands, by whatever command."""
    assert rent(usual(demand, is_lowered=bool(formats))) <= known * (1 + 1e-9)


def test_no_random_mix_is_cheaper():
    """Counts of configurations drawn at random, as long as they fit and serve the demand."""
    demand = 5500.0
    answer = usual(demand)
    assert answer.cheaper_mix is not None
    asked = task_of(answer.mix.request, None)
    every = offered(asked, whole=True).configurations
    rng = np.random.default_rng(7)
    n_tried = 0
    while n_tried < 200:
        some = [every[i] for i in rng.integers(0, len(every), int(rng.integers(1, 7)))]
        if sum(one.output_tokens_per_s for one in some) < demand:
            continue
        if sum(one.n_devices for one in some) > POOL.n_devices:
            continue
        n_tried += 1
        assert sum(one.usd_per_hour for one in some) >= rent(answer) * (1 - 1e-9)


def test_a_mix_that_is_altered_is_found():
    answer = usual(5500.0)
    mix = answer.mix
    cases = [
        replace(answer, mix=replace(mix, certificate=replace(mix.certificate, bound=1.0, gap=0.9))),
        replace(answer, mix=replace(mix, replicas=mix.replicas[:-1])),
        replace(
            answer,
            mix=replace(
                mix, request=replace(mix.request, workload=replace(WORKLOAD, n_input_tokens=9))
            ),
        ),
        replace(answer, request=replace(answer.request, objective="devices")),
    ]
    assert not judge_plan(answer)[1]
    for altered in cases:
        assert judge_plan(altered)[1]


def test_a_mix_that_is_left_out_is_told_by_a_new_search():
    """Nothing that is said is false then; what is left out was proved of the plan as written."""
    whole = verify(usual(5500.0), prove=True)
    without = verify(replace(usual(5500.0), mix=None), prove=True)
    assert (whole.is_true, whole.taken, without.is_true) == (True, (), True)
    assert "replicas of several sorts" in "".join(without.taken)


@pytest.mark.parametrize(
    "asked",
    [
        {"targets": Targets(tpot_s=0.040)},
        {"targets": Targets(tpot_s=0.040, demand_tokens_per_s=5500.0, n_replicas=3)},
        {"prefill": "cost"},
        {"objective": "latency"},
    ],
    ids=["no demand", "so many replicas", "a policy", "another objective"],
)
def test_what_only_alike_replicas_can_be_asked_has_no_mix(asked):
    answer = planned(5500.0, **{"options": SolverOptions(), **asked})
    assert answer.mix is None


def test_what_is_not_found_in_time_is_not_said(monkeypatch):
    """A search that ends before anything is proved bounds nothing, and the report says so."""
    monkeypatch.setattr(mixing, "SEARCH_S", 1e-3)
    answer = planned(5500.0)
    assert answer.mix is None or answer.mix.certificate.status != "optimal"
    assert not judge_plan(answer)[1]
    assert "proves that no replicas" not in report_text(answer, 100)


def test_a_bound_that_nobody_vouches_for_proves_nothing():
    """One solver's word is not enough to say that no replicas serve the demand for less."""
    answer = usual(3000.0)
    assert answer.cheaper_mix is None
    assert "`plan place` proves that no replicas" in " ".join(report_text(answer, 100).split())
    alone = replace(answer.mix.certificate, vouched_by=(), vouched_bound=None)
    doubted = replace(answer, mix=replace(answer.mix, certificate=alone))
    assert "nothing bounds them" in " ".join(report_text(doubted, 100).split())
    weaker = replace(alone, vouched_bound=answer.mix.certificate.bound / 2)
    doubted = replace(answer, mix=replace(answer.mix, certificate=weaker))
    assert "none below" in " ".join(report_text(doubted, 100).split())


def test_the_search_is_repeated_to_prove_that_there_is_nothing_cheaper():
    answer = usual(3000.0)
    assert not proved_again(answer).findings
    proof = answer.mix.certificate
    beyond = replace(proof, bound=proof.objective * 1.1, vouched_bound=proof.objective * 1.1)
    wrong = proved_again(replace(answer, mix=replace(answer.mix, certificate=beyond))).findings
    assert any(one.path[0] == "mix" for one in wrong)


def told(capsys, words):
    """What a command prints, and what it warns of."""
    main([*words.split(), "--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1"])
    return capsys.readouterr()


def test_replicas_together_are_those_of_a_plan_where_nothing_else_is_said(capsys):
    """What is usual may be said: it changes neither the answer nor its kind."""
    words = "--engine vllm --quiet --rate 8req/s --input 1500 --output 300"
    assert told(capsys, words).out == told(capsys, f"{words} --roles together").out


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--connector wire", ("--connector",)),
        ("--roles apart --connector wire", ("--roles", "--connector")),
        ("--rate 8req/s --input 1500 --output 300 --roles free --draft eagle", ("--draft",)),
        ("--rate 8req/s --input 1500 --output 300 --roles free --prefer objective", ("--prefer",)),
    ],
)
def test_what_means_nothing_of_replicas_of_several_sorts_is_named_as_it_is_typed(
    capsys, words, options
):
    said = told(capsys, f"--engine vllm {words}").err
    assert all(f"`{one}" in said for one in options)
    assert ("`--roles" in said) == ("--roles" in options)


@pytest.fixture(scope="module")
def compared():
    """Replicas in each choice of roles on one server."""
    return compare(
        [load_architecture("llama-3.1-70b")],
        [load_topology("h100-nvl8-x1")],
        ["sglang"],
        roles=("together", "apart", "free"),
        workload=Workload(n_input_tokens=1500, n_output_tokens=300),
        targets=Targets(tpot_s=0.040, ttft_s=1.0, demand_tokens_per_s=2400.0),
        confidence=0.0,
    )


def test_roles_are_compared_by_what_place_answers_for_each(compared):
    placed = {one.case.roles: one.placement for one in compared.rows}
    for roles, found in placed.items():
        again = place(
            load_topology("h100-nvl8-x1"),
            Serve(model=load_architecture("llama-3.1-70b"), demand_tokens_per_s=2400.0),
            engine="sglang",
            roles=roles,
            workload=Workload(n_input_tokens=1500, n_output_tokens=300),
            targets=Targets(tpot_s=0.040, ttft_s=1.0),
            confidence=0.0,
        )
        assert found.used("rent") == pytest.approx(again.used("rent"))
    best = compared.rows[compared.best]
    assert best.placement.used("rent") == min(one.used("rent") for one in placed.values())
    assert compared.rows[0].loss_fraction > 0.1
    assert not judge_comparison(compared)[1]


def test_a_comparison_of_roles_is_read_back_and_proved(compared):
    read = read_answer(dumps(answer_json(compared)), shown="saved").answer
    assert not judge_comparison(read)[1]
    assert not proved_again(read).findings
    text = report_text(compared, 100)
    assert "1 prefill + 1 decode" in text
    assert re.search(r"models +llama-3.1-70b \(2400 token/s", text)


def test_an_altered_comparison_of_roles_is_found(compared):
    first, *others = compared.rows
    request = replace(first.placement.request, workload=WORKLOAD)
    altered = [
        replace(first, case=replace(first.case, roles="free")),
        replace(first, case=replace(first.case, topology="h200-nvl8-x1")),
        replace(first, loss_fraction=0.0),
        replace(first, placement=replace(first.placement, request=request)),
        replace(first, placement=replace(first.placement, replicas=first.placement.replicas[1:])),
    ]
    for row in altered:
        assert judge_comparison(replace(compared, rows=(row, *others)))[1]
    assert judge_comparison(replace(compared, best=0))[1]


@pytest.fixture(scope="module")
def in_formats():
    """Replicas apart in two formats of weights, and of the cache."""
    return compare(
        [load_architecture("llama-3.1-8b")],
        [load_topology("h100-nvl8-x1")],
        ["vllm"],
        by="formats",
        weights_formats=("bf16", "fp8"),
        kv_formats=("bf16",),
        batches=(1, 8, 32),
        roles=("apart",),
        workload=WORKLOAD,
        targets=Targets(demand_tokens_per_s=500.0),
    )


def test_rows_of_replicas_are_of_the_formats_that_their_cases_say(in_formats):
    assert [(one.case.weights, one.case.kv) for one in in_formats.rows] == [
        ("bf16", "bf16"),
        ("fp8", "bf16"),
    ]
    assert not judge_comparison(in_formats)[1]
    first, second = in_formats.rows
    for field, value in (("weights", "fp8"), ("weights", ""), ("kv", "fp8")):
        row = replace(first, case=replace(first.case, **{field: value}))
        wrong = judge_comparison(replace(in_formats, rows=(row, second)))[1]
        assert [one.path for one in wrong] == [("rows", "0", "case", field)]


def test_rows_of_replicas_are_asked_alike_how_sure_they_are(in_formats):
    first, second = in_formats.rows
    request = replace(second.placement.request, confidence=0.5)
    row = replace(second, placement=replace(second.placement, request=request))
    wrong = judge_comparison(replace(in_formats, rows=(first, row)))[1]
    path = ("rows", "1", "placement", "request", "confidence")
    assert path in [one.path for one in wrong]


def test_a_row_without_replicas_says_what_is_out_of_reach():
    """Of limits how much there is; of replicas that no pool holds, why."""

    def reasons(tpot_s, demand):
        found = compare(
            [load_architecture("llama-3.1-8b")],
            [load_topology("h100-nvl8-x1")],
            ["vllm"],
            batches=(1, 8),
            roles=("together", "apart"),
            workload=WORKLOAD,
            targets=Targets(tpot_s=tpot_s, demand_tokens_per_s=demand),
        )
        return [one.reason for one in found.rows]

    for reason in reasons(0.040, 2e5):
        assert reason.startswith("demand ≥ 200000 token/s of llama-3.1-8b is out of reach: ")
    for reason in reasons(1e-6, 500.0):
        assert "no layout of one replica meets the targets" in reason


def test_roles_are_compared_of_a_demand_only():
    with pytest.raises(RequestError, match="of replicas that serve a demand"):
        compare(
            [load_architecture("llama-3.1-8b")], [load_topology("h100-nvl8-x1")], roles=("free",)
        )
