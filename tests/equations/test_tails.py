"""How sure a limit is says what planning for a share of cases says, the other way round."""

from __future__ import annotations

import pytest

from planner.equations.tails import confidence_of, planned_sigmas


@pytest.mark.parametrize("error", [0.02, 0.3])
@pytest.mark.parametrize("share", [0.5, 0.75, 0.9, 0.99])
def test_what_is_planned_for_a_share_of_cases_holds_in_that_share(share, error):
    room = float(planned_sigmas(share, outside=False)) * error
    assert confidence_of(room, error) == pytest.approx(share)
    assert confidence_of(-room, error) == pytest.approx(1.0 - share)
