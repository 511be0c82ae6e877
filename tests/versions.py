"""Other Pythons and numpys that are at hand, `-O` and `-OO`: the same answers from all of them.

    python -m tests.versions                      all of 3.11, 3.12, 3.13 that `pyenv` or PATH has
    python -m tests.versions --keep .versions     environments that stay, for the next time

Each Python gets an environment of its own, with `pip install .` of this tree and the newest numpy,
then with the oldest that the project says it takes (and that has a wheel for that Python). In each,
plain and under `-O` and `-OO`, a few command lines are run; all have to end with 0 and to say what
the first one said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
OLDEST = re.search(r'"numpy>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
FLAGS = ((), ("-O",), ("-OO",))
LINES = (
    "plan --quiet",
    "plan --engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --max-devices 4 --quiet",
    "plan --solver cpsat --model palm-62b --topology tpu-v4-2x2x2 --batch 8 --quiet",
    "plan experts --model deepseek-v3 --loads examples/loads.csv --ranks 32 --slots 9 --quiet",
    "plan place --model llama-3.1-8b --topology h100-nvl8-x1 --replicas 2 --quiet",
    "plan predict --model qwen3-8b --topology h100-nvl8-x1 --batch 64 --quiet",
    "plan verify examples/answer.json --prove",
)


def interpreters() -> Iterator[Path]:
    """One Python of each version that is at hand."""
    for version in PYTHONS:
        installed = sorted(
            Path(os.environ.get("PYENV_ROOT", "~/.pyenv"))
            .expanduser()
            .glob(f"versions/{version}.*/bin/python")
        )
        found = str(installed[-1]) if installed else shutil.which(f"python{version}")
        if found:
            yield Path(found)


def environment(python: Path, folder: Path) -> Path:
    """The Python of an environment that has this tree installed."""
    inside = folder / "bin" / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "--force-reinstall", "--no-deps", ROOT], check=True)
    subprocess.run([*pip, "--upgrade", "--upgrade-strategy", "eager", ROOT], check=True)
    return inside


def answers(python: Path, flags: Sequence[str]) -> list[str]:
    """What each line says; how it ended where that is not as it should."""
    found = []
    variables = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    for line in LINES:
        # not `-m`: the working folder is that of the project, and its own modules would be found
        start = "import sys; sys.path.remove(''); from planner.__main__ import main; main()"
        words = [python, *flags, "-c", start, *line.split()[1:]]
        ended = subprocess.run(
            words, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )
        said = ended.stdout.splitlines()[:1]
        text = "".join(said) if not ended.returncode else f"{ended.returncode}: {ended.stderr}"
        found.append(text + ended.stderr)
    return found


def main() -> int:
    """Run all; 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions")
    parser.add_argument("--keep", type=Path, help="a folder for the environments")
    said = parser.parse_args()
    n_wrong, first = 0, None
    with tempfile.TemporaryDirectory() as scratch:
        for python in interpreters():
            folder = (said.keep or Path(scratch)).absolute() / python.parts[-3]
            inside = environment(python, folder)
            for numpy in ("newest", OLDEST[1] if OLDEST else "2.1"):
                if numpy != "newest":
                    only = ["--only-binary", ":all:", f"numpy=={numpy}.*"]
                    done = subprocess.run(
                        [inside, "-m", "pip", "install", "-q", *only], check=False
                    )
                    if done.returncode:
                        continue
                for flags in FLAGS:
                    found = answers(inside, flags)
                    first = first or found
                    version = subprocess.run(
                        [
                            inside,
                            "-c",
                            "import sys, numpy; print(sys.version[:6], numpy.__version__)",
                        ],
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout.strip()
                    wrong = [LINES[i] for i, text in enumerate(found) if text != first[i]]
                    n_wrong += len(wrong)
                    print(f"Python {version} {' '.join(flags):4} {wrong or 'as all'}", flush=True)
                    for i, text in enumerate(found):
                        if text != first[i]:
                            print(f"  {text[-400:]}\n  {first[i][-400:]}")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
