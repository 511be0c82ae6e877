"""Constants of shipped kernel files, spoilt one at a time; all: `tests.calibration.mutations`."""

import random

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.constants import RANGES, constants_of
from tests.calibration.mutations import cases, fault, matters

ALL = list(cases())
DRAWN = random.Random(7).sample(ALL, 600)


def test_a_spoilt_constant_is_refused_by_its_name_or_changes_times(tmp_path):
    assert [f"{one.name}: {found}" for one in DRAWN if (found := fault(one, tmp_path))] == []


def test_every_constant_counts_in_some_kernel_that_ships():
    """What no kernel shows to count could be dropped without anyone noticing."""
    wanted = {(one.family, one.constant) for one in ALL}
    shown = set()
    for one in ALL:
        if (one.family, one.constant) not in shown and matters(one):
            shown.add((one.family, one.constant))
    # of a few products of experts none was fitted with tiles
    assert sorted(wanted - shown) == []
    assert {name for _, name in wanted} == {*RANGES}
    assert wanted <= {(one.name, name) for one in FAMILIES.values() for name in constants_of(one)}
