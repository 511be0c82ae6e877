"""`plan measure`: kernels of this machine, timed, to the table that `plan calibrate` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_measurements import WrittenMeasurement
from planner.errors import Problem, RequestError
from planner.report.delivery import Answer
from planner.report.paint import width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.estimates.measuring.bench import Bench
    from planner.estimates.measuring.timing import Measurements
    from planner.estimates.measuring.wanted import Catalogue, Wanted
    from planner.specs.architecture import Architecture
    from planner.specs.records import DeviceSpec

CPU_NAME = "cpu"
"""What a processor is called in the table where no device file describes it."""

MOST_GPUS = 72
"""Of one node, or one rack that is one."""

MESSAGES_SHARE = 0.25
"""Of the budget, for collectives where there are several GPUs [1]."""

_NOTHING_ASKED = WrittenMeasurement()


def measure(
    written: Annotated[WrittenMeasurement, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Time kernels of this machine with PyTorch, for `plan calibrate` to fit."""
    from planner.estimates.measuring import collectives, pytorch
    from planner.estimates.measuring.timing import joined
    from planner.estimates.measuring.wanted import wanted_kernels

    found = Arguments(problems=list(said.problems), hints=said.hints)
    device = _device(written, found)
    models = _models(written, found)
    degrees, formats = _read(written, found)
    budget_s, n_gpus = _extent(written, found)
    found.problems += _indivisible(models, degrees)
    found.check()
    bench = pytorch.open_bench(written.backend)
    chosen = _on(bench, device, formats, found)
    found.check()
    catalogue = wanted_kernels(models, degrees, chosen)
    apart_s = MESSAGES_SHARE * budget_s if n_gpus > 1 else 0.0
    answer = _timed(bench, catalogue, budget_s - apart_s)
    if n_gpus > 1:
        answer = joined(
            answer, collectives.measure_collectives(written.backend, n_gpus, budget_s=apart_s)
        )
    if not answer.timed:
        raise RequestError([_nothing(answer)])
    return _answer(written, bench, answer, catalogue, [one.name for one in models])


def _timed(bench: Bench, catalogue: Catalogue, budget_s: float) -> Measurements:
    from planner.estimates.measuring.timing import measure as time_kernels
    from planner.running.phases import begin

    def tell(place: int, kernel: Wanted) -> None:
        begin(f"timing {kernel.family}: {place} of {len(catalogue.kernels)}")

    return time_kernels(bench, catalogue.kernels, budget_s=budget_s, on_kernel=tell)


def _answer(
    written: WrittenMeasurement,
    bench: Bench,
    answer: Measurements,
    catalogue: Catalogue,
    models: list[str],
) -> Answer:
    from planner.estimates.measuring.rows import table_text
    from planner.report.measurements import measurements_text

    name = _called(written)
    text = measurements_text(
        answer, bench, device=name, models=models, others=catalogue.others, width=width()
    )
    output = written.output
    table = table_text(answer, bench, device=name)
    return Answer(text=text, files=() if output is None else ((output, table),))


def _called(written: WrittenMeasurement) -> str:
    """What rows say that they were timed on: the device's name."""
    from planner.specs.reading import load_device

    return CPU_NAME if written.device is None else load_device(written.device).name


def _nothing(answer: Measurements) -> Problem:
    reasons = list(dict.fromkeys(one.reason for one in answer.untimed))
    fact = f"no kernel could be timed: {'; '.join(reasons[:3])}"
    return Problem(where="plan measure", fact=fact, remedy="give it more `--budget`")


def _device(written: WrittenMeasurement, found: Arguments) -> DeviceSpec | None:
    """The device asked for; a processor needs none, and is none of those that ship."""
    from planner.estimates.measuring.pytorch import BACKENDS, CPU
    from planner.specs.reading import load_device

    if written.backend not in BACKENDS:
        remedy = f"it is {' or '.join(BACKENDS)}"
        fact = "no such backend"
        found.problems.append(
            Problem(where="--backend", value=written.backend, fact=fact, remedy=remedy)
        )
    name = written.device
    if name is None:
        if written.backend != CPU:
            remedy = "write `--device h200`, see `plan devices`"
            found.problems.append(Problem(where="--device", fact="is not given", remedy=remedy))
        return None
    device = found.collect(lambda: load_device(name))
    if device is not None and written.backend == CPU and _is_shipped(name):
        fact, remedy = "is no processor", "leave it out, or name a device file of your own"
        found.problems.append(Problem(where="--device", value=name, fact=fact, remedy=remedy))
    return device


def _is_shipped(name: str) -> bool:
    from planner.specs.finding import find
    from planner.specs.places import Kind, shipped_as

    return bool(shipped_as(find(Kind.DEVICE, name, asked_by="--device").path))


def _models(written: WrittenMeasurement, found: Arguments) -> list[Architecture]:
    from functools import partial

    from planner.commands.options.several import names_of
    from planner.specs.reading import load_architecture

    loaded = []
    for name in names_of(written.model):
        model = found.collect(partial(load_architecture, name))
        if model is not None:
            loaded.append(model)
    return loaded


def _read(written: WrittenMeasurement, found: Arguments) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Degrees and formats; what cannot be read is a problem."""
    from planner.commands.options.counts import batches
    from planner.commands.options.reading import Faults, one_of
    from planner.commands.options.several import names_of
    from planner.estimates.measuring.machines import FORMATS

    faults = Faults()
    degrees = faults.read("--tp", written.tp, batches)
    named = dict.fromkeys(name for text in written.weights for name in names_of(text))
    known = one_of("format that is timed", FORMATS)
    formats = [faults.read("--weights", name, known) for name in named]
    found.problems += faults.problems
    return degrees or (1,), tuple(filter(None, formats))


def _extent(written: WrittenMeasurement, found: Arguments) -> tuple[float, int]:
    """The budget [s] and the GPUs; what cannot be read is a problem."""
    from planner.commands.options.counts import count
    from planner.commands.options.reading import Faults
    from planner.units import parse

    faults = Faults()
    budget_s = faults.read("--budget", written.budget, lambda text: parse(text, "s"))
    n_gpus = faults.read("--gpus", written.gpus, lambda text: count(text, most=MOST_GPUS))
    found.problems += faults.problems
    return budget_s or 1.0, n_gpus or 1


def _indivisible(models: list[Architecture], degrees: tuple[int, ...]) -> Iterator[Problem]:
    """Degrees by which no model can be cut."""
    from planner.estimates.measuring.wanted import possible_degrees

    for degree in degrees:
        if models and not any(possible_degrees(model, (degree,)) for model in models):
            names = ", ".join(model.name for model in models)
            fact, remedy = f"divides none of {names}", "write `--tp 1,4`"
            yield Problem(where="--tp", value=str(degree), fact=fact, remedy=remedy)


def _on(
    bench: Bench, device: DeviceSpec | None, formats: tuple[str, ...], found: Arguments
) -> tuple[str, ...]:
    """Formats to time on a machine; that it is another device is a problem."""
    from planner.estimates.measuring.machines import formats_of, unlike

    if device is not None and bench.n_multiprocessors:
        found.problems += unlike(device, bench, by_name=_is_shipped(device.name))
    chosen, unknown = formats_of(formats, device, bench)
    found.problems += unknown
    return chosen
