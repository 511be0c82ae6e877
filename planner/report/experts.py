"""A placement of experts for people: the fullest rank before and after, its bound, the ranks."""

from __future__ import annotations

from planner.report.lines import bar, columns, labelled, percent, section, wrapped
from planner.report.proof import prover_rows
from planner.report.proof import status_text as proof_status
from planner.report.words import plural
from planner.results.experts import ExpertPlan, ExpertRank
from planner.specs.certificates import UNCONFIRMED
from planner.units import show

_BAR = 20
_MOST_SHOWN = 16
_NO_GAP = 1e-8  # bounds are lowered by what solvers tolerate
_PROOFS = {
    "mean": "the mean load of a rank",
    "copies": "copies that busy experts need, and slots there are",
    "patterns": "a linear program over what a rank may hold",
    "pairs": "no pairs of copies are within less, in integers",
    "search": "the whole program in integers, searched",
    "groups": "every way to deal groups to nodes",
}
"""What gives a bound, in words."""


def experts_line(plan: ExpertPlan) -> str:
    """The placement in one line."""
    return f"{_place(plan)}: {_headline(plan)}"


def experts_text(plan: ExpertPlan, width: int, *, show_all: bool = False) -> str:
    """The whole report, in lines of at most `width` columns.

    Args:
        plan: to report.
        width: columns, 60 or more.
        show_all: every rank, not only the fullest and the emptiest.
    """
    sections = (
        "\n".join([*wrapped(_place(plan), width), *wrapped(_headline(plan), width)]),
        section("request", labelled(_request_rows(plan), width)),
        section("fullest rank over the mean", _balance_lines(plan)),
        section("experts with most copies", _copy_lines(plan, width)),
        section(_ranks_title(plan, show_all), _rank_lines(plan, width, show_all)),
        section("certificate", labelled(_proof_rows(plan), width)),
    )
    return "\n\n".join(filter(None, sections))


def status_text(plan: ExpertPlan) -> str:
    """How good the placement is, in words."""
    found = plan.certificate
    if plan.is_proven and found.gap <= _NO_GAP:
        return "optimal: no placement is better"
    if plan.is_proven:
        return f"optimal within {percent(found.gap)}, as the gap allows"
    if found.status == UNCONFIRMED:
        return proof_status(found)
    ended = "the time limit ended the search" if plan.is_cut_short else "the search ended"
    return f"within {percent(found.gap)} of the best: {ended}"


def _place(plan: ExpertPlan) -> str:
    asked = plan.request
    nodes = f" on {asked.n_nodes} nodes" if asked.n_nodes > 1 else ""
    return (
        f"{asked.n_experts} experts in {sum(plan.n_copies)} of {asked.n_ranks} × {asked.n_slots} "
        f"slots{nodes}"
    )


def _headline(plan: ExpertPlan) -> str:
    mean = plan.mean_load
    head = f"fullest rank {plan.imbalance:.4g} × the mean"
    if plan.n_moves is not None:
        head += f", {plural(plan.n_moves, 'copy moves', 'copies move')}"
    if plan.request.move_price:
        head += f", with their price {plan.certificate.objective / mean:.4g}"
    bound, greedy = plan.certificate.bound / mean, plan.greedy.max_load / mean
    return f"{head}, bound {bound:.4g}, greedy {greedy:.4g}"


def _request_rows(plan: ExpertPlan) -> list[tuple[str, str]]:
    asked = plan.request
    size = "" if asked.weights.n_bytes is None else f", {show(asked.weights.n_bytes, 'B')} each"
    model = f"{asked.weights.model}, " if asked.weights.model else ""
    split = {"equal": "copies share a load equally", "weighted": "the router chooses shares"}
    price = f"{percent(asked.move_price)} of the mean load a copy" if asked.move_price else ""
    groups = f"{asked.n_groups}, each on one node" if asked.n_groups else ""
    return [
        ("experts", f"{model}{asked.n_experts}{size}"),
        ("loads", asked.weights.source),
        ("ranks", f"{asked.n_ranks} of {plural(asked.n_slots, 'slot')}"),
        ("groups", groups),
        ("split", split[asked.split]),
        ("moves cost", price),
    ]


def _balance_lines(plan: ExpertPlan) -> list[str]:
    """The bound, this placement and what it is compared with, each as a bar."""
    mean = plan.mean_load
    rows: list[tuple[str, float | None, float | None]] = [
        ("bound", None if plan.request.move_price else plan.certificate.bound, None),
        ("this plan", plan.max_load, plan.traffic),
        ("greedy", plan.greedy.max_load, plan.greedy.traffic),
    ]
    if plan.present is not None:
        rows.append(("present", plan.present.max_load, plan.present.traffic))
    top = max(value for _, value, _ in rows if value is not None)
    cells = [("", "", "", "pairs apart" if plan.traffic is not None else "")]
    for name, value, apart in rows:
        if value is not None:
            between = "" if apart is None else percent(apart / (plan.traffic_all or 1.0))
            cells.append((name, f"{value / mean:.4f}", bar(value / top, _BAR), between))
    return columns(cells if plan.traffic is not None else cells[1:], "<><>")


def _copy_lines(plan: ExpertPlan, width: int) -> list[str]:
    """Copies and load of the busiest experts."""
    asked = plan.request
    order = sorted(range(asked.n_experts), key=lambda e: (-plan.n_copies[e], -asked.loads[e]))
    total = sum(asked.loads)
    busiest = [e for e in order if plan.n_copies[e] > 1][:8]
    words = (f"{e}: {plan.n_copies[e]} for {percent(asked.loads[e] / total)}" for e in busiest)
    return wrapped("; ".join(words), width - 2) if busiest else []


def _ranks_title(plan: ExpertPlan, show_all: bool) -> str:
    asked = plan.request
    if show_all or asked.n_ranks <= _MOST_SHOWN:
        return "ranks"
    return f"fullest and emptiest of {asked.n_ranks} ranks"


def _rank_lines(plan: ExpertPlan, width: int, show_all: bool) -> list[str]:
    """Each rank: its load after and before, as bars, and what it holds."""
    asked = plan.request
    shown = list(range(asked.n_ranks))
    if not show_all and asked.n_ranks > _MOST_SHOWN:
        order = sorted(shown, key=lambda g: -plan.ranks[g].load)
        half = _MOST_SHOWN // 2
        shown = sorted({*order[:half], *order[-half:]})
    top = max(max(rank.load, rank.load_before) for rank in plan.ranks)
    heads = [("rank", "node", "load", plan.before, "", "experts")]
    rows = heads + [_rank_cells(plan, g, top) for g in shown]
    align = ">>>><<"
    if asked.n_nodes == 1:
        rows, align = [(row[0], *row[2:]) for row in rows], ">>><<"
    figures = columns([row[:-1] for row in rows], align)
    size = max(map(len, figures)) + 2
    lines = []
    for figure, row in zip(figures, rows, strict=True):
        first, *rest = wrapped(row[-1], max(20, width - size - 2))
        lines += [f"{figure:<{size}}{first}", *(" " * size + line for line in rest)]
    return lines


def _rank_cells(plan: ExpertPlan, g: int, top: float) -> tuple[str, ...]:
    rank = plan.ranks[g]
    after, before = rank.load / plan.mean_load, rank.load_before / plan.mean_load
    return (
        str(g),
        str(rank.node),
        f"{after:.4f}",
        f"{before:.4f}",
        bar(rank.load / top, _BAR // 2),
        experts_of(rank, plan),
    )


def experts_of(rank: ExpertRank, plan: ExpertPlan) -> str:
    """What a rank holds; with weighted shares, the share of the load it serves of each."""
    if plan.request.split == "equal":
        return " ".join(map(str, rank.experts))
    pairs = zip(rank.experts, rank.shares, strict=True)
    return " ".join(f"{e}" if s >= 1 - 1e-9 else f"{e}:{s:.2f}" for e, s in pairs)


def _proof_rows(plan: ExpertPlan) -> list[tuple[str, str]]:
    mean = plan.mean_load
    price = ", the price of moves included" if plan.request.move_price else ""
    return [
        ("status", status_text(plan)),
        ("bound", f"{plan.certificate.bound / mean:.5f} of the mean{price}: {_PROOFS[plan.proof]}"),
        ("greedy", _against(plan)),
        ("traffic", _traffic_text(plan)),
        ("moves", _moves_text(plan)),
        *prover_rows(plan.certificate),
        ("verified", "; ".join(plan.certificate.verified)),
    ]


def _against(plan: ExpertPlan) -> str:
    if abs(plan.gain_fraction) <= 1e-9:
        return "the greedy balancer's fullest rank has as much"
    if plan.gain_fraction < 0.0:
        more = percent(-plan.gain_fraction)
        return f"the fullest rank has {more} more than the greedy balancer's, for fewer moves"
    return f"the fullest rank has {percent(plan.gain_fraction)} less than the greedy balancer's"


def _traffic_text(plan: ExpertPlan) -> str:
    if plan.traffic is None or not plan.traffic_all:
        return ""
    apart = percent(plan.traffic / plan.traffic_all)
    return f"{apart} of co-activated pairs are on two nodes; improved, no bound is claimed"


def _moves_text(plan: ExpertPlan) -> str:
    if plan.n_moves is None:
        return ""
    moved = "" if plan.moved_bytes is None else f", {show(plan.moved_bytes, 'B')} of each layer"
    return f"{plural(plan.n_moves, 'copy', 'copies')} of {sum(plan.n_copies)}{moved}"
