"""`plan calibrate`: words and options in, a table, a file and a picture out."""

from dataclasses import replace

import pytest

from planner.commands.cli import main
from planner.estimates.kernel_files import load_kernels
from planner_workshop.calibration import calibrating
from planner_workshop.calibration.fitting import Errors, fit


def run(capsys, *words):
    code = main(["calibrate", *map(str, words)])
    return code, *capsys.readouterr()


def test_errors_constants_and_refused_rows_are_printed(capsys, plain):
    path = plain(scale=lambda place: 0.1 if place == 5 else 1.0)
    code, out, _ = run(capsys, path, "--device", "h20", "--engine=own")
    assert code == 0
    assert "1 kernel fitted to 29 rows, 1 refused" in out
    assert f"{path}:7  gemm fp8: " in out
    assert "left out" in out
    assert "floor_s 6" in out
    assert "n_sms 78" in out or "smooth" in out


def test_a_file_and_a_picture_are_written(capsys, plain, tmp_path):
    file, picture = tmp_path / "h20-own.toml", tmp_path / "fit.svg"
    words = (plain(), "--device=h20", "--engine=own", "--output", file, "--plot", picture)
    code, _, _ = run(capsys, *words)
    assert code == 0
    assert load_kernels(str(file)).kernels["gemm", "fp8"].fit.n_rows == 30
    text = picture.read_text()
    assert text.startswith("<svg")
    assert text.count("<circle") == 30


def test_several_tables_are_one_calibration(capsys, plain):
    code, out, _ = run(capsys, plain("a.csv"), plain("b.csv"), "--device=h20", "--engine=own")
    assert code == 0
    assert "fitted to 60 rows" in out


def test_everything_that_is_missing_is_told_at_once(capsys, tmp_path):
    code, _, err = run(capsys, "--output", tmp_path / "no/where.toml", "--sms=many")
    assert code == 2
    for word in ("no table is given", "--device", "--engine", "its folder does not exist", "--sms"):
        assert word in err


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("nothing.csv", "no such file or folder"),
        ("empty", "no row of h20 under own is left to fit"),
    ],
)
def test_a_table_that_is_not_there_is_told(capsys, tmp_path, monkeypatch, word, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    code, _, err = run(capsys, word, "--device=h20", "--engine=own")
    assert code == 2
    assert told in err


def test_an_unknown_option_is_told_with_the_nearest(capsys, plain):
    code, _, err = run(capsys, plain(), "--devise=h20", "--device=h20", "--engine=own")
    assert code == 2
    assert "did you mean `--device`?" in err


def test_what_is_written_can_be_read_whatever_the_tables_are_called(capsys, plain, tmp_path):
    """A hundred files of long names: the source of the rows names some, and counts the others."""
    paths = [plain(f"{'k' * 60}-{i}.csv") for i in range(30)]
    file = tmp_path / "own.toml"
    code, _, _ = run(capsys, *paths, "--device=h20", "--engine=own", "--output", file)
    assert code == 0
    source = load_kernels(str(file)).kernels["gemm", "fp8"].fit.source
    assert source.endswith("… and 22 others")
    assert len(source) <= 300


@pytest.mark.parametrize("words", [("--engine=a\nb",), ("--engine=own", "--source", "x" * 301)])
def test_a_text_that_no_file_may_hold_is_refused(capsys, plain, words):
    code, _, err = run(capsys, plain(), "--device=h20", *words)
    assert code == 2
    assert "is not one line of at most 300 characters" in err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"outside": Errors(n_rows=30, median=3.0, p90=12.0)},
            "one in ten is off by 12 times its time",
        ),
        ({"constants": {"floor_s": 1.0}}, "the fit's floor_s is above 0.01"),
    ],
)
def test_a_fit_that_no_file_may_hold_is_refused_and_not_written(
    capsys, plain, tmp_path, monkeypatch, change, told
):
    def spoilt(*arguments, **keywords):
        found = fit(*arguments, **keywords)
        constants = {**found.constants, **change.get("constants", {})}
        return replace(found, **{**change, "constants": constants})

    monkeypatch.setattr(calibrating, "fit", spoilt)
    file = tmp_path / "own.toml"
    code, _, err = run(capsys, plain(), "--device=h20", "--engine=own", "--output", file)
    assert code == 2
    assert told in " ".join(err.split())
    assert not file.exists()


def test_a_faulty_table_of_another_device_is_in_nobodys_way(capsys, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/mine.toml").write_text('[table]\ndevice = "h100-sxm"\n')
    code, _, _ = run(capsys, plain(), "--device=h20", "--engine=own")
    assert code == 0
    (tmp_path / "kernels/mine.toml").write_text('[table]\ndevice = "h20"\n')
    code, _, err = run(capsys, plain(), "--device=h20", "--engine=own")
    assert code == 2
    assert "kernels/mine.toml: table.name" in err
