"""A deadline holds for everything within it, counts from the start, and is nobody else's."""

from __future__ import annotations

import math
import threading
import time
from types import SimpleNamespace

import pytest

from planner.errors import OutOfTimeError
from planner.running.deadlines import (
    LEAST_TIME_S,
    check,
    counted_from,
    is_over,
    left_s,
    only_within,
    share,
    solver_limit_s,
    timed,
    within,
)


def test_without_a_limit_there_is_all_the_time_in_the_world():
    with within(None):
        assert left_s() == math.inf
        assert solver_limit_s() is None
        assert not is_over()
        check()


def test_what_is_left_shrinks_and_a_solver_is_given_no_more_than_that():
    with within(5.0):
        first = left_s()
        assert 4.0 < first <= 5.0
        time.sleep(0.02)
        assert left_s() <= first - 0.02
        assert solver_limit_s() == pytest.approx(left_s(), abs=0.01)


def test_one_limit_may_stand_in_the_place_of_all_that_are_asked_for():
    with counted_from(time.perf_counter() - 3.0), within(2.0):
        assert is_over()
        with counted_from(None), within(5.0):
            assert is_over()  # no more than is left
    with only_within(5.0), within(0.0):
        assert 4.0 < left_s() <= 5.0
    with counted_from(time.perf_counter() - 3.0), counted_from(None), within(2.0):
        assert 1.0 < left_s() <= 2.0


def test_of_limits_within_limits_the_first_to_end_holds_and_outside_it_holds_no_more():
    with within(5.0):
        with within(1.0):
            assert left_s() <= 1.0
            with within(100.0):
                assert left_s() <= 1.0
        assert left_s() > 1.0
    assert left_s() == math.inf


def test_when_it_is_over_a_solver_still_has_an_instant_and_half_things_are_refused():
    with within(0.0):
        assert is_over()
        assert left_s() == 0.0
        assert solver_limit_s() == LEAST_TIME_S
        with pytest.raises(OutOfTimeError) as caught:
            check()
    assert caught.value.time_limit_s == 0.0
    assert caught.value.exit_code == 3


def test_the_error_names_the_limit_that_ended_and_not_a_part_of_it():
    with within(0.001), share(0.5):
        time.sleep(0.002)
        with pytest.raises(OutOfTimeError, match=r"no plan within 0\.001 s"):
            check()


def test_in_a_command_limits_count_from_its_start():
    with counted_from(time.perf_counter() - 3.0), within(5.0):
        assert 1.0 < left_s() <= 2.0
        with within(3.5):
            assert left_s() <= 0.5
    with within(5.0):
        assert left_s() > 4.0


def test_a_part_may_take_a_share_of_what_is_left():
    with within(10.0):
        with share(0.6):
            assert 5.0 < left_s() <= 6.0
        assert left_s() > 9.0
    with share(0.6):
        assert left_s() == math.inf


def test_threads_have_deadlines_of_their_own():
    seen = []
    with within(0.0):
        thread = threading.Thread(target=lambda: seen.append(left_s()))
        thread.start()
        thread.join()
    assert seen == [math.inf]


@timed
def asked(*, options=None, time_limit_s=None, **choices):
    return left_s()


@pytest.mark.parametrize(
    "given",
    [
        {"time_limit_s": 2.0},
        {"options": SimpleNamespace(time_limit_s=2)},
        {"choices": 1, "options": SimpleNamespace(time_limit_s=2.0)},
    ],
)
def test_a_function_ends_within_the_limit_that_it_is_given(given):
    assert 1.0 < asked(**given) <= 2.0
    assert left_s() == math.inf


def test_options_among_keywords_count_too():
    @timed
    def compared(**choices):
        return left_s()

    assert compared(options=SimpleNamespace(time_limit_s=2.0)) <= 2.0


@pytest.mark.parametrize("limit", [None, "2s", True, float("nan"), -1.0])
def test_what_is_no_limit_is_the_functions_to_refuse(limit):
    assert asked(time_limit_s=limit) == math.inf
    with pytest.raises(TypeError, match=r"positional"):
        asked(1, 2)


def test_options_of_a_request_count_too():
    @timed
    def found(request):
        return left_s()

    assert found(SimpleNamespace(options=SimpleNamespace(time_limit_s=2.0))) <= 2.0
    assert found(SimpleNamespace(options=SimpleNamespace(time_limit_s=None))) == math.inf
