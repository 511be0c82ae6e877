"""The account of a given deployment: its prediction, line by line, from its request alone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.results.arrivals import Offload, Waves
from planner.results.predictions import (
    BalanceLine,
    FirstTokenPart,
    MemoryLine,
    PassLine,
    Prediction,
)
from planner.specs.ask.engine import PredictionRequest
from planner.specs.files.tables import Provenance
from planner.specs.records.architecture import Experts
from planner.specs.records.devices import NodesFabric
from planner.specs.records.mixers import GroupedAttention, LatentAttention
from planner.specs.records.roles import PREFILL
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Finding, Invalid, with_differences
from planner.verifier.loads import counted_load
from planner.verifier.pass_lines import pass_lines, pool_of
from planner.verifier.quantities import quality_words
from planner.verifier.rules import TABLES
from planner.verifier.serving.evaluation import Evaluation, evaluation
from planner.verifier.serving.held import Shared, cached_bytes, copies_of
from planner.verifier.serving.kernels import stored_bytes
from planner.verifier.serving.layers import decode_beside_s, prefill_beside_s
from planner.verifier.serving.passes import interval
from planner.verifier.serving.ranks import Rank, has_experts, kind_of
from planner.verifier.serving.rounds import Demand, UserTimes, fetched_bytes, user_times
from planner.verifier.serving.starting import unstartable

_FIRST: Mapping[str, tuple[str, str]] = TABLES["first"]
"""What the parts of TTFT are called, and the engine's key where one is a constant."""


def judge_prediction(answer: Prediction) -> tuple[Prediction, list[Finding]]:
    """The prediction that is true of its request, and everything in this one that is not so."""
    given = answer.request
    try:
        counted = evaluation(given)
    except Invalid as refused:
        return answer, [refused.at(("request",))]
    records = given.records
    wrong = [
        finding.below(("request",))
        for finding in unstartable(
            records.engine,
            counted.rank.model,
            records.cluster,
            given,
            loaded=counted.rank.formats,
            overlaps=given.overlaps,
        )
    ]
    held, load = counted.held, None
    if held.largest_batch < 1:
        fact = "has no room for one sequence"
        wrong.append(Finding(path=("memory", "limit_bytes"), says=held.limit_bytes, fact=fact))
    if given.requests_per_s is not None:
        rank, served = counted.rank, counted.served
        load, more = counted_load(answer.load, rank, served, given.requests_per_s)
        wrong += more
    truth = replace(prediction(given, counted), launch=answer.launch, load=load)
    return truth, with_differences(wrong, answer, truth)


def prediction(given: PredictionRequest, counted: Evaluation) -> Prediction:
    """A deployment as people read it; how it is started, and what it does at a rate, left out."""
    rank, served, times = counted.rank, counted.served, counted.times
    records, kernels, formats = given.records, rank.kernels, given.formats
    device = kernels.device
    n_devices, decode = rank.n_devices, times.passes.get("decode")
    # each request has its place from its prompt to its last token
    total = times.n_running * rank.n_data * served.n_place_tokens / times.place_s
    n_parts = decode.n_parts if decode and decode.rounds else 1.0
    hosts = {
        "decode": decode_beside_s(
            rank.model, records.engine, times.n_running / min(rank.n_stages, times.n_running)
        ),
        "prefill": prefill_beside_s(rank.model, records.engine),
    }
    passes = tuple(
        line
        for name, it in times.passes.items()
        for line in pass_lines(name, it, rank, hosts[name])
    )
    provenance = _provenance(passes, records.engine.provenance)
    return Prediction(
        request=given,
        model=rank.model.name,
        title=rank.model.title,
        model_kind=kind_of(rank.model),
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
        n_copies=1 if has_experts(rank.model) else rank.n_data,
        batch=given.batch,
        n_running=int(times.n_running),
        formats={name: getattr(formats, name) for name in ("weights", "experts", "cache")},
        quality=quality_words(rank.model, formats.weights, formats.cache),
        n_input_tokens=given.n_input_tokens,
        n_output_tokens=given.n_output_tokens,
        hit_fraction=given.hit_fraction,
        overlap="two-batch" if given.overlaps else "none",
        tokens_per_step=served.n_yielded,
        ttft_s=interval(times.ttft_s, times.ttft_error),
        tpot_s=interval(times.tpot_s, times.tpot_error),
        itl_s=interval(times.itl_s, times.decode_error),
        ttft_parts=tuple(_first_token(given, served, times)),
        queue_s=times.queue_s,
        user_tokens_per_s=1 / times.tpot_s if times.tpot_s else 0.0,
        device_tokens_per_s=total / n_devices,
        total_tokens_per_s=total,
        peak_flop_per_s=dict(device.peak_flop_per_s),
        hbm_bytes_per_s=device.hbm_bytes_per_s,
        ridge_flop_per_byte=kernels.peak_of(rank.formats.weights) / device.hbm_bytes_per_s,
        memory=_memory(counted),
        passes=passes,
        balance=balance(rank, times.n_running / n_parts),
        n_assumed=sum(one.source.startswith("assumed") for one in provenance),
        provenance=provenance,
        launch=None,
        measured_by=records.kernels.measured_by,
        waves=_waves(served, times),
        offload=_offload(counted),
        redundant_experts=copies_of(rank),
        outside=times.outside,
        pool=pool_of(rank, counted.held, decode, hosts["decode"]),
    )


def _offload(counted: Evaluation) -> Offload | None:
    """What is fetched of the host, beside what reading it again takes, and what the host has."""
    rank, served, times = counted.rank, counted.served, counted.times
    if served.host_bytes_per_s is None:
        return None
    cold = replace(served, hit_fraction=0.0, host_bytes_per_s=None)
    again = user_times(rank, cold, counted.held.largest_batch)
    fabric, n_kept = rank.links.fabric, None
    if isinstance(fabric, NodesFabric) and fabric.host_bytes is not None:
        own, _ = cached_bytes(
            rank, served.draft, served.engine, served.n_kept_tokens, served.shared
        )
        of_a_rank = fabric.host_bytes / fabric.n_devices_per_node / own / served.n_together
        n_kept = int(of_a_rank) * rank.n_data
    fetched = fetched_bytes(rank, served)
    return Offload(
        fetched_bytes=fetched,
        fetch_s=fetched / served.host_bytes_per_s,
        again_s=again.parts["reading"] - times.parts["reading"],
        n_kept=n_kept,
    )


def _waves(served: Demand, times: UserTimes) -> Waves | None:
    """Of one that begins together and of those that follow; most follow, where any do."""
    if not served.n_waves:
        return None
    beyond = times.parts["wave"]
    later = times.ttft_s - beyond
    first = later + served.n_waves * beyond
    usual = later if served.n_waves > 1 else first
    return Waves(n_waves=served.n_waves, first_s=first, later_s=later, median_s=usual)


def _first_token(
    given: PredictionRequest, served: Demand, times: UserTimes
) -> Iterator[FirstTokenPart]:
    """What a request waits for until its first token, in that order; what is zero left out."""
    records = given.records
    known = (*records.engine.provenance, *records.cluster.device.provenance)
    known += given.client.provenance if given.client else ()
    sources = {fact.key: fact.source for fact in known}
    passes = f" in {times.n_chunks} passes" if times.n_chunks > 1 else ""
    for name, (words, key) in _FIRST.items():
        if times.parts.get(name):
            if name == "step" and served.role == PREFILL:
                words = "rest of the prompts under way"
            text = words.format(n_new=served.n_new_tokens, passes=passes)
            source = sources.get(key, "")
            yield FirstTokenPart(name=text, seconds=times.parts[name], source=source)


def _memory(counted: Evaluation) -> MemoryLine:
    """Of the fullest device; the longest context is that of so many sequences in equal parts.

    What sequences have in common stays as it is, and their own tokens take what whole ones do.
    """
    held, running, served = counted.held, counted.times.n_running, counted.served
    each, n_kept = held.sequence_bytes, served.n_kept_tokens
    nothing = Shared(of_all=0.0, of_request=0.0)
    whole, _ = cached_bytes(counted.rank, served.draft, served.engine, n_kept, nothing)
    return from_fields(
        MemoryLine,
        held,
        hbm_bytes=counted.served.hbm_bytes,
        cache_bytes=running * held.held_bytes + held.shared_bytes,
        longest_cache_bytes=running * each + held.shared_bytes,
        longest_context=int((held.room_bytes / running + (whole - each)) * n_kept / whole)
        if whole
        else 0,
    )


def _provenance(
    passes: tuple[PassLine, ...], engine: tuple[Provenance, ...]
) -> tuple[Provenance, ...]:
    """Sources of the forms of all lines, each once, and of the engine's constants."""
    sources = {f"{one.formula}.{one.format}": one.source for it in passes for one in it.operations}
    return (*(Provenance(key=key, source=sources[key]) for key in sorted(sources)), *engine)


def balance(rank: Rank, n_running: float) -> tuple[BalanceLine, ...]:
    """Balance points of a decode pass in which so many tokens of a rank are.

    R is the ridge: FLOP that a device does in the time that a byte takes. With weights of w bytes,
    a product of B tokens does 2 B FLOP for w bytes of each weight, so it balances at B = R w / 2.
    R/2 of grouped attention, R/4 of latents and R/2S of experts in [InferSim] §3 are these, with R
    of 8-bit products, attention in 16 bits and weights of one byte.

    Those of a product, then of each kind of attention, then of experts.
    """
    formats, rate = rank.formats, rank.kernels.device.hbm_bytes_per_s
    matrix_ridge, attention_ridge = (
        rank.kernels.peak_of(one) / rate for one in (formats.weights, "bf16")
    )
    layers, lines = rank.model.layers, [
        BalanceLine(
            name="tokens of a product",
            balanced=matrix_ridge * stored_bytes(formats.weights) / 2,
            present=n_running,
            rule="R × bytes of a weight / 2",
        )
    ]  # fmt: skip
    for mixer in dict.fromkeys(layer.mixer for layer in layers):
        lines += _of_attention(mixer, attention_ridge, stored_bytes(formats.cache))
    experts_ridge = matrix_ridge * stored_bytes(formats.experts)
    lines += [
        BalanceLine(
            name="tokens of all ranks, for their experts",
            balanced=experts_ridge / 2 / (ffn.n_active / ffn.n_experts),
            present=n_running * rank.n_data,
            rule="R × bytes of a weight / 2S, S = active / all experts",
        )
        for ffn in dict.fromkeys(layer.ffn for layer in layers)
        if isinstance(ffn, Experts)
    ]
    return tuple(dict.fromkeys(lines))


def _of_attention(mixer: object, ridge: float, cache_bytes: float) -> Iterator[BalanceLine]:
    """Heads that share what is cached.

    Each cached pair of d numbers takes 2 d bytes · w and gives each head of a group 4 d FLOP; of
    latents a head does 2 (2 d_latent + d_rope) FLOP on the d_latent + d_rope numbers of a token.
    """
    if isinstance(mixer, GroupedAttention):
        yield BalanceLine(
            name="heads that share keys and values",
            balanced=ridge * cache_bytes / 2,
            present=mixer.n_heads / mixer.n_kv_heads,
            rule="R of attention × bytes of a cached number / 2",
        )
    elif isinstance(mixer, LatentAttention):
        flop = 2.0 * (2 * mixer.d_kv_latent + mixer.d_rope)
        yield BalanceLine(
            name="heads that share a latent",
            balanced=ridge * cache_bytes * mixer.d_cached / flop,
            present=float(mixer.n_heads),
            rule="R of attention × bytes of a cached token / FLOP of a head on it",
        )
