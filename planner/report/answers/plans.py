"""A plan, whichever runtime it is of; reports of other runtimes are not imported."""

from importlib import import_module
from typing import Any

from planner.report.answers.plan_parts import alternatives, gains_sections, mix_head, mix_section
from planner.report.documents.blocks import Document, Note, Pairs, hint, section
from planner.report.proof import BEST, certificate_section
from planner.report.words import HINTS
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.plans import AnyPlan
from planner.specs.records.economics import EconomicsRequest

OF_ONE = "no plan of one replica with the batches offered is better"


def document(plan: AnyPlan) -> Document:
    """What was asked, what to run, what it does, what proves it."""
    own, best = _runtime(plan), OF_ONE if _is_of_one(plan) else BEST
    head = (Note(own.summary_of(plan)), Note(own.headline_of(plan)))
    return Document(
        title=f"{_title(plan)}: plan",
        line=line_of(plan),
        head=(*head, *mix_head(plan)),
        sections=(
            section("request", Pairs(own.request_rows(plan.request, plan))),
            *own.sections(plan),
            *gains_sections(plan),
            mix_section(plan),
            section("next best plans", alternatives(plan)),
            certificate_section(plan.certificate, best=best, given_up=plan.given_up_fraction),
            *own.closing(plan),
            hint(
                HINTS["replicas"]
                * (best == OF_ONE and not isinstance(plan.request, EconomicsRequest))
            ),
        ),
    )


def line_of(plan: AnyPlan) -> str:
    """What to run and what it does; replicas of several sorts, where these serve for less."""
    if plan.cheaper_mix is not None:
        from planner.report.answers.placement import line_of as placement_line

        return placement_line(plan.cheaper_mix)
    own = _runtime(plan)
    return f"{own.summary_of(plan)}: {own.headline_of(plan)}"


def _is_of_one(plan: AnyPlan) -> bool:
    """Whether one replica was considered where several on the pool would do more."""
    is_open = plan.load is None and plan.request.targets.n_replicas is None  # no demand, no count
    return is_open and plan.request.objective == "throughput"


def _runtime(plan: AnyPlan) -> Any:  # noqa: ANN401 a module
    """What reports of a plan's runtime."""
    name = "economics"
    if isinstance(plan.deployment, Deployment):
        name = "layouts"
    elif isinstance(plan.deployment, EngineDeployment):
        name = "engines"
    return import_module(f"planner.report.answers.{name}")


def _title(plan: AnyPlan) -> str:
    request = plan.request
    if isinstance(request, EconomicsRequest):
        return request.title
    return f"{request.model.name} on {request.cluster.name}"
