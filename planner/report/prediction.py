"""A prediction for people: what users feel, where the time goes, what fits, what would balance.

deepseek-v3 on 128 × h800 (sglang), batch 128 a rank: TPOT 55.1 ms (50 to 61)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.estimates.serving.bursts import LENGTHS_VARY
from planner.report.checkpoints import loaded_words
from planner.report.launch.text import launch_text
from planner.report.lines import bar, columns, labelled, percent, section, wrapped
from planner.report.times import times_lines
from planner.report.words import plural
from planner.results.arrivals import Load, Waves
from planner.results.predictions import (
    Interval,
    OperationLine,
    PassLine,
    Prediction,
    RedundantExperts,
)
from planner.specs.roles import DECODE, PREFILL, role_words
from planner.specs.traffic.percentiles import TPOT, TTFT
from planner.units import show

_BAR = 16
_DEGREES = {"tensor": "TP", "data": "DP", "pipeline": "PP", "expert": "EP"}
BOUND_WORDS = {
    "compute": "compute",
    "memory": "memory",
    "network": "network",
    "latency": "latency",
    "idle": "–",
}


def prediction_text(prediction: Prediction, width: int, *, explains: bool = False) -> str:
    """The whole report, in lines of at most `width` columns where tables allow."""
    parts = [
        "\n".join([*wrapped(prediction_line(prediction), width), *times_lines(prediction, width)]),
        section("for users", _user_lines(prediction, width)),
        load_section(prediction.load, width),
        *_first_sections(prediction, width),
        *(section(_pass_title(one), _pass_lines(one)) for one in prediction.passes),
        section("memory of a device", _memory_lines(prediction, width)),
        *_balance_sections(prediction),
    ]
    if explains:
        parts += [section(f"{one.name}, explained", _traces(one)) for one in prediction.passes]
    parts.append("\n".join(wrapped(_trust(prediction), width)))
    if not explains:
        parts.append("hint: `--explain` traces each operation to its formula, constants and source")
    parts.append(launch_text(prediction.launch, width))
    return "\n\n".join(filter(None, parts))


def prediction_line(prediction: Prediction) -> str:
    """The verdict in one line."""
    one = prediction
    degrees = " ".join(f"{_DEGREES[k]} {n}" for k, n in one.degrees.items() if n > 1)
    layout = f", {degrees}" if degrees else ""
    times = (
        f"TPOT {between(one.tpot_s)}" if one.role != PREFILL else "",
        f"TTFT {between(one.ttft_s)}" if one.role != DECODE else "",
        f"{show(one.requests_per_s, 'request/s')} read" if one.role == PREFILL else "",
        f"{show(one.device_tokens_per_s, 'token/s')} a device" if one.role != PREFILL else "",
    )
    return (
        f"{one.model} on {one.n_devices} × {one.device} ({one.engine}{layout})"
        f"{role_words(one.role)}, batch {one.batch} a rank: {', '.join(filter(None, times))}"
        f"{_load_words(one.load)}"
    )


def _load_words(load: Load | None) -> str:
    """Whether it carries what arrives, behind the verdict."""
    if load is None:
        return ""
    rate, share = show(load.requests_per_s, "request/s"), percent(load.utilization_fraction)
    verb = "carries" if load.is_carried else "does not carry"
    return f"; {verb} {rate}, {share} of what it serves"


def load_section(load: Load | None, width: int) -> str:
    """What replicas do at the rate that arrives, if one is said."""
    if load is None:
        return ""
    most = show(load.most_requests_per_s, "request/s")
    serves = f"{percent(load.utilization_fraction)} of the {most} served while others wait"
    if load.simulated is None:
        waits = f"requests would wait without end; {load.n_needed} times as many replicas carry it"
        rows = [("load", f"{serves}: {waits}")]
    else:
        rows = [
            ("load", f"{serves}: carried, arriving at random times, as simulated"),
            ("in flight", f"{load.n_in_flight:.3g} on each rank, by Little's law"),
            *((name.upper(), _times_words(load, name)) for name in (TTFT, TPOT)),
        ]
    return section(f"at {show(load.requests_per_s, 'request/s')}", labelled(rows, width - 2))


def _times_words(load: Load, quantity: str) -> str:
    """Mean and percentiles; nothing of what the role does not have."""
    told = [one for one in load.percentiles if one.quantity == quantity]
    if not told:
        return ""
    mean = show(getattr(load, f"{quantity}_s"), "s")
    shares = (f"p{100 * one.share:g} {show(one.simulated_s, 's')}" for one in told)
    return f"{mean} on average, {', '.join(shares)}"


def between(times: Interval) -> str:
    """`28 ms (26 ms to 31 ms)`."""
    low, high = show(times.low, "s"), show(times.high, "s")
    return f"{show(times.value, 's')} ({low} to {high})"


def _user_lines(one: Prediction, width: int) -> list[str]:
    formats, records = one.formats, one.request.records
    same = formats["weights"] == formats["experts"]
    experts = "" if same else f", {formats['experts']} experts"
    backend = one.request.records.kernels.experts_backend
    experts += f", experts by {backend}" if backend else ""
    hit = f", {percent(one.hit_fraction)} of the input cached" if one.hit_fraction else ""
    rows = (
        *_time_rows(one),
        ("drafts", f"{one.tokens_per_step:.3g} tokens a pass" if one.tokens_per_step > 1 else ""),
        ("copies", f"{one.n_copies} of the model, which share nothing" if one.n_copies > 1 else ""),
        (
            "as asked",
            f"{one.n_input_tokens} tokens in, {one.n_output_tokens} out{hit}; "
            f"{formats['weights']} weights{experts}, {formats['cache']} cache; "
            f"overlap {one.overlap}; {one.network}",
        ),
        ("loaded", loaded_words(records.models[0], one.request.formats, records.engine)),
        ("quality", one.quality),
    )
    return labelled(rows, width - 2)


def _time_rows(one: Prediction) -> Iterator[tuple[str, str]]:
    """What users feel of it: of a worker of one phase, of what it does."""
    reads, writes = one.role != DECODE, one.role != PREFILL
    if reads:
        before = "" if writes else ", before its cache is handed over"
        yield "TTFT", f"{between(one.ttft_s)}, {_question(one)}{before}"
    if one.waves is not None:
        yield "", _waves_words(one.waves)
    if one.n_running < one.batch:
        fit = "fit" if one.n_running >= one.memory.largest_batch else "share passes"
        waits = f"{one.batch} are in flight, {one.n_running} {fit}"
        yield "queue", f"{show(one.queue_s, 's')}: {waits}"
    if not writes:
        yield "prompts", f"{show(one.requests_per_s, 'request/s')} in total"
        return
    beside = "prompts of the others included" if reads else "no prompt is read beside it"
    yield "TPOT", f"{between(one.tpot_s)}, {beside}"
    several = one.tokens_per_step > 1
    bursts = f" from {one.tokens_per_step:.3g} tokens to the next" if several else ""
    yield "ITL", f"{between(one.itl_s)}{bursts}, while no prompt is read"
    speeds = f"{one.user_tokens_per_s:.3g} a user, {one.device_tokens_per_s:.4g} a device"
    yield "tokens/s", f"{speeds}, {one.total_tokens_per_s:.5g} in total"


def _waves_words(waves: Waves) -> str:
    median, first = (show(seconds, "s") for seconds in (waves.median_s, waves.first_s))
    later = ""
    if waves.n_waves > 1:
        later = f", later ones {show(waves.later_s, 's')}, as lengths vary by {LENGTHS_VARY:.0%}"
    return f"median {median}; first wave {first}{later}"


def _question(one: Prediction) -> str:
    """Of which requests TTFT is the mean."""
    in_flight = one.n_running * one.degrees["data"]
    if one.waves is not None:
        many = plural(one.waves.n_waves, "wave")
        return f"mean of {many} of {in_flight}, the first of which comes at once"
    if in_flight == 1:
        return "of one request alone"
    return f"of requests that come as others end, {in_flight} in flight"


def _first_sections(one: Prediction, width: int) -> Iterator[str]:
    """Where a first token comes from; nothing of what finds prompts read."""
    if one.role != DECODE:
        yield section(f"first token: {show(one.ttft_s.value, 's')}", _first_lines(one, width))


def _first_lines(one: Prediction, width: int) -> list[str]:
    """The parts that TTFT is the sum of, and below them where the constants come from."""
    spent = one.ttft_s.value
    rows = [
        (part.name, show(part.seconds, "s"), bar(part.seconds / spent, _BAR))
        for part in one.ttft_parts
    ]
    sources = (f"{part.name}: {part.source}" for part in one.ttft_parts if part.source)
    return [*columns(rows, "<><"), *(line for text in sources for line in _hung(text, width - 2))]


def _hung(text: str, width: int) -> Iterator[str]:
    first, *rest = wrapped(text, width - 2)
    yield first
    yield from (f"  {line}" for line in rest)


def _pass_title(one: PassLine) -> str:
    parts = f" in {one.n_microbatches:.0f} micro-batches" if one.n_microbatches > 1 else ""
    return (
        f"{one.name} pass: {between(one.total_s)}{parts}, {percent(one.mfu_fraction)} MFU, "
        f"{percent(one.hbm_fraction)} of memory bandwidth"
    )


def _pass_lines(one: PassLine) -> list[str]:
    """One line an operation and class of layers, most of the time first in each class."""
    spent = sum(_spent(one, line) for line in one.operations) + one.host_s
    rows: list[tuple[str, ...]] = [
        ("", "time", "", "runs", "FLOP", "bytes", "FLOP/B", "ridge", "bound", "peak", "HBM")
    ]
    for layer in dict.fromkeys(line.layer for line in one.operations):
        lines = [line for line in one.operations if line.layer == layer]
        rows.append((layer, show(sum(_spent(one, line) for line in lines), "s")))
        rows += [_row(one, line, spent) for line in sorted(lines, key=lambda x: -x.total_s)]
    if one.host_s:
        share = one.host_s / spent
        rows.append(("host", show(one.host_s, "s"), bar(share, _BAR)))
    if one.hidden_s > 0:
        rows.append(("hidden by overlap", f"−{show(one.hidden_s, 's')}"))
    return columns(rows, "<><>>>>><>>")


def _row(one: PassLine, line: OperationLine, spent: float) -> tuple[str, ...]:
    total = _spent(one, line)
    runs = round(total / line.run_s)
    moved = line.hbm_bytes or line.sent_bytes
    return (
        f"  {line.name}",
        show(total, "s"),
        bar(total / spent, _BAR),
        f"{runs} × {show(line.run_s, 's')}",
        show(line.flop, "FLOP") if line.flop else "",
        show(moved, "B") if moved else "",
        f"{line.flop_per_byte:.3g}" if line.flop_per_byte else "",
        f"{line.ridge_flop_per_byte:.3g}" if line.flop else "",
        BOUND_WORDS[line.bound],
        percent(line.mfu_fraction) if line.flop else "",
        percent(line.hbm_fraction) if line.hbm_bytes else "",
    )


def _spent(one: PassLine, line: OperationLine) -> float:
    """Time of all runs of a pass: of every micro-batch inside layers."""
    return line.total_s * (1.0 if line.layer == "model" else one.n_microbatches)


def _memory_lines(one: Prediction, width: int) -> list[str]:
    memory = one.memory
    held = (
        ("weights", memory.weights_bytes),
        *((("drafter", memory.drafter_bytes),) if memory.drafter_bytes else ()),
        ("cache", memory.cache_bytes),
        ("activations", memory.activation_bytes),
        ("engine", memory.workspace_bytes),
    )
    rows = [
        (
            name,
            show(size, "B"),
            percent(size / memory.hbm_bytes),
            bar(size / memory.hbm_bytes, _BAR),
        )
        for name, size in held
    ]
    limit = memory.limit_bytes / memory.hbm_bytes
    rows.append(("the engine may take", show(memory.limit_bytes, "B"), percent(limit), ""))
    fits = (
        f"fits: batch {memory.largest_batch} a rank while they grow to {one.n_kept_tokens} "
        f"tokens, or {memory.longest_context} tokens at batch {one.n_running}"
    )
    copies = []
    if one.redundant_experts:
        copies = wrapped(f"copies: {balance_words(one.redundant_experts)}", width - 2)
    return [*columns(rows, "<>><"), *copies, *wrapped(fits, width - 2)]


def balance_words(balance: RedundantExperts) -> str:
    """What copies of experts hold, and how level they leave the devices."""
    return (
        f"{show(balance.copies_bytes, 'B')}, {balance.n_redundant} redundant experts a layer: the "
        f"fullest device gets {balance.fullest_factor:.3g} times the mean in the long run"
    )


def _balance_sections(one: Prediction) -> Iterator[str]:
    """What would balance decode; nothing of what runs none."""
    if one.role != PREFILL:
        yield section("balance of decode", _balance_lines(one))


def _balance_lines(one: Prediction) -> list[str]:
    rows = [
        ("ridge of the weights' format", f"{one.ridge_flop_per_byte:.4g} FLOP/B", "", ""),
        *(
            (
                line.name,
                f"balance at {line.balanced:.4g}",
                f"here {line.present:.4g}" if line.present is not None else "",
                line.rule,
            )
            for line in one.balance
        ),
    ]
    return columns(rows, "<<<<")


def _traces(one: PassLine) -> Iterable[str]:
    for line in one.operations:
        yield f"{line.layer}: {line.name} = {line.formula}({_values(line.arguments)})"
        yield f"  {show(line.run_s, 's')} × {line.n_times:g}, ± {percent(line.error)}"
        if line.constants:
            yield f"  constants: {_values(line.constants)}"
        yield f"  source: {line.source}"


def _values(values: object) -> str:
    assert hasattr(values, "items")
    return ", ".join(f"{key}={value:.4g}" for key, value in values.items())


def _trust(one: Prediction) -> str:
    measured = len(one.provenance) - one.n_assumed
    return (
        "times are in their interval two times out of three, by errors of kernels and of whole "
        "servers; "
        f"{plural(measured, 'constant')} measured or published, {one.n_assumed} assumed"
    )
