"""Ascending integers as an option takes them: `1:1024`, `1,2,4`, `8:64:8`."""

from __future__ import annotations

from collections.abc import Sequence


def spans(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Ascending integers as (first, last, step) of runs.

    >>> spans((1, 2, 3, 8, 16, 24, 90))
    [(1, 3, 1), (8, 24, 8), (90, 90, 1)]
    """
    runs: list[tuple[int, int, int]] = []
    start = 0
    while start < len(numbers):
        end, step = start + 1, 1
        if end < len(numbers):
            step = numbers[end] - numbers[start]
            while end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == step:
                end += 1
        if end >= len(numbers) or (step > 1 and end - start < 2):
            end, step = start, 1  # two numbers far apart are no run
        runs.append((numbers[start], numbers[end], step))
        start = end + 1
    return runs


def span_text(numbers: Sequence[int]) -> str:
    """Integers as an option takes them: `1:1024`, `1,2,4`, `8:64:8`."""
    return ",".join(
        f"{first}" if first == last else f"{first}:{last}" + (f":{step}" if step > 1 else "")
        for first, last, step in spans(numbers)
    )
