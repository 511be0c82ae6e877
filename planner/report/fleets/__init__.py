"""A fleet, and the least rent over traffic, for people and for tables.

words       what the others share
rows        figures, for a terminal and a page alike
text        the report on a terminal
staircases  the least rent over traffic, step by step
tables      CSV
curves      what a class waits for, and the rent over traffic, drawn
page        one page of HTML
"""

from __future__ import annotations

from planner.report.fleets.page import fleet_page
from planner.report.fleets.staircases import staircase_line, staircase_text
from planner.report.fleets.tables import fleet_csv, staircase_csv
from planner.report.fleets.text import fleet_line, fleet_text

__all__ = [
    "fleet_csv",
    "fleet_line",
    "fleet_page",
    "fleet_text",
    "staircase_csv",
    "staircase_line",
    "staircase_text",
]
