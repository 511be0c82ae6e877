"""No row of [Erdil2025] goes untested."""

from __future__ import annotations

from collections import Counter

from research.economics import (
    rows,
    test_integers,
    test_points,
    test_searches,
    test_toy,
)


def test_every_row_is_claimed_by_one_test_module():
    modules = (test_integers, test_points, test_searches, test_toy)
    claims = Counter(row.number for module in modules for row in module.CLAIMED)
    assert claims == Counter(row.number for row in rows.all_rows())
    assert len(claims) == 778
