"""What does not print is escaped, all else stays."""

import pytest

from planner.specs.files.texts import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\u202eb", r"a\u202eb"),  # letters after it run the other way
        ("a\u2066b\u2069", r"a\u2066b\u2069"),
        ("a\rb\nc\td", r"a\rb\nc\td"),
        ("\udcff", r"\udcff"),
        ("\x00", r"\x00"),
        ("\u200b", r"\u200b"),
        ("4×4×4 ≤ 30 ms, 深い", "4×4×4 ≤ 30 ms, 深い"),
    ],
)
def test_a_character_prints_as_itself_or_as_its_escape(text, shown):
    assert visible(text) == shown
    assert visible(text).isprintable()


def test_what_is_kept_stays():
    assert visible("a\nb\x1bc", keeps="\n") == "a\n" + r"b\x1bc"
