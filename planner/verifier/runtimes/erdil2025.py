"""Decode deployments of the reference model counted anew, by the passes of `erdil_passes`.

Chosen are the format, how the model and its draft are cut, the batch, how far is drafted and the
number of replicas. Each has to be a choice that the request and the rules of division allow.

Source: [Erdil2025] Eqs. 2 and 4 for money.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from planner.results.erdil2025 import EconomicsChoice, EconomicsDeployment, EconomicsDraft, Split
from planner.results.plans import VariantReport
from planner.specs.files.tables import Provenance
from planner.specs.records.economics import (
    DecodePass,
    EconomicsModel,
    EconomicsRequest,
    QuantizedModel,
)
from planner.specs.records.runtimes import ERDIL2025
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.quantities import further_of, limits_of
from planner.verifier.runtimes.erdil_passes import count_bytes, count_pass
from planner.verifier.runtimes.layouts import CHECKS, broken_targets, unplaceable


class ErdilCounting:
    """See `Counting`."""

    runtime = ERDIL2025.name
    checks = CHECKS
    variants: tuple[VariantReport, ...] = ()
    may_lack = False

    def __init__(self, request: EconomicsRequest) -> None:
        self._request = request

    def counted(
        self, says: EconomicsDeployment, path: Path
    ) -> tuple[EconomicsDeployment, list[Finding]]:
        try:
            deployment, wrong = economics_deployment(self._request, says.choice)
        except Invalid as refused:
            return says, [refused.at(path)]
        return deployment, [one.below(path) for one in wrong]

    def way(self, chosen: EconomicsDeployment) -> tuple[object, ...]:
        return (chosen.weights_format, chosen.layout.n_stages, chosen.layout.n_tensor)

    def error(self, objective: str, best: EconomicsDeployment) -> float:
        return 0.0

    def provenance(self, best: EconomicsDeployment | None = None) -> tuple[Provenance, ...]:
        return self._request.provenance


def economics_deployment(
    request: EconomicsRequest, says: EconomicsChoice
) -> tuple[EconomicsDeployment, list[Finding]]:
    """The account of a deployment, and what is wrong with the choice.

    Raises:
        Refused: the choice cannot be, so that nothing of it can be counted.
    """
    served = _quantized(request, says)
    wrong = [*_uncut(served.target, request, says.layout, says.batch, ("layout",))]
    wrong += _undivided(request, says.layout)
    draft, n_yielded, target = None, 1.0, served.target
    if says.draft_layout is not None:
        draft, n_scored = _drafted(request, served, says, says.draft_layout, wrong)
        target, n_yielded = replace(target, n_scored_tokens=float(n_scored)), draft.n_yielded
    step = count_pass(target, says.layout, says.batch)
    round_s = step.total_s + (draft.n_drafted * draft.step.total_s if draft else 0.0)
    weights, caches = _memory(request, served.target, says.layout, says.batch)
    drafted = draft.held_bytes if draft else 0.0
    # of one micro-batch each of the two meets the memory by itself
    is_joint = request.memory == "in-flight"
    used = weights + caches + drafted if is_joint else max(weights + caches, drafted)
    if used > request.hbm_bytes * (1 + TOLERANCE):
        fact = f"is less than the {used!r} that are held"
        wrong.append(Finding(path=("capacity_bytes",), says=request.hbm_bytes, fact=fact))
    token_s, demand = round_s / n_yielded, request.targets.demand_tokens_per_s
    is_fleet = demand is not None or request.targets.n_replicas is not None
    n_replicas = says.n_replicas if is_fleet else 1
    n_devices = says.layout.n_stages * says.layout.n_tensor
    of_pool = (request.n_devices, request.device.n_devices_per_node)
    wrong += unplaceable(request.targets, of_pool, n_devices, n_replicas)
    rent = n_replicas * n_devices * request.usd_per_hour
    output = n_replicas * says.batch / token_s
    true = EconomicsDeployment(
        weights_format=served.weights_format,
        layout=says.layout,
        batch=says.batch,
        step=step,
        tpot_s=token_s,
        usd_per_hour=rent,
        usd_per_token=rent / 3600 / (output if demand is None else demand),
        weights_bytes=weights,
        kv_bytes=caches,
        used_bytes=used,
        capacity_bytes=request.hbm_bytes,
        draft=draft,
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
    )
    limits = limits_of(request.targets)
    true = replace(true, further=further_of(limits, true, request.device))
    return true, [*wrong, *broken_targets(request.targets, true, tolerance=2 * TOLERANCE)]


def _undivided(request: EconomicsRequest, way: Split) -> Iterator[Finding]:
    """Degrees that the request fixes and the layout does not have."""
    degrees = {"tensor": "n_tensor", "pipeline": "n_stages", "expert": "n_expert"}
    for name, degree in request.targets.degrees.fixed().items():
        field = degrees.get(name)
        if field is None or getattr(way, field) != degree:
            says = getattr(way, field) if field else 1
            fact = f"is not the {name} degree of {degree} that was asked for"
            yield Finding(path=("layout", field or "n_tensor"), says=says, fact=fact)


def _quantized(request: EconomicsRequest, says: EconomicsChoice) -> QuantizedModel:
    """The model in the format that was chosen.

    Raises:
        Refused: there is no such choice, or not of this batch.
    """
    if says.batch not in request.batches:
        raise Invalid("is not offered", path=("batch",), says=says.batch)
    for one in request.served:
        if one.weights_format == says.weights_format:
            return one
    raise Invalid("is not offered", path=("weights_format",), says=says.weights_format)


def _drafted(
    request: EconomicsRequest,
    served: QuantizedModel,
    says: EconomicsChoice,
    layout: Split,
    wrong: list[Finding],
) -> tuple[EconomicsDraft, int]:
    """The draft on the devices of its target, and how many tokens the target scores.

    These are what was drafted and, in the usual convention, one position more, each of which is
    reached if all before it were accepted.

    Raises:
        Refused: nothing may be drafted, or not so far.
    """
    drafting = request.drafting
    if served.draft is None:
        raise Invalid("was not offered", path=("draft", "model"), says=says.n_drafted)
    if says.n_drafted not in drafting.lookaheads:
        raise Invalid("is not offered", path=("draft", "n_drafted"), says=says.n_drafted)
    here: Path = ("draft", "layout")
    wrong += _uncut(served.draft, request, layout, says.batch, here)
    n_own = layout.n_stages * layout.n_tensor
    if n_own != says.layout.n_stages * says.layout.n_tensor:
        fact = "are not the devices of its target"
        wrong.append(Finding(path=(*here, "n_tensor"), says=n_own, fact=fact))
    n_scored = says.n_drafted + (drafting.convention == "usual")
    draft = EconomicsDraft(
        model=served.draft.model.title,
        weights_format=served.draft_format,
        layout=layout,
        step=count_pass(served.draft, layout, says.batch),
        n_drafted=says.n_drafted,
        n_yielded=sum(drafting.acceptance**n for n in range(n_scored)),
        held_bytes=sum(_memory(request, served.draft, layout, says.batch)),
    )
    return draft, n_scored


def _memory(
    request: EconomicsRequest, decode: DecodePass, way: Split, batch: int
) -> tuple[float, float]:
    """Weights and caches on the busiest device, by the rule that was asked for."""
    cached, rule = request.n_cached_tokens, request.memory
    return count_bytes(decode.model, way, batch, n_cached_tokens=cached, rule=rule)


def _uncut(
    decode: DecodePass, request: EconomicsRequest, way: Split, batch: int, path: Path
) -> Iterator[Finding]:
    """Ways to cut a model that nobody can deploy.

    Raises:
        Refused: one with which nothing can be counted.
    """
    _refuse_uncountable(decode.model, way, batch, path)
    model, per_node = decode.model, decode.device.n_devices_per_node
    stages, tensor, expert, ranks = way.n_stages, way.n_tensor, way.n_expert, way.n_attention

    def wrong(name: str, fact: str) -> Finding:
        return Finding(path=(*path, name), says=getattr(way, name), fact=fact)

    fullest = ceil(model.n_layers / stages)
    if ceil(model.n_layers / fullest) != stages:
        yield wrong("n_stages", f"are more than {fullest} layers a stage need")
    if max(per_node, tensor) % min(per_node, tensor):
        yield wrong("n_tensor", f"are neither a share of {per_node} devices nor whole nodes")
    if stages * tensor > request.n_devices:
        yield wrong("n_tensor", f"by {stages} stages are more than {request.n_devices} devices")
    if expert > model.n_experts or (model.n_experts % expert and expert != tensor):
        yield wrong("n_expert", f"do not divide {model.n_experts} experts")
    if expert > 1 and ceil(batch / stages) < 2 * model.sparsity:
        yield wrong("n_expert", "are spread over too few requests")
    if tensor % ranks or model.n_heads % ranks:
        yield wrong("n_attention", f"do not divide {tensor} devices and {model.n_heads:g} heads")


def _refuse_uncountable(model: EconomicsModel, way: Split, batch: int, path: Path) -> None:
    for name in ("n_stages", "n_tensor", "n_expert", "n_attention"):
        if getattr(way, name) < 1:
            raise Invalid("is below one", path=(*path, name), says=getattr(way, name))
    if way.n_stages > min(model.n_layers, batch):
        fact = "are more than layers or requests"
        raise Invalid(fact, path=(*path, "n_stages"), says=way.n_stages)
    if way.n_tensor % way.n_expert:
        raise Invalid("do not divide the stage", path=(*path, "n_expert"), says=way.n_expert)
