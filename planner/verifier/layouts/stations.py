"""Deployments of layouts, of the reference model and of tables as stations: their own accounts.

Phases of layouts take turns, and so do passes here: prompts are read alone, as many at once as a
prefill has, and before all else. Whoever searched has the same passes at one point only, that of
the deployment, where both have to agree.
"""

from collections.abc import Sequence
from dataclasses import replace

from planner.results.deployments import Deployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.specs.ask.request import Request
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.roles import DECODE, DecodeTimes, ReadingTimes, Row, Station
from planner.specs.records.runtimes import DeploymentRow
from planner.verifier.layouts.deployments import Context, drafted, ground_mesh, tokens_of
from planner.verifier.layouts.phases import (
    Resting,
    Tokens,
    counted,
    planned_over_predicted,
    resting,
)
from planner.verifier.runtimes.erdil_passes import count_bytes, count_pass

_POINTS = 2
"""Of the grids of contexts and of spans, at equal distances."""


def layout_station(
    request: Request,
    says: Deployment,
    n_longest_tokens: float | None = None,
    *,
    ground: Context | None = None,
) -> Station:
    """A replica of layouts; contexts are in passes, of drafts too.

    Args:
        request: of the model that is served.
        n_longest_tokens: of the longest request; of the workload's where None.

    Raises:
        Refused: the deployment cannot be.
    """
    work = request.workload
    longest = float(n_longest_tokens or work.n_cached_tokens)
    mesh, _ = ground_mesh(request, says.mesh, ground)
    formats = (says.weights_format, says.kv_format)
    rests = resting(request.model, request.cluster, mesh, formats, says.choice)
    chunk, held = says.prefill.batch * work.n_input_tokens, says.memory
    working = held.activation_bytes + held.gather_bytes + held.draft_bytes
    fixed, each = _cached(request, says, rests, longest)
    n_input, least = float(work.n_input_tokens), min(256.0, longest / 2.0)
    contexts = _between(min(n_input, longest / 2.0), longest, work.mean_decode_context)
    return Station(
        name="",
        most_running=says.decode.batch,
        chunk_tokens=chunk,
        mixes_prefill=False,
        room_bytes=held.capacity_bytes - held.reserve_bytes - held.weights_bytes - working,
        sequence_bytes=fixed,
        token_bytes=each,
        decode=DecodeTimes(
            n_sequences=(sizes := _doubling(says.decode.batch)),
            context_tokens=contexts,
            seconds=tuple(
                tuple(_round_s(request, says, rests, n, c) for c in contexts) for n in sizes
            ),
        ),
        reading=ReadingTimes(
            n_sequences=(0,),
            prompt_tokens=(0.0, *map(float, prompts := _doubling(chunk, 2))),
            span_tokens=(spans := _between(least, longest, n_input / 2.0)),
            seconds=(
                (
                    (0.0,) * len(spans),
                    *(tuple(_read_s(request, says, rests, p, s) for s in spans) for p in prompts),
                ),
            ),
        ),
    )


def _between(first: float, last: float, *inside: float) -> Row:
    """Points at equal distances, and others between them."""
    even = (first + (last - first) * i / (_POINTS - 1) for i in range(_POINTS))
    return tuple(sorted({*even, *(x for x in inside if first < x < last)}))


def _doubling(last: int, times: int = 1) -> tuple[int, ...]:
    """1, 2, 4, …, or each doubled so many times, and last."""
    return (*(1 << k for k in range(0, (last - 1).bit_length(), times)), last)


def _round_s(request: Request, says: Deployment, rests: Resting, n: int, context: float) -> float:
    """A decode pass of n sequences, and those of the draft before it."""
    n_input, draft = request.workload.n_input_tokens, says.draft
    yields = draft.n_yielded if draft else 1.0
    seen = n_input + yields * (context - n_input) if context > n_input else context
    tokens = tokens_of(request)["decode"]
    if not tokens.n_logits > 1.0:  # a whole sequence passes whatever of it is written
        tokens = replace(tokens, n_context=seen)
    took = 0.0
    if draft is not None:
        small = replace(says, decode=replace(says.decode, batch=n))
        pass_drafted = drafted(request, small.choice, draft, rests.mesh, tokens)
        took = draft.n_drafted * pass_drafted.pass_.time.total_s
        tokens = replace(tokens, n_new=float(pass_drafted.n_scored))
    planned = planned_over_predicted(request, "decode", rests.mesh.n_devices)
    return took + counted(rests, replace(says.decode, batch=n), tokens, planned).time.total_s


def _read_s(request: Request, says: Deployment, rests: Resting, n: int, span: float) -> float:
    """A pass over so many tokens of prompts that each attend to so many on average.

    Of the fewest prompts that have this span: one that has read before, or several short ones.
    """
    first = tokens_of(request)["prefill"]
    is_whole = first.n_logits > 1.0  # prompts pass with their answers
    usual = float(request.workload.n_input_tokens) if is_whole else 2.0 * span
    several = max(1, round(n / max(usual, 1.0)))
    each = n / several
    planned = planned_over_predicted(request, "prefill", rests.mesh.n_devices)
    tokens = Tokens(n_new=each, n_context=max(each, span + each / 2.0), n_cached=each)
    way = replace(says.prefill, batch=several)
    return counted(rests, way, first if is_whole else tokens, planned).time.total_s


def _cached(
    request: Request, says: Deployment, rests: Resting, longest: float
) -> tuple[float, float]:
    """Of a sequence on the busiest device, beside a whole batch of others: fixed, and a token's.

    The line through a usual prompt and the longest request, as layers with windows keep less.
    """
    batch, low = says.decode.batch, float(request.workload.n_input_tokens)

    def held(n_tokens: float) -> float:
        tokens = Tokens(n_new=1.0, n_context=n_tokens, n_cached=n_tokens)
        return counted(rests, says.decode, tokens).held.kv_bytes / batch

    if request.model.n_diffusion_passes:
        return 0.0, 0.0
    if longest <= low:
        return 0.0, held(low) / low
    each = (held(longest) - held(low)) / (longest - low)
    return held(low) - each * low, each


def economics_station(request: EconomicsRequest, says: EconomicsDeployment) -> Station:
    """A replica of the reference model, which only decodes; contexts are in passes."""
    served = next(one for one in request.served if one.weights_format == says.weights_format)
    target, draft, n_cached = served.target, says.draft, request.n_cached_tokens
    n_input = prompt_tokens(request)
    yields, drafting = (draft.n_yielded, request.drafting) if draft else (1.0, None)
    if draft and drafting:
        scored = draft.n_drafted + (drafting.convention == "usual")
        target = replace(target, n_scored_tokens=float(scored))

    def round_s(n: int, context: float) -> float:
        seen = n_input + yields * (context - n_input)
        took = count_pass(replace(target, n_context_tokens=seen), says.layout, n).total_s
        if draft is not None and served.draft is not None:
            small = replace(served.draft, n_context_tokens=seen)
            took += draft.n_drafted * count_pass(small, draft.layout, n).total_s
        return took

    ends = n_input, n_input + (n_cached - n_input) / yields
    contexts = _between(*ends, n_input + (target.n_context_tokens - n_input) / yields)
    kept = count_bytes(
        served.target.model, says.layout, says.batch, n_cached_tokens=n_cached, rule=request.memory
    )[1]
    return Station(
        name="",
        role=DECODE,
        most_running=says.batch,
        chunk_tokens=1,
        mixes_prefill=False,
        room_bytes=says.capacity_bytes - says.used_bytes + says.kv_bytes,
        token_bytes=kept / says.batch / ends[1],
        decode=DecodeTimes(
            n_sequences=(sizes := _doubling(says.batch)),
            context_tokens=contexts,
            seconds=tuple(tuple(round_s(n, c) for c in contexts) for n in sizes),
        ),
        reading=None,
    )


def prompt_tokens(request: EconomicsRequest) -> float:
    """Of a request that ends with so many cached, and has so many on average while it is written.

    The mean is the prompt and half of the answer, and half a token.
    """
    mean = request.served[0].target.n_context_tokens
    return 2.0 * mean - request.n_cached_tokens - 1.0


def table_station(rows: Sequence[DeploymentRow], last: DeploymentRow) -> Station:
    """A replica as its rows say, up to the batch of one of them.

    Rows of one replica are a curve over batches. What a prompt takes is the least TTFT, less half
    of a token where others decode; no more of it than half of the time at any row's rate is that of
    devices. Of a token so much is the decode pass as prompts leave, and no less than what the
    row's rate says:

        D_b = max(TPOT_b (1 − λ_b r),  b (1 / λ_b − r) / (OSL − 1))

    Args:
        rows: of its table.
    """
    curve = {one.batch: one for one in rows if _replica(one) == _replica(last)}
    alike = [one for _, one in sorted(curve.items()) if one.batch <= last.batch]
    first = alike[0]
    whole_s = first.ttft_s - (first.tpot_s / 2.0 if first.batch > 1 else 0.0)
    read_s = max(0.0, min(whole_s, *(0.5 / one.requests_per_s for one in alike)))
    n_input, n_rounds = float(last.n_input_tokens), max(1, last.n_output_tokens - 1)
    seconds = tuple(
        max(
            row.tpot_s * (1.0 - row.requests_per_s * read_s),
            row.batch * (1.0 / row.requests_per_s - read_s) / n_rounds,
        )
        for row in alike
    )
    return Station(
        name="",
        most_running=last.batch,
        chunk_tokens=last.n_input_tokens,
        mixes_prefill=False,
        request_s=max(0.0, whole_s - read_s),
        room_bytes=0.0,
        token_bytes=0.0,
        decode=DecodeTimes(
            n_sequences=tuple(one.batch for one in alike),
            context_tokens=(n_input,),
            seconds=tuple((s,) for s in seconds),
        ),
        reading=ReadingTimes(
            n_sequences=(0,),
            prompt_tokens=(0.0, n_input),
            span_tokens=(n_input / 2.0,),
            seconds=(((0.0,), (read_s,)),),
        ),
    )


def _replica(row: DeploymentRow) -> DeploymentRow:
    """What rows of one curve have in common."""
    measured = {"requests_per_s": 0.0, "ttft_s": 0.0, "tpot_s": 0.0, "memory_bytes": None}
    return replace(row, line=0, batch=0, **measured)  # type: ignore[arg-type]
