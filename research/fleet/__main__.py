"""`python -m research.fleet [blis|trtllm|mlperf|apart …]`: every row, errors, what is left out.

Without a name all four are printed. Errors of other simulators stand beside where there are any.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from research.fleet import apart, blis, mlperf, trtllm

REPORTS: dict[str, Callable[[], Iterator[str]]] = {
    "blis": blis.report,
    "trtllm": trtllm.report,
    "mlperf": mlperf.report,
    "apart": apart.report,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m research.fleet", description=__doc__)
    parser.add_argument("which", nargs="*", default=list(REPORTS), metavar="|".join(REPORTS))
    which = parser.parse_args().which
    if unknown := set(which) - set(REPORTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    for name in which:
        for line in REPORTS[name]():
            print(line)
        print()


if __name__ == "__main__":
    main()
