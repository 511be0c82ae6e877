"""Engine files: read, checked with all faults at once, every value with its source."""

import tomllib
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.files.engines import (
    engine_memory,
    engines_as_in,
    load_engine,
    memory_options,
)

ROOT = Path(__file__).parents[2]
ENGINES = sorted(path.stem for path in (ROOT / "engines").glob("*.toml"))


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_loads_and_names_its_sources(name):
    engine = load_engine(name)
    assert engine.name == name
    assert 0.5 < engine.memory_fraction <= 1
    assert engine.n_block_tokens >= 1
    assert all(one.source for one in engine.provenance)


def test_an_engine_with_faults_tells_them_all(tmp_path):
    text = (ROOT / "engines/vllm.toml").read_text()
    text = text.replace("value = 0.9,", "value = 1.9,").replace('"1.3 ms"', "8")
    path = tmp_path / "vllm.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_engine(str(path))
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"memory.fraction", "steps.prefill_host"}


@pytest.mark.parametrize("name", ENGINES)
def test_what_holds_under_every_engine_is_said_once(name):
    """Its values and sources are those of one file, unless an engine's own says otherwise."""
    common = tomllib.loads((ROOT / "engines/common/steps.toml").read_text(encoding="utf-8"))
    own = tomllib.loads((ROOT / f"engines/{name}.toml").read_text(encoding="utf-8"))
    sources = {one.key: one.source for one in load_engine(name).provenance}
    for key, one in common["steps"].items():
        said = own["steps"].get(key, one)
        assert said["value"] != one["value"] or said is one, f"{key} is said twice"
        assert sources[f"steps.{key}"] == said["source"]


def test_an_engine_of_the_user_has_what_every_engine_has_but_for_what_it_says(tmp_path):
    text = (ROOT / "engines/vllm.toml").read_text(encoding="utf-8")
    own = '[steps]\nrequest = { value = "9 ms", source = "our log" }'
    path = tmp_path / "vllm.toml"
    path.write_text(text.replace("[steps]", own), encoding="utf-8")
    engine, shipped = load_engine(str(path)), load_engine("vllm")
    assert engine.request_s == 0.009
    assert "our log" in {one.source for one in engine.provenance}
    assert engine.layer_gap_s == shipped.layer_gap_s > 0


def test_what_an_engine_may_take_is_said_for_a_block_and_no_longer():
    usual = load_engine("vllm")
    with engine_memory(fraction=0.75):
        asked = load_engine("vllm")
    assert (asked.memory_fraction, asked.workspace_bytes) == (0.75, usual.workspace_bytes)
    assert load_engine("vllm") == usual
    assert memory_options(usual) == {}
    assert memory_options(asked) == {"--memory-fraction": "0.75"}
    with engine_memory(workspace_bytes=2.5 * 2**30):
        assert memory_options(load_engine("vllm")) == {"--workspace": "2.5GiB"}


def test_engines_take_what_an_answer_has_unless_something_else_is_said():
    with engine_memory(fraction=0.75, workspace_bytes=0.0):
        old = load_engine("vllm")
    with engines_as_in([old]):
        assert load_engine("vllm") == old
        assert load_engine("sglang").memory_fraction != 0.75
    with engine_memory(fraction=0.5), engines_as_in([old]):
        again = load_engine("vllm")
    assert (again.memory_fraction, again.workspace_bytes) == (0.5, 0.0)
