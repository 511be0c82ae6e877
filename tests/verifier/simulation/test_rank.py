"""Ranks do what an engine's scheduler does, and queues before them are those of the books."""

from __future__ import annotations

import math

import pytest

from tests.verifier.simulation.queueing import one_server_s, several_servers_s
from tests.verifier.simulation.stations import poisson, served, station


def test_a_request_alone_takes_its_prompt_and_its_passes() -> None:
    """Prompt 0.1 s + 1000 tokens of 0.1 ms; then 4 passes of 10 ms + 1 ms for the sequence."""
    log = served(station(each_s=0.001, pass_s=0.1, read_s=1e-4), [(2.0, 1000, 5)])
    assert log.first_s[0] == pytest.approx(2.2)
    assert log.last_s[0] == pytest.approx(2.2 + 4 * 0.011)
    assert log.gaps.n == 4


def test_a_long_prompt_is_read_in_chunks_beside_decodes() -> None:
    """The second prompt takes two passes of 8192 − 1 tokens, beside which the first decodes."""
    log = served(station(pass_s=0.1, read_s=1e-4), [(0.0, 1, 1000), (0.2, 10_000, 2)])
    both = 2 * (0.1 + 0.01) + 10_000 * 1e-4
    begun = 0.1001 + 10 * 0.01  # the pass that is under way ends
    assert log.first_s[1] == pytest.approx(begun + both)


def test_prompts_go_first_where_the_engine_reads_them_alone() -> None:
    """Decodes stand still while a prompt is read, and their next gap has it all."""
    one = station(mixes_prefill=False, pass_s=0.1, read_s=1e-4)
    log = served(one, [(0.0, 1000, 100), (0.25, 1000, 1)])
    assert log.first_s[1] == pytest.approx(0.25 + 0.2, abs=0.0101)
    assert log.last_s[0] == pytest.approx(0.2 + 99 * 0.01 + 0.2)
    assert log.gaps.percentile_s(1.0) == pytest.approx(0.21, rel=0.01)


def test_requests_are_looked_for_every_so_many_rounds() -> None:
    """Of rounds of 10 ms every fourth looks: who comes at 15 ms begins at 40."""
    one = station(mixes_prefill=False, n_polled_rounds=4)
    log = served(one, [(0.0, 1, 100), (0.015, 1, 1)])
    assert log.first_s[1] == pytest.approx(0.04)


def test_who_comes_meanwhile_misses_a_pass_that_was_composed_ahead() -> None:
    """Passes of 10 ms: who comes at 15 ms is seen at 20 and read from 30, not from 20 on."""
    arrivals = [(0.0, 1, 100), (0.015, 1, 2)]
    log = served(station(composes_ahead=True), arrivals)
    assert log.first_s[1] == pytest.approx(0.04)
    assert served(station(), arrivals).first_s[1] == pytest.approx(0.03)


def test_nobody_waits_for_a_pass_that_an_idle_engine_did_not_compose() -> None:
    log = served(station(composes_ahead=True, pass_s=0.1), [(0.0, 1, 1), (0.3, 1, 1)])
    assert log.first_s == pytest.approx([0.1, 0.4])


def test_tokens_that_are_still_cached_are_not_read_again() -> None:
    """Of 1000 tokens 900 are cached; of a prompt that is cached whole one token is read."""
    one = station(read_s=1e-4)
    log = served(one, [(0.0, 1000, 1), (1.0, 1000, 1), (2.0, 1000, 1)], [0, 900, 1000])
    assert log.first_s == pytest.approx([0.1, 1.01, 2.0001])


def test_who_began_last_loses_its_place_where_caches_grow_beyond_their_room() -> None:
    """Two sequences of 100 and 50 tokens: room for 149 is reached after 24 passes or so."""
    one = station(room_bytes=149.0, read_s=1e-4)
    log = served(one, [(0.0, 50, 50), (0.0, 50, 50)])
    assert log.n_begun_again == 1
    assert log.last_s[0] < log.last_s[1]
    alone = served(station(read_s=1e-4), [(0.0, 50, 50)])
    assert log.last_s[0] == pytest.approx(alone.last_s[0], abs=0.011)
    assert log.last_s[1] > 0.5 + 0.2


def test_who_lost_its_place_begins_again_once_another_has_ended() -> None:
    """Of 150 + 3 k tokens 215 fit: the last has written 22, at 0.21 s. It goes on when the first
    has ended, at 0.29, not when the second has, and has waited between two tokens for that."""
    one = station(room_bytes=215.0, read_s=1e-5)
    log = served(one, [(0.0, 50, 30), (0.0, 50, 60), (0.0, 50, 100)])
    assert log.n_begun_again == 1
    assert log.last_s[0] == pytest.approx(0.2915)
    again = 72 * 1e-5
    assert log.last_s[2] == pytest.approx(0.2915 + 78 * 0.01 + again)
    assert log.gaps.n == 29 + 59 + 99
    assert log.gaps.percentile_s(1.0) == pytest.approx(0.08 + 0.01 + again, rel=0.01)


def test_who_reserves_the_longest_never_begins_again() -> None:
    one = station(room_bytes=149.0, read_s=1e-4, reserved_fraction=1.0)
    log = served(one, [(0.0, 50, 50), (0.0, 50, 50)])
    assert log.n_begun_again == 0
    assert log.first_s[1] >= log.last_s[0]


def test_a_place_is_all_that_a_queue_with_one_server_has() -> None:
    """M/D/1: one place, answers of one token, a prompt of 10 ms."""
    one = station(most_running=1, pass_s=0.01, chunk_tokens=1)
    requests = poisson(100_000, 80.0, 1, 1.0)
    log = served(one, requests)
    waits = [first - r[0] - 0.01 for first, r in zip(log.first_s, requests, strict=True)]
    assert sum(waits) / len(waits) == pytest.approx(one_server_s(80.0, 0.01), rel=0.05)


def test_places_of_random_answers_are_a_queue_with_so_many_servers() -> None:
    """M/M/c: 8 places, passes of 1 ms, answers of 200 tokens on average, nothing for prompts.

    A geometric answer of 1 ms steps is nearly exponential; half a pass under way is added.
    """
    one = station(most_running=8, step_s=0.001)
    requests = poisson(120_000, 32.0, 1, 200.0)
    log = served(one, requests)
    waits = [first - r[0] for first, r in zip(log.first_s, requests, strict=True)]
    mean_s = several_servers_s(8, 32.0, 0.2)
    assert sum(waits) / len(waits) == pytest.approx(mean_s + 0.0005, rel=0.1)


def test_everybody_is_served_and_nothing_is_left_behind() -> None:
    one = station(each_s=1e-4, pass_s=0.005, read_s=2e-5, room_bytes=6000.0, most_running=16)
    log = served(one, poisson(2000, 6.0, 300, 40.0))
    assert not any(math.isnan(x) for x in log.last_s)
    assert log.gaps.n + 2000 == sum(log.n_output)
