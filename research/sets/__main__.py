"""`python -m research.sets`: see `report`."""

from research.sets.report import main

main()
