"""`python -m tests.papers.sets`: see `report`."""

from tests.papers.sets.report import main

main()
