"""The table of runtimes knows every engine that ships."""

from __future__ import annotations

from planner.specs.files.engines import load_engine
from planner.specs.files.places import Kind, files
from planner.specs.records.runtimes import INTERLEAVED, RUNTIMES, TURNS, runtime_of

ENGINES = [path.stem for path in files(Kind.ENGINE)]


def test_each_engine_that_ships_is_a_runtime_that_interleaves_phases():
    assert ENGINES
    for name in ENGINES:
        assert RUNTIMES[name].title == load_engine(name).title
        assert RUNTIMES[name].schedule is INTERLEAVED


def test_every_other_runtime_takes_turns():
    others = [one for name, one in RUNTIMES.items() if name not in ENGINES]
    assert {one.name for one in others} == {"roofline", "erdil2025"}
    assert all(one.schedule is TURNS for one in others)


def test_an_engine_of_the_user_interleaves_phases_under_its_own_name():
    own = runtime_of("own")
    assert (own.name, own.schedule, own.phases) == ("own", INTERLEAVED, ("prefill", "decode"))
    assert runtime_of("vllm") is RUNTIMES["vllm"]
