"""`plan calibrate`: words and options in, a table, a file and a picture out."""

import pytest

from planner.calibration.kernel_files import load_kernels
from planner.cli import main


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
    for word in ("no table is given", "--device", "--engine", "no such folder", "--sms"):
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
