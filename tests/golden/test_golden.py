"""Every kept answer is still given; `python -m tests.golden` says what moved, and keeps it."""

from __future__ import annotations

import pytest

from tests.golden.answers import kept
from tests.golden.drawing import requests
from tests.golden.running import Case, answered, files, moved, read, working_folder

CASES = [(path, case) for path in files() for case in read(path)]


@pytest.fixture(scope="module")
def _folder():
    with working_folder():
        yield


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize(
    "case", [case for _, case in CASES], ids=[f"{path.stem}: {case.name}" for path, case in CASES]
)
def test_an_answer_is_as_it_was(case: Case) -> None:
    new = answered(case)
    assert not [str(one) for one in moved(case.values, dict(new.values))]
    assert not [f"~{one}" for one in moved(case.statistics, dict(new.statistics))]


def test_all_commands_runtimes_and_endings_are_among_them() -> None:
    kinds = {case.values["kind"] for _, case in CASES}
    assert len(CASES) >= 300
    assert len(kinds) >= 15
    assert {case.values["code"] for _, case in CASES} == {0, 1, 2}
    assert len({case.name for _, case in CASES}) == len(CASES)


def test_what_is_drawn_is_drawn_again() -> None:
    assert requests(3) == requests(3) != requests(4)


DEPLOYMENT = {"tpot_s": 0.03, "weights_format": "int8", "batch": 8, "fits": True}


def altered(**changes: object) -> list[str]:
    def of(deployment: object) -> dict:
        return dict(kept(0, {"kind": "plan", "answer": {"deployment": deployment}}).values)

    return [str(one) for one in moved(of(DEPLOYMENT), of({**DEPLOYMENT, **changes}))]


def test_noise_of_rounding_is_no_change() -> None:
    assert altered(tpot_s=0.03 * (1 + 1e-8)) == []
    assert altered(tpot_s=0.03 * (1 + 1e-6)) == ["deployment.tpot_s: 0.03 → 0.03000003"]


def test_a_name_a_count_and_a_truth_are_compared_exactly() -> None:
    assert altered(weights_format="int4") == ['deployment.weights_format: "int8" → "int4"']
    assert altered(batch=9) == ["deployment.batch: 8 → 9"]
    assert altered(fits=1) == ["deployment.fits: true → 1"]


def test_what_is_gone_new_or_renamed_is_told_apart() -> None:
    assert altered(batch=None) == ["deployment.batch: 8 → nothing"]
    assert altered(n_stages=2) == ["deployment.n_stages: nothing → 2"]
    assert altered(batch=None, n_sequences=8) == ["deployment.batch is now deployment.n_sequences"]


def test_a_long_list_is_kept_as_its_first_last_and_sum_and_its_names_counted() -> None:
    points = [
        {"tpot_s": t, "layout": "WS 2D" if t > 2 else "WG X"} for t in (1.5, 2.0, 3.0, 4.0, 5.0)
    ]
    values = kept(0, {"kind": "frontier", "answer": {"points": points}}).values
    assert values == {
        "code": 0,
        "kind": "frontier",
        "points.n": 5,
        "points.tpot_s.first": 1.5,
        "points.tpot_s.last": 5.0,
        "points.tpot_s.sum": 15.5,
        "points.layout.of": "2×WG X, 3×WS 2D",
    }


def test_words_clocks_and_equal_devices_are_left_out_and_searches_set_apart() -> None:
    certificate = {"bound": 2.0, "wall_s": 0.5, "n_solved": 7, "screens": [{"name": "hbm", "n": 3}]}
    answer = {"replicas": [{"n_devices": 2, "nodes": ["node0"], "reason": "it fits"}]}
    found = kept(0, {"kind": "placement", "answer": answer, "certificate": certificate})
    assert found.values == {
        "code": 0,
        "kind": "placement",
        "replicas[0].n_devices": 2,
        "certificate.bound": 2.0,
    }
    assert found.statistics == {"certificate.n_solved": 7, "certificate.screens[hbm].n": 3}
