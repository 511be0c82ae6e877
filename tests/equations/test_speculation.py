"""Tokens that a round of speculative decoding yields."""

from __future__ import annotations

import random

import pytest

from planner.equations.speculation import expected_tokens, n_scored, tokens_by_position


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


def test_positions_that_are_alike_yield_what_one_probability_does():
    drawn = random.Random(3)
    for _ in range(50):
        n_drafted, rate = drawn.randint(0, 8), drawn.random()
        found = tokens_by_position(n_drafted, (rate,) * drawn.randint(1, 9))
        assert found == pytest.approx(expected_tokens(n_drafted, rate))


def test_a_position_counts_only_where_all_before_it_were_accepted():
    assert tokens_by_position(3, (0.9, 0.5, 0.2)) == pytest.approx(1 + 0.9 + 0.45 + 0.09)
    assert tokens_by_position(3, (0.9, 0.5)) == pytest.approx(1 + 0.9 + 0.45 + 0.225)
    assert tokens_by_position(1, (0.9, 0.5)) == pytest.approx(1.9)


@pytest.mark.parametrize("rates", [(), (1.0,), (0.5, -0.1), (0.5, 1.2)])
def test_what_is_no_probability_below_one_is_refused(rates):
    with pytest.raises(ValueError, match="probabilities below 1"):
        tokens_by_position(2, rates)
