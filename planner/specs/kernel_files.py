"""Load kernel tables and serving engines from TOML files; every fault of a file at once.

A device that no one measured has the kernels of `kernels/assumed.toml`, whose errors are wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from planner.errors import Problem, SpecError
from planner.specs.faults import validate
from planner.specs.finding import Found, Kind, files, find, shown_path
from planner.specs.kernels import EngineSpec, Fit, Kernel, KernelTable
from planner.specs.patterns import name_of
from planner.specs.provenance import Provenance
from planner.specs.schemas import Section, Sourced, Strict
from planner.specs.tables import read_table
from planner.specs.values import Bytes, Count, Fraction, SpareCount, Text, fault
from planner.units import UnitError, parse

ASSUMED = "assumed"
"""Name of the table of those devices and families that were not measured."""


def _constant(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise fault("is not a number", "write it in the SI unit of its name")
    if not 0 <= raw < float("inf"):
        raise fault("is negative or not finite", "write a number from 0")
    return float(raw)


def _spare_seconds(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str):
        raise fault("is not a duration", "write it like `2 ms`")
    try:
        return parse(raw, "s", allow_zero=True)
    except UnitError as error:
        raise fault(error.fact, error.remedy) from None


def _switch(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise fault("is neither true nor false", "write `true` or `false`")
    return raw


_Switch = Annotated[bool, BeforeValidator(_switch)]
_Constant = Annotated[float, BeforeValidator(_constant)]
_SpareSeconds = Annotated[float, BeforeValidator(_spare_seconds)]


class TableHead(Strict):
    name: Text
    device: Text
    engine: Text
    version: Text
    n_sms: Sourced[Count] | None = None
    description: Text = ""


class FitEntry(Strict):
    source: Text
    n_rows: SpareCount
    median_error: _Constant
    p90_error: _Constant
    left_out_median_error: _Constant | None = None
    left_out_p90_error: _Constant | None = None
    left_out: Text = "shapes"


class KernelEntry(Strict):
    family: Text
    format: Text
    constants: dict[str, _Constant] = Field(min_length=1)
    fit: FitEntry


class KernelFile(Strict):
    table: TableHead
    kernel: list[KernelEntry] = Field(min_length=1)


class EngineHead(Strict):
    name: Text
    title: Text
    version: Text
    description: Text = ""


class EngineMemory(Section):
    fraction: Sourced[Fraction]
    workspace: Sourced[Bytes]
    block: Sourced[Count]


class EngineSteps(Section):
    chunk: Sourced[Count]
    decode_host: Sourced[_SpareSeconds]
    prefill_host: Sourced[_SpareSeconds]
    small_kernels: Sourced[SpareCount]
    request: Sourced[_SpareSeconds] | None = None
    expert_request: Sourced[_SpareSeconds] | None = None
    mixes_prefill: Sourced[_Switch] | None = None
    message_share: Sourced[Fraction] | None = None


class EngineFile(Strict):
    engine: EngineHead
    memory: EngineMemory
    steps: EngineSteps


def load_kernels(name_or_path: str, *, asked_by: str = "kernels") -> KernelTable:
    """Load one kernel file, as it stands.

    Args:
        name_or_path: a name such as `h20-deepgemm`, or the path of a file.
        asked_by: what named it, for messages.

    Raises:
        SpecError: there is no such file, or it has faults; all are listed.
    """
    return _table(find(Kind.KERNELS, name_or_path, asked_by=asked_by))


def kernel_table(device: str, engine: str) -> KernelTable:
    """The kernels of a device under an engine, complete.

    What the engine's own table lacks is taken from the device's other tables, then from what is
    assumed of any device. Each kernel says so by its source.

    Args:
        device: name of a device.
        engine: name of an engine.

    Raises:
        SpecError: a file that is needed has faults; all are listed.
    """
    tables = [_table(_found(path)) for path in files(Kind.KERNELS) if _device_of(path) == device]
    tables.sort(key=lambda one: (one.engine != engine, one.engine))
    assumed = load_kernels(ASSUMED)
    kernels: dict[tuple[str, str], Kernel] = {}
    for one in reversed(tables):  # the engine's own comes last, and stands
        kernels |= one.kernels
    known = {family for family, _ in kernels}
    kernels |= {key: one for key, one in assumed.kernels.items() if key[0] not in known}
    own = tables[0] if tables and tables[0].engine == engine else None
    return KernelTable(
        device=device,
        engine=engine,
        version=own.version if own else ASSUMED,
        kernels=kernels,
        n_sms=next((one.n_sms for one in tables if one.n_sms), 0),
        provenance=tuple(
            Provenance(key=f"{family}.{number}", source=one.fit.source)
            for (family, number), one in kernels.items()
        ),
    )


def list_kernels() -> Iterator[KernelTable]:
    """Every kernel file that can be found, what is assumed included."""
    for path in files(Kind.KERNELS):
        yield _table(_found(path))


def load_engine(name_or_path: str, *, asked_by: str = "--engine") -> EngineSpec:
    """Load a serving engine, by a name such as `vllm` or the path of a file.

    Raises:
        SpecError: there is no such engine, or its file has faults; all are listed.
    """
    found = find(Kind.ENGINE, name_or_path, asked_by=asked_by)
    table, unread = read_table(found.path, found.shown)
    file, faults = validate(EngineFile, table, found.shown) if table else (None, [])
    problems = [*unread, *faults, *_misnamed(found, name_of(table, "engine"), "engine")]
    if file is None or problems:
        raise SpecError(problems)
    memory, steps = file.memory, file.steps
    return EngineSpec(
        name=file.engine.name,
        title=file.engine.title,
        version=file.engine.version,
        memory_fraction=memory.fraction.value,
        workspace_bytes=memory.workspace.value,
        n_block_tokens=memory.block.value,
        n_chunk_tokens=steps.chunk.value,
        decode_host_s=steps.decode_host.value,
        prefill_host_s=steps.prefill_host.value,
        n_small_kernels=steps.small_kernels.value,
        request_s=steps.request.value if steps.request else 0.0,
        expert_request_s=steps.expert_request.value if steps.expert_request else 0.0,
        mixes_prefill=steps.mixes_prefill.value if steps.mixes_prefill else True,
        message_share=steps.message_share.value if steps.message_share else 0.0,
        provenance=tuple(
            Provenance(key=f"{section}.{key}", source=getattr(part, key).source)
            for section, part in (("memory", memory), ("steps", steps))
            for key in type(part).model_fields
            if key != "source" and getattr(part, key) is not None
        ),
    )


def _table(found: Found) -> KernelTable:
    table, unread = read_table(found.path, found.shown)
    file, faults = validate(KernelFile, table, found.shown) if table else (None, [])
    problems = [*unread, *faults, *_misnamed(found, name_of(table, "table"), "table")]
    if file is not None:
        problems += _repeated(file, found.shown)
    if file is None or problems:
        raise SpecError(problems)
    head = file.table
    kernels = {
        (one.family, one.format): Kernel(
            family=one.family,
            format=one.format,
            constants=dict(one.constants),
            fit=Fit(**one.fit.model_dump()),
        )
        for one in file.kernel
    }
    return KernelTable(
        device=head.device,
        engine=head.engine,
        version=head.version,
        kernels=kernels,
        n_sms=head.n_sms.value if head.n_sms else 0,
        provenance=tuple(
            Provenance(key=f"{family}.{number}", source=one.fit.source)
            for (family, number), one in kernels.items()
        ),
    )


def _found(path: Path) -> Found:
    return Found(path=path, shown=shown_path(path), name=path.stem)


def _device_of(path: Path) -> str:
    """The device of a kernel file, read no further; a file with faults is told of when used."""
    table, _ = read_table(path, path.name)
    head = table.get("table")
    return str(head.get("device", "")) if isinstance(head, dict) else ""


def _misnamed(found: Found, name: str, section: str) -> Iterator[Problem]:
    if found.name and name and name != found.name:
        remedy = f"write `{found.name}`, or rename the file"
        fact = "is not the name of the file"
        key = f"{section}.name"
        yield Problem(where=found.shown, key=key, value=name, fact=fact, remedy=remedy)


def _repeated(file: KernelFile, shown: str) -> Iterator[Problem]:
    seen = set()
    for place, one in enumerate(file.kernel):
        if (one.family, one.format) in seen:
            fact, remedy = "has this format already", "keep one of the two"
            value, key = one.family, f"kernel[{place}]"
            yield Problem(where=shown, key=key, value=value, fact=fact, remedy=remedy)
        seen.add((one.family, one.format))
