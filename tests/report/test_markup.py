"""Pages show what a name brings along, and obey none of it."""

from planner.report.words import escape


def test_marks_and_what_does_not_print_are_shown():
    assert escape('<b a="1">&\u202e') == r"&lt;b a=&quot;1&quot;&gt;&amp;\u202e"


def test_lines_and_tied_spaces_stay():
    assert escape("a\nb\u00a0c") == "a\nb\u00a0c"
