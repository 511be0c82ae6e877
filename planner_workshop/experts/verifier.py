"""A placement of experts counted anew: copy by copy, in exact fractions of the loads.

Which experts a rank holds is chosen, and with weighted shares how much it serves of them. All
else follows: loads, moves, traffic, what is compared with, and two of the bounds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from planner.results.experts import ExpertBalance, ExpertPlan, ExpertRank
from planner.specs.ask.stages import ExpertsRequest
from planner.verifier.certificates import Counts, certified
from planner.verifier.expert_copies import (
    Copies,
    Shared,
    copies_of,
    counted,
    counting_bound,
    greedy_copies,
    group_of,
    least_fullest,
    n_moves,
    node_of,
    shared_equally,
    unserved,
)
from planner.verifier.findings import TOLERANCE, Finding, Path, with_differences

SPLITS = ("equal", "weighted")
COUNTED = {"mean": "mean load of the ranks", "copies": "copies and slots"}
"""Bounds that are counted here too, and what a certificate calls the count."""
PROOFS = (*COUNTED, "patterns", "pairs", "groups", "search")
SOLVED = 1e-7
"""Relative, of loads that a linear program chose."""

ON_RANKS = Counts(
    reasons={}, adds_up=lambda says: (says.n_candidates, says.n_solved * says.n_contexts)
)
"""Any expert on any rank, and nothing is screened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BalanceBeside:
    """What stands, or what the greedy balancer makes: its balance, and the load of its ranks."""

    balance: ExpertBalance
    loads: tuple[float, ...]


def judge_experts(plan: ExpertPlan) -> tuple[ExpertPlan, list[Finding]]:
    """The placement that is true of what ranks hold, and everything in this one that is not so."""
    request = plan.request
    wrong = [*_senseless(request)] or [*_unplaceable(request, plan.ranks)]
    if wrong:
        return plan, wrong
    held = counted([rank.experts for rank in plan.ranks])
    wrong = [*_misplaced(request, held)]
    placed = _shared(request, plan.ranks, held, wrong)
    loads = placed.loads(request)
    standing = None if request.present is None else counted(request.present)
    is_whole = standing is not None and min(copies_of(standing, request.n_experts)) > 0
    greedy = _compared(request, greedy_copies(request), plan.greedy, _before(plan, not is_whole))
    present = None
    if standing is not None and is_whole:
        present = _compared(request, standing, plan.present, _before(plan, is_whole))
    moved = [0] * request.n_ranks if standing is None else n_moves(held, standing)
    most, mean = float(max(loads)), math.fsum(request.loads) / request.n_ranks
    certificate, findings = certified(
        plan.certificate,
        objective_name="max_load",
        objective=most + request.move_price * mean * sum(moved),
        dimension="1",
        is_rate=False,
        gap=request.gap / (1.0 + request.gap),
        checks=checks_of(request),
        counts=ON_RANKS,
    )
    n_chosen = request.n_experts * request.n_ranks
    certificate = replace(
        certificate, n_candidates=n_chosen, n_solved=n_chosen, n_contexts=1, screens=()
    )
    wrong += [*findings, *_unproved(plan, standing)]
    apart = placed.traffic(request)
    truth = ExpertPlan(
        request=request,
        n_copies=tuple(copies_of(held, request.n_experts)),
        ranks=tuple(
            ExpertRank(
                node=node_of(request, g),
                experts=says.experts,
                shares=_shares(request, placed, g, says),
                load=float(loads[g]),
                load_before=(present or greedy).loads[g],
                n_moves=moved[g],
            )
            for g, says in enumerate(plan.ranks)
        ),
        max_load=most,
        mean_load=mean,
        proof=plan.proof,
        is_cut_short=plan.is_cut_short,
        greedy=greedy.balance,
        before="greedy" if present is None else "present",
        present=None if present is None else present.balance,
        traffic=_near(plan.traffic, apart, request),
        traffic_all=_pairs(request),
        n_moves=None if standing is None else sum(moved),
        certificate=certificate,
    )
    return truth, with_differences(wrong, plan, truth)


def checks_of(request: ExpertsRequest) -> tuple[str, ...]:
    """The checks that a placement passes before it goes out, in words."""
    return (
        "every expert is placed, and no rank holds more than its slots",
        "the copies of an expert serve all of its load",
        *(("groups stay on their nodes",) if request.n_groups else ()),
        "loads counted again in exact fractions",
    )


def _senseless(request: ExpertsRequest) -> Iterator[Finding]:
    """What of a request no placement could be asked with."""

    def of(name: str, fact: str) -> Finding:
        return Finding(path=("request", name), says=getattr(request, name), fact=fact)

    if not any(request.loads) or not all(0.0 <= load < math.inf for load in request.loads):
        yield Finding(path=("request", "loads"), says=request.n_experts, fact="are no loads")
    if request.split not in SPLITS:
        yield of("split", f"is none of {', '.join(SPLITS)}")
    for name in ("n_ranks", "n_slots", "n_nodes"):
        if getattr(request, name) < 1:
            yield of(name, "is not at least 1")
            return
    if request.n_ranks % request.n_nodes:
        yield of("n_nodes", f"does not divide {request.n_ranks} ranks")
    if request.n_groups < 0 or (request.n_groups and request.n_experts % request.n_groups):
        yield of("n_groups", f"does not divide {request.n_experts} experts")
    for name in ("move_price", "slack", "gap"):
        if not 0.0 <= getattr(request, name) < math.inf:
            yield of(name, "is no share from 0")
    if request.present is not None:
        yield from _unheld(request, request.present, ("request", "present"))
    pairs = request.coactivation
    if pairs is not None and (
        any(len(row) != request.n_experts for row in (pairs, *pairs))
        or any(pairs[e][f] != pairs[f][e] for e in range(len(pairs)) for f in range(e))
        or not all(0.0 <= one < math.inf for row in pairs for one in row)
    ):
        fact = "is no symmetric table of the experts"
        yield Finding(path=("request", "coactivation"), says=len(pairs), fact=fact)


def _unplaceable(request: ExpertsRequest, ranks: Sequence[ExpertRank]) -> Iterator[Finding]:
    """What keeps a placement from being counted at all."""
    yield from _unheld(request, [rank.experts for rank in ranks], ("ranks",))
    for g, rank in enumerate(ranks):
        if len(rank.shares) != len(rank.experts):
            fact = f"are {len(rank.shares)} of {len(rank.experts)} experts"
            yield Finding(path=("ranks", str(g), "shares"), says=len(rank.shares), fact=fact)
        if list(rank.experts) != sorted(rank.experts):
            here = ("ranks", str(g), "experts")
            yield Finding(path=here, says=_words(rank.experts), fact="is not in order")


def _unheld(
    request: ExpertsRequest, ranks: Sequence[Sequence[int]], path: Path
) -> Iterator[Finding]:
    """Ranks that there are not, or that hold what there is not, or more than they have room for."""
    if len(ranks) != request.n_ranks:
        fact = f"are {len(ranks)}, and there are {request.n_ranks}"
        yield Finding(path=path, says=len(ranks), fact=fact)
    for g, experts in enumerate(ranks):
        if len(experts) > request.n_slots:
            fact = f"are {len(experts)} experts in {request.n_slots} slots"
            yield Finding(path=(*path, str(g)), says=_words(experts), fact=fact)
        for e in experts:
            if not 0 <= e < request.n_experts:
                yield Finding(path=(*path, str(g)), says=e, fact="is no expert")


def _misplaced(request: ExpertsRequest, held: Copies) -> Iterator[Finding]:
    """Experts that are nowhere, and groups on several nodes."""
    for e, n in enumerate(copies_of(held, request.n_experts)):
        if not n:
            yield Finding(path=("n_copies", str(e)), says=n, fact=f"expert {e} is nowhere")
    nodes: dict[int, set[int]] = {}
    for g, rank in enumerate(held) if request.n_groups else ():
        for e in rank:
            nodes.setdefault(group_of(request, e), set()).add(node_of(request, g))
    for group, nodes_of_group in nodes.items():
        if len(nodes_of_group) > 1:
            fact = f"group {group} is on nodes {_words(sorted(nodes_of_group))}"
            yield Finding(path=("ranks",), says=group, fact=fact)


def _shared(
    request: ExpertsRequest, ranks: Sequence[ExpertRank], held: Copies, wrong: list[Finding]
) -> Shared:
    """The copies with their shares: equal ones, or those that are chosen, which have to add up."""
    if request.split == "equal":
        return shared_equally(held, request.n_experts)
    shares: list[dict[int, Fraction]] = [{} for _ in ranks]
    in_all = [Fraction()] * request.n_experts
    for g, rank in enumerate(ranks):
        for i, (e, share) in enumerate(zip(rank.experts, rank.shares, strict=True)):
            here = ("ranks", str(g), "shares", str(i))
            if not 0.0 <= share <= 1.0 + TOLERANCE:
                wrong.append(Finding(path=here, says=share, fact="is no share"))
            elif i and rank.experts[i - 1] == e and share != rank.shares[i - 1]:
                fact = "is not that of the copy beside it"
                wrong.append(Finding(path=here, says=share, fact=fact))
            part = Fraction(share) if math.isfinite(share) else Fraction()
            shares[g][e] = shares[g].get(e, Fraction()) + part
            in_all[e] += part
    for e, served in enumerate(in_all):
        if abs(served - 1) > TOLERANCE:
            fact = f"serve {float(served)!r} of the load of expert {e}"
            wrong.append(Finding(path=("ranks",), says=e, fact=fact))
    return Shared(held=held, shares=shares)


def _shares(
    request: ExpertsRequest, placed: Shared, rank: int, says: ExpertRank
) -> tuple[float, ...]:
    if request.split == "weighted":
        return says.shares
    held = placed.held[rank]
    return tuple(float(placed.shares[rank][e] / held[e]) for e in says.experts)


def _before(plan: ExpertPlan, is_compared: bool) -> tuple[float, ...] | None:
    """The loads that a plan says were before, where they are of what is asked about."""
    return tuple(rank.load_before for rank in plan.ranks) if is_compared else None


def _compared(
    request: ExpertsRequest,
    held: Copies,
    says: ExpertBalance | None,
    before: tuple[float, ...] | None,
) -> _BalanceBeside:
    """The balance of other copies: with equal shares, or with those of the least fullest load.

    The latter may be reached in many ways, so any loads of ranks will do that it allows.
    """
    if request.split == "equal":
        equal = shared_equally(held, request.n_experts)
        loads = tuple(map(float, equal.loads(request)))
        apart = equal.traffic(request)
        near = _near(None if says is None else says.traffic, apart, request)
        return _BalanceBeside(balance=ExpertBalance(max_load=max(loads), traffic=near), loads=loads)
    least = float(least_fullest(request, held))
    if says is not None and math.isclose(says.max_load, least, rel_tol=SOLVED):
        least = says.max_load
    apart = None if request.coactivation is None or says is None else says.traffic
    in_all = _pairs(request)
    if in_all is not None and not (apart is not None and 0.0 <= apart <= in_all * (1 + TOLERANCE)):
        apart = shared_equally(held, request.n_experts).traffic(request)
    loads = (least,) * request.n_ranks
    if before is not None and _can_have(request, held, before, least):
        loads = before
    return _BalanceBeside(balance=ExpertBalance(max_load=least, traffic=apart), loads=loads)


def _can_have(request: ExpertsRequest, held: Copies, loads: Sequence[float], most: float) -> bool:
    """Whether ranks can have these loads at once, and the fullest of them so much."""
    if not all(0.0 <= load < math.inf for load in loads):
        return False
    is_all = math.isclose(math.fsum(loads), math.fsum(request.loads), rel_tol=TOLERANCE)
    if not is_all or not math.isclose(max(loads), most, rel_tol=TOLERANCE):
        return False
    slack = Fraction(SOLVED * most)
    limits = [Fraction(load) + slack for load in loads]
    return not unserved([Fraction(load) for load in request.loads], held, limits)


def _unproved(plan: ExpertPlan, standing: Copies | None) -> Iterator[Finding]:
    """A bound beyond what is counted, or that nobody gave, and a limit of time that nobody set."""
    request, proof = plan.request, plan.proof
    if plan.is_cut_short and request.time_limit_s is None:
        yield Finding(path=("is_cut_short",), says=True, fact="is so of no search without a limit")
    if proof not in PROOFS or (request.split == "weighted" and proof not in (*COUNTED, "search")):
        yield Finding(path=("proof",), says=proof, fact="is no proof of such a placement")
        return
    if proof in ("pairs", "search"):
        is_given = any(one.program == proof for one in plan.certificate.proofs)
    else:
        given = COUNTED.get(proof, f"{proof} ")
        is_given = any(f"{one.prover} ".startswith(given) for one in plan.certificate.proofs)
    if not is_given:
        yield Finding(path=("proof",), says=proof, fact="is nobody's in the certificate")
    bound = plan.certificate.bound
    if proof in COUNTED:
        most = _priced(request, standing, counting_bound(request))
        if bound > most * (1 + TOLERANCE):
            fact = f"is more than the {most!r} that counting proves"
            yield Finding(path=("certificate", "bound"), says=bound, fact=fact)


def _priced(request: ExpertsRequest, standing: Copies | None, bound: float) -> float:
    """A bound of the load, and the price of moves that it takes: none, or one at the least.

    Nothing moves only to what stands, or to a part of it; what is nowhere has to move.
    """
    if standing is None or not request.move_price:
        return bound
    price = request.move_price * math.fsum(request.loads) / request.n_ranks
    in_all = copies_of(standing, request.n_experts)
    n_missing = in_all.count(0)
    if n_missing:
        return bound + price * n_missing
    if [*_misplaced(request, standing)]:
        return bound  # copies that go need no move
    stays = 0.0
    if request.split == "weighted":
        stays = float(least_fullest(request, standing))
    elif max(in_all) == 1:
        stays = float(max(shared_equally(standing, request.n_experts).loads(request)))
    return max(bound, min(bound + price, stays))


def _pairs(request: ExpertsRequest) -> float | None:
    """Co-activated pairs in all."""
    if request.coactivation is None:
        return None
    return math.fsum(one for e, row in enumerate(request.coactivation) for one in row[:e])


def _near(says: float | None, expected: float | None, request: ExpertsRequest) -> float | None:
    """Pairs as they are said to be, where a recount differs by less than sums are known."""
    in_all = _pairs(request)
    if says is None or expected is None or in_all is None:
        return expected
    return says if abs(says - expected) <= TOLERANCE * in_all else expected


def _words(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
