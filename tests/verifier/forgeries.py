"""Answers that a recount believes and that are false: each says that something better is not there.

Two sorts. *Looser*: a request that leaves more to choose from stands above the answer of a tighter
one, and all that follows from it is set right. *Claimed*: what only a search can say is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from planner.report.as_json import Json, answer_json
from planner.report.saved import answer_of
from planner.verifier.rules import judge_of
from tests.verifier.alterations import at
from tests.verifier.answers import envelope


def _spans(*numbers: int) -> list[list[int]]:
    """Numbers as an envelope writes them: first, last, step."""
    return [[one, one, 1] for one in numbers]


LOOSER: dict[str, tuple[str, Any]] = {
    "plan on a torus": ("request/targets/tpot_s", 0.1),
    "plan of a fleet": ("request/weights_formats", ["bf16", "fp8"]),
    "plan in stages": ("request/weights_formats", ["bf16", "int8"]),
    "plan with experts": ("request/batches", _spans(1, 8, 64, 4096)),
    "plan of an engine": ("request/targets/n_devices", None),
    "plan of an engine with drafts": ("request/batches", _spans(1, 8, 24, 64)),
    "plan of an engine among variants": ("request/batches", _spans(1, 8, 24, 64)),
    "plan of several engines": ("request/targets/tpot_s", 0.06),
    "plan by the reference model": ("request/targets/tpot_s", 0.2),
    "plan of experts by the reference model": ("request/targets/tpot_s", 0.5),
    "placement on servers": ("request/models/0/replicas", None),
    "placement on a torus": ("request/models/0/replicas", None),
    "placement of two models": ("request/batches", _spans(1, 8, 64, 256)),
    "fleet of one pool": ("request/batches", _spans(4, 64)),
    "repair on servers": ("request/wanted/batches", _spans(1, 2, 8, 64, 256)),
    "stages that decode": ("request/groups/1/n_groups", 8),
    "layers as published": ("request/layers/machines/0/count", 8),
    "experts in groups": ("request/n_groups", 0),
    "frontiers of layouts": ("answer/curves/1/frontier/request/batches", _spans(1, 8, 64, 512)),
    "frontier by the reference model": (
        "answer/curves/0/frontier/other_requests/0/batches",
        _spans(1, 8, 64, 512),
    ),
    "comparison of engines": ("answer/rows/0/plan/request/batches", _spans(1, 8, 24, 64)),
}
"""A place of a request, and a value there that leaves more to choose from."""


def looser(name: str) -> Json:
    """An answer under a request of more choices, all that a recount sees set right."""
    record = copy.deepcopy(envelope(name))
    place, value = LOOSER[name]
    *above, last = place.split("/")
    for inner in _alike(record, above):
        inner[last] = value
    changed = answer_of(record, shown="answer").answer
    judge = judge_of(type(changed))
    assert judge is not None
    return answer_json(judge(changed)[0])


def _alike(record: Json, above: list[str]) -> list[Any]:
    """The place, and the same of the other rows and runtimes that are asked alike."""
    found = [at(record, tuple(above))]
    if above[:2] == ["answer", "rows"]:
        rows = range(len(record["answer"]["rows"]))
        found = [at(record, (*above[:2], str(i), *above[3:])) for i in rows]
    if above[0] == "request":
        others = record["answer"].get("other_requests", [])
        found += [at(one, tuple(above[1:])) for one in others]
    return found


def _changed(name: str, place: str, change: Callable[[Any], Any]) -> Callable[[], Json]:
    def make() -> Json:
        record = copy.deepcopy(envelope(name))
        *above, last = place.split("/")
        inner = at(record, tuple(above))
        key: Any = int(last) if isinstance(inner, list) else last
        inner[key] = change(inner[key])
        return record

    return make


def _denied_best(name: str, *, reason: str) -> Callable[[], Json]:
    """A comparison whose best row is said to have nothing."""

    def make() -> Json:
        record = copy.deepcopy(envelope(name))
        answer = record["answer"]
        row = answer["rows"][answer["best"]]
        asked = [row["plan"]["request"]] if row["plan"] else []
        asked += row["plan"]["other_requests"] if row["plan"] else []
        asked += [row["placement"]["request"]] if row["placement"] else []
        row |= {"plan": None, "placement": None, "loss_fraction": None, "reason": reason}
        row |= {"requests": asked}
        changed = answer_of(record, shown="answer").answer
        judge = judge_of(type(changed))
        assert judge is not None
        return answer_json(judge(changed)[0])

    return make


def _denied_curve() -> Json:
    record = copy.deepcopy(envelope("frontiers of layouts"))
    curve = next(one for one in record["answer"]["curves"] if one["frontier"])
    curve |= {"reason": "HBM ≤ 85 GB is out of reach: 144 GB"}
    curve |= {"requests": [curve["frontier"]["request"]], "frontier": None}
    return record


def _without(i: int) -> Callable[[list[Any]], list[Any]]:
    return lambda values: values[:i] + values[i + 1 :]


def _times(factor: float) -> Callable[[float], float]:
    return lambda value: value * factor


def _is(value: object) -> Callable[[Any], Any]:
    return lambda _: value


_FRONTIER = "answer/curves/0/frontier"

CLAIMED: dict[str, Callable[[], Json]] = {
    "conflict: a set that is not": _changed(
        "conflict of several engines", "answer/cores", _is([["cost", "tpot"]])
    ),
    "conflict: more is reachable": _changed(
        "conflict by the reference model", "answer/obstacles/0/reachable", _times(0.9)
    ),
    "conflict: no dearer change": _changed(
        "conflict by the reference model", "answer/relaxations", _without(1)
    ),
    "conflict: a cheaper change is left out": _changed(
        "conflict of layouts", "answer/relaxations", _without(1)
    ),
    "conflict: a limit that its command has not": _changed(
        "conflict by the reference model", "answer/relaxations/0/changes/0/limit", _times(1.5)
    ),
    "conflict: another command": _changed(
        "conflict by the reference model", "answer/command", _is("plan --latency-target 1ms")
    ),
    "fleet: a replica serves more": _changed(
        "fleet of one pool", "answer/pools/0/replica_rate_per_s", _times(1.2)
    ),
    "fleet: fluid for less": _changed(
        "fleet of one pool", "answer/fluid_usd_per_hour", _times(0.5)
    ),
    "fleet: more at the same rent": _changed("fleet of one pool", "answer/most_factor", _times(2)),
    "fleet: a dearer next one": _changed(
        "fleet of one pool", "answer/alternatives/0/usd_per_hour", _times(2)
    ),
    "fleet: another next one": _changed(
        "fleet of one pool", "answer/alternatives/0/name", _is("without H100: none")
    ),
    "fleet: devices of the next one": _changed(
        "fleet of one pool", "answer/alternatives/0/n_devices", _is(7)
    ),
    "fleet: nothing else": _changed("fleet of one pool", "answer/alternatives", _without(0)),
    "staircase: words of a step": _changed(
        "fleet over traffic", "answer/steps/1/words", _is("1 × h100-sxm TP 2 for chat")
    ),
    "staircase: devices of a step": _changed(
        "fleet over traffic", "answer/steps/0/n_devices", _is(5)
    ),
    "staircase: rent of the last step": _changed(
        "fleet over traffic", "answer/steps/1/usd_per_hour", _times(1.2)
    ),
    "staircase: bound of a step": _changed(
        "fleet over traffic", "answer/steps/1/bound_usd_per_hour", _times(0.9)
    ),
    "staircase: ends early": _changed("fleet over traffic", "answer/is_whole", _is(False)),
    "staircase: a step goes further": _changed(
        "fleet over traffic", "answer/steps/1/upto_factor", _times(2)
    ),
    "comparison: the best is denied": _denied_best(
        "comparison of engines", reason="TPOT ≤ 10 ms is out of reach: 12 ms"
    ),
    "comparison: the best layouts are denied": _denied_best(
        "comparison of layouts", reason="TPOT ≤ 8 ms is out of reach: 9 ms"
    ),
    "comparison: the best roles are denied": _denied_best(
        "comparison of roles", reason="targets are out of reach"
    ),
    "comparison: denied for another reason": _changed(
        "comparison with a model denied",
        "answer/rows/0/reason",
        _is("TPOT ≤ 8 ms is out of reach: 8.1 ms"),
    ),
    "frontiers: a curve is denied": _denied_curve,
    "frontiers: a point is missing": _changed(
        "frontier by the reference model", f"{_FRONTIER}/points", _without(1)
    ),
    "frontiers: candidates": _changed(
        "frontier by the reference model", f"{_FRONTIER}/proof/n_candidates", lambda n: n + 5
    ),
    "repair: more candidates": _changed(
        "repair on servers", "certificate/n_contexts", lambda n: n + 1
    ),
    "repair: no whole frontier": _changed("repair on servers", "answer/is_whole", _is(False)),
    "plan: a limit gains more": _changed(
        "plan on a torus", "answer/limits/0/gain_fraction", _is(0.5)
    ),
    "plan: the next best is left out": _changed(
        "plan of an engine", "answer/alternatives", _without(0)
    ),
    "audit: nothing faster": _changed("audit of layouts", "answer/possible", _is(None)),
    "audit: nothing cheaper": _changed("audit of an engine", "answer/equal_speed", _is(None)),
    "audit: a change is left out": _changed("audit of layouts", "answer/changes", _without(-1)),
    "audit: a change was not tried": _changed("audit of layouts", "answer/untried", _is(["x"])),
}
"""Changes of what only a search can say, by what they claim."""

FORGERIES: dict[str, Callable[[], Json]] = {
    **{f"{name}: {LOOSER[name][0]}": (lambda name=name: looser(name)) for name in LOOSER},  # type: ignore[misc]
    **CLAIMED,
}
