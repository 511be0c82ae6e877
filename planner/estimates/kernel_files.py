"""Load kernel tables from TOML files, and put those of a device together.

A device that no one measured has the kernels of `kernels/assumed.toml`, whose errors are wide.
Every fault of a file is told at once: unknown families, formats and constants, constants that are
missing or that no kernel has, beside what its types say.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from planner.equations.kernels import FAMILIES
from planner.errors import Problem, RequestError, SpecError
from planner.estimates.kernel_schemas import EXPERTS, KernelEntry, KernelFile, file_faults
from planner.specs.files.finding import SpecFile, find
from planner.specs.files.ledger import Use, remark
from planner.specs.files.patterns import name_of
from planner.specs.files.places import Kind, files, is_as_shipped, shipped_as, shown_path
from planner.specs.files.reading import misnamed
from planner.specs.files.tables import Provenance, table_of, value_at
from planner.specs.files.texts import UnreadError, read_text
from planner.specs.records.kernels import Kernel, KernelTable
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import validate
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import did_you_mean

ASSUMED = "assumed"
"""Name of the table of those devices and families that were not measured."""

Kernels = dict[tuple[str, str], Kernel]
"""By family and form."""

LEAVE_OUT = "leave it out: the engine's own is taken"

NEEDED = tuple(name for name, family in FAMILIES.items() if not family.is_block)
"""Families that passes are timed by; every device has them, if only assumed."""


@arguments_checked()
def load_kernels(name_or_path: str, *, asked_by: str = "kernels") -> KernelTable:
    """Load one kernel file, as it stands.

    Args:
        name_or_path: a name such as `h20-deepgemm`, or the path of a file.
        asked_by: what named it, for messages.

    Raises:
        SpecError: there is no such file, or it has faults; all are listed.
    """
    return _table(find(Kind.KERNELS, name_or_path, asked_by=asked_by))


def kernel_table(device: str, engine: str, experts_backend: str = "") -> KernelTable:
    """The kernels of a device under an engine, complete.

    What the engine's own table lacks is taken from the device's other tables, then from what is
    assumed of any device. Each kernel says so by its source. Of several tables of one engine those
    of the user come first.

    Args:
        device: name of a device.
        engine: name of an engine.
        experts_backend: of several programs for routed experts, in the engine's own words; its
            own choice where empty.

    Raises:
        SpecError: a file that is needed has faults; all are listed.
        RequestError: nothing was measured of experts by the backend.
    """
    files = list(map(_kernel_file, files_of_device(device)))
    loaded = _loaded(files)
    tables = sorted(loaded, key=lambda table: (table.engine != engine, table.engine))
    kernels = _merged(tables)
    _remark_idle(zip(files, loaded, strict=True), kernels, engine)
    kernels = _with_assumed(kernels)
    if experts_backend:
        others = {key: kernel for key, kernel in kernels.items() if key[0] != EXPERTS}
        kernels = others | _experts_by(experts_backend, files, device, engine)
    lacking = list(_lacking({family for family, _ in kernels}))
    if lacking:
        raise SpecError(lacking)
    of_engines = groupby(reversed(tables), key=attrgetter("engine"))
    rivals = {name: _merged([*of_engine][::-1]) for name, of_engine in of_engines}
    rivals.pop(engine, None)
    own = {table.engine: table for table in reversed(tables)}.get(engine)
    return KernelTable(
        device=device,
        engine=engine,
        version=own.version if own else ASSUMED,
        kernels=kernels,
        n_sms=next(filter(None, (one.n_sms for one in tables)), 0),
        provenance=_provenance(kernels),
        rivals=rivals,
        measured_by=_measured_by([own] if own else tables),
        experts_backend=experts_backend,
    )


def _merged(tables: Sequence[KernelTable]) -> Kernels:
    """The kernels of several tables, of which the first that has one wins."""
    return {key: kernel for table in reversed(tables) for key, kernel in table.kernels.items()}


def _with_assumed(kernels: Kernels) -> Kernels:
    """Kernels, and those that are assumed of families that they lack."""
    known = {family for family, _ in kernels}
    assumed = load_kernels(ASSUMED).kernels.items()
    return kernels | {key: kernel for key, kernel in assumed if key[0] not in known}


def _experts_by(backend: str, sources: Iterable[SpecFile], device: str, engine: str) -> Kernels:
    """The kernels of experts that an engine's own tables have of one of its backends.

    Raises:
        RequestError: they have none.
    """
    entries = _entries(sources, engine)
    chosen = {
        (kernel.family, kernel.format): from_fields(Kernel, kernel)
        for kernel in entries
        if kernel.backend == backend
    }
    if not chosen:
        known = sorted({one.backend for one in entries} - {""})
        raise RequestError([_unknown_backend(backend, known, f"{engine} on {device}")])
    return chosen


def backend_problems(backend: str, engine: str) -> Iterator[Problem]:
    """One problem where a backend for routed experts is named that no device has kernels of."""
    entries = _entries(map(_kernel_file, files(Kind.KERNELS)), engine)
    known = {one.backend for one in entries} - {""}
    if backend and backend not in known:
        yield _unknown_backend(backend, sorted(known), f"{engine} on any device")


def _entries(files: Iterable[SpecFile], engine: str) -> list[KernelEntry]:
    """Kernels of files that can be read and are of an engine, before any wins over another."""
    read = (file for one in files if (file := _read(one).file) is not None)
    return [entry for file in read if file.engine == engine for entry in file.kernel]


def _unknown_backend(backend: str, known: list[str], of: str) -> Problem:
    fact = f"no kernels of experts by it were measured of {of}"
    remedy = LEAVE_OUT
    if known:
        listed = ", ".join(f"`{name}`" for name in known)
        remedy = f"there are {listed}; or {LEAVE_OUT}"
    return Problem(where="--experts-backend", value=backend, fact=fact, remedy=remedy)


def _measured_by(tables: Iterable[KernelTable]) -> tuple[str, ...]:
    """Engines and versions of tables that hold measured kernels, each once."""
    measured = [one for one in tables if any(k.fit.n_rows for k in one.kernels.values())]
    return tuple(dict.fromkeys(f"{one.engine} {one.version}" for one in measured))


def sms_of(device: str) -> tuple[int, str]:
    """Multiprocessors of a device and which of its tables says so; 0 and nothing if none does.

    Raises:
        SpecError: a file of the device has faults; all are listed.
    """
    for path in files_of_device(device):
        table = _table(_kernel_file(path))
        if table.n_sms:
            return table.n_sms, f"the table of {table.engine}"
    return 0, ""


def files_of_device(device: str) -> Iterator[Path]:
    """Files that say that they are of a device; those that ship are named after it.

    A file of the user's that cannot be read may be of any device. It is a fault where its name
    says that it is of this one, and else is said to be left out.
    """
    for path in files(Kind.KERNELS):
        if not path.stem.startswith(f"{device}-") and shipped_as(path):
            continue
        table = _read(_kernel_file(path))
        if table.unread and path.stem.startswith(device):
            raise SpecError(table.unread)
        for problem in table.unread:
            remark(Problem(where=problem.where, fact=f"is left out: it {problem.fact}"))
        named = table.device
        if named == device:
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


def _remark_idle(
    tables: Iterable[tuple[SpecFile, KernelTable]],
    taken: Mapping[tuple[str, str], Kernel],
    engine: str,
) -> None:
    """A table of which nothing is taken, of an engine that no file describes, may be a slip."""
    known = [path.stem for path in files(Kind.ENGINE)]
    for file, table in tables:
        is_known = table.engine in (engine, *known) or shipped_as(file.path)
        if is_known or any(taken[key] is one for key, one in table.kernels.items()):
            continue
        fact = f"is no engine that a file describes, and kernels of {engine} win over all of its"
        remedy = did_you_mean(table.engine, known)
        remark(
            Problem(
                where=file.shown, key="table.engine", value=table.engine, fact=fact, remedy=remedy
            )
        )


def _loaded(files: list[SpecFile]) -> list[KernelTable]:
    """Tables in the order of their files; what another file of the user's wins over is remarked."""
    tables = []
    first: dict[tuple[str, str, str], SpecFile] = {}
    for file in files:
        table = _table(file)
        tables.append(table)
        for family, form in table.kernels:
            winner = first.setdefault((table.engine, family, form), file)
            if winner is not file and not is_as_shipped(file.path):
                fact = f"has no effect beside that of `{winner.shown}`"
                remark(Problem(where=file.shown, key="kernel", value=f"{family} {form}", fact=fact))
    return tables


def _lacking(known: Collection[str]) -> Iterator[Problem]:
    """A problem for each family that passes are timed by and that is not known."""
    for name in (name for name in NEEDED if name not in known):
        shown = find(Kind.KERNELS, ASSUMED, asked_by="kernels").shown
        fact, remedy = "has no kernel of this family", "copy it from the file that ships"
        yield Problem(where=shown, key="kernel", value=name, fact=fact, remedy=remedy)


def _table(file: SpecFile) -> KernelTable:
    """The table of a file.

    Raises:
        SpecError: it has faults; all are listed.
    """
    read = _read(file, use=file.use(Kind.KERNELS))
    problems = [*read.unread, *read.faults, *misnamed(file, read.name, "table")]
    if read.file is None or read.table is None or problems:
        raise SpecError(problems)
    if not is_as_shipped(file.path):
        _remark_unused(read.file, file.shown)
    return read.table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What a file says, as far as it says it.

    Args:
        name, device: that it gives itself, whatever they are.
        unread: why it is no TOML.
        faults: of its values.
        file, table: None where its shape is wrong.
    """

    name: str = ""
    device: object = None
    unread: tuple[Problem, ...] = ()
    faults: tuple[Problem, ...] = ()
    file: KernelFile | None = None
    table: KernelTable | None = None


def _read(file: SpecFile, *, use: Use | None = None) -> _Read:
    try:
        text = read_text(file.path, use=use)
    except UnreadError as error:
        return _Read(unread=(error.problem(file.shown),))
    return _read_of(text, file.shown)


@lru_cache(maxsize=256)  # a device has several tables, and each is wanted more than once
def _read_of(text: str, shown: str) -> _Read:
    table, unread = table_of(text, shown)
    file, faults = validate(KernelFile, table, shown, file_faults) if table else (None, [])
    return _Read(
        name=name_of(table, "table"),
        device=value_at(table, "table", "device"),
        unread=unread,
        faults=tuple(faults),
        file=file,
        table=None if file is None else _table_of(file),
    )


def _table_of(file: KernelFile) -> KernelTable:
    kernels: dict[tuple[str, str], Kernel] = {}
    for one in file.kernel:  # what has no backend is the engine's own choice, or else the first
        if not one.backend or (one.family, one.format) not in kernels:
            kernels[one.family, one.format] = from_fields(Kernel, one)
    return from_fields(KernelTable, file, kernels=kernels, provenance=_provenance(kernels))


def _provenance(kernels: dict[tuple[str, str], Kernel]) -> tuple[Provenance, ...]:
    return tuple(
        Provenance(key=f"{family}.{number}", source=kernel.fit.source)
        for (family, number), kernel in kernels.items()
    )


def _kernel_file(path: Path) -> SpecFile:
    return SpecFile(path=path, shown=shown_path(path), name=path.stem)


def _remark_unused(file: KernelFile, shown: str) -> None:
    """Families that files may hold and that no pass is timed by."""
    for place, kernel in enumerate(file.kernel):
        if kernel.family not in NEEDED:
            fact = "has no effect: passes are timed by the kernels of its parts"
            remark(Problem(where=shown, key=f"kernel[{place}]", value=kernel.family, fact=fact))
