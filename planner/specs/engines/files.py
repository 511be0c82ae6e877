"""Load serving engines from TOML files; every fault of a file at once.

What holds under every engine is in one file, and stands where an engine's own does not speak of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field

from planner.errors import Problem, SpecError
from planner.specs.arguments import arguments_checked
from planner.specs.engines.rule_files import CUTS, with_rules
from planner.specs.faults import validate
from planner.specs.finding import Found, find
from planner.specs.kernels import EngineSpec
from planner.specs.meanings import misplaced
from planner.specs.patterns import name_of
from planner.specs.places import Kind, common_to_engines, shipped_file, shown_path
from planner.specs.provenance import Provenance
from planner.specs.runtimes import is_table
from planner.specs.schemas import Section, Sourced, Strict
from planner.specs.tables import read_table
from planner.specs.values import Bytes, Count, Fraction, SpareCount, SpareFraction, Text, fault
from planner.units import UnitError, parse, show

_Said = TypeVar("_Said")

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
SpareSeconds = Annotated[float, BeforeValidator(_spare_seconds)]


class EngineHead(Strict):
    name: Text
    title: Text
    version: Text
    rules: list[Text] = Field(default_factory=lambda: [CUTS])
    description: Text = ""


class EngineMemory(Section):
    fraction: Sourced[Fraction]
    workspace: Sourced[Bytes]
    block: Sourced[Count]
    reserved: Sourced[SpareFraction] | None = None
    own_blocks: Sourced[SpareCount] | None = None
    watermark: Sourced[SpareFraction] | None = None
    caches_prefixes: Sourced[_Switch] | None = None


class EngineSteps(Section):
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
    memory, steps, experts = file.memory, _completed(file.steps), file.experts
    asked = _MEMORY.get()
    fraction, workspace = asked.get(file.engine.name, asked.get("", (None, None)))
    engine = EngineSpec(
        name=file.engine.name,
        title=file.engine.title,
        version=file.engine.version,
        memory_fraction=memory.fraction.value if fraction is None else fraction,
        workspace_bytes=memory.workspace.value if workspace is None else workspace,
        n_block_tokens=memory.block.value,
        n_chunk_tokens=steps.chunk.value,
        prefill_host_s=steps.prefill_host.value,
        n_small_kernels=steps.small_kernels.value,
        decode_host_s=_or(steps.decode_host, 0.0),
        layer_gap_s=_or(steps.layer_gap, 0.0),
        inner_norms_s=_or(steps.inner_norms, 0.0),
        prefill_experts_s=_or(steps.prefill_experts, 0.0),
        prefill_scans_s=_or(steps.prefill_scans, 0.0),
        fuses_quantisation=_or(steps.fuses_quantisation, False),
        needs_input_scales=_or(steps.needs_input_scales, False),
        request_s=_or(steps.request, 0.0),
        request_token_s=_or(steps.request_token, 0.0),
        n_polled_rounds=_or(steps.polled, 1),
        composes_ahead=_or(steps.composes_ahead, False),
        reserved_fraction=_or(memory.reserved, 1.0),
        n_own_blocks=_or(memory.own_blocks, 0),
        watermark_fraction=_or(memory.watermark, 0.0),
        caches_prefixes=_or(memory.caches_prefixes, False),
        mixes_prefill=_or(steps.mixes_prefill, True),
        message_share=_or(steps.message_share, 0.0),
        n_balanced_groups=_or(experts.balanced_groups, 0),
        n_redundant_experts=_or(experts.redundant_experts, 0),
        provenance=tuple(
            Provenance(key=f"{section}.{key}", source=getattr(part, key).source)
            for section, part in (("memory", memory), ("steps", steps), ("experts", experts))
            for key in type(part).model_fields
            if key != "source" and getattr(part, key) is not None
        ),
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


def _or(said: Sourced[_Said] | None, otherwise: _Said) -> _Said:
    """What a file says, or what holds where it says nothing."""
    return said.value if said else otherwise


def misnamed(found: Found, name: str, section: str) -> Iterator[Problem]:
    """One problem if a file that was found by its name calls itself something else."""
    if found.name and name and name != found.name:
        remedy = f"write `{found.name}`, or rename the file"
        fact = "is not the name of the file"
        key = f"{section}.name"
        yield Problem(where=found.shown, key=key, value=name, fact=fact, remedy=remedy)
