"""A placement as one page of HTML that needs nothing else: drawing, replicas, ranks, proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.report.floorplan_drawing import drawing
from planner.report.launch.text import launch_texts
from planner.report.markup import escape
from planner.report.page import document
from planner.report.placement import placement_line
from planner.report.proof import certificate_lines
from planner.report.words import plural
from planner.results.floorplans import FloorPlan
from planner.results.placements import Placement, Replica
from planner.units import show

PROOF_WIDTH = 110


def placement_page(placement: Placement, floorplan: FloorPlan) -> str:
    """The whole page."""
    line = placement_line(placement)
    proof = "\n".join(certificate_lines(placement.certificate, PROOF_WIDTH))
    starts = list(launch_texts(placement.recipes, PROOF_WIDTH))
    body = (
        f"<h1>{escape(placement.title)}</h1>",
        f"<p>{escape(line)}</p>",
        f'<div class="scroll">{drawing(placement, floorplan)}</div>',
        "<h2>Models</h2>",
        *_models(placement),
        "<h2>Replicas</h2>",
        *_replicas(placement),
        "<h2>Proof</h2>",
        f"<pre>{escape(proof)}</pre>",
        "<h2>Start</h2>" if starts else "",
        *(f"<pre>{escape(one)}</pre>" for one in starts),
        *(part for replica in placement.replicas for part in _ranks(replica)),
    )
    return document(f"{placement.title}: {line}", body)


def _models(placement: Placement) -> Iterable[str]:
    rows = [("model", "replicas", "devices", "output", "demand", "rent")]
    rows += [
        (
            one.model,
            str(one.n_replicas),
            str(one.n_devices),
            show(one.output_tokens_per_s, "token/s"),
            "–" if one.demand_tokens_per_s is None else show(one.demand_tokens_per_s, "token/s"),
            show(one.usd_per_hour, "USD/h"),
        )
        for one in placement.served
    ]
    return _table(rows)


def _replicas(placement: Placement) -> Iterable[str]:
    rows = [("replica", "mesh", "devices", "where", "narrowest link", "TPOT", "output")]
    for one in placement.replicas:
        recipe = placement.recipes[one.recipe]
        narrowest = min(one.channels, key=lambda channel: channel.bytes_per_s, default=None)
        link = "–"
        if narrowest is not None:
            width = show(narrowest.bytes_per_s, "B/s")
            link = f"{' – '.join(narrowest.link)}, {width}, {narrowest.axis}"
        rows.append(
            (
                one.name,
                recipe.label or "one device",
                str(len(one.ranks)),
                _where(one),
                link,
                show(recipe.tpot_s, "s"),
                show(recipe.deployment.output_tokens_per_s, "token/s"),
            )
        )
    return _table(rows)


def _where(replica: Replica) -> str:
    if replica.nodes:
        first = ", ".join(replica.nodes[:4])
        n_more = len(replica.nodes) - 4
        return first + (f" and {n_more} more" if n_more > 0 else "")
    return f"{replica.ranks[0].device} … {replica.ranks[-1].device}"


def _ranks(replica: Replica) -> Iterable[str]:
    """Every rank and its device, in a list that opens."""
    counted = f"{replica.name}: {plural(len(replica.ranks), 'rank')}"
    yield f"<details><summary>{escape(counted)}</summary>"
    texts = (f"{rank.rank} {rank.device}" for rank in replica.ranks)
    yield f"<p>{escape('; '.join(texts))}</p></details>"


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    yield '<div class="scroll"><table>'
    for i, row in enumerate(rows):
        tag = "th" if i == 0 else "td"
        yield "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
    yield "</table></div>"
