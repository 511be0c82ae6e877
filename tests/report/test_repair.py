"""What a repair's report lists, and where it stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.report.answers.repair import MOST_LISTED
from tests.report.floorplans import REPAIR
from tests.report.rendering import report_line, report_text

MOVE = REPAIR.moves[0]


@pytest.mark.parametrize(("n_more", "listed"), [(0, MOST_LISTED), (1, MOST_LISTED), (-1, 11)])
def test_as_many_moves_as_are_listed_have_none_more(n_more, listed):
    moves = tuple(replace(MOVE, rank=100 + i) for i in range(MOST_LISTED + n_more))
    text = report_text(replace(REPAIR, moves=moves), 100)
    assert sum(str(100 + i) in text for i in range(len(moves))) == listed
    assert ("more: `--json` lists them all" in text) == (n_more > 0)
    assert ("and 1 more" in text) == (n_more == 1)


def test_only_replicas_that_change_are_listed():
    assert "palm-540b/1  palm-540b/2  patched" in report_text(REPAIR, 100)
    kept = replace(REPAIR, changes=REPAIR.changes[:1], moves=())
    text = report_text(kept, 100)
    assert "replicas that change" not in text
    assert "\nmoves" not in text
    assert "loading" not in text


def test_the_line_counts_replicas_by_what_became_of_them():
    assert report_line(REPAIR) == "4 GB move; replicas: 1 kept, 1 patched; 9.09 % below the best"
    chosen = replace(REPAIR.frontier[1], is_chosen=True)
    best = replace(REPAIR, changes=(), frontier=(chosen,))
    assert report_line(best).endswith("replicas: none; as good as can be")


def test_what_comes_from_storage_is_said_and_is_not_timed():
    assert "80 ms over the links of the busiest device" in report_text(REPAIR, 100)
    assert "from storage" not in report_text(REPAIR, 100)
    stored = replace(REPAIR, moves=(replace(MOVE, source=""),), load_s=0.0)
    text = report_text(stored, 100)
    assert "4 GB come from storage, not timed" in text
    assert "over the links" not in text
