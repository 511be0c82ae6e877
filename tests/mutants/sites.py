"""Small faults that could be written into a module: one operator, comparison, word or number.

Left out are texts (docstrings, messages, what is raised), annotations, blocks that only a type
checker reads, `__repr__`, and modules that are tables of words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
_EXTREMES = {"min": "max", "max": "min"}
_SILENT = ("__repr__", "__str__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One small fault.

    Args:
        path: of the module, from the root.
        line: where it is, from 1.
        start: offset of the first character that is replaced.
        end: offset after the last.
        text: what stands there instead.
        kind: of the fault.
    """

    path: str
    line: int
    start: int
    end: int
    text: str
    kind: str

    def applied(self, source: str) -> str:
        """The module with the fault."""
        return source[: self.start] + self.text + source[self.end :]


def mutants(root: Path, path: Path) -> list[Mutant]:
    """All faults of a module."""
    source = path.read_text(encoding="utf-8")
    found = _Finder(path.relative_to(root).as_posix(), source)
    found.visit(ast.parse(source))
    return found.mutants


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.mutants: list[Mutant] = []
        self._bytes = [len(line.encode()) for line in source.splitlines(keepends=True)]
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def _offset(self, line: int, column: int) -> int:
        """Of a position of the parser, which counts bytes."""
        text = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(text)

    def _start(self, node: ast.expr) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _add(self, start: int, end: int, text: str, kind: str) -> None:
        line = self.source.count("\n", 0, start) + 1
        self.mutants.append(
            Mutant(path=self.path, line=line, start=start, end=end, text=text, kind=kind)
        )

    def _between(self, left: ast.expr, right: ast.expr, was: str, texts: Iterator[str]) -> None:
        """Replace the operator between two operands."""
        start, end = self._end(left), self._start(right)
        pattern = r"\s+".join(map(re.escape, was.split()))
        if was[0].isalpha():
            pattern = rf"\b{pattern}\b"
        # of comments between them, none has the operator in front of it
        found = re.search(pattern, self.source[start:end])
        if found is not None:
            for text in texts:
                self._add(start + found.start(), start + found.end(), text, f"{was} → {text}")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        known = _ARITHMETIC.get(type(node.op))
        if known and not (_is_text(node.left) or _is_text(node.right)):
            was, becomes = known
            self._between(node.left, node.right, was, iter([becomes]))
            if isinstance(node.op, ast.Add | ast.Sub):
                self._shift(node.right)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            was, becomes = _COMPARISONS[type(operator)]
            self._between(left, right, was, iter(becomes))
            self._shift(right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        was, becomes = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, was, iter([becomes]))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(self._start(node), self._start(node.operand), "", "not → nothing")
        elif isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self._add(self._start(node), self._start(node.operand), "+", "- → +")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _EXTREMES:
            becomes = _EXTREMES[node.func.id]
            kind = f"{node.func.id} → {becomes}"
            self._add(self._start(node.func), self._end(node.func), becomes, kind)
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            for argument in node.args:
                self._shift(argument)
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self._shift(bound)
        self.generic_visit(node)

    def _shift(self, node: ast.expr) -> None:
        """One more, where a whole number bounds or shifts something."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            text = str(node.value + 1)
            self._add(self._start(node), self._end(node), text, f"{node.value} → {text}")

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in _SILENT:
            return
        for part in (*node.decorator_list, *_defaults(node.args), *node.body):
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        # an alias of types, like `Value = float | int`, has none of these operators
        self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Messages are left as they are."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """What is raised says something in words."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """A check of the program itself: of a true statement nothing is seen."""


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [one for one in (*arguments.defaults, *arguments.kw_defaults) if one is not None]


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
