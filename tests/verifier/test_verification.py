"""`verify`: true answers pass anywhere, and no figure that is counted can be altered."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from random import Random

import pytest

from planner import verify
from planner.errors import SpecError
from planner.report.as_json import answer_json
from planner.report.saved import answer_of
from planner.specs.files import finding
from planner.verifier import loads
from planner.verifier.rules import PROVED, UNVERIFIED, judge_of
from tests.report.placements import PLACEMENT_CONFLICT
from tests.verifier.alterations import altered, at, leaves, let_through, rule_at
from tests.verifier.answers import MAKERS, answer, envelope

NAMES = list(MAKERS)
SERVED = cache(loads.load_at)


@pytest.fixture(autouse=True)
def _served_once(monkeypatch):
    """Alterations leave most stations and rates as they are: requests are served once at each."""
    monkeypatch.setattr(loads, "load_at", SERVED)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_true_in_an_empty_folder_without_a_file(name, tmp_path, monkeypatch):
    """A round trip through JSON, with no model, device or topology at hand."""

    def nothing(*_: object, **__: object) -> object:
        raise AssertionError("a file was looked for")

    text = json.dumps(envelope(name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(finding, "find", nothing)
    monkeypatch.setattr(finding, "files", nothing)
    found = verify(json.loads(text))
    assert found.falsehoods == ()
    assert found.is_as_written
    assert found.n_counted > (20 if name != "fleet over traffic" else 3)  # its steps are proved


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_that_is_counted_can_be_altered(name):
    """Numbers by a millionth and by one, words swapped, entries dropped and doubled.

    Some of them: `python -m tests.benchmarks.alterations` alters each.
    """
    record = envelope(name)
    assert let_through(record["kind"], answer(name), record, seed=7, n=10) == []


@pytest.mark.parametrize("name", [one for one in NAMES if one != "fleet over traffic"])
def test_what_nobody_can_judge_may_be_anything_and_is_said_so(name):
    record, kind = envelope(name), envelope(name)["kind"]
    from planner.report.answer_kinds import kind_named

    places = [p for p in leaves(record) if rule_at(kind_named(kind), answer(name), p) == UNVERIFIED]
    assert places or kind in ("prediction", "conflict")  # of which every word is judged
    for path in places:
        changed = altered(record, path, Random(3))
        found = verify(changed)
        assert found.is_true
        assert found.is_as_written  # it is no part of what was written


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("deployment/decode/layout", "WS 1D"),
        ("deployment/decode/attention", "heads"),
        ("deployment/weights_format", "bf16"),
        ("deployment/kv_format", "int8"),
        ("deployment/storage", "E_xy F_z"),
        ("deployment/mesh/label", "4×4×8"),
        ("deployment/mesh/n_devices", 32),
        ("deployment/mesh/n_stages", 2),
        ("deployment/mesh/axes_wrap", [False, False, False]),
        ("deployment/usd_per_hour", 100.0),
        ("deployment/request_s", 0.1),
        ("deployment/prefill_usd_per_token", 1e-6),
        ("deployment/memory/capacity_bytes", 64e9),
        ("deployment/memory/reserve_bytes", 0.0),
        ("deployment/n_replicas", 2),
        ("deployment/summary", "64 devices"),
        ("deployment/decode/gathered_axes", "x"),
        ("deployment/variant", "llama-3-8b"),
    ],
)
def test_what_a_user_reads_of_a_plan_is_judged(place, value):
    record = copy.deepcopy(envelope("plan on a torus"))
    *above, last = place.split("/")
    inner = at(record["answer"], tuple(above))
    assert inner[last] != value
    inner[last] = value
    found = verify(record)
    assert not found.is_true
    assert not found.is_as_written


@pytest.mark.parametrize(("name", "value"), [("sort_price", 0.01), ("given_up_for", "fewer nodes")])
@pytest.mark.parametrize("answered", ["plan on a torus", "stages that decode"])
def test_replicas_of_one_sort_have_no_price_of_sorts(answered, name, value):
    record = copy.deepcopy(envelope(answered))
    record["certificate"][name] = value
    (told,) = verify(record).falsehoods
    assert told.pointer == f"/certificate/{name}"


def test_what_stands_beside_an_answer_and_is_emptied_is_noted():
    """Neither is a figure that is counted: nothing is refuted, and nothing passes unseen."""
    record = envelope("plan of several engines")
    here = {"kind": "model", "name": "a", "path": "a", "sha256": "", "is_shipped": True}
    whole = record | {"data": [here | {"replaces": ""}]}
    assert whole["times"]
    assert not re.findall("`times`|`data`", " ".join(verify(whole).notes))
    emptied = verify(whole | {"times": [], "data": []})
    assert re.findall("`times`|`data`", " ".join(emptied.notes)) == ["`times`", "`data`"]
    assert emptied.is_true


def test_another_answer_that_is_true_passes_and_is_said_to_be_another():
    record = copy.deepcopy(envelope("plan on a torus"))
    record["answer"]["alternatives"].pop()
    found = verify(record)
    assert found.is_true
    assert not found.is_as_written


def test_all_that_is_false_is_told_and_not_the_first_alone():
    record = copy.deepcopy(envelope("placement on servers"))
    record["answer"]["replicas"][0]["ranks"][0]["device"] = "node1/gpu0"
    record["answer"]["served"][0]["usd_per_hour"] *= 2
    record["certificate"]["dimension"] = "s"
    found = {one.pointer: one for one in verify(record).falsehoods}
    assert found["/answer/replicas/0/ranks/0/device"].fact == "is not free"
    assert {"/answer/served/0/usd_per_hour", "/certificate/dimension"} <= found.keys()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("certificate/bound", 1e-9, None),
        ("certificate/n_contexts", 1, "/certificate/n_contexts"),
        ("request/targets/tpot_s", 0.1, "/certificate/bound"),
        ("answer/limits/0/gain_fraction", 0.5, "/answer/limits/0/gain_fraction"),
    ],
)
def test_a_new_search_judges_what_a_recount_cannot(place, value, said):
    """A bound that is too weak is a bound; what is proved of other targets is not."""
    record = copy.deepcopy(envelope("plan on a torus"))
    *above, last = place.split("/")
    at(record, tuple(above))[last] = value
    if last == "bound":
        record["certificate"]["gap"] = 1 - value / record["certificate"]["objective"]
        record["certificate"]["status"] = "feasible"
        record["certificate"] |= {"vouched_by": [], "vouched_bound": None}
    if last == "tpot_s":
        record["answer"]["limits"][0]["limit"] = value
    assert verify(record).is_true
    found = {one.pointer for one in verify(record, prove=True).falsehoods}
    assert found == ({said} if said else set()) or said in found


def test_a_bound_that_is_beaten_is_none():
    """Of the plan with the tightest target only: the claim that nothing is cheaper than it."""
    record = copy.deepcopy(envelope("plan on a torus"))
    other = record["answer"]["alternatives"][0]
    record["answer"]["deployment"] = other["deployment"]
    record["answer"]["alternatives"] = []
    claimed = dict.fromkeys(("objective", "bound", "vouched_bound"), other["objective"])
    record["certificate"] |= claimed
    for use in record["answer"]["limits"]:
        use["used"] = {
            "tpot": other["deployment"]["tpot_s"],
            "devices": other["deployment"]["n_devices"],
            "batch": other["deployment"]["decode"]["batch"],
            "hbm": other["deployment"]["memory"]["used_bytes"],
        }[use["name"]]
    record["certificate"]["proofs"] = [
        one | {"bound": other["objective"]} for one in record["certificate"]["proofs"]
    ]
    assert verify(record).is_true  # a recount cannot know
    found = verify(record, prove=True)
    assert "/certificate/bound" in {one.pointer for one in found.falsehoods}


@pytest.mark.parametrize("name", NAMES)
def test_a_search_again_of_what_holds_finds_nothing(name):
    found = verify(envelope(name), prove=True)
    assert found.falsehoods == ()
    assert found.proofs
    mixless = name == "plan of a fleet"  # of a demand, and of prompts that are read by a policy
    assert [one.partition(":")[0] for one in found.taken] == ["no mix"] * mixless


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("plan of a fleet", "weights_formats", ["bf16", "fp8"]),
        ("placement on servers", "models/0/replicas", None),
        ("placement on a torus", "models/0/replicas", None),
        ("stages that decode", "groups/1/n_groups", 8),
        ("layers as published", "layers/machines/0/count", 8),
        ("experts in groups", "n_groups", 0),
    ],
)
def test_what_is_the_best_of_another_request_is_not_called_so(name, place, value):
    """All that follows from the altered request is set right: only a search can tell."""
    record = copy.deepcopy(envelope(name))
    *above, last = place.split("/")
    at(record["request"], tuple(above))[last] = value
    changed = answer_of(record, shown="answer").answer
    judge = judge_of(type(changed))
    truth, _ = judge(changed)
    assert verify(truth).is_true
    found = {one.pointer for one in verify(truth, prove=True).falsehoods}
    assert found & {"/certificate/bound", "/certificate/status"}


def test_a_frontier_of_a_repair_is_searched_again():
    record = copy.deepcopy(envelope("repair on servers"))
    record["answer"]["is_whole"] = False
    record["certificate"]["n_contexts"] += 1
    assert verify(record).is_true  # a recount cannot know
    found = {one.pointer for one in verify(record, prove=True).falsehoods}
    assert found == {"/answer/is_whole", "/certificate/n_contexts"}


def test_a_kind_that_cannot_be_judged_yet_is_refused_with_those_that_can():
    with pytest.raises(SpecError, match=r"cannot be verified: plan, placement"):
        verify(answer_json(PLACEMENT_CONFLICT))


def test_a_request_that_makes_no_sense_is_refused_and_never_a_traceback():
    for place in (
        "model/d_model",
        "model/n_layers",
        "cluster/usd_per_hour",
        "cluster/device/hbm_bytes",
    ):
        record = copy.deepcopy(envelope("plan on a torus"))
        *above, last = place.split("/")
        at(record["request"], tuple(above))[last] = 0
        assert _is_told(record)


def _is_told(record):
    """Whether the request is refused with a pointer into it, or the answer called false."""
    try:
        return not verify(record).is_true
    except SpecError as refused:
        return "/request" in str(refused)


def test_what_is_taken_and_what_is_unverified_is_named():
    found = verify(envelope("plan on a torus"))
    assert {"bound", "gain_fraction"} <= {*found.taken}
    searches = {"n_programs", "n_branches", "note", "program"}
    assert {*found.unverified} == {"wall_s", "solve_s", *searches}
    assert found.n_taken > 0
    assert PROVED == "proved"


def test_a_file_that_is_another_here_is_noted_and_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("a = 1")
    ours = {"kind": "model", "name": "llama-3-8b", "replaces": "", "is_shipped": True}
    ours |= {"path": "models/llama-3-8b.toml", "sha256": "0" * 64}
    theirs = {**ours, "path": "mine.toml", "is_shipped": False}
    gone = {**theirs, "path": "gone.toml"}
    odd = {**ours, "path": "models/../pyproject.toml"}
    record = {**envelope("plan on a torus"), "data": [ours, theirs, gone, odd]}
    found = verify(record)
    assert found.is_true
    assert found.notes == (
        "the model in `models/llama-3-8b.toml` here is not the one of the answer",
        "the model in `mine.toml` here is not the one of the answer",
    )


@pytest.mark.parametrize("what", [None, 3, b"{}", [1]])
def test_what_is_no_answer_is_refused_by_its_type(what):
    with pytest.raises(SpecError, match=f"`{type(what).__name__}`.*is no path"):
        verify(what)


@pytest.mark.parametrize(
    ("model", "is_true"),
    [("./config.json", True), ("folder/of/it", True), ("mine.toml", True), ("llama-3-8b", False)],
)
def test_a_command_may_name_the_file_of_its_model(model, is_true):
    """As whoever asked named it; another name is another model."""
    record = copy.deepcopy(envelope("plan of an engine"))
    one = record["answer"]["deployment"]
    assert " --model llama-3.1-70b " in one["command"]
    one["command"] = one["command"].replace("--model llama-3.1-70b", f"--model {model}")
    assert verify(record).is_true == is_true
    one["command"] = one["command"].replace("--tp", "--pp")
    assert not verify(record).is_true
