"""How requests come, and what one waits for between its arrival and the passes of its prompt.

In a closed loop b requests are in flight on a rank, and as one ends the next comes. Who comes
finds something under way and, at times, prompts before it:

    under way   (1 − u) r D / 2 + u T / 2       of a decode round D, of a pass T that reads prompts;
                u is the share of time that passes with prompts of the others take, r the rounds
                between two looks of the engine for new requests
    others      w T, w = ((b − 2) S − Z + √((Z − (b − 2) S)² + 2 (b − 1) S²)) / 2

The second is the wait in a closed queue with one server, of Z = OSL / y steps between two prompts
of a request and S passes for a prompt: the mean-value equation R = S + Q(b − 1) S, in which the
queue of b − 1 others is Schweitzer's, (b − 1) / (Z + R) times R, and who is being served takes
half of S more, since prompts of one length take equally long. Time is counted in passes, because
requests end, and so come, with the steps of decoding, which a pass that reads a prompt makes
longer and not more. Source: [Reiser1980], [Schweitzer1979]. Of the others, each of which comes
once in its wait and its Z steps, a share Z / (Z + w) comes while one decodes:

    TPOT = D + Z / (Z + w) (b − 1) P / OSL

Where all b begin together their prompts fill passes T_w one after the other, and the mean of this
first wave is

    request + n_chunks T_w (1 + (b / n − 1) / (2 n_stages))       n prompts share a pass

Of W waves it is one: TTFT is (first + (W − 1) later) / W. Those of later waves come in bursts, in
fewer rounds than Z (`bursts`), which take the place of Z above. All that come between two looks
are found by the same one: prompts that a pass has no room for wait for each other,

    (k / n − 1) / 2 passes      k that come in r rounds, n that share a pass

A request of the first wave is held up
by half of the others' prompts only, since the other half was read before it began to decode, so
that TPOT has 1 − 1 / (2 W) of them.
"""

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A closed loop of requests on each attention rank, each (N,).

    Args:
        running: requests that have places, b; with all their samples.
        round_s: a decode round, D.
        added_s: what one prompt adds to the decodes beside it, P.
        pass_s: a pass that reads prompts, and what rides on it, T.
        n_passes: that a prompt takes by itself.
        n_sharing: prompts that share such a pass as they come.
        most_sharing: prompts that a pass has room for.
        n_lanes: passes under way at once, of stages.
        n_rounds: decode rounds of a request, Z.
        n_polled: rounds between two looks for new requests, r.
    """

    running: FloatArray
    round_s: FloatArray
    added_s: FloatArray
    pass_s: FloatArray
    n_passes: FloatArray
    n_sharing: FloatArray
    most_sharing: FloatArray
    n_lanes: FloatArray
    n_rounds: float
    n_polled: int

    @property
    def n_others(self) -> FloatArray:
        return self.running - 1.0


def under_way_s(loop: Loop, rounds: FloatArray | float) -> FloatArray:
    """Rest of what a request finds under way (N,) [s]; nothing where no other is there.

    Args:
        rounds: in which each of the others comes once.
    """
    cycle_s = rounds * loop.round_s + loop.running * loop.added_s
    busy_s = loop.n_others * loop.n_passes * loop.pass_s / (loop.n_sharing * loop.n_lanes)
    share = np.minimum(1.0, busy_s / cycle_s)
    decoding_s = np.minimum(1.0, loop.n_others) * loop.n_polled * loop.round_s
    return np.asarray(((1.0 - share) * decoding_s + share * loop.pass_s) / 2.0)


def held_up_s(loop: Loop, waiting: FloatArray) -> FloatArray:
    """What prompts of others add to the rounds of one request, all together (N,) [s].

    Args:
        waiting: passes that each of them waits.
    """
    share = loop.n_rounds / (loop.n_rounds + waiting)
    return np.asarray(loop.n_others * loop.added_s * share)


def waiting_passes(loop: Loop, rounds: FloatArray | float) -> FloatArray:
    """Wait for prompts of others that came before, in passes that read prompts (N,) [1].

    Args:
        rounds: in which each of the others comes once.
    """
    each = loop.n_passes / (loop.most_sharing * loop.n_lanes)
    excess = (loop.n_others - 1.0) * each - rounds
    room = loop.n_others * (each * each)
    root = np.sqrt(excess * excess + 2.0 * room)
    # where almost nobody waits, the two of the sum cancel: it is written as a quotient there
    few = room / (root + np.abs(excess))
    return np.where(excess > 0.0, (root + excess) / 2.0, few)


def crowding_passes(loop: Loop, rounds: FloatArray | float) -> FloatArray:
    """Wait for prompts that the same look finds, in passes that read prompts (N,) [1].

    Args:
        rounds: in which each of the others comes once.
    """
    passes = loop.n_others * loop.n_polled / rounds
    each = loop.n_passes / (loop.most_sharing * loop.n_lanes)
    return np.asarray(np.maximum(0.0, passes * each - 1.0) / 2.0)


def first_wave_s(
    running: FloatArray,
    pass_s: FloatArray,
    *,
    n_passes: FloatArray,
    n_sharing: FloatArray,
    n_stages: IntArray | int,
) -> FloatArray:
    """Mean time until the prompts of b requests are read that come at once (N,) [s].

    Args:
        pass_s: full of prompts.
        n_sharing: prompts in it.
    """
    before = np.maximum(0.0, running / n_sharing - 1.0) / (2.0 * n_stages)
    return np.asarray(n_passes * pass_s * (1.0 + before))
