"""A part of the hostile cases; `python -m tests.fuzz --cases 20000` draws as many as one likes."""

from __future__ import annotations

import pytest

from planner.commands.options.commands import COMMANDS, called
from tests.fuzz.cases import MAKERS, SHARES, case, numbered, wrong_with
from tests.fuzz.files import KINDS
from tests.fuzz.judging import complaints
from tests.fuzz.lines import SERVES
from tests.fuzz.running import Ran, in_process

N_CASES = 80
SEED = 11
CASES = numbered(N_CASES, SEED)


@pytest.mark.parametrize("kind", MAKERS)
def test_hostile_cases_end_with_an_answer_or_a_sentence(kind):
    wrong = {f"{kind}:{n}": wrong_with(kind, n) for of, n in CASES if of == kind}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_same_number_is_the_same_case():
    for kind in MAKERS:
        one, two = case(kind, 5), case(kind, 5)
        assert (one.said, one.line, one.files) == (two.said, two.line, two.files)
        assert one.said != case(kind, 6).said


def test_every_command_and_every_kind_of_file_is_drawn():
    """A command that is added to the tables of options is drawn without a line here."""
    lines = [case("words", n).line for n in range(600)]
    started = {" ".join(["plan", *line[:n]]) for line in lines for n in (1, 2)}
    assert started >= {called(name) for name in COMMANDS if name not in SERVES} - {"plan"}
    drawn = {name for n in range(300) for name in case("files", n).files}
    assert drawn >= {kind.name for kind in KINDS.values()}
    assert sum(SHARES.values()) == pytest.approx(1.0)


def test_the_faults_of_an_ending_can_be_seen():
    fine = Ran(0, '{"total": 1}\n', "", 0.1)
    assert complaints(["--json"], fine) == []

    def wrong(**changed):
        (one,) = complaints(["--json"], Ran(**{**vars(fine), **changed}))
        return one

    assert wrong(code=4, err="error: x").startswith("exit 4")
    assert wrong(code=2, out="") == "exit 2 without a sentence: ''"
    assert wrong(cpu_s=21.0) == "took 21.0 s"
    assert wrong(out='{"a": NaN}').startswith("stdout is not one record")
    assert wrong(out='{"a": 1}\n{"b": 2}').startswith("stdout is not one record")
    assert wrong(err="Traceback (most recent call last)") == "a traceback on stderr"
    assert wrong(left=("x/.plan-1-2.tmp",)).startswith("fragments are left")
    assert wrong(out='{"used_bytes": 2.0, "free_bytes": 1.0, "capacity_bytes": 4.0}') == (
        ".capacity_bytes is 4.0, its parts are 3.0"
    )
    assert wrong(out='{"objective": 2.0, "bound": 1.0, "gap": 0.1}').startswith(".gap is 0.1")
    assert wrong(out='{"a": [{"usd_per_token": -1.0}]}') == ".a[0].usd_per_token is -1.0"


def test_a_case_runs_in_a_folder_of_its_own():
    ran = in_process(["pareto", "--html", "x/y.html"], {"x/held": ""})
    assert (ran.code, ran.left) == (0, ("x/y.html",))
    assert in_process(["models", "mini.toml"], {}).code == 2
