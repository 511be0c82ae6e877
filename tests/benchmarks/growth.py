"""Memory and seconds of `plan` and `place` from 8 to 4096 devices, and how they grow. Run by hand.

    python -m tests.benchmarks.growth                       # everything, ten minutes where idle
    python -m tests.benchmarks.growth --models palm-540b --pools torus --commands plan

Each run is a process of its own with default options, both proofs included. A slope is that of
the logarithm over the logarithm of the devices, by least squares: 1 is as fast as the pool grows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from tests.benchmarks.measuring import Measured, measured

MODELS = ("llama-3.1-70b", "palm-540b", "deepseek-v3")
COMMANDS = ("plan", "place")
SERVERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SHAPES = ("2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16")
POOLS = {
    "servers": tuple((8 * n, f"h100-nvl8-x{n}") for n in SERVERS),
    "fat-tree": tuple((8 * n, f"h100-fat-tree-x{n}") for n in SERVERS),
    "torus": tuple(
        (int(np.prod([int(d) for d in shape.split("x")])), f"tpu-v4-{shape}")
        for shape in (*SHAPES, "16x16x16")
    ),
}
MOST_MB = 500.0


def words(command: str, model: str, pool: str) -> list[str]:
    """The command line: a plan in general, or a placement."""
    place = ["place"] if command == "place" else []
    return [*place, "--model", model, "--topology", pool, "--quiet"]


def cases(args: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    for command in args.commands:
        for model in args.models:
            for kind in args.pools:
                if command == "place" or kind != "fat-tree":  # plan knows no leaves
                    yield command, model, kind


def slope(sizes: list[int], values: list[float]) -> float:
    """Of the logarithms, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def run(command: str, model: str, kind: str) -> float:
    """All sizes of one kind of pool; the largest peak [MB]."""
    print(f"\nplan {'place ' * (command == 'place')}--model {model}, {kind}")
    print(f"{'devices':>8} {'peak MB':>8} {'CPU s':>7} {'wall s':>7}  answer")
    sizes: list[int] = []
    found: list[Measured] = []
    for n_devices, pool in POOLS[kind]:
        one = measured(words(command, model, pool))
        said = (one.stdout or one.stderr).strip().splitlines() or [""]
        print(
            f"{n_devices:>8} {one.peak_mb:>8.0f} {one.cpu_s:>7.2f} {one.wall_s:>7.2f}  {said[0]}",
            flush=True,
        )
        if one.code not in (0, 1):
            print(one.stderr, file=sys.stderr)
        sizes.append(n_devices)
        found.append(one)
    slopes = {
        name: slope(sizes, [getattr(one, name) for one in found])
        for name in ("peak_mb", "cpu_s", "wall_s")
    }
    print(
        f"{'slope':>8} {slopes['peak_mb']:>8.2f} {slopes['cpu_s']:>7.2f} {slopes['wall_s']:>7.2f}"
    )
    return max(one.peak_mb for one in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--commands", nargs="+", default=list(COMMANDS), choices=COMMANDS)
    parser.add_argument("--pools", nargs="+", default=list(POOLS), choices=list(POOLS))
    peaks = {case: run(*case) for case in cases(parser.parse_args())}
    worst = max(peaks, key=lambda case: peaks[case])
    print(
        f"\nlargest peak: {peaks[worst]:.0f} MB, of {' '.join(worst)}; at most {MOST_MB:.0f} asked"
    )
    return int(peaks[worst] > MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
