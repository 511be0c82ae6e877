"""argv to values of options, and everything that is wrong with it."""

from __future__ import annotations

import pytest

from planner.commands.options.parsing import parse


def faults(*argv: str) -> list[tuple[str, str, str]]:
    return [(p.where, p.value, p.fact) for p in parse(list(argv)).problems]


def test_what_parses_is_kept_in_one_spelling():
    said = parse(["--batch", "8", "--max-cost=$2/Mtoken", "--json"])
    assert said.words == ["--batch=8", "--max-cost=$2/Mtoken", "--json"]
    assert said.problems == []


@pytest.mark.parametrize("value", ["-5ms", "-$2/Mtoken", "-.5s", "-"])
def test_a_negative_value_is_a_value(value):
    assert parse(["--latency-target", value]).words == [f"--latency-target={value}"]


def test_what_is_not_said_is_usual_or_nothing():
    said = parse(["--pp", "2"])
    assert (said.tp, said.pp, said.solver, said.gap, said.weights) == (None, 2, "highs", 0.0, ())
    assert (said.is_given("--pp"), said.is_given("--gap")) == (True, False)


def test_a_fault_leaves_what_is_usual_behind_so_that_the_rest_can_be_checked():
    said = parse(["--objective", "speed", "--input", "0", "--tp", "x"])
    assert (said.objective, said.input, said.tp) == ("cost", 2048, None)
    assert len(said.problems) == 3


def test_a_repair_leaves_as_it_was_what_is_not_said():
    words = ["place.json", "--state", "state.toml"]
    assert parse(["place"]).gap == 0.0
    assert (parse(["repair", *words]).gap, parse(["repair", *words]).loss) == (None, 0.0)


def test_fields_of_records_are_set_by_what_is_said_or_usual():
    said = parse(["--tp", "4", "--max-quality-loss", "1%", "--seed", "7"])
    assert said.sets("Degrees") == {"tensor": 4}
    assert said.sets("Targets") == {"quality_loss_fraction": 0.01}
    assert said.sets("SolverOptions")["seed"] == 7
    assert "prefer" not in said.sets()


def test_what_means_nothing_under_a_runtime_is_refused_and_as_if_it_were_not_said():
    said = parse(["--chunk", "?", "--tp", "8"])
    said.refuse_under(("roofline",))
    assert [(one.where, one.value) for one in said.problems] == [("--chunk", "?")]
    assert said.problems[0].fact == "means nothing without a serving engine"
    assert "chunks" not in said.sets()
    assert said.tp == 8


def test_an_option_without_a_value_is_one_fault():
    assert faults("--batch", "--json") == [("--batch", "", "has no value")]
    assert faults("--batch") == [("--batch", "", "has no value")]
    assert parse(["--gap"]).problems[0].remedy == "write `--gap 1%`"


def test_an_unknown_option_takes_its_value_along():
    assert faults("--bacth", "4", "--json") == [("--bacth", "4", "no such option")]
    assert faults("--bacth=4") == [("--bacth", "4", "no such option")]
    assert parse(["--bacth", "4"]).problems[0].remedy == "did you mean `--batch`?"


def test_the_beginning_of_one_option_is_that_option():
    """By its letters alone `--lat` looks more like `--batch`."""
    assert parse(["--lat", "30ms"]).problems[0].remedy == "did you mean `--latency-target`?"


def test_an_option_unlike_any_other_points_to_the_help():
    said = parse(["--xyzzy"])
    assert said.problems[0].remedy == ""
    assert said.hints == ["`plan --help` lists the options"]


def test_an_option_given_twice_is_a_fault_unless_it_lists():
    assert faults("--batch", "1", "--batch=2") == [("--batch", "2", "is given twice")]
    assert faults("verify", "a.json", "b.json") == [
        ("b.json", "", "`plan verify` takes one file"),
    ]
    assert parse(["--weights", "bf16", "--weights", "int8"]).problems == []


def test_a_flag_takes_no_value():
    assert faults("--json=yes") == [("--json=yes", "", "takes no value")]


def test_a_misspelt_command_is_recognised_only_in_front():
    assert parse(["modles"]).problems[0].remedy == "did you mean `plan models`?"
    assert parse(["help"]).problems[0].remedy == "did you mean `plan --help`?"
    assert faults("--json", "modles") == [("modles", "", "belongs to no option")]


def test_all_faults_are_found():
    assert len(faults("paln", "--batch", "--bacth", "4", "--json=1", "stray")) == 5


def test_options_that_say_nothing_alone_or_exclude_each_other_are_faults():
    assert faults("--lookahead", "2") == [("--lookahead", "2", "means nothing without `--draft`")]
    assert faults("--json", "--quiet") == [("--quiet", "", "cannot go with `--json`")]
    assert faults("--brief", "--full") == [("--full", "", "cannot go with `--brief`")]
    assert faults("pareto", "--brief", "--all") == [("--all", "", "cannot go with `--brief`")]
    assert faults("pareto", "--csv", "-", "--full") == [("--full", "", "cannot go with `--csv -`")]
    assert not faults("pareto", "--csv", "file.csv", "--brief")
    assert faults("pareto", "--csv", "-", "--all") == [("--all", "", "cannot go with `--csv -`")]


def test_what_must_not_be_left_out_is_a_fault():
    assert faults("verify") == [("plan verify", "", "no answer is given")]
    assert faults("experts") == [("--ranks", "", "is not given")]


def test_an_option_of_another_command_takes_its_value_along():
    assert faults("--speed", "70tok/s") == [("--speed", "70tok/s", "means nothing to `plan`")]
    (problem,) = parse(["repair", "a", "--state", "b", "--roles", "apart"]).problems
    assert problem.fact == "is of a placement that is made anew"


def test_values_by_name_have_each_name_once():
    said = parse(
        ["place", "--demand", "a=1tok/s", "--demand", "b=2tok/s", "--price", "$2/h,h20=$1/h"]
    )
    assert (said.demand, said.price) == ({"a": 1.0, "b": 2.0}, {"": 2.0, "h20": 1.0})
    assert faults("place", "--demand", "a=1tok/s", "--demand", "a=2tok/s") == [
        ("--demand", "a=2tok/s", "is given twice"),
    ]
    assert faults("place", "--replicas", "1", "--replicas", "2") == [
        ("--replicas", "2", "is given twice: write MODEL=VALUE"),
    ]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["--objective", "latncy"], "did you mean `latency`?"),
        (["--solver", "HiGHS"], "did you mean `highs`?"),
        (["--prefill", "Q"], "it is latency or cost"),
        (["--overlap", "none,two-bach"], "did you mean `two-batch`?"),
    ],
)
def test_a_misspelt_choice_is_recognised(words, remedy):
    (problem,) = parse(words).problems
    assert problem.remedy == remedy


def test_devices_may_be_asked_for_as_json_beside_one_name():
    said = parse(["devices", "--json", "h20"])
    assert (said.name, said.json, said.problems) == ("h20", True, [])
    assert faults("devices", "--json", "h20", "h200") == [
        ("h200", "", "`plan devices` takes one name")
    ]
    assert faults("devices", "--svg", "x") == [
        ("--svg", "x", "means nothing to `plan devices`"),
    ]


@pytest.mark.parametrize("command", ["models", "topologies"])
def test_a_list_takes_one_name_and_says_it_to_programs(command):
    assert parse([command, "palm-540b"]).name == "palm-540b"
    assert faults(command, "a", "b") == [("b", "", f"`plan {command}` takes one name")]
    assert faults(command, "--csv", "-") == [("--csv", "-", f"means nothing to `plan {command}`")]
    assert parse([command, "--json"]).json
    assert parse([command, "--help"]).standing == "--help"


@pytest.mark.parametrize("word", ["--help", "-h", "--version", "--install-completion"])
def test_words_that_stand_alone_are_heard_beside_faults(word):
    assert parse(["--frob", "--batch", "0", word]).standing == word
