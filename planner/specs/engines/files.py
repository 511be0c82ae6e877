"""Load serving engines from TOML files; every fault of a file at once.

What holds under every engine is in one file, and stands where an engine's own does not speak of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from planner.errors import Problem, SpecError
from planner.specs.building import provenance, record_of
from planner.specs.engines.rule_files import CUTS, with_rules
from planner.specs.faults import validate
from planner.specs.finding import Found, find
from planner.specs.kernels import EngineSpec
from planner.specs.meanings import misplaced
from planner.specs.patterns import name_of
from planner.specs.places import Kind, common_to_engines, shipped_file, shown_path
from planner.specs.runtimes import is_table
from planner.specs.schemas import Section, Sourced, Strict
from planner.specs.tables import read_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.values import (
    Bytes,
    Count,
    Fraction,
    SpareCount,
    SpareFraction,
    Text,
    Unit,
    fault,
)
from planner.units import UnitError, parse, show

LONGEST_S = 60.0
"""No engine spends more on anything that its file says; it is then a slip of the unit [s]."""


def _spare_seconds(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str):
        raise fault("is not a duration", "write it like `2 ms`")
    try:
        value = parse(raw, "s", allow_zero=True)
    except UnitError as error:
        raise fault(error.fact, error.remedy) from None
    if value > LONGEST_S:
        raise fault(f"is above {show(LONGEST_S, 's')}", "write it like `2 ms`")
    return value


def _switch(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise fault("is neither true nor false", "write `true` or `false`")
    return raw


_Switch = Annotated[bool, BeforeValidator(_switch)]
SpareSeconds = Annotated[float, BeforeValidator(_spare_seconds), Unit("s", "_s")]


class EngineHead(Strict):
    name: Text
    title: Text
    version: Text
    rules: list[Text] = Field(default_factory=lambda: [CUTS])
    description: Text = ""


class EngineMemory(Section):
    named: ClassVar[Mapping[str, str]] = {
        "fraction": "memory_fraction",
        "block": "n_block_tokens",
        "reserved": "reserved_fraction",
        "own_blocks": "n_own_blocks",
        "watermark": "watermark_fraction",
    }

    fraction: Sourced[Fraction]
    workspace: Sourced[Bytes]
    block: Sourced[Count]
    reserved: Sourced[SpareFraction] | None = None
    own_blocks: Sourced[SpareCount] | None = None
    watermark: Sourced[SpareFraction] | None = None
    caches_prefixes: Sourced[_Switch] | None = None


class EngineSteps(Section):
    named: ClassVar[Mapping[str, str]] = {
        "chunk": "n_chunk_tokens",
        "small_kernels": "n_small_kernels",
        "polled": "n_polled_rounds",
    }

    chunk: Sourced[Count]
    prefill_host: Sourced[SpareSeconds]
    small_kernels: Sourced[SpareCount]
    decode_host: Sourced[SpareSeconds] | None = None
    layer_gap: Sourced[SpareSeconds] | None = None
    inner_norms: Sourced[SpareSeconds] | None = None
    prefill_experts: Sourced[SpareSeconds] | None = None
    prefill_scans: Sourced[SpareSeconds] | None = None
    fuses_quantisation: Sourced[_Switch] | None = None
    needs_input_scales: Sourced[_Switch] | None = None
    request: Sourced[SpareSeconds] | None = None
    request_token: Sourced[SpareSeconds] | None = None
    polled: Sourced[Count] | None = None
    composes_ahead: Sourced[_Switch] | None = None
    mixes_prefill: Sourced[_Switch] | None = None
    message_share: Sourced[Fraction] | None = None


class EngineExperts(Section):
    named: ClassVar[Mapping[str, str]] = {
        "balanced_groups": "n_balanced_groups",
        "redundant_experts": "n_redundant_experts",
    }

    balanced_groups: Sourced[Count] | None = None
    redundant_experts: Sourced[Count] | None = None


class CommonSteps(Section):
    layer_gap: Sourced[SpareSeconds]
    inner_norms: Sourced[SpareSeconds]
    request: Sourced[SpareSeconds]
    request_token: Sourced[SpareSeconds]


class CommonFile(Strict):
    steps: CommonSteps


class EngineFile(Strict):
    engine: EngineHead
    memory: EngineMemory
    steps: EngineSteps
    experts: EngineExperts = Field(default_factory=EngineExperts)


Memory = tuple[float | None, float | None]
"""Share of a device's memory that an engine may take, and bytes of it that are the engine's own."""

_MEMORY: ContextVar[Mapping[str, Memory]] = ContextVar("memory", default=MappingProxyType({}))


@contextmanager
def engine_memory(
    *, fraction: float | None = None, workspace_bytes: float | None = None
) -> Iterator[None]:
    """What engines take of a device within the block; of what is None their files decide.

    Args:
        fraction: share of a device's memory that weights, cache and buffers may take.
        workspace_bytes: buffers, graphs and the runtime inside that share, besides activations.
    """
    token = _MEMORY.set({"": (fraction, workspace_bytes)})
    try:
        yield
    finally:
        _MEMORY.reset(token)


@contextmanager
def memory_as_in(engines: Iterable[EngineSpec]) -> Iterator[None]:
    """Engines take what these do, as an answer has them; what was said for the block wins."""
    said = _MEMORY.get()
    fraction, workspace = said.get("", (None, None))
    taken: dict[str, Memory] = {}
    for one in engines:
        share = one.memory_fraction if fraction is None else fraction
        taken[one.name] = share, one.workspace_bytes if workspace is None else workspace
    token = _MEMORY.set({**taken, **said})
    try:
        yield
    finally:
        _MEMORY.reset(token)


def memory_options(engine: EngineSpec) -> dict[str, str]:
    """Options that say what an engine takes of a device, where its file says something else."""
    token = _MEMORY.set({})
    try:
        usual = load_engine(engine.name)
    except SpecError:
        return {}
    finally:
        _MEMORY.reset(token)
    options = {}
    if engine.memory_fraction != usual.memory_fraction:
        options["--memory-fraction"] = f"{engine.memory_fraction:.12g}"
    if engine.workspace_bytes != usual.workspace_bytes:
        options["--workspace"] = f"{engine.workspace_bytes / 2**30!r}GiB"
    if engine.rules_file:
        options["--rules"] = engine.rules_file
    return options


@arguments_checked()
def load_engine(name_or_path: str, *, asked_by: str = "--engine") -> EngineSpec:
    """Load a serving engine, by a name such as `vllm` or the path of a file.

    Raises:
        SpecError: there is no such engine, or its file has faults; all are listed.
    """
    if is_table(name_or_path):  # no engine, and it is told apart from one that is not known
        raise SpecError(list(misplaced({asked_by: name_or_path}, (name_or_path,), "predict")))
    found = find(Kind.ENGINE, name_or_path, asked_by=asked_by)
    table, unread = read_table(found.path, found.shown, use=found.use(Kind.ENGINE))
    file, faults = validate(EngineFile, table, found.shown) if table else (None, [])
    problems = [*unread, *faults, *misnamed(found, name_of(table, "engine"), "engine")]
    if file is None or problems:
        raise SpecError(problems)
    steps, asked = _completed(file.steps), _MEMORY.get()
    fraction, workspace = asked.get(file.engine.name, asked.get("", (None, None)))
    said = {"memory_fraction": fraction, "workspace_bytes": workspace}
    sections = {"memory": file.memory, "steps": steps, "experts": file.experts}
    engine = record_of(
        EngineSpec,
        file.engine,
        *sections.values(),
        provenance=tuple(one for name, part in sections.items() for one in provenance(part, name)),
        **{name: value for name, value in said.items() if value is not None},
    )
    return with_rules(engine, _as_shipped(found, file.engine.rules))


def _as_shipped(found: Found, names: list[str]) -> list[str]:
    """The rules of an engine, unless a file that hides one that ships has others.

    Raises:
        SpecError: it has, and no answer would say so.
    """
    replaces = found.use(Kind.ENGINE).replaces
    hidden = shipped_file(replaces) if replaces else None
    ours = read_table(hidden, str(hidden))[0]["engine"]["rules"] if hidden else names
    if ours == names:
        return names
    fact = f"are not those of the {found.name} that ships, {', '.join(ours)}"
    remedy, value = "lift and add rules by `--rules`", ", ".join(names)
    problem = Problem(where=found.shown, key="engine.rules", value=value, fact=fact, remedy=remedy)
    raise SpecError([problem])


def _completed(steps: EngineSteps) -> EngineSteps:
    """With what every engine has, where the file says nothing of it."""
    common = _common().steps
    known = {key: getattr(common, key) for key in type(common).model_fields if key != "source"}
    return steps.model_copy(
        update={key: one for key, one in known.items() if getattr(steps, key) is None}
    )


@cache
def _common() -> CommonFile:
    path = common_to_engines()
    shown = shown_path(path)
    table, unread = read_table(path, shown)
    file, faults = validate(CommonFile, table, shown) if table else (None, [])
    if file is None or unread or faults:
        raise SpecError([*unread, *faults])
    return file


def misnamed(found: Found, name: str, section: str) -> Iterator[Problem]:
    """One problem if a file that was found by its name calls itself something else."""
    if found.name and name and name != found.name:
        remedy = f"write `{found.name}`, or rename the file"
        fact = "is not the name of the file"
        key = f"{section}.name"
        yield Problem(where=found.shown, key=key, value=name, fact=fact, remedy=remedy)
