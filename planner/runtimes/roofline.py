"""Layouts of a model on meshes of the pool, timed by rooflines and collectives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from planner.errors import RequestError
from planner.estimates.candidates import CandidateTable, machine_of, table_of
from planner.estimates.degrees import check_degrees, degree_problems
from planner.estimates.serving.usual_engines import engines_of
from planner.estimates.steps import Machine
from planner.programs.blocks import BlockProgram, Objective
from planner.programs.deployment import Posing
from planner.programs.layout import Assignment
from planner.results.deployments import Deployment
from planner.results.plans import AnyDeployment, VariantReport
from planner.runtimes.candidates import Candidates
from planner.runtimes.describe import describe, larger_pools
from planner.specs.ask.defaults import command_of, default_prefill_batches, make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.quality import variant_problems, with_variants
from planner.specs.ask.request import Request
from planner.specs.ask.targets import PREFILL_POLICIES, Targets
from planner.specs.files.reading import cluster_examples
from planner.specs.records.devices import FORMAT_BYTES, ClusterSpec, ModelSpec
from planner.specs.records.runtimes import ROOFLINE
from planner.specs.validation.hints import from_fields

WITHIN = (0.0, 1.0)
"""Multiples of a device's memory that weights alone may take."""


def roofline_candidates(
    model: ModelSpec, cluster: ClusterSpec, choices: PlanOptions, variants: Sequence[ModelSpec] = ()
) -> tuple[RooflineCandidates, ...]:
    """Of the model, and of each variant that can be served in its place.

    Raises:
        RequestError: the request cannot be read; every problem is listed.
    """
    return candidates_of_request(
        replace(make_request(model, cluster, choices), variants=tuple(variants))
    )


def candidates_of_request(request: Request) -> tuple[RooflineCandidates, ...]:
    """Of the model of a request, and of each of its variants that can take its place.

    Raises:
        RequestError: degrees that the model cannot have, or variants that are none of it.
    """
    machine = machine_of(request.cluster, request.model)
    check_degrees(request, machine)
    RequestError.raise_if_any(variant_problems(request.model, request.variants, request.workload))
    first, *others = with_variants(request)
    candidates = [RooflineCandidates(request=first, machine=machine)]
    for other in others:
        of_variant = machine_of(other.cluster, other.model)
        if not degree_problems(other, of_variant):
            candidates.append(RooflineCandidates(request=other, machine=of_variant, stands_in=True))
    return tuple(candidates)


def layout_command(request: Request, changes: Mapping[str, str]) -> str:
    """The command line of a request; the runtime is named where another one would plan it."""
    is_named = bool(engines_of(request.model, request.cluster))
    return command_of(request, changes, ROOFLINE.name if is_named else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class RooflineCandidates(Candidates):
    """Every layout of a request at every batch, in every pair of its formats.

    Args:
        machine: the pool's meshes and network.
        stands_in: whether the model is a variant of the one that was asked for.
        weights_within: see `candidate_table`.
    """

    request: Request
    machine: Machine
    stands_in: bool = False
    weights_within: tuple[float, float] = WITHIN

    runtime = ROOFLINE.name

    @cached_property
    def table(self) -> CandidateTable:
        return table_of(self.request, self.machine, weights_within=self.weights_within)

    def with_targets(self, targets: Targets) -> RooflineCandidates:
        """The same for other targets: layouts are evaluated once for all limits."""
        other, own = super().with_targets(targets), self.request.targets
        if (targets.degrees, targets.layouts) == (own.degrees, own.layouts):
            vars(other)["table"] = self.table
        return other

    @property
    def variant(self) -> VariantReport | None:
        if not self.stands_in:
            return None
        model = self.request.model
        return from_fields(VariantReport, model.variant, name=model.name, title=model.title)

    @property
    def n_candidates(self) -> int:
        return self.table.n_candidates

    @property
    def outside(self) -> Mapping[str, int]:
        return {"weights": self.table.n_too_large * self.table.n_of_arm}

    def source(self, aim: Objective, number: int = 0) -> Posing:
        return Posing(self.table, self.request, aim, model=number)

    def heavier(self, aim: Objective, relief: float) -> Iterator[Posing]:
        """Weights that did not fit; no context has both sorts."""
        table = table_of(self.request, self.machine, weights_within=(1.0, relief))
        if len(table.arms):
            relieved = Objective(objective=aim.objective, memory_scale=relief)
            yield Posing(table, self.request, relieved)

    def explained(self) -> RooflineCandidates:
        return replace(super().explained(), weights_within=(0.0, float("inf")))

    def deployment(self, posed: BlockProgram, assignment: Assignment) -> Deployment:
        described = describe(self.table, posed, self.request, assignment)
        return replace(described, variant=self.request.model.name) if self.stands_in else described

    def checked(self, deployment: AnyDeployment) -> tuple[str, ...]:
        assert isinstance(deployment, Deployment)
        return super().checked(replace(deployment, variant=""))

    def freed(self) -> tuple[str, str, RooflineCandidates] | None:
        """Prefill in batches, where a target on tokens has each request read alone."""
        alone, batches = map(default_prefill_batches, PREFILL_POLICIES)
        if self.request.prefill_batches != tuple(alone):
            return None
        policy = PREFILL_POLICIES[-1]
        return "--prefill", policy, self.asking(prefill=policy, prefill_batches=tuple(batches))

    def more_room(self) -> Iterator[tuple[str, str, RooflineCandidates]]:
        """With smaller weights, or on a larger pool of the same device.

        Formats are tried alone, those first that lose least by what is known.
        """
        request, model = self.request, self.request.model
        widest = max(FORMAT_BYTES[name] for name in request.weights_formats)
        losses, limit = model.quality_losses, request.targets.quality_loss_fraction
        for name in sorted(model.weights_formats, key=lambda name: losses.get(name, math.inf)):
            is_good = limit is None or losses.get(name, math.inf) <= limit
            if is_good and FORMAT_BYTES[name] < widest and name not in request.weights_formats:
                yield "--weights", name, self._like(weights_formats=(name,))
        for cluster in sorted(cluster_examples(), key=lambda cluster: cluster.n_devices):
            same = cluster.device.name == request.cluster.device.name
            if same and cluster.n_devices > request.cluster.n_devices:
                yield "--topology", cluster.name, self._like(cluster=cluster)

    def larger(self, served_tokens_per_s: float) -> Iterator[tuple[str, str, RooflineCandidates]]:
        own = self.request
        for cluster in larger_pools(own.cluster, own.targets, served_tokens_per_s):
            yield "--topology", cluster.name, self._like(cluster=cluster)

    def _like(self, **changes: Any) -> RooflineCandidates:  # noqa: ANN401
        request = replace(self.request, **changes)
        machine = machine_of(request.cluster, request.model)
        return RooflineCandidates(request=request, machine=machine)

    def command(self, changes: Mapping[str, str]) -> str:
        return layout_command(self.request, changes)
