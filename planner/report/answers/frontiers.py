"""Frontiers for people: what was asked, the points of each curve, what proves them.

Where there are more points than one reads, the table keeps both ends, the preferred point, the
cheapest within the targets, and others at equal distances along the curve.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import hypot, log
from operator import attrgetter
from typing import Any

from planner.report.answers import layouts
from planner.report.answers.plan_parts import start_section
from planner.report.documents import blocks
from planner.report.drawings.chart import Line, frontiers_drawing
from planner.report.engine_requests import engine_rows
from planner.report.outlines import (
    ECONOMICS_WORDS,
    at_target,
    axis_targets,
    best_text,
    case_label,
    cases_text,
    cell,
    ends_text,
    has_prefill,
    headline_of,
    preferred_text,
    run_heads,
    survey_title,
)
from planner.report.proof import frontier_rows
from planner.report.words import plural, target_texts
from planner.results.engines import EngineDeployment
from planner.results.predictions import Launch
from planner.results.surveys import OWN, Curve, Curves, Frontier
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.options.counts import span_text

MOST_POINTS = 20  # of all curves together
FEWEST_POINTS = 6  # of one of many
MOST_PREFERRED = 4  # of all curves, on the first screen

_PER_DEVICE = "tokens/s a device"
_DOES = ("TPOT", "speed", "TTFT", "cost", "rent", "tokens/s", _PER_DEVICE)
_OF_ONE_AXIS = {"rent": "rent", "throughput": "tokens/s", "device-throughput": _PER_DEVICE}
_FIRST_TO_GO = ("speed", "weights", "prefill", "TTFT", "cost")  # where a line would be too long
_PREFERRED, _CHEAPEST = "*", "o"


def document(answer: Curves, *, is_whole: bool = False) -> blocks.Document:
    """What was asked, the points of each curve, what proves them.

    Args:
        answer: at least one curve.
        is_whole: whether text has a line for every point.
    """
    curves = answer.curves
    cases = [curve.case for curve in curves]
    labels = [case_label(one, cases) for one in cases]
    pairs = zip(labels, (curve.frontier for curve in curves), strict=True)
    lines = [Line(label=label, frontier=one) for label, one in pairs if one is not None]
    head = survey_title(cases, lines[0].frontier) if lines else "no frontier"
    share = max(FEWEST_POINTS, MOST_POINTS // max(1, len(lines)))
    drawing = blocks.Drawing(svg=partial(frontiers_drawing, lines))
    return blocks.Document(
        title=head if lines else cases_text(cases),
        line=line_of(answer),
        head=(blocks.Note(head), *blocks.notes(_preferred(answer))),
        sections=(
            blocks.section("request", blocks.Pairs(_request_rows(lines))),
            blocks.section("frontiers", *([drawing] if lines else [])),
            *(
                blocks.section(label, *_curve(curve, sys.maxsize if is_whole else share))
                for label, curve in zip(labels, curves, strict=True)
            ),
            *_certificates(lines),
            start_section(*_starts(lines)),
        ),
        data=partial(points_data, curves),
    )


def _preferred(answer: Curves) -> Iterator[str]:
    """The preferred of each curve, and of a single one both ends too."""
    for curve in answer.curves[:MOST_PREFERRED]:
        yield f"preferred: {preferred_line(curve, answer.curves)}"
    if len(answer.curves) > MOST_PREFERRED:
        yield f"and {len(answer.curves) - MOST_PREFERRED} more, below"
    elif len(answer.curves) == 1 and (frontier := answer.curves[0].frontier):
        yield f"{plural(len(frontier.points), 'point')} from {ends_text(frontier)}"


def _certificates(lines: Sequence[Line]) -> Iterator[blocks.Section]:
    for line in lines:
        of = f" of {line.label}" * (len(lines) > 1)
        yield blocks.section(f"certificate{of}", blocks.Pairs(frontier_rows(line.frontier)))


def _starts(lines: Sequence[Line]) -> Iterator[tuple[Launch | None, str]]:
    """What starts the preferred plan of each curve, if an engine serves it."""
    for line in lines:
        if isinstance(best := line.frontier.best.deployment, EngineDeployment):
            yield best.launch, f"{line.label}: the preferred is"


def line_of(answer: Curves) -> str:
    return "\n".join(preferred_line(one, answer.curves) for one in answer.curves)


def preferred_line(curve: Curve, curves: Sequence[Curve]) -> str:
    """The preferred plan of a curve, or why there is none."""
    words = f"no plan: {curve.reason}"
    if curve.frontier is not None:
        best = curve.frontier.best.deployment
        words = f"{best.summary}: {headline_of(best)}"
    if len(curves) == 1:
        return words
    return f"{case_label(curve.case, [one.case for one in curves])}: {words}"


def _request_rows(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """What all curves share; of a single one, everything."""
    if not lines:
        return []
    first, left_out = lines[0].frontier, {"objective"}
    if len(lines) > 1:
        left_out |= {"model", "pool", "weights"}
    if isinstance(first.request, EngineRequest):
        rows = engine_rows(first.request, first.other_requests)
        left_out |= {"engine", "formats"} if len(lines) > 1 else set()
    elif first.cost_model != OWN:
        rows = _economics_rows(first)
    else:
        rows = layouts.request_rows(first.request)
    return [row for row in rows if row[0] not in left_out]


def _economics_rows(frontier: Frontier) -> list[tuple[str, str]]:
    """What was asked of the other cost model, which knows no prefill."""
    request, counted = frontier.request, frontier.cost_model
    assert isinstance(request, Request)
    return [
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


def _curve(curve: Curve, most: int) -> list[blocks.Block]:
    """The points, of which text shows so many, what their marks mean, and the proof."""
    frontier = curve.frontier
    if frontier is None:
        return [blocks.Note(f"no plan: {curve.reason}")]
    shown, points = shown_points(frontier, most), frontier.points
    marks = {frontier.preferred: _PREFERRED}
    cheapest = at_target(frontier)
    if cheapest is not None:
        marks[cheapest] = marks.get(cheapest, "") + _CHEAPEST
    other = set(_OF_ONE_AXIS.values()) - {_OF_ONE_AXIS.get(frontier.y_name)}
    deployments = [point.deployment for point in points]
    if not has_prefill(deployments[0]):
        other.add("TTFT")
    heads = [head for head in _DOES if head not in other]
    heads += run_heads(deployments, [frontier.request])
    table = blocks.Table(
        heads=["", *heads],
        rows=[
            [marks.get(i, ""), *(cell(head, best) for head in heads)]
            for i, best in enumerate(deployments)
        ],
        listed=shown,
        more="`--all` shows every one",
        spare=[head for head in _FIRST_TO_GO if head.lower() != frontier.x_name],
        marked=sorted(marks),
        sorts=True,
        caption=f"all {plural(len(points), 'point')}",
    )
    return [table, blocks.Note(), blocks.Pairs(_legend(frontier))]


def _legend(frontier: Frontier) -> list[tuple[str, str]]:
    rows = [
        ("points", f"{len(frontier.points)}"),
        ("*", f"{preferred_text(frontier)}: {headline_of(frontier.best.deployment)}"),
    ]
    if axis_targets(frontier):
        index = at_target(frontier)
        text = " and ".join(text for _, _, text in axis_targets(frontier))
        best = None if index is None else headline_of(frontier.points[index].deployment)
        rows.append(("o", f"{best_text(frontier)} within {text}: {best or 'no point'}"))
    return rows


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


def _keys(text: str) -> dict[str, str]:
    """Keys of columns, and where in a deployment their values are, if not under their names."""
    pairs = (word.partition("=") for word in text.split())
    return {key: path or key for key, _, path in pairs}


_COSTS = "usd_per_token usd_per_hour output_tokens_per_s"
_OF_LAYOUTS = _keys(
    f"tpot_s user_tokens_per_s ttft_s {_COSTS} n_devices mesh=mesh.label weights_format kv_format "
    "storage prefill_batch=prefill.batch prefill_layout=prefill.layout "
    "prefill_attention=prefill.attention prefill_microbatches=prefill.n_microbatches "
    "decode_batch=decode.batch decode_layout=decode.layout decode_attention=decode.attention "
    "decode_microbatches=decode.n_microbatches n_drafted=draft.n_drafted "
    "used_bytes=memory.used_bytes"
)
_OF_ECONOMICS = _keys(
    f"tpot_s user_tokens_per_s {_COSTS} n_devices n_stages=layout.n_stages "
    "n_tensor=layout.n_tensor n_expert=layout.n_expert n_attention=layout.n_attention "
    "weights_format batch n_drafted=draft.n_drafted used_bytes"
)
_OF_ENGINES = _keys(
    f"tpot_s=planned_tpot_s user_tokens_per_s ttft_s=planned_ttft_s {_COSTS} device_tokens_per_s "
    "n_devices served_model=model n_tensor n_data n_stages n_expert_parallel weights_format "
    "kv_format batch chunk_tokens overlap n_drafted used_bytes"
)
_OF_POINTS = ("x", "y", "bound", "gap")


def points_data(curves: Sequence[Curve]) -> blocks.Data:
    """All points of all curves; a curve without points has no row."""
    frontiers = [(curve, curve.frontier) for curve in curves if curve.frontier is not None]
    own = all(frontier.cost_model == OWN for _, frontier in frontiers)
    served = any(isinstance(frontier.request, EngineRequest) for _, frontier in frontiers)
    keys = _OF_ENGINES if served else _OF_LAYOUTS if own else _OF_ECONOMICS
    known = ("model", "topology", "weights", "x_name", "y_name", "status", "preferred")
    heads = ("engine",) * served + known + (*keys, *_OF_POINTS, "meets_targets")
    rows = (row for curve, frontier in frontiers for row in _rows(curve, frontier, keys))
    return heads, rows


def _rows(curve: Curve, frontier: Frontier, keys: dict[str, str]) -> list[list[object]]:
    case, request = curve.case, frontier.request
    engine = []
    if isinstance(request, EngineRequest):
        formats, engine = tuple(one.weights for one in request.formats), [case.engine]
    else:
        formats = request.weights_formats
    weights = case.weights or ",".join(dict.fromkeys(formats))
    known = [*engine, case.model, case.topology, weights, frontier.x_name, frontier.y_name]
    return [
        [
            *(*known, frontier.proof.status, int(i == frontier.preferred)),
            *(_value(point.deployment, keys, key) for key in keys),
            *(getattr(point, name) for name in _OF_POINTS),
            int(point.meets_targets),
        ]
        for i, point in enumerate(frontier.points)
    ]


def _value(best: Any, keys: dict[str, str], key: str) -> object:  # noqa: ANN401
    if key == "user_tokens_per_s":
        return 1 / attrgetter(keys["tpot_s"])(best)
    if key == "n_drafted" and getattr(best, "draft", True) is None:
        return 0
    return attrgetter(keys[key])(best)
