"""Requests served on arrays, one by one as the verifier's simulation serves them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.estimates.simulation import core
from planner.runtimes.simulation import simulate
from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.fleets import simulate as judge
from planner.verifier.simulation.pools import ClassLoad, Handover, ListedRequests, Pool, Route
from tests.estimates.queues.situations import situation
from tests.schedulers.stations import ROUTERS, outcomes, requests, same
from tests.verifier.simulation.stations import station


@pytest.fixture(params=["as it is installed", "as text"])
def inner_loop(request, monkeypatch):
    """Compiled, where there was a compiler, and its text."""
    if request.param == "as text":
        monkeypatch.setenv(core.SETTING, "0")
    core._loaded.cache_clear()
    yield
    monkeypatch.undo()
    core._loaded.cache_clear()


@pytest.mark.parametrize("seed", [*range(24), 115, 212])
def test_replicas_serve_what_the_judge_has_them_serve(inner_loop, seed):
    """Stations of the field, one to three replicas, each router: percentiles, gaps, busy times.

    `python -m tests.schedulers stations` has 500.
    """
    same(*outcomes(seed))


@pytest.mark.parametrize("seed", range(8))
def test_classes_share_pools_hand_caches_over_and_have_prompts_refused(inner_loop, seed):
    """Two classes: one is read here and decoded there over narrow links, one goes either way."""
    draw = np.random.default_rng(seed)
    room = 60_000.0
    pools = [
        Pool(
            name="reads",
            station=station(role="prefill", decode=None, read_s=2e-5, room_bytes=room),
            n_replicas=2,
        ),
        Pool(
            name="writes",
            station=station(role="decode", reading=None, each_s=1e-4, room_bytes=room),
            n_replicas=3,
            router=ROUTERS[seed % 3],
        ),
        Pool(
            name="both",
            station=station(
                read_s=2e-5, each_s=1e-3, room_bytes=4_000.0, most_running=16, n_ranks=2
            ),
            n_replicas=2,
        ),
    ]
    handover = Handover(
        latency_s=0.002, bytes_per_s=2e5, wire_bytes_per_s=4e5, sequence_bytes=5.0, token_bytes=1.0
    )
    apart = Route(pool="reads", then="writes", handover=handover, share=2.0)
    loads = []
    for number, routes in enumerate(((apart,), (apart, Route(pool="both", upto_tokens=8_000)))):
        at_s = np.cumsum(draw.exponential(0.05, 400)).tolist()
        sizes = draw.integers(1, 3_000, 400).tolist()
        sizes[150] = 7_999 if number else 70_000  # which no room is large enough for
        written = draw.integers(1, 200, 400).tolist()
        listed = [
            Arriving(at_s=a, n_input=i, n_output=o)
            for a, i, o in zip(at_s, sizes, written, strict=True)
        ]
        loads.append(
            ClassLoad(name=f"c{number}", source=ListedRequests(listed=listed), routes=routes)
        )
    asked = {"n_requests": 700, "seed": seed, "n_batches": 4}
    ours = simulate(pools, loads, **asked)
    same(ours, judge(pools, loads, **asked))
    assert ours.classes[0].n_refused + ours.classes[1].n_refused > 0
    assert ours.pool("both").n_begun_again > 0


def test_text_and_compiled_agree_bit_by_bit(monkeypatch):
    if not core.is_compiled():
        pytest.skip("no compiler was at hand when the package was installed")
    one = situation(5)
    pools = [Pool(name="a", station=one.station, n_replicas=2)]
    source = requests(np.random.default_rng(1), one.load, one.load.rate_per_s * 2, 500)
    loads = [ClassLoad(name="x", source=source, routes=(Route(pool="a"),))]
    compiled = simulate(pools, loads, n_requests=500)
    monkeypatch.setenv(core.SETTING, "0")
    core._loaded.cache_clear()
    assert not core.is_compiled()
    assert repr(simulate(pools, loads, n_requests=500)) == repr(compiled)
    monkeypatch.undo()
    core._loaded.cache_clear()


def test_what_was_compiled_of_another_text_is_not_run(monkeypatch):
    monkeypatch.setattr(core, "text_hash", lambda text: "of another text")
    core._loaded.cache_clear()
    assert not core.is_compiled()
    monkeypatch.undo()
    core._loaded.cache_clear()


def test_a_lone_request_takes_the_time_of_its_passes():
    """A prompt of 100 tokens in 1 ms of reading each, then nine steps of 10 ms."""
    pools = [Pool(name="a", station=station(read_s=1e-3), n_replicas=1)]
    source = ListedRequests(listed=[Arriving(at_s=2.0, n_input=100, n_output=10)])
    loads = [ClassLoad(name="x", source=source, routes=(Route(pool="a"),))]
    shares = {"warm_up_share": 0.0, "wind_down_share": 0.0}
    (found,) = simulate(pools, loads, n_requests=1, **shares).classes
    assert found.ttft.at_s(0.5) == pytest.approx(0.1)
    assert found.tpot.at_s(0.5) == pytest.approx(0.01)
    assert found.e2e.at_s(0.5) == pytest.approx(0.19)
    assert math.isclose(found.itl.at_s(0.5), 0.01, rel_tol=6e-3)


def test_more_may_stand_ready_at_once_than_a_queue_of_events_begins_with(inner_loop):
    """Two thousand come together, each a while before it stands in line."""
    listed = [Arriving(at_s=1.0, n_input=10 + i % 7, n_output=2) for i in range(2000)]
    one = station(request_s=5.0, request_token_s=1e-3, most_running=4)
    pools = [Pool(name="a", station=one, n_replicas=2)]
    loads = [ClassLoad(name="x", source=ListedRequests(listed=listed), routes=(Route(pool="a"),))]
    asked = {"n_requests": 2000, "seed": 0, "n_batches": 5}
    same(simulate(pools, loads, **asked), judge(pools, loads, **asked))
