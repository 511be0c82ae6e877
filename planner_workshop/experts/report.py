"""A placement of experts for people: the fullest rank before and after, its bound, the ranks."""

from collections.abc import Mapping, Sequence
from functools import partial

from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.documents import blocks
from planner.report.proof import prover_rows, status_text as proof_status
from planner.report.words import percent, plural
from planner.results.experts import ExpertPlan, ExpertRank
from planner.specs.records.certificates import UNCONFIRMED
from planner_workshop.drawings import experts_drawing

_MOST_SHOWN = 16
_NO_GAP = 1e-8  # bounds are lowered by what solvers tolerate
_PROOFS: Mapping[str, str] = packaged_table("report/words.toml")["bounds"]
"""What gives a bound, in words."""


def line_of(plan: ExpertPlan) -> str:
    return f"{_place(plan)}: {_headline(plan)}"


def document(plan: ExpertPlan, *, is_whole: bool = False) -> blocks.Document:
    """The fullest rank before and after, its bound, and what each rank holds.

    Args:
        is_whole: whether text lists every rank, not only the fullest and the emptiest.
    """
    request = plan.request
    shown = range(request.n_ranks) if is_whole else _shown(plan)
    few = f"fullest and emptiest of {request.n_ranks} ranks"
    return blocks.Document(
        title=f"{request.n_experts} experts on {request.n_ranks} ranks",
        line=line_of(plan),
        head=(blocks.Note(_place(plan)), blocks.Note(_headline(plan))),
        sections=(
            blocks.section("request", blocks.Pairs(_request_rows(plan))),
            blocks.section("fullest rank over the mean", _balance(plan)),
            blocks.section("experts with most copies", *blocks.notes(_copies(plan))),
            blocks.section("ranks" if len(shown) == request.n_ranks else few, *_ranks(plan, shown)),
            blocks.section("certificate", blocks.Pairs(_proof_rows(plan))),
        ),
    )


def status_text(plan: ExpertPlan) -> str:
    """How good the placement is, in words."""
    certificate = plan.certificate
    if plan.is_proven and certificate.gap <= _NO_GAP:
        return "optimal: no placement is better"
    if plan.is_proven:
        return f"optimal within {percent(certificate.gap)}, as the gap allows"
    if certificate.status == UNCONFIRMED:
        return proof_status(certificate)
    ended = "the time limit ended the search" if plan.is_cut_short else "the search ended"
    return f"within {percent(certificate.gap)} of the best: {ended}"


def _place(plan: ExpertPlan) -> str:
    request = plan.request
    nodes = f" on {request.n_nodes} nodes" if request.n_nodes > 1 else ""
    return (
        f"{request.n_experts} experts in {sum(plan.n_copies)} of {request.n_ranks} × "
        f"{request.n_slots} slots{nodes}"
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
    request = plan.request
    size = "" if request.weights.n_bytes is None else f", {show(request.weights.n_bytes, 'B')} each"
    model = f"{request.weights.model}, " if request.weights.model else ""
    split = {"equal": "copies share a load equally", "weighted": "the router chooses shares"}
    price = f"{percent(request.move_price)} of the mean load a copy" if request.move_price else ""
    groups = f"{request.n_groups}, each on one node" if request.n_groups else ""
    return [
        ("experts", f"{model}{request.n_experts}{size}"),
        ("loads", request.weights.source),
        ("ranks", f"{request.n_ranks} of {plural(request.n_slots, 'slot')}"),
        ("groups", groups),
        ("split", split[request.split]),
        ("moves cost", price),
    ]


def _balance(plan: ExpertPlan) -> blocks.Table:
    """The bound, this placement and what it is compared with, each as a bar."""
    mean, has_pairs = plan.mean_load, plan.traffic is not None
    told: list[tuple[str, float | None, float | None]] = [
        ("bound", None if plan.request.move_price else plan.certificate.bound, None),
        ("this plan", plan.max_load, plan.traffic),
        ("greedy", plan.greedy.max_load, plan.greedy.traffic),
    ]
    if plan.present is not None:
        told.append(("present", plan.present.max_load, plan.present.traffic))
    top = max(value for _, value, _ in told if value is not None)
    rows: list[blocks.Row] = []
    for name, value, apart in told:
        if value is not None:
            between = "" if apart is None else percent(apart / (plan.traffic_all or 1.0))
            pairs = [between] * has_pairs
            rows.append((name, f"{value / mean:.4f}", blocks.Bar(value / top), *pairs))
    heads = ("", "", "", "pairs apart") if has_pairs else ()
    return blocks.Table(heads=heads, rows=rows, align="<><>"[: 3 + has_pairs])


def _copies(plan: ExpertPlan) -> list[str]:
    """Copies and load of the busiest experts."""
    request = plan.request
    order = sorted(range(request.n_experts), key=lambda e: (-plan.n_copies[e], -request.loads[e]))
    total = sum(request.loads)
    busiest = [e for e in order if plan.n_copies[e] > 1][:8]
    words = (f"{e}: {plan.n_copies[e]} for {percent(request.loads[e] / total)}" for e in busiest)
    return ["; ".join(words)] if busiest else []


def _shown(plan: ExpertPlan) -> Sequence[int]:
    """The fullest and the emptiest ranks, where there are many."""
    ranks = range(plan.request.n_ranks)
    if len(ranks) <= _MOST_SHOWN:
        return ranks
    order = sorted(ranks, key=lambda g: -plan.ranks[g].load)
    half = _MOST_SHOWN // 2
    return sorted({*order[:half], *order[-half:]})


def _ranks(plan: ExpertPlan, shown: Sequence[int]) -> list[blocks.Block]:
    """Each rank: its load after and before, as bars, and what it holds."""
    top = max(max(rank.load, rank.load_before) for rank in plan.ranks)
    heads: blocks.Row = ("rank", "node", "load", plan.before, "", "experts")
    rows: list[blocks.Row] = [_rank_cells(plan, g, top) for g in range(plan.request.n_ranks)]
    align = ">>>><<"
    if plan.request.n_nodes == 1:
        heads, rows = (heads[0], *heads[2:]), [(row[0], *row[2:]) for row in rows]
        align = ">>><<"
    table = blocks.Table(
        heads=heads,
        rows=rows,
        align=align,
        wraps=True,
        listed=shown,
        caption=f"all {plural(len(rows), 'rank')}",
    )
    return [blocks.Drawing(svg=partial(experts_drawing, plan)), table]


def _rank_cells(plan: ExpertPlan, g: int, top: float) -> blocks.Row:
    rank = plan.ranks[g]
    after, before = rank.load / plan.mean_load, rank.load_before / plan.mean_load
    return (
        str(g),
        str(rank.node),
        f"{after:.4f}",
        f"{before:.4f}",
        blocks.Bar(rank.load / top, 10),
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
