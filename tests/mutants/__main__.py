"""Write small faults into `planner/`, one at a time, and see whether a test turns red.

    python -m tests.mutants --record            note which tests reach which lines; takes long
    python -m tests.mutants --seed 1 --sample 100
    python -m tests.mutants --seed 2 --sample 20 planner/equations planner/layouts

What tests reach is kept outside of the repository, in `--folder`, beside the tree that it is of; a
later tree is found in it line by line. Survivors that were judged stand in docs/mutants.md.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

from tests.mutants.recording import ROOT
from tests.mutants.sites import Mutant, mutants
from tests.mutants.trying import GOLDEN, Reach, copied, tried

FOLDER = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "planner-mutants"
UNRECORDED = ("tests/benchmarks", "tests/data", "tests/mutants")


def main() -> int:
    """Try a sample.

    Returns:
        1 if a fault survived.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("paths", nargs="*", default=["planner"], help="where faults may be")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of what tests reach")
    parser.add_argument("--record", action="store_true", help="note what tests reach")
    said = parser.parse_args()
    if said.record:
        _record(said.folder)
        return 0
    reach = Reach.read(said.folder)
    drawn = sample(said.paths, said.seed, said.sample)
    tree = copied(said.folder / f"copy-{os.getpid()}")
    found = []
    for i, mutant in enumerate(drawn, 1):
        one = tried(mutant, tree, reach)
        found.append(one)
        where = f"{mutant.path}:{mutant.line} {mutant.kind}"
        print(f"{i:4} {one.how:9} {where}  {one.by or f'{one.n_tests} tests'}", flush=True)
        if not one.is_caught:
            print(one.diff, flush=True)
    caught = [one for one in found if one.is_caught]
    alone = sum(one.by.startswith(GOLDEN) for one in caught)
    late = sum(one.how == "timed out" for one in caught)
    share = len(caught) / max(1, len(found))
    print(f"{len(caught)} of {len(found)} caught, {share:.0%}")
    print(f"{late} of them by time, {alone} by kept answers alone")
    return int(len(caught) < len(found))


def sample(paths: list[str], seed: int, n: int) -> list[Mutant]:
    """Faults drawn from modules, each as likely as any."""
    modules = sorted({path for name in paths for path in _modules(ROOT / name)})
    every = [mutant for path in modules for mutant in mutants(ROOT, path)]
    return random.Random(seed).sample(every, min(n, len(every)))


def _modules(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _record(folder: Path) -> None:
    """Run the tests, a folder of them at a time, in a copy of the tree."""
    tree = copied(folder / "tree")
    top = sorted((ROOT / "tests").iterdir())
    names = [
        path.relative_to(ROOT).as_posix()
        for path in top
        if (path.is_dir() and any(path.rglob("test_*.py"))) or path.name.startswith("test_")
    ]
    options = ["-q", "-p", "tests.mutants.recording", f"--reached={folder / 'reached'}"]
    options += ["-p", "no:cacheprovider", "--timeout=900"]
    for name in ["planner", "research", *names]:
        if name.startswith(UNRECORDED):
            continue
        print(name, flush=True)
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, name],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            check=False,
        )


if __name__ == "__main__":
    raise SystemExit(main())
