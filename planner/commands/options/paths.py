"""Commands that are hinted at, with files named by their paths, as the request named them."""

from __future__ import annotations

import shlex

from planner.specs.places import is_path


def with_paths(command: str, written: tuple[tuple[str, str, str], ...]) -> str:
    """A command in which what the user gave as a file is given as that file.

    Args:
        command: of `plan`, or empty.
        written: option, its text as the user wrote it, and the name in the file.
    """
    words = shlex.split(command)
    for option, text, name in written:
        if not words or not is_path(text):
            continue
        if option not in words:  # the file has the name that is the default
            words[1:1] = [option, text]
        elif words[words.index(option) + 1] == name:
            words[words.index(option) + 1] = text
    return shlex.join(words)
