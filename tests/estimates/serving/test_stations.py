"""A station's passes are those that the engine's own account times, and so is its room."""

from __future__ import annotations

import numpy as np
import pytest

from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.memory import holding
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import RequestShape, stations
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER, Station
from planner.verifier.simulation.passes import DecodeLookup, ReadingLookup
from tests.estimates.serving.situations import BF16, clock, model


def _serving(name: str, engine: str = "vllm") -> Serving:
    timer = clock("h100-nvl8-x1", engine)
    return Serving(model=model(name), formats=BF16, engine=timer.engine, clock=timer)


def _station(
    serving: Serving, table: DeploymentTable, row: int = 0, role: str = TOGETHER
) -> Station:
    return stations(
        serving,
        table,
        RequestShape(n_input_tokens=1000.0, n_longest_tokens=8192.0),
        names=[str(n) for n in range(len(table))],
        hbm_bytes=serving.clock.device.hbm_bytes,  # type: ignore[attr-defined]
        role=role,
    )[row]


TABLE = deployments(formats=BF16, n_tensor=[2, 4, 8], batch=[48, 200, 256], chunk_tokens=8192)


@pytest.mark.parametrize(("row", "n", "context"), [(0, 1, 0.0), (1, 24, 3000.0), (2, 130, 700.0)])
def test_decode_passes_are_timed_as_the_engine_does(row: int, n: int, context: float) -> None:
    """On the grid to the last digit, between its points within 3 %: kernels go in steps."""
    serving = _serving("llama-3.1-70b")
    lookup = DecodeLookup(_station(serving, TABLE, row).decode, 256)  # type: ignore[arg-type]
    own = serving.pass_time(
        TABLE.take(np.array([row])), PassShape(n_decoding=float(n), context=context)
    )
    expected = own.total_s[0] + serving.decode_host_s(np.array(float(n)))
    tolerance = 1e-12 if n == 1 else 0.03
    assert lookup.step(n, context)[0] == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(
    ("name", "engine", "n", "tokens", "past"),
    [
        ("llama-3.1-70b", "vllm", 0, 1000, 0),
        ("llama-3.1-70b", "vllm", 30, 5000, 0),
        ("llama-3.1-70b", "vllm", 60, 700, 4000),
        ("qwen3-30b-a3b", "sglang", 0, 1000, 0),  # whose kernels of prompts are launched one by one
    ],
)
def test_reading_passes_are_timed_as_the_engine_does(
    name: str, engine: str, n: int, tokens: int, past: int
) -> None:
    serving = _serving(name, engine)
    one = _station(serving, TABLE, 1)
    decode, reads = DecodeLookup(one.decode, 200), ReadingLookup(one.reading)  # type: ignore[arg-type]
    shape = PassShape(
        n_decoding=float(n),
        context=2000.0,
        n_prompts=1.0,
        prompt_tokens=float(tokens),
        past_tokens=float(past),
    )
    own = serving.pass_time(TABLE.take(np.array([1])), shape).total_s[0]
    own += serving.prefill_host_s + (serving.decode_host_s(np.array(float(n))) if n else 0.0)
    found = reads.seconds(n, tokens, past + tokens / 2.0)
    found += decode.step(n, 2000.0)[0] if n else 0.0
    assert found == pytest.approx(own, rel=0.04)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "deepseek-v3", "gpt-oss-120b"])
def test_as_many_sequences_find_room_as_the_engine_says(name: str) -> None:
    """Of the longest sequences, within a block each and what windows keep."""
    serving = _serving(name)
    table = deployments(formats=BF16, n_tensor=8, batch=64, chunk_tokens=8192)
    one = _station(serving, table)
    held = holding(
        serving.model,
        table,
        BF16,
        serving.engine,
        hbm_bytes=serving.clock.device.hbm_bytes,  # type: ignore[attr-defined]
        n_tokens=8192.0,
    )
    assert one.room_bytes == pytest.approx(held.room_bytes[0])
    assert one.held_bytes(8192.0) == pytest.approx(held.sequence_bytes[0], rel=0.01)


def test_a_station_of_one_phase_has_the_passes_of_that_phase() -> None:
    serving = _serving("llama-3.1-70b")
    assert _station(serving, TABLE, role=PREFILL).decode is None
    assert _station(serving, TABLE, role=DECODE).reading is None
    assert _station(serving, TABLE, role=DECODE).request_s == 0.0
