"""The picture of the report in the guide is what the command prints today."""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console

from planner import Targets, load_model, load_topology, plan
from planner.report.paint import painted
from tests.report.rendering import report_text

PICTURE = Path(__file__).parents[2] / "docs" / "report.svg"
COLUMNS = 100
OF_THIS_RUN = re.compile(r"(?<=HiGHS) [\d.]+|\n  time +.* in provers.*(?:\n {16}.*)*")


def report() -> str:
    """The report of the picture's command, versions and run times of its provers left out."""
    best = plan(
        load_model("palm-540b"), load_topology("tpu-v4-4x8x8"), targets=Targets(tpot_s=0.030)
    )
    return OF_THIS_RUN.sub("", report_text(best, COLUMNS))


def picture(text: str, *, title: str, columns: int) -> str:
    """A terminal that shows the text, as SVG that fetches nothing."""
    console = Console(file=StringIO(), record=True, width=columns, highlight=False)
    console.print(painted(text))
    drawn = console.export_svg(title=title, unique_id="plan")
    local = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    return re.sub(r"[ \t]+$", "", local.replace("Fira Code", "monospace"), flags=re.MULTILINE)


def draw() -> str:
    return picture(report(), title="plan --latency-target 30ms", columns=COLUMNS)


def test_the_picture_in_the_readme_is_not_stale():
    """`python -m tests.report.test_picture --write` draws it again."""
    assert PICTURE.read_text(encoding="utf-8") == draw()


if __name__ == "__main__" and "--write" in sys.argv:
    PICTURE.write_text(draw(), encoding="utf-8")
