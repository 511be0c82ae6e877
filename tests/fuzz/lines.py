"""Command lines drawn from the tables of options that the command itself reads.

A command or an option that is added there is drawn from then on; `NEEDED` has what a command
must be told to come to anything.
"""

from __future__ import annotations

import random

from planner.commands.options.commands import COMMANDS, called, options_of
from tests.fuzz.values import HOSTILE, value

Line = list[str]

SMALL = ("--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", "--batch", "1,8,64")
NEEDED: dict[str, tuple[str, ...]] = {
    "plan": (*SMALL, "--prefill-batch", "1,4"),
    "pareto": (*SMALL, "--prefill-batch", "1"),
    "compare": (*SMALL, "--prefill-batch", "1"),
    "audit": ("--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", "--speed", "35tok/s"),
    "predict": ("--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1"),
    "place": ("--model", "llama-3.1-8b", "--topology", "h100-nvl8-x1", "--batch", "1,8,64"),
    "fleet": (
        *("--model", "llama-3.1-8b", "--engine", "vllm", "--topology", "h100-nvl8-x1"),
        *("--rate", "1req/s", "--input", "200", "--output", "20", "--simulated", "500"),
    ),
    "repair": ("placement.json", "--state", "state.toml"),
    "stages": ("--model", "llama-3.1-8b", "--groups", "h100-sxm:tp1x2"),
    "layers": ("machines.toml", "--time-limit", "5s"),  # without one it searches until it is sure
    "experts": ("--loads", "loads.csv", "--ranks", "4"),
    "measure": ("--device", "h200", "--model", "llama-3.1-8b", "--tp", "1", "--budget", "1s"),
    "calibrate": ("kernels.csv", "--device", "h20", "--engine", "own", "--sms", "78"),
    "verify": ("plan.json",),
    "topologies-import": ("topology.conf", "--device", "h100-sxm"),
}
"""Words that lead somewhere, by command; a command that is not here is told nothing."""

SERVES = {"explore"}
"""Commands that end when somebody ends them."""

CALIBRATES = "calibrate"
"""Fits take seconds: it is drawn seldom."""


def command_line(rng: random.Random, *, hostility: float) -> Line:
    """One command line.

    Args:
        hostility: probability that a value is one that nothing takes.
    """
    commands = [*(name for name in COMMANDS if name not in SERVES), "plan", "plan"]
    command = rng.choice([name for name in commands if name != CALIBRATES or rng.random() < 0.2])
    rows = options_of(command)
    if "NAME" in rows:
        return [command, *_names(rng, command, hostility)]
    valued = [name for name, row in rows.items() if row.value]
    flags = [name for name, row in rows.items() if not row.value]
    words = list(NEEDED.get(command, ())) if rng.random() > 0.2 * hostility else []
    options = rng.sample(valued, k=min(len(valued), rng.choice((0, 1, 1, 2, 3))))
    for option in options:
        words = _without(words, option) if rng.random() < 0.9 else words
        words += [option, value(rng, option, hostility=hostility)]
    words += [flag for flag in flags if rng.random() < 0.15]
    if rng.random() < 0.5:
        words.append("--json")
    words = [word for i, word in enumerate(words) if word != "--json" or i == words.index("--json")]
    if rng.random() < 0.3 * hostility:
        words = _spoilt(rng, words)
    return [*called(command).split()[1:], *words]


def _names(rng: random.Random, command: str, hostility: float) -> Line:
    known = {"models": "llama-3.1-8b", "topologies": "h100-nvl8-x1", "devices": "h100-sxm"}
    name = rng.choice(HOSTILE) if rng.random() < hostility else known.get(command, "mini.toml")
    words = [name] if rng.random() < 0.7 else []
    flags = [name for name, row in options_of(command).items() if not row.value]
    return [*words, *(flag for flag in flags if rng.random() < 0.5)]


def _without(words: Line, option: str) -> Line:
    if option not in words:
        return words
    i = words.index(option)
    return words[:i] + words[i + 2 :]


def _spoilt(rng: random.Random, words: Line) -> Line:
    """Words swapped, doubled, dropped, or joined by something that is no option."""
    words = list(words)
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(words))
        how = rng.randrange(4)
        if how == 0:
            words.insert(at, rng.choice(HOSTILE))
        elif how == 1 and words:
            words.pop(min(at, len(words) - 1))
        elif how == 2 and words:
            words.insert(at, rng.choice(words))
        else:
            rng.shuffle(words)
    return words
