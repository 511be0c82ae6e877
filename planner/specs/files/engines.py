"""Load serving engines from TOML files; every fault of a file at once.

What holds under every engine is in one file, and stands where an engine's own does not speak of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from planner.errors import Problem, SpecError
from planner.running import meanwhile
from planner.specs.ask.calibrations import calibrated, calibrations_said
from planner.specs.files.finding import SpecFile, find
from planner.specs.files.places import (
    Kind,
    common_to_engines,
    is_as_shipped,
    shipped_file,
    shown_path,
)
from planner.specs.files.reading import read_named, record_of
from planner.specs.files.tables import Table, read_table
from planner.specs.options.meanings import misplaced
from planner.specs.records.engine_rules import EngineRule
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.runtimes import is_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import Finding, did_you_mean, repeated

CUTS = "cuts"
"""The rules of cutting a model into equal parts, which every engine has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesFile:
    """A file of rules.

    Args:
        engine: whose rules; `all` of those of every engine.
        version: whose sources and flags were read.
        lifted: names of rules that do not count, of a user's file.
    """

    shown: str = ""
    engine: str
    version: str = ""
    rules: tuple[EngineRule, ...] = ()
    lifted: tuple[str, ...] = ()


_CHANGES: ContextVar[RulesFile | None] = ContextVar("changed rules of engines", default=None)


def load_rules(name_or_path: str, *, asked_by: str = "--rules") -> RulesFile:
    """A file of rules, by a name such as `vllm-0.33.0` or its path.

    Raises:
        SpecError: there is none, or it has faults; all are listed.
    """
    source = find(Kind.RULES, name_or_path, asked_by=asked_by)
    if source.use(Kind.RULES).replaces and not is_as_shipped(source.path):
        fact, remedy = "hides rules that ship", "rename it, and give it to `--rules`"
        raise SpecError([Problem(where=source.shown, fact=fact, remedy=remedy)])
    read = read_table(source.path, source.shown, use=source.use(Kind.RULES))
    file = record_of(RulesFile, *read, shown=source.shown, coherent=_named_twice)
    origin = "" if source.name else source.shown
    rules = tuple(replace(one, origin=origin) for one in file.rules)
    return replace(file, shown=source.shown, rules=rules)


def _named_twice(said: Mapping[str, Any]) -> Iterator[Finding]:
    yield from repeated((one.name for one in said.get("rules", ()) if one.name), "rule.name")


def changed_rules(
    name_or_path: str | None, *, engines: Sequence[str] = ()
) -> AbstractContextManager[None]:
    """Engines that are loaded within have what a user's file changes of their rules.

    The file is read at once.

    Args:
        engines: those that are asked, one of which has to be the file's; any where left out.

    Raises:
        SpecError: the file cannot be read, or changes nothing; all faults are listed.
    """
    changes = load_rules(name_or_path) if name_or_path else None
    if changes and engines and changes.engine not in engines:
        fact = f"changes rules of {changes.engine}, which is not asked"
        raise SpecError([Problem(where="--rules", value=changes.shown, fact=fact)])
    return meanwhile(_CHANGES, changes)


def with_rules(engine: EngineSpec, names: Sequence[str]) -> EngineSpec:
    """An engine with the rules of files, and with what a user's file changes of them.

    Raises:
        SpecError: there is no such file, it is of another engine, or it lifts what there is not.
    """
    read = [load_rules(name, asked_by="engine.rules") for name in names]
    rules = {one.name: one for file in read for one in file.rules}
    versions = [file.version for file in read if file.version]
    engine = replace(
        engine, rules=tuple(rules.values()), started_version=versions[-1] if versions else ""
    )
    changes = _CHANGES.get()
    is_changed = changes is not None and changes.engine == engine.name
    return _changed(engine, rules, changes) if changes and is_changed else engine


def _changed(engine: EngineSpec, rules: dict[str, EngineRule], changes: RulesFile) -> EngineSpec:
    """An engine without the rules that a user's file lifts, and with those that it adds."""
    fact, lists = f"is no rule of {changes.engine}", f"`plan engines {changes.engine}` lists them"
    wrong = partial(Problem, where=changes.shown, key="rules.lift", fact=fact)
    unknown = [
        wrong(value=name, remedy=did_you_mean(name, rules, otherwise=lists))
        for name in changes.lifted
        if name not in rules
    ]
    if unknown:
        raise SpecError(unknown)
    kept = {name: one for name, one in rules.items() if name not in changes.lifted}
    kept |= {one.name: replace(one, origin=changes.shown) for one in changes.rules}
    return replace(
        engine, rules=tuple(kept.values()), lifted=changes.lifted, rules_file=changes.shown
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFile(EngineSpec):
    """An engine as its file has it: rules by the names of their files."""

    description: str = ""
    rules: tuple[str, ...] = (CUTS,)  # type: ignore[assignment]


Memory = tuple[float | None, float | None]
"""Share of a device's memory that an engine may take, and bytes of it that are the engine's own."""

_MEMORY: ContextVar[Mapping[str, Memory]] = ContextVar("memory", default=MappingProxyType({}))


def engine_memory(
    *, fraction: float | None = None, workspace_bytes: float | None = None
) -> AbstractContextManager[None]:
    """What engines take of a device within the block; of what is None their files decide.

    Args:
        fraction: share of a device's memory that weights, cache and buffers may take.
        workspace_bytes: buffers, graphs and the runtime inside that share, besides activations.
    """
    return meanwhile(_MEMORY, {"": (fraction, workspace_bytes)})


@contextmanager
def engines_as_in(engines: Iterable[EngineSpec]) -> Iterator[None]:
    """Engines take the memory that these do, and have their calibrations, as an answer has them.

    What was said for the block wins.
    """
    engines, said = list(engines), _MEMORY.get()
    own = {one.calibration for one in engines if one.calibration is not None}
    fraction, workspace = said.get("", (None, None))
    taken: dict[str, Memory] = {}
    for one in engines:
        share = one.memory_fraction if fraction is None else fraction
        taken[one.name] = share, one.workspace_bytes if workspace is None else workspace
    with meanwhile(_MEMORY, {**taken, **said}), calibrated(calibrations_said() or tuple(own)):
        yield


def memory_options(engine: EngineSpec) -> dict[str, str]:
    """Options that say what an engine takes of a device, where its file says something else."""
    try:
        with meanwhile(_MEMORY, {}):
            usual = load_engine(engine.name)
    except SpecError:
        return {}
    options = {}
    if engine.memory_fraction != usual.memory_fraction:
        options["--memory-fraction"] = f"{engine.memory_fraction:.12g}"
    if engine.workspace_bytes != usual.workspace_bytes:
        options["--workspace"] = f"{engine.workspace_bytes / 2**30!r}GiB"
    if engine.rules_file:
        options["--rules"] = engine.rules_file
    if engine.calibration is not None:
        options["--calibration"] = engine.calibration.file
    return options


@arguments_checked()
def load_engine(name_or_path: str, *, asked_by: str = "--engine") -> EngineSpec:
    """Load a serving engine, by a name such as `vllm` or the path of a file.

    Raises:
        SpecError: there is no such engine, or its file has faults; all are listed.
    """
    if is_table(name_or_path):  # no engine, and it is told apart from one that is not known
        raise SpecError(list(misplaced({asked_by: name_or_path}, (name_or_path,), "predict")))
    source = find(Kind.ENGINE, name_or_path, asked_by=asked_by)
    table, problems = read_named(source, "engine", Kind.ENGINE)
    file = record_of(EngineFile, _completed(table), problems, shown=source.shown)
    memory = _MEMORY.get()
    fraction, workspace = memory.get(file.name, memory.get("", (None, None)))
    engine = from_fields(
        EngineSpec,
        file,
        rules=(),
        memory_fraction=file.memory_fraction if fraction is None else fraction,
        workspace_bytes=file.workspace_bytes if workspace is None else workspace,
    )
    return with_rules(engine, _as_shipped(source, [*file.rules]))


def _as_shipped(file: SpecFile, names: list[str]) -> list[str]:
    """The rules of an engine, unless a file that hides one that ships has others.

    Raises:
        SpecError: it has, and no answer would say so.
    """
    replaces = file.use(Kind.ENGINE).replaces
    hidden = shipped_file(replaces) if replaces else None
    ours = read_table(hidden, str(hidden))[0]["engine"]["rules"] if hidden else names
    if ours == names:
        return names
    fact = f"are not those of the {file.name} that ships, {', '.join(ours)}"
    remedy, value = "lift and add rules by `--rules`", ", ".join(names)
    problem = Problem(where=file.shown, key="engine.rules", value=value, fact=fact, remedy=remedy)
    raise SpecError([problem])


def _completed(table: Table) -> Table:
    """With what every engine has, where the file says nothing of it."""
    steps, path = table.get("steps"), common_to_engines()
    if not isinstance(steps, dict):
        return table
    common, unread = read_table(path, shown_path(path))
    SpecError.raise_if_any(unread)
    return {**table, "steps": {**common["steps"], **steps}}
