"""argv, freed of what no option can mean."""

from __future__ import annotations

import pytest

from planner.commands.options.arguments import tidy


def faults(*argv: str) -> list[tuple[str, str, str]]:
    return [(p.where, p.value, p.fact) for p in tidy(list(argv)).problems]


def test_what_parses_is_kept_in_one_spelling():
    said = tidy(["--batch", "8", "--max-cost=$2/Mtoken", "--json"])
    assert said.tokens == ["--batch=8", "--max-cost=$2/Mtoken", "--json"]
    assert said.problems == []


@pytest.mark.parametrize("value", ["-5ms", "-$2/Mtoken", "-.5s", "-"])
def test_a_negative_value_is_a_value(value):
    assert tidy(["--latency-target", value]).tokens == [f"--latency-target={value}"]


def test_an_option_without_a_value_is_one_fault():
    assert faults("--batch", "--json") == [("--batch", "", "has no value")]
    assert faults("--batch") == [("--batch", "", "has no value")]


def test_an_unknown_option_takes_its_value_along():
    assert faults("--bacth", "4", "--json") == [("--bacth", "4", "no such option")]
    assert faults("--bacth=4") == [("--bacth", "4", "no such option")]
    assert tidy(["--bacth", "4"]).problems[0].remedy == "did you mean `--batch`?"


def test_the_beginning_of_one_option_is_that_option():
    """By its letters alone `--lat` looks more like `--batch`."""
    assert tidy(["--lat", "30ms"]).problems[0].remedy == "did you mean `--latency-target`?"


def test_an_option_unlike_any_other_points_to_the_help():
    said = tidy(["--xyzzy"])
    assert said.problems[0].remedy == ""
    assert said.hints == ["`plan --help` lists the options"]


def test_an_option_given_twice_is_a_fault_unless_it_lists():
    assert faults("--batch", "1", "--batch=2") == [("--batch", "2", "is given twice")]
    assert tidy(["--weights", "bf16", "--weights", "int8"]).problems == []


def test_a_flag_takes_no_value():
    assert faults("--json=yes") == [("--json=yes", "", "takes no value")]


def test_a_misspelt_command_is_recognised_only_in_front():
    assert tidy(["modles"]).problems[0].remedy == "did you mean `plan models`?"
    assert tidy(["help"]).problems[0].remedy == "did you mean `plan --help`?"
    assert faults("--json", "modles") == [("modles", "", "belongs to no option")]


def test_all_faults_are_found():
    assert len(faults("paln", "--batch", "--bacth", "4", "--json=1", "stray")) == 5


def test_devices_may_be_asked_for_as_json_beside_one_name():
    assert tidy(["devices", "--json", "h20"]).tokens == ["devices", "--json", "h20"]
    assert faults("devices", "--json", "h20", "h200") == [
        ("h200", "", "`plan devices` takes one name")
    ]
    assert faults("devices", "--html") == [("--html", "", "is no option of `plan devices`")]


@pytest.mark.parametrize("command", ["models", "topologies"])
def test_a_list_takes_one_name_and_no_options(command):
    assert tidy([command, "palm-540b"]).tokens == [command, "palm-540b"]
    assert faults(command, "a", "b") == [("b", "", f"`plan {command}` takes one name")]
    assert faults(command, "--json") == [("--json", "", f"is no option of `plan {command}`")]
    assert tidy([command, "--help"]).tokens == [command, "--help"]
