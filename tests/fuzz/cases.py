"""Cases by kind and number: the same number is the same case, on any machine."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.fuzz.calls import complaint, spoilt_call
from tests.fuzz.files import HELD, KINDS, answers, spoilt
from tests.fuzz.judging import complaints
from tests.fuzz.lines import command_line
from tests.fuzz.running import SPECIAL, Files, Ran, in_a_fresh_process, in_process
from tests.fuzz.values import HOSTILE

FRESH = 40
"""Of so many command lines one runs in a process of its own, as a user's does."""

VERIFIED = 4
"""Of so many answers one is verified, and of so many hints one is followed."""


@dataclass(frozen=True)
class Case:
    """A command line, or a call of the library.

    Args:
        files: that stand in its folder beside those that always do.
        call: what is called, if it is no command line.
    """

    said: str
    line: list[str] = field(default_factory=list)
    files: Files = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    call: Callable[[], object] | None = None


def case(kind: str, number: int) -> Case:
    """One case of a kind."""
    return MAKERS[kind](random.Random(f"{kind} {number}"))


def wrong_with(kind: str, number: int) -> list[str]:
    """Everything that is wrong with how a case ends."""
    made = case(kind, number)
    if made.call is not None:
        return [one for one in [complaint(made.call)] if one]
    rng = random.Random(f"ending {kind} {number}")
    is_fresh = rng.randrange(FRESH) == 0 and "\0" not in "".join(made.line)
    run = in_a_fresh_process if is_fresh else in_process
    ran = run(made.line, standing(made), made.environment)
    found = complaints(made.line, ran)
    if not found and rng.randrange(VERIFIED) == 0:
        found = _followed(made, ran)
    return found


def standing(made: Case) -> Files:
    """All files of a case."""
    return {**HELD, **answers(), **made.files}


def _followed(made: Case, ran: Ran) -> list[str]:
    """What is wrong with an answer that is verified, or a hint that is followed."""
    if ran.code == 0 and "--json" in made.line and '"digest"' in ran.out:
        again = in_process(["verify", "an answer.json"], {"an answer.json": ran.out})
        return [] if again.code in (0, 2) else [f"is not verified: {again.out[:300]!r}"]
    hints = [at for at in ran.err.splitlines() if at.startswith("hint: this has a plan: `")]
    if ran.code != 1 or not hints:
        return []
    line = shlex.split(hints[0].partition("`")[2].rpartition("`")[0])[1:]
    again = in_process(line, standing(made), made.environment)
    return [] if again.code == 0 else [f"the hint {line} ends with {again.code}: {again.err[:200]}"]


def _words(rng: random.Random) -> Case:
    line = command_line(rng, hostility=0.6)
    return Case(said=shlex.join(["plan", *line]), line=line)


def _requests(rng: random.Random) -> Case:
    line = command_line(rng, hostility=0.04)
    return Case(said=shlex.join(["plan", *line]), line=line)


def _files(rng: random.Random) -> Case:
    name = rng.choice(tuple(KINDS))
    kind = KINDS[name]
    text = answers()[kind.name] if kind.name in answers() else kind.text(rng)
    line = rng.choice(kind.lines).split()
    content = spoilt(rng, text)
    return Case(said=f"{name}: plan {shlex.join(line)}", line=line, files={kind.name: content})


_SPECIAL = (
    *("pipe", "folder", "link loop", "link nowhere", "link /dev/zero", "link /dev/random"),
    *("link /dev/null", "link .", "sparse 9000000", "sparse 70000000000", "link /proc/self/mem"),
    *("link /etc/passwd", "link a/b/c", "link /proc/kmsg"),
)


def _special(rng: random.Random) -> Case:
    """Something that is no file in place of one."""
    kind = KINDS[rng.choice(tuple(KINDS))]
    line = rng.choice(kind.lines).split()
    content = SPECIAL + rng.choice(_SPECIAL)
    if rng.random() < 0.3:
        deep = rng.choice((70, 1_000, 100_000))
        content = rng.choice(("[" * deep + "]" * deep, '{"a":' * deep, "a." * deep + "b = 1"))
    said = f"{kind.name} is {content[:40]!r}: plan {shlex.join(line)}"
    files = {kind.name: content, "loop": SPECIAL + "link loop"} if content != "loop" else {}
    return Case(said=said, line=line, files=files)


_OUTPUTS = (
    ("pareto --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --prefill-batch 1", "--html"),
    ("pareto --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --prefill-batch 1", "--csv"),
    ("predict --model llama-3.1-8b --topology h100-nvl8-x1", "--html"),
    ("place --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --replicas 1", "--svg"),
    ("experts --zipf 1 --experts 8 --ranks 2", "--html"),
    ("stages --model llama-3.1-8b --groups h100-sxm:tp1x2", "--html"),
    ("--model llama-3.1-8b --topology h100-nvl8-x1 --batch 8", "--keep-program"),
    ("--model llama-3.1-8b --topology h100-nvl8-x1 --batch 8", "--solver-report"),
)
_TARGETS = (
    *("pipe", "folder", "loop", "dangling", "old.html", "no/where.html", "./x/../y.html", "-", ""),
    *("/dev/stdout", "/proc/self/x", "/nowhere/x", "folder/", "old.html/x", "x" * 300, "a\nb.html"),
)


def _outputs(rng: random.Random) -> Case:
    """Names of files to write that are none, or that something else has."""
    words, option = rng.choice(_OUTPUTS)
    target = rng.choice((*_TARGETS, rng.choice([one for one in HOSTILE if "/" not in one])))
    line = [*words.split(), option, target, *(["--json"] if rng.random() < 0.5 else [])]
    files = {
        "pipe": SPECIAL + "pipe",
        "folder": SPECIAL + "folder",
        "loop": SPECIAL + "link loop",
        "dangling": SPECIAL + "link somewhere.html",
        "old.html": "what stood there",
    }
    return Case(said=shlex.join(["plan", *line]), line=line, files=files)


_VARIABLES = {
    "COLUMNS": ("0", "-1", "1", "abc", "1000000000", "", "60.5", "9" * 5_000),
    "PLANNER_PATH": ("/", ":::", "nowhere", "/dev", "/proc/self", "x" * 5_000, "\udcff", ".:.:."),
    "HF_HOME": ("/dev/null", "nowhere", "/proc", ""),
    "HF_HUB_CACHE": ("/dev/null", "loop", "pipe"),
    "HOME": ("", "/nowhere", "/dev/null"),
    "XDG_CACHE_HOME": ("/dev/full",),
    "NO_COLOR": ("1", ""),
    "TERM": ("dumb", "", "x" * 300),
    "LINES": ("-5",),
}


def _environment(rng: random.Random) -> Case:
    """Variables that say nonsense."""
    names = rng.sample(tuple(_VARIABLES), k=rng.choice((1, 1, 2)))
    environment = {name: rng.choice(_VARIABLES[name]) for name in names}
    lines = ("models", "topologies", "devices", "--batch 0", "models org/name", "models x")
    line = [*rng.choice(lines).split()] if rng.random() < 0.7 else command_line(rng, hostility=0.2)
    files = {"loop": SPECIAL + "link loop", "pipe": SPECIAL + "pipe"}
    said = " ".join(f"{name}={value[:30]!r}" for name, value in environment.items())
    said = f"{said} {shlex.join(['plan', *line])}"
    return Case(said=said, line=line, files=files, environment=environment)


def _calls(rng: random.Random) -> Case:
    said, call = spoilt_call(rng)
    return Case(said=said, call=call)


MAKERS: dict[str, Callable[[random.Random], Case]] = {
    "words": _words,
    "requests": _requests,
    "files": _files,
    "special": _special,
    "outputs": _outputs,
    "environment": _environment,
    "calls": _calls,
}
SHARES = {
    "words": 0.35,
    "requests": 0.1,
    "files": 0.3,
    "special": 0.05,
    "outputs": 0.03,
    "environment": 0.02,
    "calls": 0.15,
}
"""How many of all cases are of each kind."""


def numbered(n_cases: int, seed: int) -> list[tuple[str, int]]:
    """Kinds and numbers of as many cases, the kinds mixed."""
    rng = random.Random(seed)
    kinds = rng.choices(tuple(SHARES), weights=tuple(SHARES.values()), k=n_cases)
    return [(kind, seed * 1_000_000 + i) for i, kind in enumerate(kinds)]


def told(made: Case) -> str:
    """A case in words that fit a line."""
    return json.dumps(made.said, ensure_ascii=True)[1:-1][:300]
