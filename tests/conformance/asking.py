"""Commands run in this process, and what their answers say of a quantity."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field
from typing import Any

from planner.commands.cli import main
from planner.quantities.table import Quantity

RUNTIMES = {
    "roofline": ("--engine", "roofline"),
    "vllm": ("--engine", "vllm", "--chunk", "2048"),
    "sglang": ("--engine", "sglang", "--chunk", "2048"),
    "trtllm": ("--engine", "trtllm", "--chunk", "2048"),
    "erdil2025": ("--engine", "erdil2025"),
}
"""How each runtime is asked for."""

REFUSED = {("erdil2025", "ttft")}
"""Runtimes and the quantities that they cannot count: everything else is held."""

REFUSED_ON_PLACES = {"cost"}
"""Quantities of one deployment, that a placement of several refuses by their options."""

SMALL = (
    *("--model", "llama-3.1-70b", "--topology", "h100-nvl8-x1", "--weights", "bf16"),
    *("--input", "512", "--output", "64", "--batch", "4,16,64"),
)

ENDINGS = (0, 1, 2, 4)
"""A plan, no plan, a request that cannot be read, an answer that is not true."""


@dataclass(frozen=True)
class Ran:
    """What a command said."""

    code: int
    out: str
    err: str
    words: tuple[str, ...] = field(default=())

    @property
    def answer(self) -> dict[str, Any]:
        return json.loads(self.out)


def run(*words: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    assert code in ENDINGS, (words, err.getvalue())
    return Ran(code, out.getvalue(), err.getvalue(), words)


def asked(runtime: str, *words: str, command: tuple[str, ...] = ()) -> Ran:
    """A small request of a runtime."""
    return run(*command, *RUNTIMES[runtime], *SMALL, *words)


def loosest(one: Quantity) -> float:
    """A limit that anything keeps, SI."""
    if one.is_least:
        return 1.0
    return 1e6 if one.is_count else 1e6 / one.scale


def tightest(one: Quantity) -> float:
    """A limit that nothing keeps, SI, of those that can be read."""
    if one.is_least:
        return 1e6 if one.is_count else 1e9
    return 1.0 if one.is_count else 1e-3 / one.scale


def refuses(ran: Ran, option: str) -> bool:
    """Whether a request was refused in the name of an option."""
    return ran.code == 2 and f"`{option}" in " ".join(ran.err.split())


def told(one: Quantity, deployment: dict[str, Any]) -> float:
    """What a deployment of an answer says of a quantity."""
    if one.name == "batch":
        inner = deployment.get("decode", deployment)
        return inner["batch"] * deployment.get("n_data", 1)
    for name in one.fields:
        if name in deployment:
            return float(deployment[name])
    return float(deployment["further"][one.name])
