"""Tokens that a round of speculative decoding yields."""

from __future__ import annotations

import random

import pytest

from planner.equations.speculation import expected_tokens, n_scored


@pytest.mark.parametrize(
    ("n_drafted", "acceptance", "usual", "capped"),
    [
        pytest.param(1, 0.5, 1.5, 1.0, id="one token, half accepted"),
        pytest.param(2, 0.5, 1.75, 1.5, id="two tokens"),
        pytest.param(3, 0.0, 1.0, 1.0, id="nothing accepted"),
        pytest.param(4, 0.8, 3.3616, 2.952, id="four tokens, four in five accepted"),
    ],
)
def test_a_round_yields_the_accepted_tokens_and_by_convention_one_more(
    n_drafted, acceptance, usual, capped
):
    """1 + p + … + p^g, or to p^(g−1)."""
    assert expected_tokens(n_drafted, acceptance) == pytest.approx(usual)
    assert expected_tokens(n_drafted, acceptance, convention="capped") == pytest.approx(capped)


def test_the_mean_of_simulated_rounds_is_the_expectation():
    chance = random.Random(0)
    n_rounds, n_drafted, acceptance = 200_000, 3, 0.7
    n_tokens = 0
    for _ in range(n_rounds):
        n_accepted = 0
        while n_accepted < n_drafted and chance.random() < acceptance:
            n_accepted += 1
        n_tokens += n_accepted + 1
    expected = expected_tokens(n_drafted, acceptance)
    assert n_tokens / n_rounds == pytest.approx(expected, rel=5e-3)


def test_the_target_scores_one_position_more_than_was_drafted_by_the_usual_convention():
    assert n_scored(3) == 4
    assert n_scored(3, convention="capped") == 3


@pytest.mark.parametrize("acceptance", [1.0, -0.1, 2.0])
def test_an_acceptance_that_is_no_probability_below_one_is_refused(acceptance):
    with pytest.raises(ValueError, match="acceptance"):
        expected_tokens(2, acceptance)


def test_an_unknown_convention_is_refused_by_name():
    with pytest.raises(ValueError, match="optimistic"):
        n_scored(2, convention="optimistic")
