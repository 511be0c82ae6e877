"""Which field of an answer is judged how; docs/verification.md has a table of it for each record.

counted     follows from the request and from what was chosen, and is counted anew
asked       has to be what the request says
chosen      is free, but has to be a choice that the request and the cluster allow
proved      says that nothing is better, or counts a search: a new search alone can judge it
unverified  nobody can judge it: seconds of a solver, how many programs it had, its notes
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from planner.verifier.findings import Finding

COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED = "counted", "asked", "chosen", "proved", "unverified"
RULES = (COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the fields of a record are judged: names, by rule; all others are counted.

    Args:
        by: of an answer, who judges it: by module of `planner` and name.
    """

    asked: str = ""
    chosen: str = ""
    proved: str = ""
    unverified: str = ""
    by: str = ""

    def names(self, rule: str) -> tuple[str, ...]:
        """Those of a rule that is not `counted`."""
        return tuple(getattr(self, rule).split())


COUNTED_WHOLE = """
StepTime Division Memory CostModel VariantReport Provenance KindUse Station Change GroupUse
PassCount Traffic ToyModel Interval OperationLine FirstTokenPart MemoryLine RedundantExperts
BalanceLine Offload ExpertPool PoolLayer
"""
"""Records of which every field is counted."""

FIELDS: Mapping[str, Rules] = {
    **dict.fromkeys(COUNTED_WHOLE.split(), Rules()),
    "Plan": Rules(
        by="verifier.plans.judge_plan",
        asked="request other_requests",
        chosen="alternatives variants rule_costs",
        proved="n_ties",
    ),
    "Deployment": Rules(
        asked="n_output_tokens demand_tokens_per_s",
        chosen="weights_format kv_format storage copied_axes sliced_axes n_replicas variant draft "
        "activation_format",
    ),
    "PhaseDeployment": Rules(
        asked="n_output_tokens",
        chosen="role weights_format kv_format storage copied_axes sliced_axes",
    ),
    "Mesh": Rules(chosen="axes n_stages"),
    "PhasePlan": Rules(asked="phase", chosen="batch n_microbatches attention gathered_axes"),
    "DraftPlan": Rules(
        asked="model acceptance",
        chosen="n_drafted attention storage gathered_axes copied_axes sliced_axes",
    ),
    "Alternative": Rules(chosen="deployment"),
    "RuleCost": Rules(chosen="rule deployment"),
    "Rival": Rules(chosen="deployment"),
    "Curves": Rules(by="verifier.frontiers.judge_curves", chosen="curves"),
    "Curve": Rules(asked="requests", chosen="case", proved="reason"),
    "Case": Rules(chosen="model topology weights kv engine roles"),
    "Frontier": Rules(asked="request other_requests", chosen="points alpha"),
    "FrontierPoint": Rules(chosen="deployment", proved="bound"),
    "FrontierProof": Rules(
        chosen="status",
        proved="proofs vouched_by n_candidates n_contexts screens n_solved",
        unverified="wall_s solve_s",
    ),
    "Comparison": Rules(by="verifier.comparisons.judge_comparison", chosen="rows"),
    "Row": Rules(asked="requests", chosen="case", proved="reason"),
    "LimitUse": Rules(proved="gain_fraction"),
    "Certificate": Rules(
        asked="objective_name",
        chosen="status",
        proved="bound proofs vouched_by vouched_bound n_candidates n_contexts screens n_solved "
        "sorts",
        unverified="wall_s solve_s n_programs n_branches",
    ),
    "Proof": Rules(proved="prover outcome value bound", unverified="wall_s note program"),
    "ConfigurationStep": Rules(proved="n_sorts objective bound"),
    "Screen": Rules(chosen="name", proved="n_candidates"),
    "Placement": Rules(
        by="verifier.placing.placements.judge_placement",
        asked="request",
        chosen="recipes replicas handovers",
    ),
    "OtherPlacement": Rules(chosen="recipes replicas handovers"),
    "RunConfig": Rules(chosen="model engine kind span speed_fraction counted_bytes_per_s"),
    "Replica": Rules(chosen="model recipe"),
    "Rank": Rules(chosen="device"),
    "Channel": Rules(chosen="devices link"),
    "Handover": Rules(chosen="source target requests_per_s"),
    "ServedModel": Rules(asked="model demand_tokens_per_s"),
    "FleetPlan": Rules(
        by="verifier.fleets.judging.judge_fleet",
        asked="request",
        chosen="recipes replicas handovers rounds",
        proved="fluid_usd_per_hour alternatives most_factor",
    ),
    "OtherFleet": Rules(chosen="recipes replicas handovers"),
    "FleetPool": Rules(
        chosen="name recipe replicas classes above_tokens upto_tokens then rate_per_s usual",
        proved="replica_rate_per_s",
    ),
    "DecodeTimes": Rules(chosen="n_sequences context_tokens"),
    "ReadingTimes": Rules(chosen="n_sequences prompt_tokens span_tokens"),
    "FleetHandover": Rules(chosen="source target requests_per_s"),
    "ServedClass": Rules(
        asked="name rate_per_s n_input_tokens n_output_tokens", chosen="model served_fraction"
    ),
    "Percentile": Rules(asked="at_most_s", chosen="quantity share"),
    "Goodput": Rules(asked="asked"),
    "Simulated": Rules(asked="seed"),
    "Round": Rules(proved="usd_per_hour n_devices refuted"),
    "Refuted": Rules(
        proved="pool target class_name at_most_s simulated_s before_per_s after_per_s"
    ),
    "FleetAlternative": Rules(proved="name usd_per_hour n_devices"),
    "FleetStaircase": Rules(
        by="verifier.fleets.judging.judge_staircase",
        asked="request",
        chosen="steps",
        proved="is_whole",
    ),
    "Step": Rules(
        chosen="above_factor upto_factor", proved="usd_per_hour bound_usd_per_hour n_devices words"
    ),
    "Repair": Rules(
        by="verifier.placing.repairs.judge_repair_whole",
        asked="request",
        chosen="moves frontier",
        proved="is_whole moved_proofs moved_vouched_by",
    ),
    "RepairRequest": Rules(asked="before wanted loss_fraction most_points"),
    "Move": Rules(chosen="source"),
    "ExpertPlan": Rules(
        by="tools.experts.verifier.judge_experts",
        asked="request",
        chosen="is_cut_short",
        proved="proof",
    ),
    "ExpertRank": Rules(chosen="experts shares load_before"),
    "ExpertBalance": Rules(chosen="traffic"),
    "StagePlan": Rules(
        by="tools.staging.stages_verifier.judge_stages", asked="request", chosen="stages"
    ),
    "StageLine": Rules(chosen="kind n_layers"),
    "LayerPlacement": Rules(
        by="tools.staging.layers_verifier.judge_layers", asked="request", chosen="machines"
    ),
    "MachineLine": Rules(chosen="machine first_layer n_layers"),
    "EngineDeployment": Rules(
        asked="engine demand_tokens_per_s",
        chosen="model formats n_tensor n_data n_stages n_expert_parallel n_expert_tensor batch "
        "chunk_tokens overlap n_drafted drafter command launch n_replicas role n_expert_devices "
        "n_microbatches",
    ),
    "TableDeployment": Rules(chosen="table line role"),
    "EconomicsDeployment": Rules(
        asked="demand_tokens_per_s", chosen="weights_format layout batch draft n_replicas"
    ),
    "EconomicsDraft": Rules(chosen="layout n_drafted"),
    "Split": Rules(chosen="n_stages n_tensor n_expert n_attention"),
    "Audit": Rules(
        by="verifier.audits.judge_audit",
        asked="request",
        chosen="possible equal_speed equal_cost changes weights_formats kv_formats speculation",
        proved="untried",
    ),
    "Observation": Rules(asked="weights_format kv_format batch", chosen="n_devices tpot_s"),
    "AuditedChange": Rules(chosen="deployment", unverified="command"),
    "EngineAudit": Rules(
        by="verifier.audits.judge_engine_audit",
        asked="request observed_tpot_s",
        chosen="predicted same_devices equal_speed equal_cost",
        unverified="command",
    ),
    "Prediction": Rules(
        by="verifier.predictions.judge_prediction",
        asked="request batch n_input_tokens n_output_tokens hit_fraction",
    ),
    "LayoutPrediction": Rules(
        by="verifier.layouts.predictions.judge_layout_prediction", chosen="plan"
    ),
    "Load": Rules(asked="requests_per_s"),
    "Waves": Rules(asked="n_waves"),
    "PassLine": Rules(asked="name"),
    "Launch": Rules(chosen="command version n_nodes n_servers variables remarks"),
    "RepairPoint": Rules(proved="moved_bytes objective"),
}
"""Every record of every kind of answer that can be verified, by name, and how its fields are
judged; what they are counted from, docs/verification.md says."""


def names_of(record: type, rule: str) -> tuple[str, ...]:
    """Fields of a record that is judged by a rule."""
    if rule != COUNTED:
        return FIELDS[record.__name__].names(rule)
    others = {name for one in RULES[1:] for name in FIELDS[record.__name__].names(one)}
    return tuple(one.name for one in dataclasses.fields(record) if one.name not in others)


Judge = Callable[[Any], tuple[Any, list[Finding]]]
"""From an answer to the one that is true of what was chosen, and all that is not so in it."""


def judge_of(record: type) -> Judge | None:
    """Who judges answers of a record; None if nobody can."""
    module, _, name = FIELDS.get(record.__name__, Rules()).by.rpartition(".")
    judge: Judge | None = getattr(import_module(f"planner.{module}"), name) if module else None
    return judge


@cache
def rule_of(record: type, name: str) -> str:
    """The rule of a field; of records of requests and of kinds that are not verified `asked`."""
    rules = FIELDS.get(record.__name__)
    if rules is None:
        return ASKED
    return next((rule for rule in RULES[1:] if name in rules.names(rule)), COUNTED)
