"""Answer all requests again and say what moved; or keep what is answered now.

python -m tests.golden                  compare; 1 if an answer moved
python -m tests.golden plan_engines     of these files only
python -m tests.golden --write          keep what is answered now, and say what moved
python -m tests.golden --write --searches   … only where no answer moved: a search's statistics
python -m tests.golden --draw --write   add the requests of `drawing` that are in no file
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.golden.drawing import requests
from tests.golden.running import ANSWERS, Case, Moved, answered, moved, read, working_folder, write

SHOWN = 12


def main() -> int:
    """Compare or write.

    Returns:
        1 if an answer moved and was not written.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("names", nargs="*", help="of files, without `.txt`; default: all")
    parser.add_argument("--write", action="store_true", help="keep what is answered now")
    parser.add_argument("--searches", action="store_true", help="write statistics of searches only")
    parser.add_argument("--draw", action="store_true", help="add requests that are in no file")
    parser.add_argument("--slow", type=float, default=2.0, help="name cases of more CPU seconds")
    said = parser.parse_args()
    drawn = requests() if said.draw else {}
    names = said.names or sorted({path.stem for path in ANSWERS.glob("*.txt")} | set(drawn))
    n_moved: Counter[str] = Counter()
    began = time.process_time()
    with working_folder():
        for name in names:
            path = ANSWERS / f"{name}.txt"
            cases = read(path) if path.exists() else []
            known = {case.name for case in cases}
            new = [Case(lines=tuple(words.split("; "))) for words in drawn.get(name, [])]
            cases += [case for case in new if case.name not in known]
            n_moved[name] += _compared(path, cases, said)
    where = ", ".join(f"{n} of {name}" for name, n in n_moved.items() if n)
    print(f"moved: {where or 'nothing'}; {time.process_time() - began:.0f} s of CPU time")
    return int(n_moved.total() > 0 and not said.write)


def _compared(path: Path, cases: list[Case], said: argparse.Namespace) -> int:
    """Compare a file, or write it; how many of its answers moved."""
    n_moved = 0
    for i, case in enumerate(cases):
        began = time.process_time()
        try:
            new = answered(case)
        except Exception as error:  # the others are still to be compared
            print(f"! {path.stem}: plan {case.name}\n    {error!r}")
            n_moved += 1
            continue
        took_s = time.process_time() - began
        if took_s > said.slow:
            print(f"  {took_s:.1f} s: plan {case.name}")
        values, statistics = dict(new.values), dict(new.statistics)
        answers, searches = moved(case.values, values), moved(case.statistics, statistics)
        n_moved += bool(answers)
        if case.values and (answers or searches):
            _show(path, case, answers, searches)
        if said.write and not (said.searches and answers):
            cases[i] = replace(case, values=values, statistics=statistics)
    if said.write:
        write(path, cases)
    return n_moved


def _show(path: Path, case: Case, answers: list[Moved], searches: list[Moved]) -> None:
    what = "answer" if answers else "search only"
    if answers and all(one.name for one in answers):
        what = "renamed only"
    print(f"{path.stem}: plan {case.name}  [{what}]")
    for sign, found in (("", answers), ("~", searches)):
        for one in found[:SHOWN]:
            print(f"    {sign}{one}")
        if len(found) > SHOWN:
            print(f"    … and {len(found) - SHOWN} more")


if __name__ == "__main__":
    raise SystemExit(main())
