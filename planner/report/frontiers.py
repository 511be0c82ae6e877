"""Frontiers for people: what was asked, the points of each curve, what proves them.

Where there are more points than one reads, the table keeps both ends, the preferred point, the
cheapest within the targets, and others at equal distances along the curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import hypot, log

from planner.report.engine_requests import engine_rows
from planner.report.launch.text import launch_text
from planner.report.lines import columns, labelled, percent, section, wrapped
from planner.report.outlines import cell, has_prefill, headline_of, run_heads
from planner.report.proof import alone, prover_rows
from planner.report.survey_words import (
    ECONOMICS_WORDS,
    at_target,
    axis_targets,
    best_text,
    case_label,
    cases_text,
    preferred_text,
    survey_title,
)
from planner.report.terminal import request_lines
from planner.report.times import times_lines
from planner.report.words import plural, target_texts
from planner.results.engines import EngineDeployment
from planner.results.surveys import OWN, Curve, Frontier
from planner.specs.engine_request import EngineRequest
from planner.specs.request import Request
from planner.specs.spans import span_text

MOST_POINTS = 20  # of all curves together
FEWEST_POINTS = 6  # of one of many

_PER_DEVICE = "tokens/s a device"
_DOES = ("TPOT", "speed", "TTFT", "cost", "rent", "tokens/s", _PER_DEVICE)
_OF_ONE_AXIS = {"rent": "rent", "throughput": "tokens/s"}
_FIRST_TO_GO = ("speed", "weights", "prefill", "TTFT", "cost")  # where a line would be too long
_PREFERRED, _CHEAPEST = "*", "o"


def frontiers_text(curves: Sequence[Curve], width: int, *, show_all: bool) -> str:
    """The whole report, in lines of at most `width` columns where points fit in that.

    Args:
        curves: at least one.
        width: columns, 60 or more.
        show_all: whether every point has its line.
    """
    cases = [curve.case for curve in curves]
    found = [curve.frontier for curve in curves if curve.frontier is not None]
    if not found:
        return "\n\n".join(
            ["no frontier", *(_missing(c, cases_text([c.case]), width) for c in curves)]
        )
    said = [*wrapped(survey_title(cases, found[0]), width), *times_lines(curves, width)]
    title = "\n".join(said)
    share = max(FEWEST_POINTS, MOST_POINTS // len(found))
    parts = [title, section("request", _request_lines(curves, found[0], width))]
    for curve in curves:
        label = case_label(curve.case, cases)
        if curve.frontier is None:
            parts.append(_missing(curve, label, width))
        else:
            most = len(curve.frontier.points) if show_all else share
            parts.append(section(label, _curve_lines(curve.frontier, width, most=most)))
    parts += [_started(curve, case_label(curve.case, cases), width) for curve in curves]
    return "\n\n".join(filter(None, parts))


def _started(curve: Curve, label: str, width: int) -> str:
    """How the preferred plan of a curve is started, if an engine serves it."""
    best = curve.frontier.best.deployment if curve.frontier else None
    if not isinstance(best, EngineDeployment):
        return ""
    return launch_text(best.launch, width, of=f"{label}: the preferred is")


def preferred_line(curve: Curve, curves: Sequence[Curve]) -> str:
    """The preferred plan of a curve, or why there is none."""
    if curve.frontier is None:
        words = f"no plan: {curve.reason}"
    else:
        best = curve.frontier.best.deployment
        words = f"{best.summary}: {headline_of(best)}"
    if len(curves) == 1:
        return words
    return f"{case_label(curve.case, [one.case for one in curves])}: {words}"


def _request_lines(curves: Sequence[Curve], first: Frontier, width: int) -> list[str]:
    """What all curves share; of a single one, everything."""
    left_out = {"objective"} if len(curves) == 1 else {"objective", "model", "pool", "weights"}
    if isinstance(first.request, EngineRequest):
        if len(curves) > 1:
            left_out |= {"engine", "formats"}
        rows = engine_rows(first.request, first.other_requests)
        return labelled([row for row in rows if row[0] not in left_out], width)
    if first.cost_model != OWN:
        return labelled(_economics_rows(first, left_out), width)
    return request_lines(first.request, width, without=left_out)


def _economics_rows(frontier: Frontier, left_out: set[str]) -> list[tuple[str, str]]:
    """What was asked of the other cost model, which knows no prefill."""
    request, counted = frontier.request, frontier.cost_model
    assert isinstance(request, Request)
    rows = [
        ("cost model", ECONOMICS_WORDS),
        ("model", request.model.title),
        ("pool", f"{request.cluster.n_devices} × {request.cluster.device.title}"),
        ("context", f"{request.workload.mean_decode_context:.0f} tokens"),
        ("targets", ", ".join(target_texts(request.targets)) or "none"),
        ("batches", span_text(request.batches)),
        ("weights", " or ".join(request.weights_formats)),
        ("memory", counted.memory),
        ("left out", "; ".join(counted.left_out)),
    ]
    return [row for row in rows if row[0] not in left_out and row[1]]


def _missing(curve: Curve, label: str, width: int) -> str:
    return section(label, wrapped(f"no plan: {curve.reason}", width - 2))


def _curve_lines(frontier: Frontier, width: int, *, most: int) -> list[str]:
    """The points that are shown, what their marks mean, and the proof."""
    shown = shown_points(frontier, most)
    marks = {frontier.preferred: _PREFERRED}
    cheapest = at_target(frontier)
    if cheapest is not None:
        marks[cheapest] = marks.get(cheapest, "") + _CHEAPEST
    legend = labelled(_legend(frontier, len(shown)), width)
    return [*_table(frontier, shown, marks, width - 2), "", *legend]


def _table(frontier: Frontier, shown: list[int], marks: Mapping[int, str], width: int) -> list[str]:
    """A line a point, with as many columns as there is room for."""
    other = set(_OF_ONE_AXIS.values()) - {_OF_ONE_AXIS.get(frontier.y_name)}
    deployments = [point.deployment for point in frontier.points]
    if not has_prefill(deployments[0]):
        other.add("TTFT")
    if frontier.y_name != "device-throughput":
        other.add(_PER_DEVICE)
    does = [head for head in _DOES if head not in other]
    heads = [*does, *run_heads(deployments, [frontier.request])]
    for spare in ("", *(head for head in _FIRST_TO_GO if head.lower() != frontier.x_name)):
        heads = [head for head in heads if head != spare]
        rows = [["", *heads]]
        for i in shown:
            rows.append([marks.get(i, ""), *(cell(head, deployments[i]) for head in heads)])
        lines = columns(rows, "<" * len(rows[0]))
        if max(map(len, lines)) <= width:
            break
    return lines


def _legend(frontier: Frontier, n_shown: int) -> list[tuple[str, str]]:
    proof = frontier.proof
    n_points, gap = len(frontier.points), max(point.gap for point in frontier.points)
    hidden = "" if n_shown == n_points else f"; {n_shown} shown, `--all` shows every one"
    rows = [
        ("points", f"{n_points}{hidden}"),
        ("*", f"{preferred_text(frontier)}: {headline_of(frontier.best.deployment)}"),
    ]
    if axis_targets(frontier):
        found = at_target(frontier)
        text = " and ".join(text for _, _, text in axis_targets(frontier))
        best = None if found is None else headline_of(frontier.points[found].deployment)
        rows.append(("o", f"{best_text(frontier)} within {text}: {best or 'no point'}"))
    if proof.status == "optimal":
        status = "optimal: no point is missing, and none is beaten"
    elif proof.status == "unconfirmed":
        status = f"bound by {alone(proof)} alone, so it is not called optimal"
    else:
        status = f"{proof.status}: time ended before the proof, a point may be {percent(gap)} off"
    solved = plural(proof.n_solved, "candidate")
    return [
        *rows,
        ("status", status),
        *prover_rows(proof),
        (
            "solved",
            f"{solved} left by the screens of {proof.n_candidates:,} in "
            f"{plural(proof.n_contexts, 'way')} to use the pool",
        ),
        ("verified", f"every point: {'; '.join(proof.verified)}"),
    ]


def shown_points(frontier: Frontier, most: int) -> list[int]:
    """Indices of at most so many points, and of those that have a mark."""
    points = frontier.points
    if len(points) <= most:
        return list(range(len(points)))
    place = [(log(point.x), log(point.y)) for point in points]
    length = [0.0]
    for (x, y), (next_x, next_y) in pairwise(place):
        length.append(length[-1] + hypot(next_x - x, next_y - y))
    marked = {0, len(points) - 1, frontier.preferred, at_target(frontier) or 0}
    n_others = max(2, most - len(marked) + 2)
    wanted = [length[-1] * i / (n_others - 1) for i in range(n_others)]
    nearest = {min(range(len(points)), key=lambda i: abs(length[i] - at)) for at in wanted}
    return sorted(marked | nearest)
