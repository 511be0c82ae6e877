"""Builds the simulator's inner loop as C, where Cython and a compiler are at hand.

    python hatch_build.py        compiles it in place, for a checkout that is run without a build

Its text stays the one source: what is compiled is `ranks.py` itself, with `ranks.pxd` saying which
names are numbers. Additions and products are not fused, so that text and C agree bit by bit.
Without a compiler the package is the same, and simulates with the text.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    BuildHookInterface = object

PACKAGE = Path("planner/estimates/simulation")
NAME = "compiled" + str(sysconfig.get_config_var("EXT_SUFFIX"))
DIRECTIVES = (
    "boundscheck=False",
    "wraparound=False",
    "cdivision=True",
    "initializedcheck=False",
    "annotation_typing=False",
)
FLAGS = ("-O3", "-fPIC", "-shared", "-ffp-contract=off")


def source_of(text: str) -> str:
    """The text as it is compiled: functions of mathematics are C's, whole numbers are cast."""
    found = re.sub(r"^from math import .*$", "import cython", text, count=1, flags=re.MULTILINE)
    found = re.sub(r"\bint\(", "cython.cast(cython.longlong, ", found)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{found}\n\ndef text_hash():\n    return "{digest}"\n'


def compiled(root: Path, to: Path) -> None:
    """Compile the inner loop of a tree to a file.

    Raises:
        ImportError: there is no Cython.
        OSError, subprocess.CalledProcessError: there is no compiler, or it refuses.
    """
    from Cython.Compiler.Main import compile as to_c
    from Cython.Compiler.Options import CompilationOptions

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / PACKAGE
        folder.mkdir(parents=True)
        for one in (folder, *folder.parents[: len(PACKAGE.parts) - 1]):
            (one / "__init__.py").touch()
        text = (root / PACKAGE / "ranks.py").read_text(encoding="utf-8")
        (folder / "compiled.py").write_text(source_of(text), encoding="utf-8")
        shutil.copy(root / PACKAGE / "ranks.pxd", folder / "compiled.pxd")
        directives = {one.partition("=")[0]: one.endswith("True") for one in DIRECTIVES}
        options = CompilationOptions(
            language_level=3, compiler_directives=directives, output_file=str(folder / "compiled.c")
        )
        if to_c(str(folder / "compiled.py"), options).num_errors:
            raise OSError("Cython refuses the text")
        compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[:1]
        include = f"-I{sysconfig.get_paths()['include']}"
        made = folder / NAME
        subprocess.run(
            [*compiler, *FLAGS, include, str(folder / "compiled.c"), "-o", str(made), "-lm"],
            check=True,
            capture_output=True,
        )
        shutil.copy(made, to)


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc,valid-type]
    """Called by hatchling for each wheel; of an editable one, the tree itself is compiled."""

    def initialize(self, version: str, build_data: dict[str, object]) -> None:
        root = Path(self.root)
        to = root / PACKAGE / NAME
        try:
            compiled(root, to)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"the simulator stays uncompiled: {error}")
            return
        if version != "editable":
            build_data["force_include"] = {str(to): str(PACKAGE / NAME)}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


if __name__ == "__main__":
    compiled(Path(__file__).parent, Path(__file__).parent / PACKAGE / NAME)
    sys.exit(0)
