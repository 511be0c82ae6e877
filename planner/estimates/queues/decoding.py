"""TPOT and ITL: passes that decode, and what prompts add to them that come meanwhile.

A request's m passes are work of m D(n) that prompts interrupt, each with those that come while it
is read (`equations.queueing.interrupted`). What came in the pass of its own first token, and what
that left, interrupts it first. n is not what it was when the request came: over a life of t the
mean of n deviates from its usual value with the share

    g = 2 (x − 1 + e^{−x}) / x²,    x = t / τ

of the variance, as of any process whose correlation decays as e^{−t/τ}; τ is the mean residual
life of a sequence, longer where passes take longer with n.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.queueing import group_of_dispersion, interrupted
from planner.estimates.queues.firsts import Firsts
from planner.estimates.queues.laws import Law
from planner.estimates.queues.population import Population
from planner.estimates.queues.served import Served

_LEAST_SLOPE = 0.1
_MOST_READING = 0.95
_DEVIATIONS = 1.0


def decode_times(
    served: Served, people: Population, n: FloatArray, first: Firsts | None
) -> list[tuple[Law, FloatArray]]:
    """TPOT of requests that find n (S,), and the passes that each value is the mean of.

    Args:
        first: with which passes first tokens come; None of a station without prompts.
    """
    load = served.load
    answers = served.own.answers
    own = _over_life(served, people, n, answers.values)  # (S, M)
    plain = served.plain_s(own)
    if first is None:
        return [(Law(x, answers.weights), answers.values) for x in plain]
    round_s = people.at(people.round_s, own) * first.longer[:, None]
    each = np.maximum(1e-12, (1.0 - people.at(people.plain_s, own) / round_s) / load.rate_per_s)
    places = np.maximum(0.0, people.most - own) + own * answers.values / load.mean_rounds + 1.0
    took, likely = _took(served, (plain, each, places), answers.values[None, :, None], first)
    weight = likely * (first.weight[:, None, :] * answers.weights[None, :, None])[..., None, None]
    rounds = answers.values[None, :, None, None, None]
    values = np.maximum(took / rounds, plain[..., None, None, None])
    if served.mixes:
        values = np.minimum(values, served.full_s(own)[..., None, None, None])
    lives = np.broadcast_to(rounds, values.shape[:1] + rounds.shape[1:])
    lives = np.broadcast_to(lives, values.shape)
    return [
        (Law(value.ravel(), share.ravel()), life.ravel())
        for value, share, life in zip(values, weight, lives, strict=True)
    ]


def _took(
    served: Served, times: tuple[FloatArray, ...], rounds: FloatArray, first: Firsts
) -> tuple[FloatArray, FloatArray]:
    """From first to last token, and how likely, (S, M, Q, J, Z) [s]; rounds are (1, M, 1).

    Args:
        times: of a pass, of a prompt [s], and how many prompts find places meanwhile, (S, M) each.
    """
    plain, each, places = (x[:, :, None] for x in times)
    rate = served.load.rate_per_s
    last = first.last_s[:, None, :]
    left = first.left_tokens[:, None, :] * each / served.load.mean_input
    busy = np.minimum(rate * each, _MOST_READING)
    if served.mixes:
        # prompts that come in the last pass are read after it: ρ² of a pass is counted twice
        after = plain
        twice = busy**2 * plain / (1.0 - busy)
        work = np.maximum(0.1 * last, last + (rounds - 1.0) * plain - twice) + left
    else:
        looks = np.ceil(rounds / served.n_looks) - 1.0
        after = (rounds - looks * served.n_looks) * plain
        work = last + left + looks * served.n_looks * plain
    mean = np.broadcast_to(each, work.shape)
    cv2 = served.reading_moments[1]
    took, likely = interrupted(work, rate, mean, cv2)
    most = work + each * (places + _DEVIATIONS * np.sqrt(places * (1.0 + cv2)))
    took = np.minimum(took, most[..., None, None])
    return took + (after - last)[..., None, None], likely


def _over_life(served: Served, people: Population, n: FloatArray, rounds: FloatArray) -> FloatArray:
    """What n is on average over a life of so many rounds that began at n, itself too (S, M)."""
    load = served.load
    usual = people.mean
    step = np.array([max(0.0, usual - 1.0), usual + 1.0])
    leave = step / people.at(people.round_s, step)
    round_s = float(people.at(people.round_s, np.array(usual)))
    slope = float(np.clip((leave[1] - leave[0]) / (step[1] - step[0]) * round_s, _LEAST_SLOPE, 1.0))
    residual = load.mean(load.n_rounds**2) / (2.0 * load.mean_rounds) / slope
    x = rounds / residual
    kept = np.sqrt(2.0 * (x + np.expm1(-x)) / x**2)
    companions = 2.0 * load.shared_stay * (float(group_of_dispersion(load.arrival_cv2)) - 1.0)
    found = usual + kept[None, :] * (n[:, None] - usual) + 1.0 + companions
    return np.clip(found, 1.0, len(people.probability) - 1.0)
