"""Why a plan is the best, and which constants it rests on."""

import math
import re
from collections import Counter
from collections.abc import Container, Iterable
from operator import attrgetter

from planner.quantities.units import show
from planner.report.documents.blocks import Pairs, Section, Table, section
from planner.report.words import limit_label, percent, plural
from planner.results.plans import AnyPlan
from planner.results.surveys import Frontier, FrontierProof
from planner.specs.records import certificates

_NO_GAP_SHOWN = 5e-7
BEST = "no plan with the batches offered is better"
_INDEX = re.compile(r"\[\d+\]")  # of one entry of many: `link[7].latency`


def certificate_section(
    proof: certificates.Certificate, *, best: str = BEST, given_up: float = 0.0
) -> Section:
    """Status, bound, who proved it, what was considered and rejected, what was verified.

    Args:
        best: what an optimal answer means.
        given_up: share of the best objective that the answer loses for being simpler: the proof
            is of the best one then.
    """
    status = status_text(proof, best)
    if given_up > 0.0:
        lost = percent(given_up)
        status = f"of the best plan, {status}; the simplest, above, loses {lost} of its objective"
    branches = plural(proof.n_branches, "branch or choice", "branches or choices")
    head = [
        ("status", status),
        ("objective", objective_text(proof)),
        *_sort_rows(proof),
        *prover_rows(proof),
        ("candidates", candidates_text(proof)),
        ("program", f"{plural(proof.n_solved, 'column')}, {branches}"),
    ]
    tail = [("verified", "; ".join(proof.verified))]
    return section("certificate", Pairs(head), screens_table(proof), Pairs(tail))


def candidates_text(proof: certificates.Certificate | FrontierProof) -> str:
    """`4,608 in 96 ways to use the pool`."""
    return f"{proof.n_candidates:,} in {plural(proof.n_contexts, 'way')} to use the pool"


def objective_text(proof: certificates.Certificate) -> str:
    """`cost $12.6/Mtoken, bound $12.6/Mtoken, gap 0 %`; without a bound where nothing is known."""
    objective, bound = (show(value, proof.dimension) for value in (proof.objective, proof.bound))
    if not math.isfinite(proof.gap):
        return f"{proof.objective_name} {objective}; how much better another may be is not known"
    return f"{proof.objective_name} {objective}, bound {bound}, gap {percent(proof.gap)}"


def gap_text(certificate: certificates.Certificate) -> str:
    """`optimal`, or how far from it at most."""
    is_optimal = certificate.status == certificates.OPTIMAL and certificate.gap < _NO_GAP_SHOWN
    return "optimal" if is_optimal else f"gap {percent(certificate.gap)}"


def _sort_rows(proof: certificates.Certificate) -> list[tuple[str, str]]:
    """The best of each number of sorts of replicas, and the price of a further one."""
    if proof.sort_price is None:
        return []
    first, *_ = proof.sorts
    each = [f"{one.n_sorts}: {show(one.objective, proof.dimension)}" for one in proof.sorts]
    each[-1] += ", of any number the best"
    price = show(proof.sort_price * abs(first.objective), proof.dimension)
    counted = f"each beyond {first.n_sorts} counts {price}, {percent(proof.sort_price)}"
    return [("sorts", f"{proof.objective_name} by sorts of replicas {'; '.join(each)}; {counted}")]


def prover_rows(proved: certificates.Certificate | FrontierProof) -> list[tuple[str, str]]:
    """Who vouches for the bound, who was refused and why, and what it took."""
    accepted = [proof for proof in proved.proofs if proof.is_accepted]
    by = vouching(accepted, proved.vouched_by)
    others = [proof for proof in _searched(accepted) if proof.prover not in proved.vouched_by]
    refused = (
        f"{prover_name(proof.prover)}: {proof.note}"
        for proof in proved.proofs
        if not proof.is_accepted
    )
    took = ", ".join(map(_took, filter(attrgetter("wall_s"), _each_once(by))))
    time = f"{show(proved.solve_s, 's')} of {show(proved.wall_s, 's')} in provers"
    return [
        ("proved by", ", ".join(prover_name(one.prover) for one in _each_once(by))),
        ("besides" if by else "said by", "; ".join(map(_word, _each_once(others)))),
        ("refused", "; ".join(refused)),
        ("time", ": ".join(filter(None, (time, took)))),
    ]


def vouching(
    proofs: Iterable[certificates.Proof], vouched_by: Container[str]
) -> list[certificates.Proof]:
    """Those that vouch for a bound; sums that take no time only where no other does."""
    by = [proof for proof in proofs if proof.is_accepted and proof.prover in vouched_by]
    return _searched(by) or by


def _searched(proofs: Iterable[certificates.Proof]) -> list[certificates.Proof]:
    """Those that took time or are a solver's, which come first."""
    searched = (proof for proof in proofs if proof.wall_s or not proof.is_own)
    return sorted(searched, key=attrgetter("is_own"))


def _each_once(proofs: Iterable[certificates.Proof]) -> list[certificates.Proof]:
    """The last word of each prover."""
    return list({one.prover: one for one in proofs}.values())


def frontier_rows(frontier: Frontier) -> list[tuple[str, str]]:
    """Why no point of a frontier is missing, and what was considered."""
    proof, gap = frontier.proof, max(point.gap for point in frontier.points)
    if proof.status == "optimal":
        status = "optimal: no point is missing, and none is beaten"
    elif proof.status == "unconfirmed":
        status = f"bound by {alone(proof)} alone, so it is not called optimal"
    else:
        status = f"{proof.status}: time ended before the proof, a point may be {percent(gap)} off"
    solved = plural(proof.n_solved, "candidate")
    return [
        ("status", status),
        *prover_rows(proof),
        ("solved", f"{solved} left by the screens of {candidates_text(proof)}"),
        ("verified", f"every point: {'; '.join(proof.verified)}"),
    ]


_NAMES = {"highs": "HiGHS", "cpsat": "CP-SAT", "scip": "SCIP"}


def prover_name(prover: str) -> str:
    """A prover as people call it: `HiGHS 1.13.1`, `CP-SAT (ortools 9.15)`."""
    word, _, rest = prover.partition(" ")
    return f"{_NAMES.get(word, word)} {rest}".strip()


def _took(proof: certificates.Proof) -> str:
    name = prover_name(proof.prover)
    return f"{name} in {show(proof.wall_s, 's')}" if proof.wall_s else name


def _word(proof: certificates.Proof) -> str:
    if proof.bound == -math.inf:
        return f"{_took(proof)}: nothing{f', {proof.note}' if proof.note else ''}"
    if proof.bound == math.inf:
        return f"{_took(proof)}: nothing is feasible"
    if proof.outcome != "stopped":
        return _took(proof)
    return f"{_took(proof)}: a weaker bound{f', {proof.note}' if proof.note else ''}"


def status_text(proof: certificates.Certificate, best: str = BEST) -> str:
    """What may be said of an answer.

    Args:
        best: what an optimal one means.
    """
    if proof.status == certificates.LEAST_MOVED:
        return "least moved: no plan within the loss asked for moves fewer bytes"
    if proof.status == certificates.UNCONFIRMED:
        said = f"bound by {alone(proof)} alone, so it is not called optimal: {_why_alone(proof)}"
        sure = proof.vouched_bound
        if sure is None or not proof.objective:
            return said
        off = abs(proof.objective - sure) / abs(proof.objective)
        return f"{said}; a gap of {percent(off)} is vouched for"
    if proof.status != "optimal":
        return f"{proof.status}: not proven to be the best"
    if proof.gap > certificates.NO_GAP:
        why = f"given up for {proof.given_up_for}" if proof.given_up_for else "as the gap allows"
        return f"within {percent(proof.gap)} of the best, {why}"
    return f"optimal: {_of_sorts(proof)}{best}"


def _of_sorts(proof: certificates.Certificate) -> str:
    """How many sorts of replicas the status is of, where it is not of any number."""
    fewer = (one.n_sorts for one in proof.sorts[:-1] if one.objective == proof.objective)
    return "".join(f"of {plural(n, 'sort')} of replicas " for n in fewer)


def alone(proved: certificates.Certificate | FrontierProof) -> str:
    """The prover whose bound nobody vouches for."""
    words = [one for one in proved.proofs if one.is_accepted and one.outcome != "stopped"]
    return prover_name(words[-1].prover) if words else "one solver"


def _why_alone(proved: certificates.Certificate | FrontierProof) -> str:
    if any(not one.is_accepted for one in proved.proofs):
        return "another prover was refused"
    if any(one.note == "interrupt" for one in proved.proofs):
        return "the second proof was interrupted"
    if any(one.outcome == "stopped" and not one.is_own for one in proved.proofs):
        return "the second prover ran out of time"
    return "a second proof was not asked for"


def screens_table(proof: certificates.Certificate | FrontierProof) -> Table:
    """What each screen rejected and why, and what reached the solver."""
    rows = [
        (f"  − {screen.n_candidates:,}", limit_label(screen.name), screen.reason)
        for screen in proof.screens
    ]
    rows.append((f"  = {proof.n_solved:,}", "solver", "reached it"))
    return Table(rows=rows, align="><<", wraps=True)


def constant_rows(plan: AnyPlan) -> list[tuple[str, str]]:
    """How many values the inputs hold, and which of them nobody published."""
    keys = Counter(_INDEX.sub("", v.key) for v in plan.provenance if v.is_assumed)
    assumed = ", ".join(f"{n} × {key}" if n > 1 else key for key, n in keys.items())
    return [
        ("in all", str(len(plan.provenance))),
        ("assumed", f"{plan.n_assumed}: {assumed}" if assumed else "none"),
    ]
