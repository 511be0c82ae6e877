"""What a plan says that a little more would buy, held against plans of requests and of files that
have it."""

from __future__ import annotations

from random import Random

import pytest

from planner.planning.proving.plans import resource_gains
from planner.quantities.table import QUANTITIES, objective_of
from planner.specs.files.what_if import each_by
from tests.conformance.conflicts import Drawn, feasible
from tests.conformance.test_what_if import write_files

FEW, ALL = range(4), range(4, 100)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.research) for seed in ALL)]
TOLERANCE = 1e-7


def gained(before: float, after: float, objective: str) -> float:
    """Share of an objective that another request gains."""
    return after / before - 1.0 if objective_of(objective).is_rate else 1.0 - after / before


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_looser_limit_gains_is_what_a_request_with_it_gains(seed):
    request, limits = feasible(seed)
    best = request.solved(limits)
    known = {use.name: use for use in best.limits if use.gain_fraction is not None}
    assert known.keys() >= limits.keys()
    for name in limits:
        looser = limits[name] * known[name].relief
        if QUANTITIES[name].is_count:
            looser = -(-looser // 1) if QUANTITIES[name].is_least else looser // 1
        after = request.solved(limits | {name: looser}).certificate.objective
        gain = gained(best.certificate.objective, after, request.objective)
        assert known[name].gain_fraction == pytest.approx(gain, abs=TOLERANCE), name


@pytest.mark.parametrize("seed", SEEDS)
def test_what_more_of_a_resource_gains_is_what_files_with_it_gain(seed, tmp_path, monkeypatch):
    """The files of devices, servers, kernels and engines here, each with so much more."""
    request, limits = feasible(seed + 1000)
    request = Drawn(**{**request.__dict__, "pool": "h100-nvl8-x2"})
    if request.runtime == "erdil2025":
        request = Drawn(**{**request.__dict__, "runtime": "roofline"})
    if not request.has_plan(limits):
        limits = {}
    best, random = request.solved(limits), Random(seed)
    gains = {gain.name: gain for gain in resource_gains(best, each_by(1.1))}
    (memory,) = (use for use in best.limits if use.name == "hbm")
    assert memory.gain_fraction == pytest.approx(gains["hbm_bytes"].gain_fraction, abs=TOLERANCE)
    names = sorted(gains) if seed in ALL else random.sample(sorted(gains), 2)
    for name in names:
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        write_files(name, gains[name].factor)
        after = request.solved(limits).certificate.objective
        assert gains[name].objective == pytest.approx(after, rel=TOLERANCE), name
        gain = gained(best.certificate.objective, after, request.objective)
        assert gains[name].gain_fraction == pytest.approx(gain, abs=TOLERANCE), name
