"""The stage program: its rows, its judge, and the text of its mathematics.

`python tests/programs/test_stages.py` writes `lp/stages.lp` anew after a deliberate change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner_workshop.staging.cuts.program import (
    Stage,
    StageProgram,
    bottleneck_ms,
    bottleneck_values,
    columns,
    latency_ms,
    violations,
)

GOLDEN = Path(__file__).parent / "lp" / "stages" / "stages.lp"


def line(n_units, *, n_groups, speeds=None, room=np.inf, hand=0.0):
    """Units of 1 ms and 1 GiB each, on kinds that take `speeds` times as long."""
    speeds = speeds or [1.0] * len(n_groups)
    ends = np.arange(n_units + 1.0)
    length = ends[None, :] - ends[:, None]
    n_kinds = len(n_groups)
    return StageProgram(
        kinds=tuple("ab"[:n_kinds]),
        n_groups=np.array(n_groups),
        run_ms=length * np.array(speeds)[:, None, None],
        held_gib=np.broadcast_to(length, (n_kinds, n_units + 1, n_units + 1)).copy(),
        room_gib=np.full(n_kinds, room),
        hand_ms=np.full((n_kinds, n_kinds), float(hand)),
    )


TWO = line(3, n_groups=(1, 1), speeds=[1.0, 2.0], hand=0.5)
FIRST = (Stage(kind=0, first=0, last=2), Stage(kind=1, first=2, last=3))


@pytest.mark.parametrize("unit_ms", [1e-8, 1.0, 1e8])
def test_times_that_can_be_bottlenecks_are_the_same_in_any_unit_and_but_for_rounding(unit_ms):
    """Four units of a: 1 to 4 units long, each in several places that differ by the last bits."""
    exact = line(4, n_groups=(2,))
    noise = 1.0 + 1e-15 * np.random.default_rng(0).uniform(-1.0, 1.0, exact.run_ms.shape)
    program = replace(exact, run_ms=exact.run_ms * unit_ms * noise)
    assert bottleneck_values(program) / unit_ms == pytest.approx([1.0, 2.0, 3.0, 4.0])


def test_all_stages_but_the_last_hand_over():
    """2 × 1 ms + 0.5 ms on a, then 1 × 2 ms on b: 4.5 ms in all, 2.5 ms the slowest."""
    assert latency_ms(TWO, FIRST) == 4.5
    assert bottleneck_ms(TWO, FIRST) == 2.5
    assert violations(TWO, FIRST, at_most_ms=2.5) == {}


@pytest.mark.parametrize(
    ("cut", "broken"),
    [
        ((), {"enter": 1.0}),
        ((Stage(kind=2, first=0, last=3),), {"enter": 1.0}),
        ((Stage(kind=0, first=2, last=2),), {"enter": 1.0}),
        ((Stage(kind=0, first=1, last=3),), {"start": 1.0}),
        ((Stage(kind=0, first=0, last=2),), {"leave": 1.0}),
        ((Stage(kind=0, first=0, last=2), Stage(kind=1, first=1, last=3)), {"leave": 1.0}),
        ((Stage(kind=0, first=0, last=2), Stage(kind=0, first=2, last=3)), {"groups": 1.0}),
        ((Stage(kind=1, first=0, last=3),), {"bottleneck": 1.0}),
    ],
)
def test_a_broken_row_is_named_with_its_amount(cut, broken):
    """Within 5 ms; all three units on b take 6."""
    assert violations(TWO, cut, at_most_ms=5.0) == broken


def test_memory_beyond_a_group_is_named_in_gib():
    tight = replace(TWO, room_gib=np.array([1.5, 4.0]))
    assert violations(tight, FIRST) == {"memory": 0.5}


def test_columns_that_do_not_fit_are_not_there():
    """Of 3 units on a kind that holds 2: three stages of one, two of two, none of three."""
    one = line(3, n_groups=(3,), room=2.0)
    posed = columns(one)
    assert sorted(zip(posed.first.tolist(), posed.last.tolist(), strict=True)) == [
        (0, 1), (0, 2), (1, 2), (1, 3), (2, 3),
    ]  # fmt: skip


def test_a_column_may_be_followed_only_by_kinds_that_are_handed_to_in_time():
    """a hands to a in 0 ms and to b in 1 ms: one unit within 1.5 ms may go to a alone."""
    uneven = replace(line(2, n_groups=(2, 1)), hand_ms=np.array([[0.0, 1.0], [2.0, 2.0]]))
    posed = columns(uneven, at_most_ms=1.5)
    found = {
        (int(t), int(i), int(j)): int(n)
        for t, i, j, n in zip(posed.kind, posed.first, posed.last, posed.n_next, strict=True)
    }
    assert found == {(0, 0, 1): 1, (0, 1, 2): 0, (1, 1, 2): 0}


def test_times_that_can_be_a_bottleneck_are_listed_once():
    """1 or 2 units and half a millisecond, or 1, 2 or 3 at the end, on a; twice that on b."""
    assert bottleneck_values(TWO).tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 4.5, 6.0]


def test_times_that_differ_by_rounding_are_one():
    shaken = replace(TWO, run_ms=TWO.run_ms * (1.0 + 1e-15 * np.arange(16).reshape(4, 4)))
    assert len(bottleneck_values(shaken)) == 8


def test_arrays_that_differ_in_shape_are_refused():
    with pytest.raises(ValueError, match="hand_ms has shape"):
        replace(TWO, hand_ms=np.zeros((3, 3)))


def lp_text(path):
    import highspy

    from planner.solvers.mixed.highs import highs_lp
    from planner_workshop.staging.cuts.flow import flow

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.passModel(highs_lp(flow(TWO, columns(TWO))))
    assert model.writeModel(str(path)) == highspy.HighsStatus.kOk
    return path.read_text(encoding="utf-8")


def test_the_smallest_program_reads_as_its_golden_file(tmp_path):
    golden = GOLDEN.read_text(encoding="utf-8")
    assert lp_text(tmp_path / "stages.lp") == golden
    for row in ("start", "leave", "enter", "groups"):
        assert f" {row}(" in golden or f" {row}:" in golden


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    lp_text(GOLDEN)
