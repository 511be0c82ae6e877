"""Load kernel tables from TOML files, and put those of a device together.

A device that no one measured has the kernels of `kernels/assumed.toml`, whose errors are wide.
Every fault of a file is told at once: unknown families, formats and constants, constants that are
missing or that no kernel has, beside what `specs.schemas` checks of any file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeGuard

from pydantic import BeforeValidator, Field

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.block_families import BLOCKS
from planner.equations.kernels.constants import kernel_faults
from planner.errors import Problem, SpecError
from planner.specs.engine_files import misnamed
from planner.specs.faults import validate
from planner.specs.finding import Found, find
from planner.specs.kernels import Fit, Kernel, KernelTable
from planner.specs.ledger import remark
from planner.specs.patterns import name_of
from planner.specs.places import Kind, files, shipped_as, shown_path
from planner.specs.provenance import ASSUMED as NO_SOURCE
from planner.specs.provenance import Provenance
from planner.specs.schemas import Sourced, Strict
from planner.specs.tables import Table, literal, read_table, value_at
from planner.specs.values import Count, SpareCount, Text, did_you_mean, fault

ASSUMED = "assumed"
"""Name of the table of those devices and families that were not measured."""

NEEDED = tuple(name for name in FAMILIES if name not in {one.name for one in BLOCKS})
"""Families that passes are timed by; every device has them, if only assumed."""

MOST_ERROR = 10.0
"""A closed form that misses its rows by more than this factor describes nothing [1]."""


def _constant(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise fault("is not a number", "write it in the SI unit of its name")
    if not 0 <= raw < 1e300:  # larger integers are no floats
        raise fault("is negative or not finite", "write a number from 0")
    return float(raw)


def _error(raw: object) -> float:
    value = _constant(raw)
    if value > MOST_ERROR:
        raise fault(f"is above {MOST_ERROR:g}", "write a share, like `0.05` for 5 %")
    return value


_Constant = Annotated[float, BeforeValidator(_constant)]
_Error = Annotated[float, BeforeValidator(_error)]


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
    median_error: _Error
    p90_error: _Error
    left_out_median_error: _Error | None = None
    left_out_p90_error: _Error | None = None
    left_out: Text = "shapes"


class KernelEntry(Strict):
    family: Text
    format: Text
    constants: dict[str, _Constant] = Field(min_length=1)
    fit: FitEntry


class KernelFile(Strict):
    table: TableHead
    kernel: list[KernelEntry] = Field(min_length=1)


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
    assumed of any device. Each kernel says so by its source. Of several tables of one engine those
    of the user come first.

    Args:
        device: name of a device.
        engine: name of an engine.

    Raises:
        SpecError: a file that is needed has faults; all are listed.
    """
    found = [_found(path) for path in _files_of(device)]
    tables = _loaded(found)
    tables.sort(key=lambda one: (one.engine != engine, one.engine))
    assumed = load_kernels(ASSUMED)
    kernels: dict[tuple[str, str], Kernel] = {}
    for one in reversed(tables):  # the engine's own comes last, and stands
        kernels |= one.kernels
    known = {family for family, _ in kernels}
    kernels |= {key: one for key, one in assumed.kernels.items() if key[0] not in known}
    lacking = [name for name in NEEDED if name not in {family for family, _ in kernels}]
    if lacking:
        raise SpecError(list(_lacking(lacking)))
    rivals: dict[str, dict[tuple[str, str], Kernel]] = {}
    for one in reversed(tables):
        if one.engine != engine:
            rivals.setdefault(one.engine, {}).update(one.kernels)
    own = tables[0] if tables and tables[0].engine == engine else None
    return KernelTable(
        device=device,
        engine=engine,
        version=own.version if own else ASSUMED,
        kernels=kernels,
        n_sms=next((one.n_sms for one in tables if one.n_sms), 0),
        provenance=_provenance(kernels),
        rivals=rivals,
    )


def list_kernels() -> Iterator[KernelTable]:
    """Every kernel file that can be found, what is assumed included."""
    for path in files(Kind.KERNELS):
        yield _table(_found(path))


def _files_of(device: str) -> Iterator[Path]:
    """Files that say that they are of a device; those that ship are named after it.

    A file of the user's that cannot be read may be of any device. It is a fault where its name
    says that it is of this one, and else is said to be left out.
    """
    for path in files(Kind.KERNELS):
        if shipped_as(path) and not path.stem.startswith(f"{device}-"):
            continue
        table, unread = read_table(path, shown_path(path))
        if unread and path.stem.startswith(device):
            raise SpecError(unread)
        for problem in unread:
            remark(Problem(where=problem.where, fact=f"is left out: it {problem.fact}"))
        named = value_at(table, "table", "device")
        if isinstance(named, str) and named == device:
            yield path
        elif not shipped_as(path) and isinstance(named, str) and path.stem != ASSUMED:
            _remark_unknown(named, shown_path(path))


def _remark_unknown(device: str, shown: str) -> None:
    """A table of a device that no file describes is never read: the name may be a slip."""
    known = [path.stem for path in files(Kind.DEVICE)]
    if device not in known:
        fact = "is left out: no device has this name"
        remedy = did_you_mean(device, known, otherwise="`plan devices` lists them all")
        remark(Problem(where=shown, key="table.device", value=device, fact=fact, remedy=remedy))


def _loaded(found: list[Found]) -> list[KernelTable]:
    """Tables in the order of their files; what another file of the user's wins over is remarked."""
    tables = []
    first: dict[tuple[str, str, str], Found] = {}
    for one in found:
        table = _table(one)
        tables.append(table)
        for family, form in table.kernels:
            winner = first.setdefault((table.engine, family, form), one)
            if winner is not one and not shipped_as(one.path):
                fact = f"has no effect beside that of `{winner.shown}`"
                remark(Problem(where=one.shown, key="kernel", value=f"{family} {form}", fact=fact))
    return tables


def _lacking(families: list[str]) -> Iterator[Problem]:
    shown = find(Kind.KERNELS, ASSUMED, asked_by="kernels").shown
    for name in families:
        fact, remedy = "has no kernel of this family", "copy it from the file that ships"
        yield Problem(where=shown, key="kernel", value=name, fact=fact, remedy=remedy)


def _table(found: Found) -> KernelTable:
    table, unread = read_table(found.path, found.shown, use=found.use(Kind.KERNELS))
    file, faults = validate(KernelFile, table, found.shown) if table else (None, [])
    problems = [*unread, *faults, *misnamed(found, name_of(table, "table"), "table")]
    problems += _kernel_problems(table, found.shown)
    if file is None or problems:
        raise SpecError(problems)
    if not shipped_as(found.path):
        _remark_unused(file, found.shown)
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
        provenance=_provenance(kernels),
    )


def _provenance(kernels: dict[tuple[str, str], Kernel]) -> tuple[Provenance, ...]:
    return tuple(
        Provenance(key=f"{family}.{number}", source=one.fit.source)
        for (family, number), one in kernels.items()
    )


def _found(path: Path) -> Found:
    return Found(path=path, shown=shown_path(path), name=path.stem)


def _remark_unused(file: KernelFile, shown: str) -> None:
    """Families that files may hold and that no pass is timed by."""
    for place, one in enumerate(file.kernel):
        if one.family not in NEEDED:
            fact = "has no effect: passes are timed by the kernels of its parts"
            remark(Problem(where=shown, key=f"kernel[{place}]", value=one.family, fact=fact))


def _kernel_problems(table: Table, shown: str) -> Iterator[Problem]:
    """What is wrong with kernels beyond their shape; of values that are sound."""
    entries = table.get("kernel")
    n_sms = value_at(table, "table", "n_sms")
    n_sms = n_sms if isinstance(n_sms, int) else 0
    seen: set[tuple[str, str]] = set()
    for place, one in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(one, dict):
            continue
        key, family, form = f"kernel[{place}]", one.get("family"), one.get("format")
        for problem in (*_kernel_faults(one, n_sms), *_fit_faults(one.get("fit"))):
            inside, value, fact, remedy = problem
            yield Problem(
                where=shown, key=f"{key}.{inside}", value=literal(value), fact=fact, remedy=remedy
            )
        if isinstance(family, str) and isinstance(form, str):
            if (family, form) in seen:
                fact, remedy = "has this format already", "keep one of the two"
                yield Problem(where=shown, key=key, value=family, fact=fact, remedy=remedy)
            seen.add((family, form))


_Faults = Iterator[tuple[str, object, str, str]]
"""Key, value, fact, remedy."""


def _kernel_faults(entry: Table, n_sms: int) -> _Faults:
    name, form, constants = entry.get("family"), entry.get("format"), entry.get("constants")
    if isinstance(name, str) and name.strip() and name not in FAMILIES:
        otherwise = f"there are {', '.join(f'`{known}`' for known in FAMILIES)}"
        yield "family", name, "unknown family", did_you_mean(name, FAMILIES, otherwise=otherwise)
    elif isinstance(name, str) and isinstance(form, str) and isinstance(constants, dict):
        # what is no number is told of by the schema, and stands for one here
        sound = {key: value for key, value in constants.items() if _is_number(value)}
        stood_for = dict.fromkeys(constants.keys() - sound.keys(), None)
        yield from kernel_faults(FAMILIES[name], form, {**sound, **stood_for}, n_sms=n_sms)


def _fit_faults(fit: object) -> _Faults:
    """Errors that contradict each other; half of a pair; rows of what is assumed."""
    if not isinstance(fit, dict):
        return
    for before in ("", "left_out_"):
        median, p90 = (fit.get(f"{before}{which}_error") for which in ("median", "p90"))
        if _is_number(median) and _is_number(p90) and p90 < median:
            fact = f"is below the median, {median:g}"
            yield f"fit.{before}p90_error", p90, fact, "nine rows in ten are within it"
        for one, other in (("median", p90), ("p90", median)):
            if before and f"{before}{one}_error" not in fit and other is not None:
                fact, remedy = "is missing", "write both errors of what was left out, or none"
                yield f"fit.{before}{one}_error", "", fact, remedy
    if "left_out" in fit and "left_out_median_error" not in fit:
        remedy = "write the errors of what was left out, or leave it out"
        yield "fit.left_out", fit["left_out"], "says what no error is of", remedy
    if fit.get("source") == NO_SOURCE and _is_number(fit.get("n_rows")) and fit["n_rows"] > 0:
        fact, remedy = "are rows of what was not measured", "name their source, or write `0`"
        yield "fit.n_rows", fit["n_rows"], fact, remedy


def _is_number(value: object) -> TypeGuard[float]:
    """A number that a constant may be, as far as its kind goes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e300
