"""A prediction counted anew: times and bytes by a second account, its lines held against it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.results.arrivals import Waves
from planner.results.predictions import FirstTokenPart, MemoryLine, PassLine, Prediction
from planner.specs.architecture import Experts
from planner.specs.provenance import Provenance
from planner.specs.serving_records import PredictionRequest
from planner.verifier.engine_deployments import interval, rank_of
from planner.verifier.findings import TOLERANCE, Finding, Refused, with_differences
from planner.verifier.loads import counted_load
from planner.verifier.pass_lines import counted_pass
from planner.verifier.quality import quality_words
from planner.verifier.serving.drafts import draft_of
from planner.verifier.serving.held import copies_of
from planner.verifier.serving.kernels import Run
from planner.verifier.serving.layers import decode_beside_s, prefill_beside_s
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.rounds import Felt, Held, Served, felt, held_by
from planner.verifier.serving.starting import unstartable

_FIRST = {
    "request": ("receiving the request", "steps.request"),
    "step": ("rest of a pass under way", ""),
    "others": ("others' prompts before it", ""),
    "reading": ("reading {n_new:.0f} tokens{passes}", ""),
    "decodes": ("decodes beside them", ""),
    "wave": ("the first wave, its share of all", ""),
}
"""What the parts of TTFT are called, and the engine's key where one is a constant."""


def judge_prediction(answer: Prediction) -> tuple[Prediction, list[Finding]]:
    """The prediction that is true of its request, and everything in this one that is not so."""
    asked = answer.request
    (model,) = asked.records.models
    try:
        rank = replace(rank_of(asked.records, model, asked), exchanges=asked.exchanges)
        draft = draft_of(model, asked.drafter, asked.n_drafted, asked.acceptance)
    except Refused as refused:
        return answer, [refused.at(("request",))]
    unstarted = unstartable(
        asked.records.engine,
        model,
        asked.records.cluster,
        asked,
        loaded=rank.formats,
        overlaps=asked.overlaps,
    )
    wrong = [replace(one, path=("request", *one.path)) for one in unstarted]
    served = Served(
        engine=asked.records.engine,
        hbm_bytes=asked.records.cluster.device.hbm_bytes,
        batch=asked.batch,
        chunk_tokens=asked.chunk_tokens,
        overlaps=asked.overlaps,
        n_input_tokens=float(asked.n_input_tokens),
        n_output_tokens=float(asked.n_output_tokens),
        hit_fraction=asked.hit_fraction,
        n_shared_tokens=float(asked.n_shared_tokens),
        draft=draft,
        role=asked.role,
        n_waves=asked.n_waves,
    )
    held = held_by(rank, served)
    if held.largest_batch < 1:
        fact = "has no room for one sequence"
        wrong.append(Finding(path=("memory", "limit_bytes"), says=held.limit_bytes, fact=fact))
    times = felt(rank, served, held.largest_batch)
    lines, more = _passes(answer, rank, asked, times)
    wrong += more
    load = None
    if asked.requests_per_s is not None:
        load, more = counted_load(answer.load, rank, served, asked.requests_per_s)
        wrong += more
    truth = replace(_truth(answer, rank, served, held, times, lines), load=load)
    return truth, with_differences(wrong, answer, truth)


def _passes(
    answer: Prediction, rank: Rank, asked: PredictionRequest, times: Felt
) -> tuple[tuple[PassLine, ...], list[Finding]]:
    """All passes; as they are said where there are others."""
    if [one.name for one in answer.passes] != [*times.passes]:
        fact = f"are not {' and '.join(times.passes)}"
        return answer.passes, [Finding(path=("passes",), says=len(answer.passes), fact=fact)]
    engine, found, wrong = asked.records.engine, [], []
    hosts = {
        "decode": decode_beside_s(rank.model, engine),
        "prefill": prefill_beside_s(rank.model, engine),
    }
    for i, says in enumerate(answer.passes):
        timed, host_s = times.passes[says.name], hosts[says.name]
        line, more = counted_pass(says, timed, rank, host_s=host_s, overlaps=asked.overlaps)
        found.append(line)
        wrong += [replace(one, path=("passes", str(i), *one.path)) for one in more]
    return tuple(found), wrong


def _truth(
    answer: Prediction,
    rank: Rank,
    served: Served,
    held: Held,
    times: Felt,
    lines: tuple[PassLine, ...],
) -> Prediction:
    asked, records, device = answer.request, answer.request.records, rank.kernels.device
    mixes = any(isinstance(one.ffn, Experts) for one in rank.model.layers)
    n_devices = rank.n_group * rank.n_stages
    total = _ended(rank, times) * asked.n_output_tokens
    provenance = _provenance(lines, records.engine.provenance)
    peak = rank.kernels.peak(Run(family="gemm", format=rank.formats.weights))
    return replace(
        answer,
        model=rank.model.name,
        title=rank.model.title,
        model_kind="mixture" if mixes else "dense",
        device=device.name,
        engine=records.engine.name,
        network=records.cluster.name,
        degrees={
            "tensor": rank.n_tensor,
            "data": rank.n_data,
            "pipeline": rank.n_stages,
            "expert": rank.n_expert_parallel,
        },
        n_devices=n_devices,
        n_copies=1 if mixes else rank.n_data,
        batch=asked.batch,
        n_running=int(times.n_running),
        formats={name: getattr(asked.formats, name) for name in ("weights", "experts", "cache")},
        quality=quality_words(rank.model, asked.formats.weights, asked.formats.cache),
        n_input_tokens=asked.n_input_tokens,
        n_output_tokens=asked.n_output_tokens,
        hit_fraction=asked.hit_fraction,
        overlap="two-batch" if asked.overlaps else "none",
        tokens_per_step=served.n_yielded,
        outside=times.outside,
        ttft_s=interval(times.ttft_s, times.ttft_error),
        tpot_s=interval(times.tpot_s, times.tpot_error),
        itl_s=interval(times.itl_s, times.decode_error),
        ttft_parts=tuple(_first_token(asked, served, times)),
        queue_s=times.queue_s,
        user_tokens_per_s=1 / times.tpot_s if times.tpot_s else 0.0,
        device_tokens_per_s=total / n_devices,
        total_tokens_per_s=total,
        peak_flop_per_s=dict(device.peak_flop_per_s),
        hbm_bytes_per_s=device.hbm_bytes_per_s,
        ridge_flop_per_byte=peak / device.hbm_bytes_per_s,
        memory=_memory(answer, held, device.hbm_bytes, served.n_kept_tokens, times.n_running),
        passes=lines,
        n_assumed=sum(one.source.startswith("assumed") for one in provenance),
        provenance=provenance,
        measured_by=records.kernels.measured_by,
        waves=_waves(served, times),
        redundant_experts=copies_of(rank),
    )


def _waves(served: Served, times: Felt) -> Waves | None:
    """Of one that begins together and of those that follow; most follow, where any do."""
    if not served.n_waves:
        return None
    beyond = times.parts["wave"]
    later = times.ttft_s - beyond
    first = later + served.n_waves * beyond
    usual = later if served.n_waves > 1 else first
    return Waves(n_waves=served.n_waves, first_s=first, later_s=later, median_s=usual)


def _ended(rank: Rank, times: Felt) -> float:
    """Requests that end each second: each has its place from its prompt to its last token."""
    return times.n_running * rank.n_data / times.place_s


def _first_token(asked: PredictionRequest, served: Served, times: Felt) -> Iterator[FirstTokenPart]:
    sources = {one.key: one.source for one in asked.records.engine.provenance}
    passes = f" in {times.n_chunks} passes" if times.n_chunks > 1 else ""
    for name, (words, key) in _FIRST.items():
        if times.parts.get(name):
            if name == "step" and served.role == "prefill":
                words = "rest of the prompts under way"
            said = words.format(n_new=served.n_new_tokens, passes=passes)
            source = sources.get(key, "")
            yield FirstTokenPart(name=said, seconds=times.parts[name], source=source)


def _memory(
    answer: Prediction, held: Held, hbm_bytes: float, n_tokens: float, running: float
) -> MemoryLine:
    """Of the fullest device; the last whole token of a context may fall either way."""
    each = held.sequence_bytes
    fits = held.room_bytes / running * n_tokens / each if each else 0.0
    says = answer.memory.longest_context
    is_rounding = abs(says - fits) < 1 and abs(round(fits) - fits) < TOLERANCE * fits
    longest = says if is_rounding else int(fits)
    return MemoryLine(
        hbm_bytes=hbm_bytes,
        limit_bytes=held.limit_bytes,
        weights_bytes=held.weights_bytes,
        drafter_bytes=held.drafter_bytes,
        cache_bytes=running * held.held_bytes + held.shared_bytes,
        longest_cache_bytes=running * each + held.shared_bytes,
        activation_bytes=held.activation_bytes,
        workspace_bytes=held.workspace_bytes,
        largest_batch=held.largest_batch,
        longest_context=longest,
    )


def _provenance(
    lines: tuple[PassLine, ...], engine: tuple[Provenance, ...]
) -> tuple[Provenance, ...]:
    """Sources of the forms of all lines, each once, and of the engine's constants."""
    found = {f"{one.formula}.{one.format}": one.source for two in lines for one in two.operations}
    return (*(Provenance(key=key, source=found[key]) for key in sorted(found)), *engine)
