"""Fleets do what is reckoned by hand, what the books say, and what a plainer simulation does."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from planner.specs.records.roles import (
    AT_RANDOM,
    DECODE,
    LEAST_PRESENT,
    PREFILL,
    ROUND_ROBIN,
    Station,
)
from planner.specs.traffic.arrivals import POISSON_ARRIVALS, replaying
from planner.specs.traffic.distributions import FixedTokens
from planner.specs.traffic.lengths import IndependentLengths, TraceLengths
from planner.specs.traffic.percentiles import GoodputTarget, PercentileTarget
from planner.specs.traffic.records import Arriving, TrafficClass
from planner.specs.traffic.texts import arrivals_of, tokens_of
from planner.specs.traffic.trace_files import load_trace
from planner.verifier.simulation import workers
from planner.verifier.simulation.fleets import simulate
from planner.verifier.simulation.outcomes import FleetOutcome, student_t
from planner.verifier.simulation.pools import (
    ClassLoad,
    Handover,
    ListedRequests,
    Pool,
    Route,
)
from planner.verifier.simulation.runs import Run
from tests.verifier.simulation.queueing import one_server_s, several_servers_s, waiting_share
from tests.verifier.simulation.stations import poisson, station

DATA = Path(__file__).parents[2] / "data" / "fleet"

Request = tuple[float, int, int]


def _listed(requests: Sequence[Request]) -> ListedRequests:
    return ListedRequests(
        listed=[Arriving(at_s=at, n_input=a, n_output=b) for at, a, b in requests]
    )


def _load(requests: Sequence[Request], **others: object) -> ClassLoad:
    given = {"name": "all", "source": _listed(requests), "routes": (Route(pool="pool"),)}
    return ClassLoad(**{**given, **others})  # type: ignore[arg-type]


def _ran(pools: Sequence[Pool], classes: Sequence[ClassLoad], n: int = 1000) -> Run:
    run = Run(pools, classes, n, seed=1)
    run.serve([0, n])
    return run


def _ttft_s(run: Run) -> list[float]:
    first = run.workers.log.first_s
    return [one - at for one, at in zip(first, run.arrived_s, strict=True)]


def _finite(pools: Sequence[Pool], classes: Sequence[ClassLoad], n: int) -> FleetOutcome:
    return simulate(
        pools, classes, n_requests=n, n_batches=1, warm_up_share=0.0, wind_down_share=0.0
    )


ONE_AT_A_TIME = station(most_running=1, chunk_tokens=8192, pass_s=0.1, read_s=1e-4)
"""A prompt of 1000 tokens takes 0.2 s, each further token 10 ms."""


def test_two_replicas_in_turn_by_hand() -> None:
    """The third waits for the first, which ends at 0.2 + 10 × 0.01; the fourth for nobody."""
    pool = Pool(name="pool", station=ONE_AT_A_TIME, n_replicas=2, router=ROUND_ROBIN)
    requests = [(0.0, 1000, 11), (0.1, 1000, 1), (0.2, 1000, 1), (0.31, 1000, 1)]
    assert _ttft_s(_ran([pool], [_load(requests)])) == pytest.approx([0.2, 0.2, 0.3, 0.2])


def test_two_replicas_with_the_fewest_by_hand() -> None:
    """The third, of two that have one each, goes to the first, whose turn it is; so the fourth,
    at 0.31, goes to the second, which has been empty since 0.3."""
    pool = Pool(name="pool", station=ONE_AT_A_TIME, n_replicas=2, router=LEAST_PRESENT)
    requests = [(0.0, 1000, 11), (0.1, 1000, 1), (0.2, 1000, 1), (0.31, 1000, 1)]
    run = _ran([pool], [_load(requests)])
    assert run.workers.rank_of == [0, 1, 0, 1]
    assert _ttft_s(run) == pytest.approx([0.2, 0.2, 0.3, 0.2])
    later = _ran([pool], [_load([*requests[:2], (0.301, 1000, 1), (0.302, 1000, 1)])])
    assert later.workers.rank_of == [0, 1, 0, 1]


def _fewest(requests: Sequence[Request], n: int) -> list[float]:
    """TTFT behind n servers of one request each, of which the one with the fewest gets it."""
    ends: list[list[float]] = [[] for _ in range(n)]
    found, turn = [], 0
    for at, n_input, n_output in requests:
        present = [sum(end > at for end in one) for one in ends]
        chosen = min(range(n), key=lambda i: (present[i], (i - turn) % n))
        turn = (chosen + 1) % n
        begins = max(at, ends[chosen][-1] if ends[chosen] else 0.0)
        first = begins + 0.1 + 1e-4 * n_input
        ends[chosen].append(first + 0.01 * (n_output - 1))
        found.append(first - at)
    return found


def test_the_fewest_is_what_a_plainer_simulation_chooses() -> None:
    requests = poisson(600, 9.0, 1000, 12.0)
    pool = Pool(name="pool", station=ONE_AT_A_TIME, n_replicas=4)
    found = _ttft_s(_ran([pool], [_load(requests)]))
    assert found == pytest.approx(_fewest(requests, 4))


def test_ranks_of_a_replica_share_what_it_gets() -> None:
    """Two replicas of two ranks in turn: four requests at once stand on ranks of their own."""
    two = station(most_running=1, pass_s=0.1, read_s=1e-4, n_ranks=2)
    pool = Pool(name="pool", station=two, n_replicas=2, router=ROUND_ROBIN)
    run = _ran([pool], [_load([(0.0, 1000, 1)] * 4)])
    assert sorted(run.workers.rank_of) == [0, 1, 2, 3]
    assert _ttft_s(run) == pytest.approx([0.2] * 4)


def test_a_rank_that_is_done_gets_the_next() -> None:
    """Of two ranks the second is done first."""
    two = station(most_running=1, pass_s=0.1, read_s=1e-4, n_ranks=2)
    pool = Pool(name="pool", station=two, n_replicas=1)
    run = _ran([pool], [_load([(0.0, 1000, 50), (0.0, 1000, 1), (0.3, 1000, 1)])])
    assert run.workers.rank_of == [0, 1, 1]


def test_a_request_is_ready_once_its_text_is_read() -> None:
    slow = station(pass_s=0.1, read_s=1e-4, request_s=0.05, request_token_s=1e-5)
    pool = Pool(name="pool", station=slow, n_replicas=1)
    requests = [(0.0, 10_000, 1), (0.01, 100, 1)]
    first, second = _ttft_s(_ran([pool], [_load(requests)]))
    assert second == pytest.approx(0.05 + 0.001 + 0.1 + 0.01)  # it is there before the other
    assert first == pytest.approx(0.061 + 0.11 + 0.1 + 0.8192 + 0.1 + 0.1808)


def _apart(n_prefill: int = 1, n_decode: int = 1) -> list[Pool]:
    prefill = station(role=PREFILL, pass_s=0.1, read_s=1e-4, decode=None, chunk_tokens=1000)
    decode = station(role=DECODE, reading=None)
    return [
        Pool(name="reads", station=prefill, n_replicas=n_prefill),
        Pool(name="writes", station=decode, n_replicas=n_decode),
    ]


def _apart_route(**others: float) -> Route:
    given = {"latency_s": 0.05, "bytes_per_s": 1e4, "token_bytes": 2.0} | others
    return Route(pool="reads", then="writes", handover=Handover(**given))


def test_prefill_and_decode_apart_by_hand() -> None:
    """Prompts of 0.2 s one after the other; caches of 2000 B, 0.2 s each, latency 50 ms.

    The first is there at 0.45 and begins its 4 passes of 10 ms. The second, read by 0.4, finds the
    link free and is there at 0.65.
    """
    run = _ran(_apart(), [_load([(0.0, 1000, 5), (0.0, 1000, 5)], routes=(_apart_route(),))])
    log = run.workers.log
    assert log.first_s == pytest.approx([0.45, 0.65])
    assert log.last_s == pytest.approx([0.49, 0.69])


def test_a_link_in_use_is_waited_for() -> None:
    """At half the rate a cache takes 0.4 s: the second begins when the first is there, at 0.6."""
    route = _apart_route(bytes_per_s=5e3)
    run = _ran(_apart(), [_load([(0.0, 1000, 5), (0.0, 1000, 5)], routes=(route,))])
    assert run.workers.log.first_s == pytest.approx([0.65, 1.05])


def test_pairs_have_links_of_their_own_and_replicas_a_wire() -> None:
    """Of one reader and two writers both links move at once, unless the reader's wire is full."""
    requests = [(0.0, 1000, 5), (0.0, 1000, 5)]
    free = _load(requests, routes=(_apart_route(bytes_per_s=5e3),))
    assert _ran(_apart(1, 2), [free]).workers.log.first_s == pytest.approx([0.65, 0.85])
    wired = _load(requests, routes=(_apart_route(wire_bytes_per_s=5e3),))
    assert _ran(_apart(1, 2), [wired]).workers.log.first_s == pytest.approx([0.65, 1.05])


def test_an_answer_of_one_token_is_not_handed_over() -> None:
    run = _ran(_apart(), [_load([(0.0, 1000, 1)], routes=(_apart_route(),))])
    assert run.workers.log.last_s == pytest.approx([0.2])


def test_what_is_cached_of_every_prompt_is_not_read() -> None:
    """1100 tokens of which 100 are cached: 0.1 + 0.1, and 20 ms for an answer of three."""
    pool = Pool(name="pool", station=ONE_AT_A_TIME, n_replicas=1)
    run = _ran([pool], [_load([(0.0, 1000, 3), (9.0, 500, 3)], n_cached_tokens=100)])
    assert run.workers.log.n_input == [1100, 600]
    assert run.workers.log.n_cached == [100, 100]
    assert _ttft_s(run) == pytest.approx([0.2, 0.15])


def test_classes_are_counted_apart_and_nothing_is_lost() -> None:
    """In one pool and in pools of their own; gaps of a class are as many as its tokens."""
    one = station(step_s=0.01, pass_s=0.005, read_s=1e-5, most_running=16)
    other = station(step_s=0.05, pass_s=0.005, read_s=1e-5, most_running=16)
    pools = [
        Pool(name="pool", station=one, n_replicas=2),
        Pool(name="slow", station=other, n_replicas=1, router=AT_RANDOM),
    ]
    chat, code = poisson(400, 8.0, 300, 20.0), poisson(300, 6.0, 700, 10.0, seed=2)
    apart = [_load(chat, name="chat"), _load(code, name="code", routes=(Route(pool="slow"),))]
    found = _finite(pools, apart, 700)
    assert found.of("chat").itl.at_s(0.5) == pytest.approx(0.01, rel=0.01)
    assert found.of("code").itl.at_s(0.5) == pytest.approx(0.05, rel=0.01)
    both = [_load(chat, name="chat"), _load(code, name="code")]
    mixed = _finite(pools[:1], both, 700)
    tight = station(step_s=0.01, pass_s=0.005, read_s=1e-5, most_running=16, room_bytes=1410.0)
    crowded = _finite([Pool(name="pool", station=tight, n_replicas=1)], both, 700)
    assert crowded.pool("pool").n_begun_again > 10
    for outcome in (found, mixed, crowded):
        for name, requests in (("chat", chat), ("code", code)):
            assert outcome.of(name).n_requests == len(requests)
            assert outcome.of(name).itl.n == sum(n_output - 1 for _, _, n_output in requests)
            assert outcome.of(name).tpot.n == sum(n_output > 1 for _, _, n_output in requests)


def test_routes_are_chosen_by_length_and_by_share() -> None:
    pools = [
        Pool(name=name, station=ONE_AT_A_TIME, n_replicas=1, router=ROUND_ROBIN)
        for name in ("short", "long", "more")
    ]
    routes = (
        Route(pool="short", upto_tokens=100),
        Route(pool="long", above_tokens=100, share=1.0),
        Route(pool="more", above_tokens=100, share=3.0),
    )
    requests = [(float(i), 100 if i % 2 else 101, 1) for i in range(2000)]
    run = _ran(pools, [_load(requests, routes=routes)], n=2000)
    assert set(run.workers.rank_of[1::2]) == {0}
    longs = run.workers.rank_of[0::2]
    assert set(longs) == {1, 2}
    assert longs.count(2) == pytest.approx(750, abs=4 * math.sqrt(1000 * 0.75 * 0.25))
    with pytest.raises(ValueError, match="class `all` has no route for a prompt of 101 tokens"):
        _ran(pools, [_load(requests, routes=(routes[0], routes[0]))])


def test_who_has_no_room_anywhere_is_refused_and_counted() -> None:
    pool = Pool(name="pool", station=station(room_bytes=500.0, pass_s=0.1), n_replicas=1)
    requests = [(0.0, 100, 5), (0.0, 600, 5)] * 50
    load = _load(requests, goodput=GoodputTarget(share=0.9, ttft_s=1e6))
    found = _finite([pool], [load], 100).of("all")
    assert (found.n_refused, found.n_requests) == (50, 100)
    assert found.goodput is not None
    assert found.goodput.value == 0.5
    assert math.isinf(found.ttft.at_s(0.9))
    assert not found.meets(PercentileTarget(quantity="ttft", share=0.9, at_most_s=1e6))


def _class(rate_per_s: float, n_input: str = "1", n_output: str = "1") -> TrafficClass:
    lengths = IndependentLengths(input=tokens_of(n_input), output=tokens_of(n_output))
    return TrafficClass(name="all", models=(), rate_per_s=rate_per_s, lengths=lengths)


def test_queues_before_random_replicas_are_those_of_the_books() -> None:
    """M/D/1 before each of three: the mean wait is in its interval, twice as wide for safety."""
    one = station(most_running=1, pass_s=0.01, chunk_tokens=1)
    pool = Pool(name="pool", station=one, n_replicas=3, router=AT_RANDOM)
    load = _load((), source=_class(225.0))
    found = simulate([pool], [load], n_requests=60_000).of("all").ttft.mean_s
    wait = one_server_s(75.0, 0.01)
    assert found.value - 0.01 == pytest.approx(wait, abs=2.0 * found.half_width)
    assert found.half_width < 0.1 * wait


def test_places_of_one_replica_are_servers_of_one_queue() -> None:
    """M/M/c: 8 places, passes of 1 ms, 200 of them for a geometric answer; half a pass is added.

    Of those that wait the tail is exponential, of rate c μ − λ: so are percentiles.
    """
    one = station(most_running=8, step_s=0.001)
    requests = poisson(50_000, 28.0, 1, 201.0, seed=4)
    pool = Pool(name="pool", station=one, n_replicas=1)
    found = simulate([pool], [_load(requests)], n_requests=50_000)
    wait_s, ttft = several_servers_s(8, 28.0, 0.2), found.of("all").ttft
    mean, p95 = ttft.mean_s, ttft.percentiles_s[0.95]
    assert mean.value == pytest.approx(wait_s + 0.0005, abs=2.0 * mean.half_width)
    tail_s = math.log(waiting_share(8, 5.6) / 0.05) / (8 / 0.2 - 28.0)
    assert p95.value == pytest.approx(tail_s, abs=2.0 * p95.half_width + 0.001)
    busy = found.pool("pool").utilisation
    assert busy.value == pytest.approx(1.0 - _idle_share(8, 5.6), abs=0.002)


def _idle_share(n_servers: int, offered: float) -> float:
    """Of M/M/c: how often nobody is there."""
    terms = [offered**k / math.factorial(k) for k in range(n_servers)]
    full = offered**n_servers / math.factorial(n_servers) / (1.0 - offered / n_servers)
    return 1.0 / (sum(terms) + full)


def test_intervals_hold_what_they_are_to_hold() -> None:
    """M/D/1 at half load: of 40 intervals of 95 % at least 34 have the mean of the books."""
    one = station(most_running=1, pass_s=0.01, chunk_tokens=1)
    pool = Pool(name="pool", station=one, n_replicas=1)
    wait = one_server_s(50.0, 0.01)
    held = 0
    for seed in range(40):
        found = simulate([pool], [_load((), source=_class(50.0))], n_requests=3000, seed=seed)
        mean = found.of("all").ttft.mean_s
        held += mean.low <= wait + 0.01 <= mean.high
    assert held >= 34


def test_a_seed_says_everything() -> None:
    pool = Pool(name="pool", station=station(pass_s=0.01, read_s=1e-5), n_replicas=3)
    load = _load((), source=_class(30.0, "lognormal:500:cv=1", "exponential:30"))
    one, again = (simulate([pool], [load], n_requests=2000, seed=3) for _ in range(2))
    assert one == again
    assert one != simulate([pool], [load], n_requests=2000, seed=4)
    assert (one.n_requests, one.n_warm_up, one.n_wind_down) == (2000, 200, 40)


@pytest.mark.parametrize("mixes", [True, False])
def test_it_does_not_matter_whether_somebody_looks(
    mixes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks that run by themselves do what they do where each end is waited for."""
    one = station(
        mixes_prefill=mixes,
        n_polled_rounds=1 if mixes else 4,
        each_s=1e-4,
        pass_s=0.005,
        read_s=2e-5,
        room_bytes=3000.0,
        most_running=16,
    )
    pool = Pool(name="pool", station=one, n_replicas=2, router=ROUND_ROBIN)
    requests = poisson(1500, 24.0, 300, 40.0)
    free = _ran([pool], [_load(requests)], n=1500)
    monkeypatch.setattr(workers, "_is_watched", lambda _: True)
    waited = _ran([pool], [_load(requests)], n=1500)
    assert free.workers.log.first_s == pytest.approx(waited.workers.log.first_s)
    assert free.workers.log.last_s == pytest.approx(waited.workers.log.last_s)
    assert sum(rank.n_begun_again for rank in free.workers.ranks) > 0


def test_a_bursty_trace_makes_others_wait_longer_than_the_same_requests_at_random() -> None:
    trace = load_trace(DATA / "azure2023_code.csv.gz")
    one = station(each_s=1e-4, pass_s=0.005, read_s=2e-5, most_running=256)
    pool = Pool(name="pool", station=one, n_replicas=2)
    found = []
    for arrivals in (replaying(trace), POISSON_ARRIVALS):
        source = TrafficClass(
            name="code",
            models=(),
            rate_per_s=trace.rate_per_s,
            lengths=TraceLengths(trace=trace),
            arrivals=arrivals,
        )
        found.append(_finite([pool], [_load((), source=source)], len(trace)).of("all").ttft)
    assert found[0].at_s(0.95) > 2.0 * found[1].at_s(0.95)


def test_constant_arrivals_of_fixed_lengths_wait_for_nobody() -> None:
    even = TrafficClass(
        name="all",
        models=(),
        rate_per_s=4.0,
        lengths=IndependentLengths(
            input=FixedTokens(n_tokens=1000), output=FixedTokens(n_tokens=3)
        ),
        arrivals=arrivals_of("constant"),
    )
    pool = Pool(name="pool", station=ONE_AT_A_TIME, n_replicas=1)
    found = _finite([pool], [_load((), source=even)], 50).of("all")
    assert found.ttft.at_s(0.99) == pytest.approx(0.2)
    assert found.tpot.at_s(0.5) == pytest.approx(0.01)
    assert found.e2e.at_s(0.5) == pytest.approx(0.22)


def test_students_t_is_that_of_tables() -> None:
    known = {4: 2.776, 9: 2.262, 19: 2.093, 29: 2.045}
    assert {n: student_t(n) for n in known} == pytest.approx(known, rel=0.005)


def test_every_station_serves_all() -> None:
    """Routers, roles and rooms at random: everybody who is not refused is served, in order."""
    draw = random.Random(11)
    for _ in range(12):
        one: Station = station(
            each_s=1e-4,
            pass_s=0.004,
            read_s=3e-5,
            mixes_prefill=draw.random() < 0.5,
            n_polled_rounds=draw.choice((1, 4)),
            composes_ahead=draw.random() < 0.5,
            room_bytes=draw.choice((1500.0, 1e6)),
            most_running=draw.choice((2, 16)),
            chunk_tokens=draw.choice((128, 2048)),
            reserved_fraction=draw.choice((0.0, 0.3, 1.0)),
            n_ranks=draw.choice((1, 2)),
        )
        router = draw.choice((LEAST_PRESENT, ROUND_ROBIN, AT_RANDOM))
        pool = Pool(name="pool", station=one, n_replicas=draw.choice((1, 3)), router=router)
        run = _ran([pool], [_load(poisson(150, 20.0, 300, 30.0))], n=150)
        log = run.workers.log
        times = list(zip(run.arrived_s, log.first_s, log.last_s, strict=True))
        assert len(times) == 150
        assert all(at < first <= last for at, first, last in times)
