"""Engine files: read, checked with all faults at once, every value with its source."""

from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.engine_files import load_engine

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
