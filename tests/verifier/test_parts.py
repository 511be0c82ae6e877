"""Who talks to whom within a replica on servers: rows, ranks of a stage, pairs of stages."""

from __future__ import annotations

from planner.verifier.placing.parts import Parts

ROWS = ((("a", "b"), ("c", "d")), (("e", "f"), ("g", "h")))
"""Two stages of two rows of two devices."""

AXES = ("tensor", "data", "pipeline")


def groups(*pieces, names=AXES, rows=ROWS):
    parts = Parts(
        n_inside=len(rows[0][0]),
        n_across=len(rows[0]),
        n_stages=len(rows),
        rows=rows,
        pieces=pieces,
        names=names,
    )
    return dict(parts.groups())


def test_rows_talk_within_and_each_device_to_its_like_in_other_rows():
    found = groups()
    assert found["tensor"] == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
    assert found["data"] == [("a", "c"), ("b", "d"), ("e", "g"), ("f", "h")]


def test_engines_gather_from_a_whole_stage():
    found = groups(names=("tensor", "stage", "pipeline"))
    assert found["stage"] == [("a", "b", "c", "d"), ("e", "f", "g", "h")]


def test_of_pairs_of_stages_those_between_two_pieces_are_told():
    assert groups(("a", "b", "e", "f"))["pipeline"] == [("c", "g"), ("d", "h")]


def test_where_all_stages_are_in_one_piece_all_pairs_are_told():
    found = groups(("a", "b", "c", "d", "e", "f", "g", "h"))
    assert found["pipeline"] == [("a", "e"), ("b", "f"), ("c", "g"), ("d", "h")]


def test_a_device_by_itself_talks_to_nobody():
    assert groups(("a",), rows=((("a",),),)) == {}
