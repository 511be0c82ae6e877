"""Deployments are inside where rows say so, counted one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.region import UNKNOWN, Settings, levels_of, outside_error, region
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.served_formats import ServedFormats
from planner.specs.region import region_errors, settings

FORMATS = ServedFormats(weights="fp8", experts="fp8", cache="bf16")
PLACES = [
    ("trtllm", "h100-sxm", "dense", 2000.0, 500.0),
    ("vllm", "h100-sxm", "dense", 1024.0, 1024.0),
    ("sglang", "h100-sxm", "dense", 1024.0, 1024.0),
    ("sglang", "h200", "mixture", 1024.0, 1024.0),
    ("vllm", "l40s", "dense", 1024.0, 128.0),
    ("an engine of mine", "h100-sxm", "mixture", 1024.0, 1024.0),
]


def drawn(n: int = 60, formats: ServedFormats = FORMATS, **said: object) -> Settings:
    rng = np.random.default_rng(7)
    tensor, data, stages = (rng.choice([1, 1, 2, 4, 8, 16], n) for _ in range(3))
    return Settings(
        table=deployments(
            formats=formats,
            n_tensor=tensor,
            n_data=np.where(rng.random(n) < 0.7, 1, data),
            n_stages=np.where(rng.random(n) < 0.8, 1, stages),
            n_expert_parallel=rng.choice([1, 1, 4, 8], n),
            batch=rng.integers(1, 600, n),
            overlaps=rng.random(n) < 0.1,
        ),
        run_formats=formats,
        **{"role": "together", "n_drafted": 0, "n_per_node": 8, **said},
    )


def by_rows(place, some: Settings, i: int) -> dict[str, float]:
    """What is outside of deployment i, and its error: every property over every row."""
    engine, device, kind, n_input, n_output = place
    pools = [
        ("", [s for s in settings() if (s.engine, s.device, s.kind) == (engine, device, kind)]),
        ("device", [s for s in settings() if (s.engine, s.kind) == (engine, kind)]),
        ("engine", [s for s in settings() if s.kind == kind]),
    ]

    def enough(rows):
        return (
            sum(s.n_rows for s in rows) >= 10 and len({n for s in rows for n in s.run_numbers}) > 1
        )

    lacking, rows = next((name, rows) for name, rows in pools if enough(rows) or name == "engine")
    values = {
        name: str(np.ravel(it)[i % np.size(it)]) for name, it in some.properties(kind).items()
    }
    load = int(some.in_flight[i])
    found = [lacking] if lacking else []
    near, long = True, True
    for names in (*((name,) for name in values), ("tp", "ep"), ("pp", "role")):
        if len(names) == 2 and any(name in found for name in names):
            continue
        alike = [s for s in rows if all(getattr(s, name) == values[name] for name in names)]
        if not enough(alike):
            found.append(" × ".join(names))
            continue
        lengths = [
            s
            for s in alike
            if max(s.n_input / n_input, n_input / s.n_input) <= 2
            and max(s.n_output / n_output, n_output / s.n_output) <= 2
        ]
        long &= enough(lengths)
        near &= enough([s for s in lengths if max(s.in_flight / load, load / s.in_flight) <= 2])
    if not long:
        found.append("lengths")
    elif not near:
        found.append("batch")
    return {name: region_errors()[name] for name in found}


@pytest.mark.parametrize("place", PLACES, ids=lambda it: "-".join(map(str, it[:3])))
@pytest.mark.parametrize(
    "said", [{}, {"role": "prefill"}, {"n_drafted": 2}, {"n_per_node": 4}], ids=str
)
def test_what_is_outside_is_what_rows_say(place, said):
    some, where = drawn(**said), region(*place)
    found = where.deviation(levels_of(where, some, where.columns(some.in_flight)))
    found = np.broadcast_to(found, len(some.table))
    for i in range(0, len(some.table), 3):
        expected = by_rows(place, some, i)
        assert found[i] == pytest.approx(math.hypot(*expected.values()), abs=1e-12)


def test_some_are_inside():
    """TensorRT-LLM on H100: 357 rows of four runs, dense, in FP8, without stages."""
    where = region(*PLACES[0])
    tensor, batch = zip(*itertools.product((1, 2, 4, 8), (16, 32)), strict=True)
    table = deployments(formats=FORMATS, n_tensor=tensor, batch=batch)
    some = Settings(table=table, run_formats=FORMATS, role="together", n_drafted=0, n_per_node=8)
    assert (where.deviation(levels_of(where, some, where.columns(some.in_flight))) == 0.0).all()


def test_of_a_span_of_batches_the_error_is_the_least_of_them():
    engine, device, kind, n_input, n_output = PLACES[0]
    tensor, batch = (axis.ravel() for axis in np.meshgrid((1, 2, 16), range(1, 900), indexing="ij"))
    table = deployments(formats=FORMATS, n_tensor=tensor, batch=batch)
    usual = {"run_formats": FORMATS, "role": "together", "n_drafted": 0, "n_per_node": 8}
    traffic = Traffic(n_input_tokens=n_input, n_output_tokens=n_output)
    each = outside_error(engine, device, kind, traffic, Settings(table=table, **usual))
    first = np.arange(0, len(batch), 31)  # 899 batches are 29 spans
    some = Settings(table=table.take(first), **usual)
    found = outside_error(engine, device, kind, traffic, some, last=table.batch[first + 30])
    assert np.array_equal(found, np.minimum.reduceat(each, first))
    assert (found < each[first]).any()


def test_stages_and_roles_are_outside_on_every_device():
    places = {(one.engine, one.device, one.kind) for one in settings()}
    for place in sorted(places):
        where = region(*place, 1024.0, 1024.0)
        for said, degrees in (({"role": "prefill"}, {}), ({}, {"n_stages": 2})):
            table = deployments(formats=FORMATS, batch=16, **degrees)
            usual = {"run_formats": FORMATS, "role": "together", "n_drafted": 0, "n_per_node": 8}
            some = Settings(table=table, **{**usual, **said})
            name = "role" if said else "pp"
            assert levels_of(where, some, where.columns(some.in_flight))[name] == UNKNOWN
