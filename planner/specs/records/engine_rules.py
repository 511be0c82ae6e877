"""What an engine starts, as conditions on named quantities of a deployment.

    when = "role == 'decode'"
    require = "pp == 1"

A condition is an expression of Python with `and`, `or`, `not`, comparisons, `in`, `+ - * // %`,
numbers, words, lists of them and the names of `NAMES`; nothing else. Where `when` holds and
`require` does not, the engine does not start the deployment. A rule that names quantities of a
layer holds of every layer that has them; one that names `prefill_…` and `decode_…` is of a pair
that hands over caches. A division by zero gives what a division by one does.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated

from planner.quantities.tables import packaged_table
from planner.specs.validation.values import FaultError, Reader

_TABLE = packaged_table("specs/records/engine_rules.toml")
_NAMES: Mapping[str, Mapping[str, str]] = _TABLE["names"]

MENDED_BY: Mapping[str, str] = _TABLE["columns"]
"""The column that a broken rule is mended by: of the first of these that it asks something of."""

SAID_BY: Mapping[str, str] = _TABLE["options"]
"""The option that says what a name of a condition stands for, where that is no column."""

LAYER = _NAMES["layer"]
"""Names of quantities of a layer."""

PAIR = {
    f"{role}_{name}": f"{_NAMES['cut'][name]}, of the replica that {does}"
    for role, does in (("prefill", "reads prompts"), ("decode", "writes answers"))
    for name in ("tp", "dp", "pp")
}
NAMES = {name: words for table in (*_NAMES.values(), PAIR) for name, words in table.items()}
"""Every name of a condition, and what it stands for."""

_NODES = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Compare, ast.Eq),
    *(ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.BinOp, ast.Add),
    *(ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Constant, ast.Name, ast.Load, ast.Tuple),
    ast.List,
)


def _condition(raw: object) -> str:
    """A condition as a file has it, in one line."""
    if not isinstance(raw, str):
        raise FaultError("is not text", "write a condition like `pp == 1`")
    try:
        parsed(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else "cannot be read"
        remedy = "write a condition like `role != 'decode' or pp == 1`"
        raise FaultError(f"is no condition: {said}", remedy) from None
    return " ".join(raw.split())


Condition = Annotated[str, Reader(_condition)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRule:
    """One thing that an engine asks of what it starts.

    Args:
        name: of the rule: `decode-in-one-stage`.
        says: it in a sentence: what the engine does or does not do.
        when, require: conditions; empty `when` always holds.
        source: file and line of the engine, or its documentation.
        origin: the file that has the rule; empty of those that ship.
    """

    name: str
    says: str
    require: Condition
    source: str
    when: Condition = ""
    origin: str = ""

    @property
    def names(self) -> frozenset[str]:
        return names_in(self.require) | names_in(self.when)

    @property
    def words(self) -> str:
        """It with its name and its source, for people."""
        return f"{self.says} (rule `{self.name}`: {self.origin or self.source})"

    @property
    def is_of_pairs(self) -> bool:
        """Whether it is of two replicas, of which one hands caches over to the other."""
        return not self.names.isdisjoint(PAIR)

    @property
    def is_of_one_pool(self) -> bool:
        """Whether it asks how ranks share experts and nodes: not where experts have their own."""
        return not self.names.isdisjoint(("group", "world", "per_node", "nodes", "exchanges"))


LONGEST, LARGEST = 2_000, 10**9
"""Most characters of a condition, and the largest number in one."""


@cache
def parsed(condition: str) -> ast.expr:
    """The tree of a condition; an empty one holds.

    Raises:
        SyntaxError: it says what no condition does.
    """
    if len(condition) > LONGEST:
        raise SyntaxError(f"has more than {LONGEST} characters")
    tree = ast.parse(" ".join(condition.split()) or "True", mode="eval")
    for node in ast.walk(tree):
        if fact := _unknown(node):
            raise SyntaxError(fact)
    return tree.body


def _unknown(node: ast.AST) -> str:
    """Why a part is of no condition; empty if it may be."""
    if not isinstance(node, _NODES):
        return f"has a {type(node).__name__}, which no condition has"
    if isinstance(node, ast.Name) and node.id not in NAMES:
        close = get_close_matches(node.id, list(NAMES), n=1)
        hint = f": did you mean `{close[0]}`?" if close else ""
        return f"names `{node.id}`, which nothing is called{hint}"
    return _unknown_value(node.value) if isinstance(node, ast.Constant) else ""


def _unknown_value(value: object) -> str:
    if not isinstance(value, int | str):
        return f"has {value!r}, which is no whole number and no word"
    return f"has a number above {LARGEST}" if isinstance(value, int) and value > LARGEST else ""


@cache
def names_in(condition: str) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(parsed(condition)) if isinstance(node, ast.Name))
