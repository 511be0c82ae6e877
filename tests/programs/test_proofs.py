"""Who vouches for a bound, and what rounding may come between two words."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from planner.programs.proofs import beyond, is_closed, vouched
from planner.specs.records.certificates import Proof

HIGHS = Proof(prover="highs 1.13.1", outcome="optimal", value=10.0, bound=9.0, wall_s=0.0)
CPSAT = replace(HIGHS, prover="cpsat 9.15", bound=8.0)
COUNTED = replace(HIGHS, prover="enumeration of 4", bound=8.5)


def test_one_solver_alone_vouches_for_nothing_and_its_word_is_kept_beside():
    said = vouched([HIGHS], 10.0)
    assert (said.bound, said.alone, said.by) == (-inf, 9.0, ())


def test_two_solvers_vouch_for_the_weaker_of_their_bounds():
    said = vouched([HIGHS, CPSAT], 10.0)
    assert (said.bound, said.alone) == (8.0, 9.0)
    assert said.by == ("highs 1.13.1", "cpsat 9.15")


def test_two_of_one_family_are_one_word():
    said = vouched([HIGHS, replace(HIGHS, prover="highs 1.12", bound=8.0)], 10.0)
    assert (said.bound, said.by) == (-inf, ())


def test_own_arithmetic_vouches_by_itself():
    said = vouched([COUNTED, CPSAT], 10.0)
    assert (said.bound, said.alone, said.by) == (8.5, 8.5, ("enumeration of 4",))


@pytest.mark.parametrize(
    ("share", "vouch"),
    [
        (1e-10, ("highs 1.13.1", "enumeration of 4")),
        (-1e-10, ("enumeration of 4", "highs 1.13.1")),
        (1e-8, ("highs 1.13.1", "enumeration of 4")),
        (-1e-8, ("enumeration of 4",)),
    ],
)
def test_a_word_that_falls_short_by_rounding_vouches_too(share, vouch):
    said = vouched([replace(HIGHS, bound=8.5 * (1.0 + share)), COUNTED], 10.0)
    assert said.bound == 8.5
    assert said.by == vouch


def test_a_bound_beyond_an_answer_in_hand_is_refused_and_counts_for_nobody():
    said = vouched([replace(HIGHS, bound=10.1), CPSAT], 10.0)
    assert [proof.outcome for proof in said.proofs] == ["refused", "optimal"]
    assert said.bound == -inf
    assert not beyond(10.0 + 1e-7, 10.0)
    assert beyond(10.0 + 1e-5, 10.0)
    assert not beyond(inf, inf)


def test_two_that_find_nothing_feasible_vouch_for_it():
    said = vouched([replace(HIGHS, bound=inf), replace(CPSAT, bound=inf)], inf)
    assert (said.bound, said.by) == (inf, ("highs 1.13.1", "cpsat 9.15"))


@pytest.mark.parametrize(
    ("value", "bound", "gap", "closed"),
    [
        (100.0, 99.0, 0.01, True),
        (100.0, 98.9, 0.01, False),
        (100.0, 100.0 - 5e-7, 0.0, True),
        (100.0, 100.0 - 5e-6, 0.0, False),
        (0.0, -5e-10, 0.0, True),
        (0.0, -5e-9, 0.0, False),
        (inf, inf, 0.0, True),
        (inf, 3.0, 1.0, False),
        (3.0, -inf, 1.0, False),
    ],
)
def test_a_gap_is_closed_as_asked_or_as_rounding_lets_it_be(value, bound, gap, closed):
    assert is_closed(value, bound, gap) is closed
