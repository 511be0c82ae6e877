"""Load serving engines from TOML files; every fault of a file at once.

What holds under every engine is in one file, and stands where an engine's own does not speak of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType

from planner.errors import Problem, SpecError
from planner.specs.engines.rule_files import CUTS, with_rules
from planner.specs.finding import Found, find
from planner.specs.kernels import EngineSpec
from planner.specs.meanings import misplaced
from planner.specs.places import Kind, common_to_engines, shipped_file, shown_path
from planner.specs.reading import read_named
from planner.specs.runtimes import is_table
from planner.specs.tables import Table, read_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import validate
from planner.specs.validation.layouts import Section, lay_out, provenance, record_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFile(EngineSpec):
    """An engine as its file has it: rules by the names of their files."""

    description: str = ""
    rules: tuple[str, ...] = (CUTS,)  # type: ignore[assignment]


lay_out(
    EngineFile,
    Section("engine", "name title version rules description", sourced=False),
    Section("memory", "fraction=memory_fraction workspace_bytes block=n_block_tokens"),
    Section("memory", "reserved=reserved_fraction own_blocks=n_own_blocks"),
    Section("memory", "watermark=watermark_fraction caches_prefixes"),
    Section("steps", "chunk=n_chunk_tokens prefill_host_s small_kernels=n_small_kernels"),
    Section("steps", "decode_host_s layer_gap_s inner_norms_s prefill_experts_s prefill_scans_s"),
    Section("steps", "fuses_quantisation needs_input_scales request_s request_token_s"),
    Section("steps", "polled=n_polled_rounds composes_ahead mixes_prefill message_share"),
    Section("experts", "balanced_groups=n_balanced_groups redundant_experts=n_redundant_experts"),
)


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
    table, problems = read_named(found, "engine", Kind.ENGINE)
    table = _completed(table)
    file, faults = validate(EngineFile, table, found.shown) if table else (None, [])
    if file is None or problems:
        raise SpecError([*faults, *problems])
    memory = _MEMORY.get()
    fraction, workspace = memory.get(file.name, memory.get("", (None, None)))
    engine = record_of(
        EngineSpec,
        file,
        rules=(),
        memory_fraction=file.memory_fraction if fraction is None else fraction,
        workspace_bytes=file.workspace_bytes if workspace is None else workspace,
        provenance=tuple(provenance(EngineFile, table)),
    )
    return with_rules(engine, _as_shipped(found, [*file.rules]))


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


def _completed(table: Table) -> Table:
    """With what every engine has, where the file says nothing of it."""
    steps, path = table.get("steps"), common_to_engines()
    if not isinstance(steps, dict):
        return table
    common, unread = read_table(path, shown_path(path))
    if unread:
        raise SpecError(unread)
    return {**table, "steps": {**common["steps"], **steps}}
