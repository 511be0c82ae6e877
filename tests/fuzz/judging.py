"""What is wrong with how a case ended: nothing, or a list of complaints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from tests.fuzz.running import PATIENCE_S, Ran

CODES = (0, 1, 2, 3, 130)


def complaints(line: list[str], ran: Ran) -> list[str]:
    """Everything that is wrong."""
    return list(_complaints(line, ran))


def _complaints(line: list[str], ran: Ran) -> Iterator[str]:
    if ran.code == 124 or ran.cpu_s > PATIENCE_S:
        yield f"took {ran.cpu_s:.1f} s"
        return
    if ran.code not in CODES:
        yield f"exit {ran.code}: {ran.err[:300]!r}"
    for text, what in ((ran.out, "stdout"), (ran.err, "stderr")):
        if "Traceback" in text or "Exception ignored" in text:
            yield f"a traceback on {what}"
    if ran.code in (2, 3) and not any(at.startswith("error: ") for at in ran.err.splitlines()):
        yield f"exit {ran.code} without a sentence: {ran.err[:200]!r}"
    if ran.code == 0 and not ran.out.strip():
        yield "exit 0 without an answer"
    if any(name.rpartition("/")[2].startswith(".plan-") for name in ran.left):
        yield f"fragments are left: {ran.left}"
    if "\x1b" in ran.out + ran.err and "--help" not in line:
        yield "a control character is printed"
    if "--json" in line and ran.out.strip() and line[:1] != ["models"]:
        yield from _of_json(ran)


def _of_json(ran: Ran) -> Iterator[str]:
    def refuse(name: str) -> float:
        raise ValueError(f"{name} is no number of JSON")

    if ran.code in (0, 1) and ran.out[:1] != "{":  # help, a version
        return
    try:
        found = json.loads(ran.out, parse_constant=refuse)
    except ValueError as error:
        yield f"stdout is not one record: {error}: {ran.out[:100]!r} … {ran.out[-100:]!r}"
        return
    if ran.code == 0:
        yield from _sums(found)


def _sums(node: object, where: str = "") -> Iterator[str]:
    """Totals that are not the sums of their parts, wherever they stand."""
    if isinstance(node, list):
        for i, inner in enumerate(node):
            yield from _sums(inner, f"{where}[{i}]")
    if not isinstance(node, dict):
        return
    for key, inner in node.items():
        yield from _sums(inner, f"{where}.{key}")
    for total, parts in _PARTS.items():
        if all(isinstance(node.get(name), float) for name in (total, *parts)):
            counted = sum(node[part] for part in parts)
            if not math.isclose(node[total], counted, rel_tol=1e-9):
                yield f"{where}.{total} is {node[total]!r}, its parts are {counted!r}"
    for key in _NEVER_NEGATIVE:
        if isinstance(node.get(key), (int, float)) and node[key] < 0:
            yield f"{where}.{key} is {node[key]!r}"
    yield from _bounds(node, where)


_PARTS = {
    "used_bytes": (
        *("weights_bytes", "kv_bytes", "activation_bytes"),
        *("gather_bytes", "reserve_bytes", "draft_bytes"),
    ),
    "capacity_bytes": ("used_bytes", "free_bytes"),
    "total_s": ("compute_s", "weights_s", "attention_s", "network_s", "overhead_s"),
}
"""Totals, and all that they are the sum of, wherever all of it stands together."""

_NEVER_NEGATIVE = ("usd_per_token", "usd_per_hour", "tpot_s", "ttft_s", "n_devices", "total_s")


def _bounds(node: dict[str, object], where: str) -> Iterator[str]:
    """A gap that is not the distance of objective and bound."""
    objective, bound, gap = (node.get(key) for key in ("objective", "bound", "gap"))
    if all(isinstance(one, float) for one in (objective, bound, gap)) and objective:
        counted = abs(objective - bound) / abs(objective)  # type: ignore[operator,arg-type]
        if abs(counted - gap) > 1e-6 + 1e-3 * abs(gap):  # type: ignore[operator,arg-type]
            yield f"{where}.gap is {gap!r}, counted {counted!r}"
