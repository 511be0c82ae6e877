"""A prediction for people: what users feel, where the time goes, what fits, what would balance.

deepseek-v3 on 128 × h800 (sglang), batch 128 a rank: TPOT 55.1 ms (50 to 61)
"""

from collections.abc import Iterator

from planner.estimates.serving.traffic import LENGTHS_VARY
from planner.quantities.units import show
from planner.report.answers.plan_parts import load_section, start_section
from planner.report.answers.pools import NOT_STARTED, pool_sections
from planner.report.documents import blocks
from planner.report.drawings.roofline import pass_drawing
from planner.report.engine_requests import cost_words, loaded_words, reuse_words, sharing_words
from planner.report.words import BOUND_WORDS, HINTS, balance_words, between, percent, plural
from planner.results.arrivals import Load, Waves
from planner.results.predictions import OperationLine, PassLine, Prediction
from planner.specs.records.roles import DECODE, PREFILL, pool_words, role_words

_BAR = 16
_DEGREES = {"tensor": "TP", "data": "DP", "pipeline": "PP", "expert": "EP"}


def document(answer: Prediction) -> blocks.Document:
    """What users feel, where the time goes, what fits, what would balance."""
    line, of_attention = line_of(answer), " of attention" if answer.pool else ""
    return blocks.Document(
        title=f"{answer.model} on {answer.n_devices} × {answer.device}: prediction",
        line=line,
        sections=(
            blocks.section("latency", blocks.Pairs(_user_rows(answer))),
            load_section(answer.load),
            *_first_token(answer),
            *pool_sections(answer.pool),
            *(_pass_section(answer, each) for each in answer.passes),
            blocks.section(f"memory of a device{of_attention}", *_memory(answer)),
            blocks.section("balance of decode", *_balance(answer)),
            blocks.section("", blocks.Note(_trust(answer)), is_bare=True),
            start_section((answer.launch, ""))
            if answer.pool is None
            else blocks.section("start", blocks.Note(NOT_STARTED), is_bare=True),
            blocks.hint(HINTS["explained"]),
        ),
    )


def line_of(answer: Prediction) -> str:
    degrees = " ".join(f"{_DEGREES[k]} {n}" for k, n in answer.degrees.items() if n > 1)
    layout = f", {degrees}" if degrees else ""
    given = answer.request
    apart = pool_words(given.n_expert_devices, given.n_microbatches)
    does = ", ".join(filter(None, (role_words(answer.role), apart)))
    times = (
        f"TPOT {between(answer.tpot_s)}" if answer.role != PREFILL else "",
        f"TTFT {between(answer.ttft_s)}" if answer.role != DECODE else "",
        f"{show(answer.requests_per_s, 'request/s')} read" if answer.role == PREFILL else "",
        f"{show(answer.device_tokens_per_s, 'token/s')} a device" if answer.role != PREFILL else "",
    )
    return (
        f"{answer.model} on {answer.n_devices} × {answer.device} ({answer.engine}{layout})"
        f"{does}, batch {answer.batch} a rank: {', '.join(filter(None, times))}"
        f"{_load_words(answer.load)}"
    )


def _load_words(load: Load | None) -> str:
    """Whether it carries what arrives, behind the verdict."""
    if load is None:
        return ""
    rate, share = show(load.requests_per_s, "request/s"), percent(load.utilization_fraction)
    verb = "carries" if load.is_carried else "does not carry"
    return f"; {verb} {rate}, {share} of what it serves"


def _user_rows(answer: Prediction) -> list[tuple[str, str]]:
    formats, records = answer.formats, answer.request.records
    same = formats["weights"] == formats["experts"]
    experts = "" if same else f", {formats['experts']} experts"
    backend = answer.request.records.kernels.experts_backend
    experts += f", experts by {backend}" if backend else ""
    reuse = reuse_words(answer.request)
    client = answer.request.client
    sent = f" by {client.title}, which sends {percent(client.mean_length)} of it" if client else ""
    drafts = f"{answer.tokens_per_step:.3g} tokens a pass"
    copies = f"{answer.n_copies} of the model, which share nothing"
    return [
        *_time_rows(answer),
        ("drafts", drafts if answer.tokens_per_step > 1 else ""),
        ("costs", cost_words(answer)),
        ("copies", copies if answer.n_copies > 1 else ""),
        (
            "requested",
            f"{answer.n_input_tokens} tokens in, {answer.n_output_tokens} out{sent}{reuse}; "
            f"{formats['weights']} weights{experts}, {formats['cache']} cache; "
            f"overlap {answer.overlap}; {answer.network}",
        ),
        ("loaded", loaded_words(records.models[0], answer.request.formats, records.engine)),
        ("quality", answer.quality),
    ]


def _time_rows(answer: Prediction) -> Iterator[tuple[str, str]]:
    """What users feel of it: of a worker of one phase, of what it does."""
    reads, writes = answer.role != DECODE, answer.role != PREFILL
    if reads:
        before = "" if writes else ", before its cache is handed over"
        yield "TTFT", f"{between(answer.ttft_s)}, {_question(answer)}{before}"
    if answer.waves is not None:
        yield "", _waves_words(answer.waves)
    if answer.n_running < answer.batch:
        fit = "fit" if answer.n_running >= answer.memory.largest_batch else "share passes"
        waits = f"{answer.batch} are in flight, {answer.n_running} {fit}"
        yield "queue", f"{show(answer.queue_s, 's')}: {waits}"
    if not writes:
        yield "prompts", f"{show(answer.requests_per_s, 'request/s')} in total"
        return
    beside = "prompts of other requests included" if reads else "no prompt is read beside it"
    yield "TPOT", f"{between(answer.tpot_s)}, {beside}"
    several = answer.tokens_per_step > 1
    bursts = f" from {answer.tokens_per_step:.3g} tokens to the next" if several else ""
    yield "ITL", f"{between(answer.itl_s)}{bursts}, while no prompt is read"
    speeds = f"{answer.user_tokens_per_s:.3g} a user, {answer.device_tokens_per_s:.4g} a device"
    yield "tokens/s", f"{speeds}, {answer.total_tokens_per_s:.5g} in total"


def _waves_words(waves: Waves) -> str:
    median, first = (show(seconds, "s") for seconds in (waves.median_s, waves.first_s))
    later = ""
    if waves.n_waves > 1:
        later = f", later ones {show(waves.later_s, 's')}, as lengths vary by {LENGTHS_VARY:.0%}"
    return f"median {median}; first wave {first}{later}"


def _question(answer: Prediction) -> str:
    """Of which requests TTFT is the mean."""
    in_flight = answer.n_running * answer.degrees["data"] // answer.request.n_samples
    if answer.waves is not None:
        many = plural(answer.waves.n_waves, "wave")
        return f"mean of {many} of {in_flight}, the first of which comes at once"
    if in_flight == 1:
        return "of one request alone"
    return f"of requests that arrive as others end, {in_flight} in flight"


def _first_token(answer: Prediction) -> list[blocks.Section]:
    """The parts that TTFT is the sum of; nothing of what finds prompts read."""
    if answer.role == DECODE:
        return []
    spent = answer.ttft_s.value
    rows = [
        (part.name, show(part.seconds, "s"), blocks.Bar(part.seconds / spent, _BAR))
        for part in answer.ttft_parts
    ]
    sources = (f"{part.name}: {part.source}" for part in answer.ttft_parts if part.source)
    parts = blocks.Table(rows=rows, align="<><")
    return [
        blocks.section(
            f"first token: {show(spent, 's')}", parts, *blocks.notes(sources, kind="item")
        )
    ]


def _pass_section(prediction: Prediction, work: PassLine) -> blocks.Section:
    """A row an operation and class of layers, most of the time first in each class."""
    spent = sum(work.spent_s(line) for line in work.operations) + work.host_s
    rows: list[blocks.Row] = []
    for layer in dict.fromkeys(line.layer for line in work.operations):
        lines = [line for line in work.operations if line.layer == layer]
        whole = sum(work.spent_s(line) for line in lines)
        rows.append(_filled(layer, show(whole, "s")))
        rows += [_row(work, line, spent) for line in sorted(lines, key=lambda x: -x.total_s)]
    if work.host_s:
        rows.append(_filled("host", show(work.host_s, "s"), blocks.Bar(work.host_s / spent, _BAR)))
    if work.hidden_s > 0:
        rows.append(_filled("hidden by overlap", f"−{show(work.hidden_s, 's')}"))
    drawing = blocks.Drawing(svg=lambda: pass_drawing(prediction, work))
    table = blocks.Table(heads=_HEADS, rows=rows, align="<><>>>>><>>")
    return blocks.section(_pass_title(prediction, work), drawing, table)


def _pass_title(prediction: Prediction, line: PassLine) -> str:
    parts = f" in {line.n_microbatches:.0f} micro-batches" if line.n_microbatches > 1 else ""
    sent = f", {show(line.sent_bytes, 'B')} sent" if line.sent_bytes else ""
    rate, read = show(prediction.pass_rate(line), "token/s"), show(line.hbm_bytes, "B")
    return (
        f"{line.name} pass: {between(line.total_s)}{parts}, {percent(line.mfu_fraction)} MFU, "
        f"{percent(line.hbm_fraction)} of memory bandwidth; {rate} a device, {read} of memory{sent}"
    )


_HEADS = ("", "time", "", "runs", "FLOP", "bytes", "FLOP/B", "ridge", "bound", "peak", "HBM")


def _filled(*cells: blocks.Cell) -> blocks.Row:
    return (*cells, *[""] * (len(_HEADS) - len(cells)))


def _row(work: PassLine, line: OperationLine, spent: float) -> blocks.Row:
    total = work.spent_s(line)
    runs = round(total / line.run_s)
    moved = line.hbm_bytes or line.sent_bytes
    return (
        f"  {line.name}",
        show(total, "s"),
        blocks.Bar(total / spent, _BAR),
        f"{runs} × {show(line.run_s, 's')}",
        show(line.flop, "FLOP") if line.flop else "",
        show(moved, "B") if moved else "",
        f"{line.flop_per_byte:.3g}" if line.flop_per_byte else "",
        f"{line.ridge_flop_per_byte:.3g}" if line.flop else "",
        BOUND_WORDS[line.bound],
        percent(line.mfu_fraction) if line.flop else "",
        percent(line.hbm_fraction) if line.hbm_bytes else "",
    )


def _memory(answer: Prediction) -> list[blocks.Block]:
    memory = answer.memory
    held = (
        ("weights", memory.weights_bytes),
        *((("drafter", memory.drafter_bytes),) if memory.drafter_bytes else ()),
        ("cache", memory.cache_bytes),
        ("activations", memory.activation_bytes),
        ("engine", memory.workspace_bytes),
    )
    shares = [(name, size, size / memory.hbm_bytes) for name, size in held]
    rows: list[blocks.Row] = [
        (name, show(size, "B"), percent(share), blocks.Bar(share, _BAR))
        for name, size, share in shares
    ]
    limit = percent(memory.limit_bytes / memory.hbm_bytes)
    rows.append(("the engine may take", show(memory.limit_bytes, "B"), limit, ""))
    fits = (
        f"fits: batch {memory.largest_batch} a rank while they grow to {answer.n_kept_tokens} "
        f"tokens, or {memory.longest_context} tokens at batch {answer.n_running}"
    )
    copies = answer.redundant_experts
    said = [f"copies: {balance_words(copies)}"] if copies else []
    said += sharing_words(answer)
    return [blocks.Table(rows=rows, align="<>><"), *blocks.notes([*said, fits])]


def _balance(answer: Prediction) -> list[blocks.Block]:
    """What would balance decode; nothing of what runs none."""
    if answer.role == PREFILL:
        return []
    rows = [
        ("ridge of the weights' format", f"{answer.ridge_flop_per_byte:.4g} FLOP/B", "", ""),
        *(
            (
                line.name,
                f"balance at {line.balanced:.4g}",
                f"here {line.present:.4g}" if line.present is not None else "",
                line.rule,
            )
            for line in answer.balance
        ),
    ]
    return [blocks.Table(rows=rows)]


def _trust(answer: Prediction) -> str:
    measured = len(answer.provenance) - answer.n_assumed
    return (
        "times are in their interval two times out of three, by errors of kernels and of whole "
        "servers; "
        f"{plural(measured, 'constant')} measured or published, {answer.n_assumed} assumed"
    )
