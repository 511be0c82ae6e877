"""TPOT and ITL: passes that decode, and what prompts add to them that come meanwhile.

A request's m passes are work of m D(n) that prompts interrupt, each with those that come while it
is read (`equations.queueing.interrupted`). What came in the pass of its own first token, and what
that left, interrupts it first.

n is not what it was when the request came. Who was there leaves, so that after x passes n has
forgotten all but P(R > x) of how it differed, R the residual life of a sequence: exactly where
passes take the same time whatever n [Eick1993], and more slowly, by s, where they do not. Who comes
is read first, and then decodes beside the request: a prompt interrupts it by what it takes to be
read, and by D'(n) for each of the passes that both share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.queueing import group_of_dispersion, interrupted
from planner.estimates.queues.firsts import Firsts
from planner.estimates.queues.laws import Law
from planner.estimates.queues.loads import Load
from planner.estimates.queues.population import Population
from planner.estimates.queues.served import Served

_LEAST_SLOPE = 0.1
_MOST_READING = 0.95


def decode_times(
    served: Served, people: Population, n: FloatArray, first: Firsts | None
) -> list[tuple[Law, FloatArray]]:
    """TPOT of requests that find n (S,), and the passes that each value is the mean of.

    Args:
        first: with which passes first tokens come; None of a station without prompts.
    """
    load, answers = served.load, served.own.answers
    rounds = answers.values
    slope = _slope(people)
    if first is None:
        kept = np.sqrt(_kept_variance(load, rounds, slope))
        plain = served.plain_s(_beside(load, people, n, kept))
        return [(Law(x, answers.weights), rounds) for x in plain]
    own = _beside(load, people, n, _kept_mean(load, rounds, slope))  # (S, M)
    plain = served.plain_s(own)
    round_s = people.at(people.round_s, own) * first.longer[:, None]
    each = np.maximum(1e-12, (1.0 - people.at(people.plain_s, own) / round_s) / load.rate_per_s)
    places = np.maximum(0.0, people.most - own), own * rounds / load.mean_rounds
    grows = (served.plain_s(own + 1.0) - served.plain_s(own)) * _shared_rounds(load, rounds)
    counts = [x[None, :, None] for x in (*_dispersions(load, rounds), rounds)]
    took, likely = _took(served, (plain, each, grows / load.n_alike), places, counts, first=first)
    weight = likely * (first.weight[:, None, :] * answers.weights[None, :, None])[..., None, None]
    rounds = rounds[None, :, None, None, None]
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
    served: Served,
    times: tuple[FloatArray, FloatArray, FloatArray],
    places: tuple[FloatArray, FloatArray],
    counts: Sequence[FloatArray],
    *,
    first: Firsts,
) -> tuple[FloatArray, FloatArray]:
    """From first to last token, and how likely, (S, M, Q, J, Z) [s].

    Args:
        times: of a pass, of a prompt, and what one that came adds to all passes after it, (S, M)
            each [s].
        places: that are free, and that others leave meanwhile, (S, M) each.
        counts: variance over mean of how many come in a life and of how many end, and its passes,
            (1, M, 1) each.
    """
    of_arrivals, of_ends, rounds = counts
    plain, each, grows = (x[:, :, None] for x in times)
    free, ends = (x[:, :, None] for x in places)
    rate, read_cv2 = served.load.rate_per_s, served.reading_moments[1]
    busy = np.minimum(rate * each, _MOST_READING)
    left = first.left_tokens[:, None, :] * each / served.load.mean_input
    total, share, offset = _uninterrupted(served, (plain, busy), rounds, first.last_s[:, None, :])
    # beyond the places that are free, one is read where another has ended, and decodes in its place
    roomy = np.minimum(1.0, free / np.sqrt(np.maximum(ends, 1e-9)))
    grows, dispersion = grows * roomy, of_ends + roomy * (of_arrivals - of_ends)
    # of prompts with all behind them: a size with this variance, and a work with this mean
    both = each + grows
    cv2 = read_cv2 * (each / both) ** 2
    size = both / (1.0 - busy) * np.sqrt(share * (dispersion + cv2) / (1.0 + cv2))
    size = np.broadcast_to(size / (1.0 + rate * size), total.shape)
    work = total * (1.0 - rate * size) + left
    took, likely = interrupted(work, rate, size, cv2)
    begin = free + ends
    most = total * (1.0 - busy) + left + both * (begin + np.sqrt(ends + begin * cv2))
    took = np.minimum(took, most[..., None, None])
    return took + offset[..., None, None], likely


def _uninterrupted(
    served: Served, times: tuple[FloatArray, FloatArray], rounds: FloatArray, last: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What a life of so many rounds takes with all that come, behind a first token's pass.

    Args:
        times: a pass that reads nothing [s], and the share of the time that prompts take.

    Returns:
        The mean with that pass, its share of the variance (`_in_passes`), and what is to be added
        for the passes that decode without a look behind them, less that pass [s].
    """
    plain, busy = times
    if served.mixes:
        total, share = _in_passes(times, rounds, last)
        return total, share, plain - last
    looks = np.ceil(rounds / served.n_looks) - 1.0
    total = (last + looks * served.n_looks * plain) / (1.0 - busy)
    return total, np.ones_like(total), (rounds - looks * served.n_looks) * plain - last


def _in_passes(
    times: tuple[FloatArray, FloatArray], rounds: FloatArray, last: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What begins with the pass of a first token: its mean [s], and a share of its variance.

    A prompt that comes in one of m passes has as many generations behind it as passes are left: of
    ρ, what comes in j is (1 − ρ^j) / (1 − ρ) of itself, not all. Pass i is T + (L − T) ρ^i long, T
    usually and L the first token's, so that

        E = L + Σ_{1≤i≤m} T_i − D,    V = λ E[s²] / (1 − ρ)² Σ_{i<m} T_i (1 − ρ^{m−i})²

    without the last pass's own D. The share is that of λ E[s²] / (1 − ρ)² E.

    Args:
        times: a pass that reads nothing, and ρ, (S, M, 1) each.
    """
    plain, busy = times
    idle, kept = 1.0 - busy, busy**rounds
    usual = plain / idle
    beyond = last - usual
    total = last - plain + rounds * usual + beyond * busy * (1.0 - kept) / idle
    all_passes = (
        rounds - 2.0 * busy * (1.0 - kept) / idle + busy**2 * (1.0 - kept**2) / (1.0 - busy**2)
    )
    fading = (1.0 - kept) / idle - 2.0 * rounds * kept + kept * busy * (1.0 - kept) / idle
    spread = np.maximum(usual * all_passes + beyond * fading, 0.0)
    return total, spread / np.maximum(total, 1e-12)


def _slope(people: Population) -> float:
    """How fast sequences end beside one more than usually, over how fast where passes are equal."""
    usual = people.mean
    step = np.array([max(0.0, usual - 1.0), usual + 1.0])
    leave = step / people.at(people.round_s, step)
    round_s = float(people.at(people.round_s, np.array(usual)))
    slope = (leave[1] - leave[0]) / (step[1] - step[0]) * round_s
    return float(np.clip(slope, _LEAST_SLOPE, 1.0))


def _beside(load: Load, people: Population, n: FloatArray, kept: FloatArray) -> FloatArray:
    """What n is over a life that began at n (S,) of which so much is kept (M,): (S, M)."""
    companions = 2.0 * load.shared_stay * (float(group_of_dispersion(load.arrival_cv2)) - 1.0)
    found = people.mean + kept[None, :] * (n[:, None] - people.mean) + 1.0 + companions
    return np.clip(found, 1.0, len(people.probability) - 1.0)


def _kept_mean(load: Load, rounds: FloatArray, slope: float) -> FloatArray:
    """Of how n differs as a life begins, the share that is left over it on average (M,).

    (1 / t) ∫₀ᵗ P(R > x s) dx, with P(R > x) = E[(X − x)⁺] / E[X] of lives X.
    """
    life = load.n_rounds[:, None]
    until = np.minimum(rounds[None, :], life / slope)
    sums = life * until - slope * until**2 / 2.0
    return np.asarray(load.weight @ sums / load.mean_rounds / rounds)


def _kept_variance(load: Load, rounds: FloatArray, slope: float) -> FloatArray:
    """Variance of the mean of n over a life, who comes included, over that of n (M,).

    (2 / t²) ∫₀ᵗ (t − x) P(R > x s) dx
    """
    life, mine = load.n_rounds[:, None], rounds[None, :]
    until = np.minimum(mine, life / slope)
    sums = mine * life * until - (life + slope * mine) * until**2 / 2.0 + slope * until**3 / 3.0
    return np.asarray(2.0 * load.weight @ sums / load.mean_rounds / rounds**2)


def _dispersions(load: Load, rounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance over mean of how many requests come in a life, and of how many end (M,).

    1 of Poisson; groups are counted apart. Of lives with c², ends in a life of m passes vary by 1
    where m is short, and by c² where it is long. To one of stations that a router keeps alike, a
    request comes where another ended.
    """
    cv2 = load.mean(load.n_rounds**2) / load.mean_rounds**2 - 1.0
    ends = 1.0 - max(0.0, 1.0 - cv2) * np.minimum(1.0, rounds / load.mean_rounds)
    arrivals = np.full(len(rounds), min(1.0, load.pool_cv2))
    return np.asarray(ends + (arrivals - ends) / load.n_alike), ends


def _shared_rounds(load: Load, rounds: FloatArray) -> FloatArray:
    """Passes that a request shares with one that comes at any time of its life, on average (M,)."""
    life, mine = load.n_rounds[:, None], rounds[None, :]
    whole = np.minimum(life, mine)
    return np.asarray(load.weight @ (whole * mine - whole**2 / 2.0) / rounds)
