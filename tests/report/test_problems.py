"""What is wrong with a request, in words."""

from __future__ import annotations

from planner.errors import Problem, RequestError
from planner.report.messages import request_text

TOPOLOGY = Problem(where="--topology", value="h100-nvl8-x5", fact="no such topology")
LATENCY = Problem(
    where="--latency-target", value="30", fact="no unit", remedy="write `30ms` or `0.03s`"
)


def text(*problems: Problem, hint: str = "", width: int = 100) -> str:
    return request_text(RequestError(problems, hint=hint), width)


def test_faults_stand_below_each_other_with_their_remedies():
    hint = "did you mean `h100-nvl8-x4`? `plan topologies` lists them all"
    assert text(TOPOLOGY, LATENCY, hint=hint) == (
        "error: the request cannot be read, for 2 reasons\n"
        "\n"
        "  `--topology h100-nvl8-x5`  no such topology\n"
        "  `--latency-target 30`      no unit: write `30ms` or `0.03s`\n"
        "\n"
        "hint: did you mean `h100-nvl8-x4`? `plan topologies` lists them all"
    )


def test_one_fault_is_not_counted():
    assert text(TOPOLOGY).startswith("error: the request cannot be read\n")


def test_a_fault_of_a_file_names_file_key_and_value():
    inside = Problem(where="my.toml", key="memory.hbm", value="32", fact="no unit")
    missing = Problem(where="my.toml", key="memory.reserve", fact="is missing")
    syntax = Problem(where="my.toml:3:1", value="a = = 2", fact="is not TOML")
    assert text(inside, missing, syntax).splitlines()[2:] == [
        "  `my.toml: memory.hbm = 32`  no unit",
        "  `my.toml: memory.reserve`   is missing",
        "  `my.toml:3:1: a = = 2`      is not TOML",
    ]


def test_long_facts_wrap_beside_their_literal():
    long = Problem(where="--batch", value="x", fact=" ".join(["word"] * 30))
    lines = text(long, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].startswith(" " * len("  `--batch x`  ") + "word")


def test_a_long_literal_leaves_the_facts_to_the_next_line():
    long = Problem(where="a/very/long/path/" + "x" * 40 + ".toml", key="a.b", fact="is missing")
    lines = text(long, LATENCY, width=80).splitlines()
    assert lines[3] == "      is missing"
    assert lines[5] == "      no unit: write `30ms` or `0.03s`"


def test_two_hints_are_two_lines():
    assert text(TOPOLOGY, hint="one\ntwo").endswith("\n\nhint: one\nhint: two")


def test_a_long_hint_wraps_unless_it_is_a_command_to_copy():
    names = ", ".join(f"family_{i}" for i in range(30))
    lines = text(TOPOLOGY, hint=f"understood are {names}", width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).endswith(f"hint: understood are {names}")
    command = "`plan " + "--model x " * 20 + "`"
    assert text(TOPOLOGY, hint=command, width=80).splitlines()[-1] == f"hint: {command}"


def test_what_cannot_be_printed_is_escaped_and_what_is_endless_is_cut():
    strange = Problem(where="--model", value="\x1b[31m\n\udcff" + "y" * 500, fact="no such model")
    shown = text(strange)
    assert "\x1b" not in shown
    assert r"\x1b[31m\n\udcffyyy" in shown
    assert "…`" in shown
    assert "y" * 100 not in shown


def test_of_thousands_of_faults_a_hundred_are_listed():
    told = text(*[TOPOLOGY] * 5_000).splitlines()
    assert told[0] == "error: the request cannot be read, for 5,000 reasons"
    assert told[-1] == "  … and 4,900 more"
    assert len(told) == 104
    assert "more" not in text(*[TOPOLOGY] * 100)
