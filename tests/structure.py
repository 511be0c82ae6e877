"""Measures of the planner's structure: symptoms to notice, counted the same way at any revision.

    python -m tests.structure               of the working tree
    python -m tests.structure --at REV …    of revisions, side by side

* lines, modules: of `planner/**/*.py`, as they stand, comments and docstrings too; `… beside it` of
  `planner_workshop`, which stands beside it. All measures below are of both.
* lines of code: those that are neither blank nor a comment nor part of a docstring.
* entries: files and folders of a folder, `__init__.py` too; no empty marker, `py.typed`.
* files that a limit touches: a limit is `tpot`, `ttft`, `cost`, `devices`, `batch` or `demand`. A
  file is touched where its code (no docstring) spells one of them: a text that is its name, a text
  with its option as a word, the option's name in Python, or its field of `Targets`, set by keyword
  or read off something called `targets`. Each is a spelling.
* files that an option touches: an option is declared by a row of `options.toml` or, if it limits a
  quantity, of `quantities.toml`, files too (before that as `Option("--name VALUE")`, or as a field,
  annotated, of a record in `planner/commands`, or as the text `option="--name"`). A file is
  touched where its code (no docstring) spells the option as a word of a text, declares it, or reads
  it off something called `said` (or `written`).
* branches of a function: `if`, `elif`, loops, `except`, `case`, conditional expressions, `and` and
  `or`, and clauses of comprehensions; nested functions count for themselves alone.
* builders of certificates: functions that return a `Certificate`, outside the verifier.
* deletion filters: functions with a loop that takes a name out of a list and tests what is left.
* conflicts: classes whose name ends in `Conflict`.
* mixed tuples as parameters: parameters annotated with a tuple of several types, of fixed length.
* process words as variables: places that bind `one`, `found` or `asked`: a parameter, also of a
  lambda, a field or an attribute of `self`, a name assigned, caught or imported; and the target of
  a loop, a comprehension or a `with` of more than three lines. Each assignment is a place.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from networkx import DiGraph

ROOT = Path(__file__).parents[1]
MANY_BRANCHES = 10
MANY_LINES = 300
PROCESS_WORDS = ("one", "found", "asked")
FEW_LINES = 3

LIMITS: Mapping[str, tuple[str, str, str]] = {
    "tpot": ("tpot", "--latency-target", "tpot_s"),
    "ttft": ("ttft", "--ttft-target", "ttft_s"),
    "cost": ("cost", "--max-cost", "usd_per_token"),
    "devices": ("devices", "--max-devices", "n_devices"),
    "batch": ("batch", "--min-batch", "min_batch"),
    "demand": ("demand", "--demand", "demand_tokens_per_s"),
}
"""Name, option, and field of `Targets` of each limit."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SPELLS = (ast.Constant, ast.AnnAssign, ast.Attribute, ast.Call)
_BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While),
    *(ast.ExceptHandler, ast.match_case),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parsed file.

    Args:
        name: its path from `planner/`.
        n_lines: of its text.
        n_code: of these, without blanks, comments and docstrings.
        tree: what it says.
    """

    name: str
    n_lines: int
    n_code: int
    tree: ast.Module

    @property
    def functions(self) -> list[Function]:
        return [node for node in _nodes(self.tree) if isinstance(node, Function)]


WORKSHOP = "planner_workshop"


def parsed(root: Path, package: str = "planner") -> list[Module]:
    """The modules of a package in a tree; none where there is no such package."""
    paths = sorted((root / package).rglob("*.py"))
    found = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root / package).as_posix()
        tree = ast.parse(text)
        n_code = lines_of_code(text, tree)
        found.append(Module(name=name, n_lines=text.count("\n"), n_code=n_code, tree=tree))
    return found


def measures(root: Path) -> dict[str, int]:
    """All measures of a tree, by what they count."""
    core, beside = parsed(root), parsed(root, WORKSHOP)
    modules = [*core, *(replace(it, name=f"{WORKSHOP}/{it.name}") for it in beside)]
    functions = [(module, one) for module in modules for one in module.functions]
    spelt = {module.name: spellings(module.tree) for module in modules}
    touched = files_of_options(modules, rows_of_options(root))
    widest = max(touched, key=lambda one: (len(touched[one]), one))
    large, n_large = largest_folder(root)
    tuples = [one for _, function in functions for one in mixed_tuples(function)]
    return {
        "lines": sum(module.n_lines for module in core),
        "… beside it": sum(module.n_lines for module in beside),
        "lines of code": sum(module.n_code for module in core),
        "… of code beside it": sum(module.n_code for module in beside),
        "modules": len(core),
        "… modules beside it": len(beside),
        "entries at the top": entries(root / "planner"),
        f"entries of the largest folder below ({large})": n_large,
        "files that options touch": len(set().union(*touched.values())),
        f"… the widest of them ({widest})": len(touched[widest]),
        "… on average, in tenths": round(10 * sum(map(len, touched.values())) / len(touched)),
        "files that limits touch": sum(any(one.values()) for one in spelt.values()),
        **{f"… {name}": sum(bool(one[name]) for one in spelt.values()) for name in LIMITS},
        "spellings of limits": sum(sum(one.values()) for one in spelt.values()),
        f"functions of more than {MANY_BRANCHES} branches": sum(
            branches(function) > MANY_BRANCHES for _, function in functions
        ),
        "builders of certificates": sum(
            builds_certificate(function)
            for module, function in functions
            if not module.name.startswith("verifier/")
        ),
        "deletion filters": sum(is_deletion_filter(function) for _, function in functions),
        "records of a conflict": sum(
            isinstance(node, ast.ClassDef) and node.name.endswith("Conflict")
            for module in modules
            for node in _nodes(module.tree)
        ),
        f"modules of more than {MANY_LINES} lines": sum(
            module.n_lines > MANY_LINES for module in modules
        ),
        "mixed tuples as parameters": len(tuples),
        "process words as variables": sum(len(process_words(module.tree)) for module in modules),
    }


def entries(folder: Path) -> int:
    """Files and folders of a folder that are no caches, and not empty markers."""
    return sum(
        not path.name.startswith(("__pycache__", ".")) and path.name != "py.typed"
        for path in folder.iterdir()
    )


def largest_folder(root: Path) -> tuple[str, int]:
    """The folder below `planner/` with the most entries."""
    top = root / "planner"
    folders = [path for path in top.rglob("*") if path.is_dir() and path.name != "__pycache__"]
    largest = max(folders, key=lambda path: (entries(path), path.name))
    return largest.relative_to(root).as_posix(), entries(largest)


def spellings(tree: ast.Module) -> dict[str, int]:
    """How often a file spells each limit."""
    docstrings = {id(node) for node in _docstrings(tree)}
    found = dict.fromkeys(LIMITS, 0)
    for node in _nodes(tree):
        if id(node) in docstrings or not isinstance(node, _SPELLS):
            continue
        for limit, (name, option, target) in LIMITS.items():
            found[limit] += _spells(node, name, option, target)
    return found


def _spells(node: ast.AST, name: str, option: str, target: str) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        is_option = re.search(rf"(?<![\w-]){option}(?![\w-])", node.value) is not None
        return int(node.value == name or is_option)
    # an option named as the limit is: its name in Python may be any batch, or any devices
    python = option.removeprefix("--").replace("-", "_")
    if python != target and python != name:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            return int(node.target.id == python)
        if isinstance(node, ast.Attribute) and node.attr == python:
            return 1
    if isinstance(node, ast.Attribute) and node.attr == target:
        return int(_last_name(node.value) == "targets")
    if isinstance(node, ast.Call) and _last_name(node.func) == "Targets":
        return sum(keyword.arg == target for keyword in node.keywords)
    return 0


def lines_of_code(text: str, tree: ast.Module) -> int:
    """Lines of a file that are neither blank nor a comment nor part of a docstring."""
    told = {
        line
        for node in _docstrings(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and number not in told for number, line in lines)


TABLES_OF_OPTIONS = {
    "specs/options/options.toml": r'^usage = "(--[^ "]+)',
    "quantities/quantities.toml": r'^option = "(--[^"]+)',
}
"""Tables in which options are declared, and what a row of each is known by."""


def rows_of_options(root: Path) -> dict[str, set[str]]:
    """Options that have a row in a table of a tree, by the table's file."""
    paths = {name: root / "planner" / name for name in TABLES_OF_OPTIONS}
    return {
        name: set(re.findall(TABLES_OF_OPTIONS[name], path.read_text("utf-8"), re.MULTILINE))
        for name, path in paths.items()
        if path.exists()
    }


def files_of_options(
    modules: Sequence[Module], rows: Mapping[str, Collection[str]] | None = None
) -> dict[str, set[str]]:
    """The files that each option of the command line touches.

    Args:
        rows: options of tables, which are files that each of them touches.
    """
    declared = {module.name: _declared(module) for module in modules}
    spelt = {module.name: declared[module.name] | _words(module.tree) for module in modules}
    for name, options in (rows or {}).items():
        declared[name] = spelt[name] = set(options)
    return {
        option: {name for name, words in spelt.items() if option in words}
        for option in sorted(set().union(*declared.values()))
    }


def _declared(module: Module) -> set[str]:
    """Options that a file declares."""
    options = {
        node.value.value
        for node in _nodes(module.tree)
        if isinstance(node, ast.keyword)
        and node.arg == "option"
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value.startswith("--")
    }
    options |= {
        node.args[0].value.partition(" ")[0]
        for node in _nodes(module.tree)
        if isinstance(node, ast.Call)
        and _last_name(node.func) == "Option"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).startswith("--")
    }
    if not module.name.startswith("commands/"):
        return options
    return options | {
        _option(node.target.id)
        for owner in _nodes(module.tree)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and ast.unparse(node.annotation).startswith("Annotated[")
    }


def _words(tree: ast.Module) -> set[str]:
    """Options that a file spells in a text, or reads off what was written."""
    docstrings = {id(node) for node in _docstrings(tree)}
    found: set[str] = set()
    for node in _nodes(tree):
        if isinstance(node, ast.Attribute) and _last_name(node.value) in ("said", "written"):
            found.add(_option(node.attr))
        elif id(node) in docstrings:
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(re.findall(r"(?<![\w-])--[a-z][a-z0-9.-]*\b", node.value))
    return found


def _option(argument: str) -> str:
    return "--" + argument.replace("_", "-")


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


@cache
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All that is in a file: it is looked through a dozen times."""
    return tuple(ast.walk(tree))


@cache
def _docstrings(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Texts that stand alone: docstrings, also those below constants."""
    return tuple(
        node.value
        for node in _nodes(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def branches(function: Function) -> int:
    """Branches of a function, without those of functions in it."""
    total = 0
    for node in _own(function):
        if isinstance(node, _BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


@cache
def _own(function: Function) -> tuple[ast.AST, ...]:
    """What is in a function, without functions in it."""
    own: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function | ast.ClassDef):
            own.append(node)
            waiting += ast.iter_child_nodes(node)
    return tuple(own)


def builds_certificate(function: Function) -> bool:
    """Whether a function returns a certificate, other than one that it was handed."""
    return function.returns is not None and ast.unparse(function.returns) == "Certificate"


def is_deletion_filter(function: Function) -> bool:
    """Whether a function takes each of some names out of a list and tests what is left."""
    return any(isinstance(node, ast.For) and _filters(node) for node in _own(function))


def _filters(loop: ast.For) -> bool:
    if not isinstance(loop.target, ast.Name):
        return False
    name = loop.target.id
    kept_less = [ast.unparse(node) for node in ast.walk(loop) if isinstance(node, ast.Call)]
    if any(text.endswith(f".remove({name})") for text in kept_less):
        return any(isinstance(node, ast.If) for node in loop.body)
    rest = {_last_name(node.targets[0]) for node in loop.body if _takes_out(node, name)}
    return any(
        isinstance(node, ast.Assign) and _last_name(node.value) in rest - {""}
        for test in loop.body
        if isinstance(test, ast.If)
        for node in test.body
    )


def _takes_out(node: ast.stmt, name: str) -> bool:
    """Whether a statement keeps all of a list but `name`."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.ListComp)):
        return False
    tests = [ast.unparse(test) for test in node.value.generators[0].ifs]
    return any(test.endswith(f" != {name}") for test in tests)


def mixed_tuples(function: Function) -> list[str]:
    """Parameters of a function that take tuples of several types."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [one.arg for one in every if one.annotation and _is_mixed(one.annotation)]


def _is_mixed(annotation: ast.expr) -> bool:
    for node in ast.walk(annotation):
        if not (isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple"):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        texts = {ast.unparse(part) for part in parts}
        if len(texts) > 1 and "..." not in texts:
            return True
    return False


def imports(root: Path) -> DiGraph[str]:
    """Which module of the planner imports which, types and what is imported late too."""
    paths = sorted(it for of in ("planner", WORKSHOP) for it in (root / of).rglob("*.py"))
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    modules = {
        name.removesuffix(".__init__"): path for name, path in zip(names, paths, strict=True)
    }
    graph: DiGraph[str] = DiGraph()
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("planner"):
                within = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
                graph.add_edges_from((name, other) for other in within or {node.module})
    return graph


def process_words(tree: ast.Module) -> list[str]:
    """Words of a process that name variables, once for each place that binds them."""
    brief = {
        name
        for node in _nodes(tree)
        if _n_lines(node) <= FEW_LINES
        for target in _targets(node)
        for name in ast.walk(target)
    }
    bound = [_bound(node) for node in _nodes(tree) if node not in brief]
    return [name for name in bound if name in PROCESS_WORDS]


def _bound(node: ast.AST) -> str:
    """The name that a place binds, empty if it binds none."""
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.alias):
        return node.asname or node.name
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name or ""
    if not isinstance(getattr(node, "ctx", None), ast.Store):
        return ""
    is_own = not isinstance(node, ast.Attribute) or _last_name(node.value) == "self"
    return _last_name(node) if is_own else ""


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a loop, a comprehension or a `with` binds."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.target]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.optional_vars for item in node.items if item.optional_vars]
    return [generator.target for generator in getattr(node, "generators", ())]


def _n_lines(node: ast.AST) -> int:
    """Lines that a statement or an expression takes."""
    return int(getattr(node, "end_lineno", 1)) - int(getattr(node, "lineno", 1)) + 1


def at(revision: str) -> dict[str, int]:
    """All measures of a revision."""
    listed = ["git", "ls-tree", "--name-only", revision]
    there = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    packages = {"planner", WORKSHOP} & {*there.split()}
    command = ["git", "archive", revision, *sorted(packages)]
    packed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return measures(Path(folder))


def table(columns: Mapping[str, Mapping[str, int]]) -> str:
    """Measures side by side, as a table of Markdown."""
    names = list(dict.fromkeys(plain_name(name) for column in columns.values() for name in column))
    plain = {
        title: {plain_name(name): value for name, value in column.items()}
        for title, column in columns.items()
    }
    rows = [["", *columns], ["---", *("---:" for _ in columns)]]
    rows += [
        [name, *(f"{plain[title][name]:,}" if name in plain[title] else "" for title in columns)]
        for name in names
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def plain_name(name: str) -> str:
    """A measure without what stands behind it in brackets, which may change."""
    return re.sub(r" \(.*\)", "", name)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(prog="python -m tests.structure")
    parser.add_argument("--at", action="append", default=[], help="a revision; again for more")
    said = parser.parse_args(argv)
    columns = {revision: at(revision) for revision in said.at}
    print(table(columns or {"the working tree": measures(ROOT)}))


if __name__ == "__main__":
    main()
