"""Files are refused before the work, or written whole: till then the old one stands."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

from planner.report.files import replace_file, unwritable


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fact(name: str, **others: str) -> str:
    problems = unwritable({"--html": name, **others})
    assert len(problems) <= 1
    return problems[0].fact if problems else ""


class TestUnwritable:
    @pytest.mark.parametrize("name", ["a.html", "./a.html", "old.html"])
    def test_a_file_of_a_folder_is_fine_there_already_or_not(self, folder, name):
        (folder / "old.html").touch()
        assert fact(name) == ""

    def test_none_is_asked_for(self):
        assert unwritable({"--html": None}) == []

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("", "is no file"),
            ("-", "is no file"),
            (".", "is a folder"),
            ("nowhere/a.html", "its folder does not exist"),
            ("x" * 300, "is no name that a file can have"),
            ("a\0b", "is no name that a file can have"),
            ("loop", "is a link that leads nowhere"),
        ],
    )
    def test_what_is_no_file(self, folder, name, said):
        (folder / "loop").symlink_to("loop")
        assert fact(name) == said

    def test_what_is_no_regular_file(self, folder):
        os.mkfifo("pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
        assert "is not a regular file" in fact("pipe")
        assert "is not a regular file" in fact("socket")

    def test_a_link_to_a_new_file_is_fine(self, folder):
        (folder / "link").symlink_to("there.html")
        assert fact("link") == ""

    def test_where_the_report_goes(self, folder, monkeypatch):
        with Path("out.txt").open("w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert fact("out.txt") == "is where the report goes"

    def test_two_options_of_one_file(self, folder):
        (folder / "same").symlink_to("a.html")
        problems = unwritable({"--html": "a.html", "--csv": "same", "--svg": "b.svg"})
        assert [(p.where, p.fact) for p in problems] == [("--csv", "is the file of `--html` too")]

    def test_what_is_not_allowed(self, folder, monkeypatch):
        """Simulated, since root may write everything."""
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
        assert fact("a.html") == "permission denied"


class TestReplaceFile:
    def test_a_new_file_has_the_mode_that_the_umask_leaves(self, folder):
        before = os.umask(0o027)
        try:
            replace_file("a.html", "new ×\n")
        finally:
            os.umask(before)
        path = folder / "a.html"
        assert path.read_bytes() == "new ×\n".encode()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_an_old_file_keeps_its_mode_and_other_names_keep_the_old_text(self, folder):
        path = folder / "a.html"
        path.write_text("old", encoding="utf-8")
        path.chmod(0o604)
        (folder / "second").hardlink_to(path)
        replace_file("a.html", "new")
        assert path.read_text(encoding="utf-8") == "new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
        assert (folder / "second").read_text(encoding="utf-8") == "old"

    def test_a_link_keeps_pointing_where_it_did(self, folder):
        (folder / "other").mkdir()
        (folder / "link").symlink_to("other/there.html")
        replace_file("link", "new")
        assert (folder / "link").readlink() == Path("other/there.html")
        assert (folder / "other" / "there.html").read_text(encoding="utf-8") == "new"

    @pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace", "os.fchmod"])
    def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
        self, folder, monkeypatch, failing
    ):
        def fail(*args):
            raise OSError(28, "No space left on device")

        (folder / "a.html").write_text("old", encoding="utf-8")
        monkeypatch.setattr(failing, fail)
        with pytest.raises(OSError, match="No space"):
            replace_file("a.html", "new")
        assert (folder / "a.html").read_text(encoding="utf-8") == "old"
        assert [path.name for path in folder.iterdir()] == ["a.html"]

    def test_a_folder_that_has_vanished_is_an_error_of_the_system(self, folder):
        with pytest.raises(FileNotFoundError):
            replace_file("gone/a.html", "new")

    @pytest.mark.usefixtures("hears_ctrl_c")
    def test_ctrl_c_waits_until_the_file_is_whole(self, folder, monkeypatch):
        sync = os.fsync

        def interrupted(descriptor):
            signal.raise_signal(signal.SIGINT)
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replace_file("a.html", "new")
        assert (folder / "a.html").read_text(encoding="utf-8") == "new"
        assert [path.name for path in folder.iterdir()] == ["a.html"]

    @pytest.mark.usefixtures("hears_ctrl_c")
    def test_a_second_ctrl_c_leaves_the_old_file(self, folder, monkeypatch):
        def insisted(descriptor):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

        (folder / "a.html").write_text("old", encoding="utf-8")
        monkeypatch.setattr(os, "fsync", insisted)
        with pytest.raises(KeyboardInterrupt):
            replace_file("a.html", "new")
        assert (folder / "a.html").read_text(encoding="utf-8") == "old"
        assert [path.name for path in folder.iterdir()] == ["a.html"]
