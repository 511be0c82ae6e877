"""fleet-sim's cases: the program's fleets are no dearer than those that it publishes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from research.fleetsim import (
    HOURS,
    TTFT_S,
    by_shortest_path,
    by_slots,
    case,
    chosen,
    gpus,
    homogeneous,
    simulated,
)

PUBLISHED_AZURE_USD = 168e3
"""A year of 19 A10G in two pools, "cheapest"; 141 K of LMSYS was its best mix of two."""


def test_azure_takes_19_a10g_as_published() -> None:
    one = case("azure_2023", 8192)
    solution, fleet = chosen(one, 2)
    assert [(each.gpu.name, each.upto) for each in fleet] == [("a10g", 3072), ("a10g", 8192)]
    assert sum(each.n_gpus for each in fleet) == 19
    assert solution.objective * HOURS == pytest.approx(PUBLISHED_AZURE_USD, rel=1e-3)
    assert len(solution.vouched.by) > 1


def test_sizes_of_one_pool_are_its_own_but_for_a_gpu() -> None:
    """It publishes 12, 6 and 21, of 3000 lengths that it draws; here all lengths count."""
    one = case("azure_2023", 8192)
    found = {gpu.name: homogeneous(one, gpu) for gpu in gpus()}
    assert {name: each and each.n_gpus for name, each in found.items()} == {
        "a100": 13,
        "h100": 7,
        "a10g": 21,
    }


@pytest.mark.parametrize(("counts_reading", "most", "kusd"), [(True, 2, 115.0), (False, 3, 106.2)])
def test_lmsys_is_cheaper_than_published(*, counts_reading: bool, most: int, kusd: float) -> None:
    """A third pool only pays where its prompts, which take longer than the target, do not count."""
    one = replace(case("lmsys_chat_1m", 65536), counts_reading=counts_reading)
    solution, fleet = chosen(one, most)
    assert len(fleet) <= most
    assert solution.objective * HOURS / 1e3 == pytest.approx(kusd, abs=0.1)
    assert solution.objective == pytest.approx(by_shortest_path(one, most))


@pytest.mark.research
def test_prompts_on_slow_gpus_miss_the_target_that_the_formula_keeps() -> None:
    """Its p99 is of the wait alone: of what prompts take it has the mean, with nothing beside."""
    one = case("azure_2023", 8192)
    _, fleet = chosen(one, 2)
    shared = simulated(one, fleet, n_requests=3000)
    for pool in fleet:
        assert shared[pool].ttft.at_s(0.99) > TTFT_S
        assert np.quantile(by_slots(one, pool, n_requests=5000), 0.99) > TTFT_S
