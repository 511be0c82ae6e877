"""A cut into pipeline stages counted anew: layers, seconds, bytes, and what follows from them.

Which group comes where, and how many layers its stage has, is chosen. A stage is counted layer by
layer by `verifier.serving`, which shares closed forms of kernels with who cut, and no more.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

from planner.results.staging import GroupUse, StageLine, StagePlan
from planner.specs.ask.stages import PHASES, StageGroup, StagesRequest
from planner.specs.records.architecture import Experts, FeedForward, LayerClass
from planner.specs.records.mixers import GroupedAttention
from planner.verifier.certificates import Counts, certified
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path, with_differences
from planner.verifier.serving import held
from planner.verifier.serving.kernels import STATIC, STORED
from planner.verifier.serving.layers import embedding_s, head_s, layer_s
from planner.verifier.serving.mixers import tokens_of
from planner.verifier.serving.ranks import Links, handing_s, rank_of

CHECKS = (
    "every layer once, in order, on groups that there are",
    "every stage recounted kernel by kernel, as a model of its own layers",
)
OBJECTIVES = ("bottleneck", "latency")
FORMATS = (*STORED, f"fp8{STATIC}", f"nvfp4{STATIC}")

OF_STAGES = Counts(reasons={}, adds_up=lambda says: (says.n_candidates, says.n_solved))
"""Every stage that fits is solved for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """What a stage has: a kind of group, and layers first to last − 1."""

    kind: int
    first: int
    last: int


class _Costs:
    """Seconds and bytes of layers and ends on each kind of group.

    Args:
        asked: the request.
    """

    def __init__(self, request: StagesRequest) -> None:
        self.asked = request
        self.n_layers = len(request.model.order)
        self._of_class, self.ends_s = cache(self._class), cache(self._ends)

    @cached_property
    def handed_bytes(self) -> float:
        return tokens_of(self.asked).n * self.asked.model.d_model * 2

    def layer(self, kind: int, layer: int) -> tuple[float, float, float]:
        """Seconds, weights and caches of one layer."""
        return self._of_class(kind, self.asked.model.order[layer])

    def _class(self, kind: int, which: int) -> tuple[float, float, float]:
        group, layer = self.asked.groups[kind], self.asked.model.layers[which]
        return (
            layer_s(layer, group, self.asked),
            layer_weights_bytes(layer, group, self.asked),
            layer_cache_bytes(layer, group, self.asked),
        )

    def _ends(self, kind: int) -> tuple[float, float]:
        """Seconds of the embedding, and of the head."""
        group = self.asked.groups[kind]
        return embedding_s(group, self.asked), head_s(group, self.asked)

    def hand_s(self, sender: int, receiver: int) -> float:
        groups = self.asked.groups
        return handing_s(groups[sender], groups[receiver], self.handed_bytes)

    def line(self, stages: Sequence[_Stage], index: int) -> StageLine:
        """A stage with all that follows from its place."""
        stage, request = stages[index], self.asked
        group, is_last = request.groups[stage.kind], index == len(stages) - 1
        parts = [self.layer(stage.kind, i) for i in range(stage.first, stage.last)]
        model = request.model
        names = [model.layers[k].name for k in model.order[stage.first : stage.last]]
        ends = self.ends_s(stage.kind)
        matrices = (index == 0, is_last)  # one, where both are the same
        n_matrices = max(matrices) if model.tied_embeddings else sum(matrices)
        run = math.fsum(seconds for seconds, _, _ in parts)
        run += ends[0] * (index == 0) + ends[1] * is_last
        weights = (index == 0) * held.encoder_bytes(rank_of(group, request))
        weights += math.fsum(n_bytes for _, n_bytes, _ in parts)
        return StageLine(
            kind=group.name,
            device=group.cluster.device.name,
            n_devices=group.n_tensor,
            first_layer=stage.first,
            n_layers=stage.last - stage.first,
            layers={name: names.count(name) for name in dict.fromkeys(names)},
            has_embedding=index == 0,
            has_head=is_last,
            run_s=run,
            hand_s=0.0 if is_last else self.hand_s(stage.kind, stages[index + 1].kind),
            weights_bytes=weights + n_matrices * embedding_bytes(group, request),
            cache_bytes=math.fsum(n_bytes for _, _, n_bytes in parts),
            fixed_bytes=fixed_bytes(group, request),
            limit_bytes=group.cluster.device.hbm_bytes * request.engine.memory_fraction,
        )

    def lines(self, stages: Sequence[_Stage]) -> tuple[StageLine, ...]:
        return tuple(self.line(stages, i) for i in range(len(stages)))


def judge_stages(plan: StagePlan) -> tuple[StagePlan, list[Finding]]:
    """The cut that is true of its stages, and everything in this one that is not so."""
    request = plan.request
    wrong = [*_senseless(request)]
    stages = [] if wrong else _read(request, plan.stages, wrong)
    if wrong:
        return plan, wrong
    costs = _Costs(request)
    lines = costs.lines(stages)
    wrong += _unfit(lines)
    used = [sum(one.kind == t for one in stages) for t in range(len(request.groups))]
    wrong += _overused(request, used)
    bottleneck, latency = _times(lines)
    certificate, findings = certified(
        plan.certificate,
        objective_name=request.objective,
        objective=bottleneck if request.objective == "bottleneck" else latency,
        dimension="s",
        is_rate=False,
        gap=0.0,
        checks=CHECKS,
        counts=OF_STAGES,
    )
    certificate = replace(certificate, n_contexts=len(request.groups), screens=())
    each_s = max(bottleneck, latency / request.work.n_microbatches)
    truth = StagePlan(
        request=request,
        stages=lines,
        latency_s=latency,
        bottleneck_s=bottleneck,
        tokens_per_s=tokens_of(request).n / each_s,
        even_s=_even_s(costs),
        groups=tuple(
            GroupUse(kind=it.name, kernels=it.kernels.version, n_groups=it.n_groups, n_used=n)
            for it, n in zip(request.groups, used, strict=True)
        ),
        certificate=certificate,
        provenance=request.engine.provenance,
    )
    return truth, with_differences([*wrong, *findings], plan, truth)


def _times(lines: Sequence[StageLine]) -> tuple[float, float]:
    """The slowest stage, and all of them one after the other."""
    totals = [one.run_s + one.hand_s for one in lines]
    return max(totals), math.fsum(totals)


def _read(request: StagesRequest, lines: Sequence[StageLine], wrong: list[Finding]) -> list[_Stage]:
    """Stages by their kinds and numbers of layers, from the first layer on."""
    kinds = {group.name: t for t, group in enumerate(request.groups)}
    stages, first = list[_Stage](), 0
    for i, line in enumerate(lines):
        if line.kind not in kinds:
            here = ("stages", str(i), "kind")
            wrong.append(Finding(path=here, says=line.kind, fact="is no kind of group"))
        if line.n_layers < 0 or (not line.n_layers and 0 < i < len(lines) - 1):
            here = ("stages", str(i), "n_layers")
            wrong.append(Finding(path=here, says=line.n_layers, fact="is no stage"))
        last = first + line.n_layers
        stages.append(_Stage(kind=kinds.get(line.kind, 0), first=first, last=last))
        first = last
    n_layers = len(request.model.order)
    if first != n_layers or not lines:
        fact = f"have {first} layers, and the model has {n_layers}"
        wrong.append(Finding(path=("stages",), says=len(lines), fact=fact))
    return stages


def _unfit(lines: Sequence[StageLine]) -> Iterator[Finding]:
    """Stages that hold more than the engine may take of a device."""
    for i, stage in enumerate(lines):
        if stage.held_bytes > stage.limit_bytes * (1 + TOLERANCE):
            fact = f"are more than the {stage.limit_bytes!r} there are"
            here = ("stages", str(i), "held_bytes")
            yield Finding(path=here, says=stage.held_bytes, fact=fact)


def _overused(request: StagesRequest, used: Sequence[int]) -> Iterator[Finding]:
    for t, (group, n) in enumerate(zip(request.groups, used, strict=True)):
        if n > group.n_groups:
            fact = f"are used, and there are {group.n_groups}"
            yield Finding(path=("groups", str(t), "n_used"), says=n, fact=fact)


def _even_s(costs: _Costs) -> float | None:
    """Layers in equal numbers over all groups in the order given; None if that does not fit."""
    groups, n_layers = costs.asked.groups, costs.n_layers
    kinds = [t for t, group in enumerate(groups) for _ in range(group.n_groups)]
    if len(kinds) > n_layers:
        return None
    ends = [n_layers * i // len(kinds) for i in range(len(kinds) + 1)]
    stages = [
        _Stage(kind=kind, first=first, last=last)
        for kind, (first, last) in zip(kinds, pairwise(ends), strict=True)
    ]
    lines = costs.lines(stages)
    if [*_unfit(lines)]:
        return None
    bottleneck, latency = _times(lines)
    return bottleneck if costs.asked.objective == "bottleneck" else latency


def _senseless(request: StagesRequest) -> Iterator[Finding]:
    """What of a request no cut could be asked with."""

    def of(path: Path, says: object, fact: str) -> Finding:
        return Finding(path=("request", *path), says=says, fact=fact)

    if request.objective not in OBJECTIVES:
        yield of(("objective",), request.objective, f"is none of {', '.join(OBJECTIVES)}")
    if request.work.phase not in PHASES:
        yield of(("work", "phase"), request.work.phase, f"is none of {', '.join(PHASES)}")
    for name in ("batch", "n_microbatches"):
        if getattr(request.work, name) < 1:
            yield of(("work", name), getattr(request.work, name), "is below one")
    for name in ("weights", "experts", "cache"):
        known = getattr(request.formats, name)
        if known not in FORMATS:
            yield of(("formats", name), known, "is no number format")
    names = [group.name for group in request.groups]
    for t, group in enumerate(request.groups):
        here = ("groups", str(t))
        if names.index(group.name) != t:
            yield of((*here, "name"), group.name, "is named twice")
        if min(group.n_tensor, group.n_expert_parallel, group.n_groups) < 1:
            yield of(here, group.name, "has a degree below one")
        else:
            yield from (of(here, group.name, fact) for fact in _unshared(request, group))
        try:
            Links(group.cluster.fabric)
        except Invalid as refused:
            yield of((*here, "cluster", "fabric"), group.cluster.name, refused.fact)


def _unshared(request: StagesRequest, group: StageGroup) -> Iterator[str]:
    """What does not go into the devices of a group in equal parts."""
    cut, n_groups = group.n_tensor, group.n_expert_parallel
    for layer in request.model.layers:
        mixer, ffn = layer.mixer, layer.ffn
        if mixer is not None and mixer.n_heads % cut:
            yield f"{mixer.n_heads} heads do not go into {cut} devices"
        if isinstance(mixer, GroupedAttention):
            few, many = sorted((mixer.n_kv_heads, cut))
            if many % few:
                yield f"{mixer.n_kv_heads} heads of keys do not go into {cut} devices"
        if isinstance(ffn, FeedForward) and ffn.d_ff % cut:
            yield f"an FFN of {ffn.d_ff} does not go into {cut} devices"
        if isinstance(ffn, Experts) and (
            cut % n_groups or ffn.n_experts % n_groups or ffn.d_expert % (cut // n_groups)
        ):
            yield f"experts do not go into {n_groups} groups of {cut} devices"
    if n_groups > 1 and not any(isinstance(one.ffn, Experts) for one in request.model.layers):
        yield "deals out experts, and there are none"


def layer_weights_bytes(layer: LayerClass, group: StageGroup, request: StagesRequest) -> float:
    """Of one layer, on one device of a group."""
    return held.layer_weights_bytes(layer, rank_of(group, request))


def layer_cache_bytes(layer: LayerClass, group: StageGroup, request: StagesRequest) -> float:
    """Of one layer, for all sequences in flight, each at its longest: whole blocks, or states."""
    work, n_tokens = request.work, request.work.n_input_tokens + request.work.n_output_tokens
    rank = rank_of(group, request)
    each = held.layer_cache_bytes(layer, rank, n_tokens, request.engine.n_block_tokens)
    return work.n_sequences * (each + held.layer_state_bytes(layer, rank))


def fixed_bytes(group: StageGroup, request: StagesRequest) -> float:
    """Activations of the largest pass, scores of words, and what is the engine's own."""
    rank, engine = rank_of(group, request), request.engine
    activations = held.activation_bytes(rank, engine.n_chunk_tokens, float(request.work.batch))
    return activations + engine.workspace_bytes


def embedding_bytes(group: StageGroup, request: StagesRequest) -> float:
    """The matrix of words, or the head: in 16 bits."""
    return held.word_bytes(rank_of(group, request))
