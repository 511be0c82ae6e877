"""Which field of an answer is judged how; docs/verification.md is written from this table.

counted     follows from the request and from what was chosen, and is counted anew
asked       has to be what the request says
chosen      is free, but has to be a choice that the request and the cluster allow
proved      says that nothing is better, or counts a search: a new search alone can judge it
unverified  nobody can judge it: seconds of a solver, how many programs it had, its notes
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from planner.results.arrivals import Load, Percentile, Simulated, Waves
from planner.results.audits import Audit, AuditedChange, Observation
from planner.results.deployments import (
    Deployment,
    Division,
    DraftPlan,
    Memory,
    Mesh,
    PhasePlan,
    StepTime,
)
from planner.results.engines import EngineAudit, EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment, EconomicsDraft, PassCount, Split
from planner.results.experts import ExpertBalance, ExpertPlan, ExpertRank, RedundantExperts
from planner.results.fleets import (
    FleetAlternative,
    FleetHandover,
    FleetPlan,
    FleetPool,
    FleetStaircase,
    Goodput,
    OtherFleet,
    Refuted,
    Round,
    ServedClass,
    Step,
)
from planner.results.layout_predictions import LayoutPrediction, ToyModel, Traffic
from planner.results.phase_deployments import PhaseDeployment, TableDeployment
from planner.results.placements import (
    Channel,
    Handover,
    KindUse,
    OtherPlacement,
    Placement,
    Rank,
    Replica,
    RunConfig,
    ServedModel,
)
from planner.results.plans import Alternative, LimitUse, Plan, Rival, RuleCost, VariantReport
from planner.results.predictions import (
    BalanceLine,
    FirstTokenPart,
    Interval,
    Launch,
    MemoryLine,
    OperationLine,
    PassLine,
    Prediction,
)
from planner.results.repairs import Change, Move, Repair, RepairPoint, RepairRequest
from planner.results.staging import GroupUse, LayerPlacement, MachineLine, StageLine, StagePlan
from planner.results.surveys import (
    Case,
    Comparison,
    CostModel,
    Curve,
    Curves,
    Frontier,
    FrontierPoint,
    FrontierProof,
    Row,
)
from planner.specs.files.tables import Provenance
from planner.specs.records.certificates import Certificate, ConfigurationStep, Proof, Screen
from planner.specs.records.roles import DecodeTimes, ReadingTimes, Station
from planner.verifier.findings import Finding

COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED = "counted", "asked", "chosen", "proved", "unverified"
RULES = (COUNTED, ASKED, CHOSEN, PROVED, UNVERIFIED)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the fields of a record are judged: names, by rule; all others are counted.

    Args:
        how: what they are counted from.
        by: of an answer, who judges it: by module of `planner` and name.
    """

    asked: str = ""
    chosen: str = ""
    proved: str = ""
    unverified: str = ""
    how: str = ""
    by: str = ""

    def names(self, rule: str) -> tuple[str, ...]:
        """Those of a rule that is not `counted`."""
        return tuple(getattr(self, rule).split())


FIELDS: Mapping[type, Rules] = {
    Plan: Rules(
        by="verifier.plans.judge_plan",
        asked="request other_requests",
        chosen="alternatives variants rule_costs",
        proved="n_ties",
        how="sources of the model, the cluster and its device, as their records say; variants that "
        "the limit on quality leaves, all of them unless degrees are fixed; other runtimes are "
        "asked the same, and each has a rival; a mix is asked the same; what stands beside it is "
        "counted at what it believes, and that it is the best is proved",
    ),
    Deployment: Rules(
        asked="n_output_tokens demand_tokens_per_s",
        chosen="weights_format kv_format storage copied_axes sliced_axes n_replicas variant draft",
        how="formats among those offered; storage and axes by the letters of the mesh's axes; "
        "money from the price of a device, times and tokens; replicas in places of their own, as "
        "many as the demand needs",
    ),
    PhaseDeployment: Rules(
        asked="n_output_tokens",
        chosen="role weights_format kv_format storage copied_axes sliced_axes",
        how="as a deployment of both phases, with the pass, the memory and the targets of one "
        "alone; what is handed over is the cache of a request as one device would hold it",
    ),
    Mesh: Rules(
        chosen="axes n_stages",
        how="a slice of the torus, a share of a node, whole nodes, or the widest links, that the "
        "pool has; on a torus that others use in part `axes_wrap` is chosen, and walked",
    ),
    PhasePlan: Rules(
        asked="phase",
        chosen="batch n_microbatches attention gathered_axes",
        how="batches among those offered; the pass layer by layer in scalar arithmetic",
    ),
    StepTime: Rules(how="products, reading, scores, messages and what each layer takes besides"),
    Division: Rules(how="heads, experts, layers over devices"),
    Memory: Rules(
        how="of the busiest device; no sequence is in both phases at once; what is used has to fit"
    ),
    DraftPlan: Rules(
        asked="model acceptance",
        chosen="n_drafted attention storage gathered_axes copied_axes sliced_axes",
        how="tokens drafted among those offered; the sum of the powers of the acceptance",
    ),
    Alternative: Rules(
        chosen="deployment",
        how="a deployment like any other, not better than the plan; that it is the best of its way "
        "is proved",
    ),
    RuleCost: Rules(
        chosen="rule deployment",
        how="of a rule of an engine that was asked a deployment by that engine's request without "
        "it, which breaks the rule and no other, and is as much better than the plan as is said; "
        "that no other is better still nobody says, and no command starts it",
    ),
    Rival: Rules(
        chosen="deployment",
        how="of each runtime that was asked a deployment by its own request, no better than the "
        "plan and no worse than any of its runtime that is listed; that it is the best is proved",
    ),
    Curves: Rules(by="verifier.frontiers.judge_curves", chosen="curves", how="each by itself"),
    Curve: Rules(
        chosen="case",
        proved="reason",
        asked="requests",
        how="that a case has no frontier is proved, of its request",
    ),
    Case: Rules(
        chosen="model topology weights kv engine roles",
        how="names of the request of its answer; of a case without one as they are",
    ),
    Frontier: Rules(
        asked="request other_requests",
        chosen="points alpha",
        how="the quantities of the request, the point of most worth by `alpha`; that no point is "
        "missing is proved",
    ),
    FrontierPoint: Rules(
        chosen="deployment",
        proved="bound",
        how="a deployment like any other, whatever the targets on the two quantities; the cheapest "
        "first, each of the others faster than the one before it and dearer, so that none is "
        "dominated; no bound beyond its point",
    ),
    FrontierProof: Rules(
        chosen="status",
        proved="proofs vouched_by n_candidates n_contexts screens n_solved",
        unverified="wall_s solve_s",
        how="no gap where it is called optimal, and provers enough",
    ),
    CostModel: Rules(how="of the runtime that was asked"),
    Comparison: Rules(
        by="verifier.comparisons.judge_comparison",
        chosen="rows",
        how="all rows asked the same; which is best, the first of equals",
    ),
    Row: Rules(
        chosen="case",
        proved="reason",
        asked="requests",
        how="a plan or a placement like any other, and what it loses of the best one; that a case "
        "has none is proved, of a request that is asked what the others are",
    ),
    LimitUse: Rules(
        proved="gain_fraction",
        how="targets of the request and the memory of a device, in their order",
    ),
    VariantReport: Rules(how="the variant's record"),
    Certificate: Rules(
        asked="objective_name",
        chosen="status",
        proved="bound proofs vouched_by vouched_bound n_candidates n_contexts screens n_solved "
        "sorts",
        unverified="wall_s solve_s n_programs n_branches",
        how="the objective of the recounted answer; no bound beyond it; provers that vouch for it "
        "said as much; numbers add up",
    ),
    Proof: Rules(
        proved="prover outcome value bound",
        unverified="wall_s note program",
        how="what a prover said, held against the bound",
    ),
    ConfigurationStep: Rules(
        proved="n_sorts objective bound",
        how="of all steps the one that costs least, further sorts counted, is the answer's",
    ),
    Screen: Rules(
        chosen="name", proved="n_candidates", how="a screen that there is, with its reason"
    ),
    Provenance: Rules(how="as the records of the request have them"),
    Placement: Rules(
        by="verifier.placing.placements.judge_placement",
        asked="request",
        chosen="recipes replicas handovers",
        how="the graph of the cluster in its state, vertex by vertex and link by link",
    ),
    OtherPlacement: Rules(
        chosen="recipes replicas handovers",
        how="as a placement, counted at what it believes: inside all recipes are, and none beats "
        "the bound; anywhere it is no worse than the placement as predicted; that it is the best "
        "is proved",
    ),
    RunConfig: Rules(
        chosen="model engine kind span speed_fraction counted_bytes_per_s",
        how="a deployment on the cluster that devices of its ability make; used by some replica, "
        "in the order of the replicas; its groups' links are as wide as it counts on",
    ),
    Replica: Rules(chosen="model recipe", how="numbered by model; what its devices are on"),
    Rank: Rules(
        chosen="device",
        how="a free device of the kind, of its own, as fast as counted on, where the span has it",
    ),
    Channel: Rules(
        chosen="devices link",
        how="the widest links that connect each group, as fair shares; of equally narrow ones any",
    ),
    Handover: Rules(
        chosen="source target requests_per_s",
        how="of one model, engine and format of the cache; no replica and no links of a leaf carry "
        "more than they can; the first token in time",
    ),
    ServedModel: Rules(
        asked="model demand_tokens_per_s",
        how="added up replica by replica; demands, numbers and limits are kept",
    ),
    KindUse: Rules(how="devices of the graph, by their states"),
    FleetPlan: Rules(
        by="verifier.fleets.judging.judge_fleet",
        asked="request",
        chosen="recipes replicas handovers rounds",
        proved="fluid_usd_per_hour alternatives most_factor",
        how="the graph of the cluster in its state; deployments for the request that their "
        "pool calls usual; the requests served again, one by one, with the same seed, and with "
        "another, which has to meet the same targets within both intervals",
    ),
    OtherFleet: Rules(
        chosen="recipes replicas handovers",
        how="as a fleet, tried at what it believes: inside all recipes are, and none beats the "
        "bound; anywhere it costs no more than the fleet; that it is the cheapest is proved",
    ),
    FleetPool: Rules(
        chosen="name recipe replicas classes above_tokens upto_tokens then rate_per_s usual",
        proved="replica_rate_per_s",
        how="all requests that are to be served go somewhere, prompts of every length once, and to "
        "no pool more than its replicas serve; the station point by point, kernel by kernel, up to "
        "the longest request",
    ),
    Station: Rules(
        how="of its deployment and its engine; the cache is the line through a usual prompt and "
        "the longest request"
    ),
    DecodeTimes: Rules(
        chosen="n_sequences context_tokens",
        how="points that reach the largest batch and the longest request; each a pass",
    ),
    ReadingTimes: Rules(
        chosen="n_sequences prompt_tokens span_tokens",
        how="points that reach the chunk and the longest request; each a pass less one that reads "
        "nothing",
    ),
    FleetHandover: Rules(
        chosen="source target requests_per_s",
        how="from pools that read to pools that decode for the same requests, under one engine; "
        "the connector's word, and what the links of a replica carry",
    ),
    ServedClass: Rules(
        asked="name rate_per_s n_input_tokens n_output_tokens",
        chosen="model served_fraction",
        how="its targets are all told; rents of shared replicas by requests, as they come",
    ),
    Percentile: Rules(
        asked="at_most_s", chosen="quantity share", how="of the requests served again"
    ),
    Goodput: Rules(asked="asked", how="as percentiles"),
    Simulated: Rules(
        asked="seed", how="as many requests as were asked for, and all of the longest trace"
    ),
    Round: Rules(
        proved="usd_per_hour n_devices refuted",
        how="what happened on the way; the last is the answer, and has its rent and devices",
    ),
    Refuted: Rules(
        proved="pool target class_name at_most_s simulated_s before_per_s after_per_s",
        how="what happened on the way",
    ),
    FleetAlternative: Rules(
        proved="name usd_per_hour n_devices", how="that it is the best of its way is proved"
    ),
    FleetStaircase: Rules(
        by="verifier.fleets.judging.judge_staircase",
        asked="request",
        chosen="steps",
        proved="is_whole",
        how="each step begins where the one before it ends, and is no cheaper",
    ),
    Step: Rules(
        chosen="above_factor upto_factor",
        proved="usd_per_hour bound_usd_per_hour n_devices words",
        how="no bound beyond its rent; that nothing is cheaper is proved",
    ),
    Repair: Rules(
        by="verifier.placing.repairs.judge_repair_whole",
        asked="request",
        chosen="moves frontier",
        proved="is_whole moved_proofs moved_vouched_by",
        how="device by device: a shard stays where its device had that rank of that sharding",
    ),
    RepairRequest: Rules(
        asked="before wanted loss_fraction most_points", how="aspects of both requests, compared"
    ),
    Change: Rules(how="of the shards that stay and move"),
    Move: Rules(chosen="source", how="from any device that keeps the same shard"),
    ExpertPlan: Rules(
        by="tools.experts.verifier.judge_experts",
        asked="request",
        chosen="is_cut_short",
        proved="proof",
        how="copies and loads in exact fractions; the greedy balancer by its rules; the bounds "
        "`mean` and `copies`, with the price of a move",
    ),
    ExpertRank: Rules(
        chosen="experts shares load_before",
        how="experts that there are, each of them somewhere, in slots and on nodes as asked; equal "
        "shares, and with them the load before, are counted; chosen ones have to add up",
    ),
    ExpertBalance: Rules(
        chosen="traffic",
        how="with equal shares both are counted; else the least load of these copies is, and any "
        "traffic will do that there can be",
    ),
    StagePlan: Rules(
        by="tools.staging.stages_verifier.judge_stages",
        asked="request",
        chosen="stages",
        how="all stages one after the other, the slowest, and equal numbers of layers, from the "
        "seconds of layers, which are counted kernel by kernel",
    ),
    StageLine: Rules(
        chosen="kind n_layers",
        how="a group that there is and no other stage has; layers in order, each once; what it "
        "holds has to fit",
    ),
    GroupUse: Rules(how="stages of each kind of group"),
    LayerPlacement: Rules(
        by="tools.staging.layers_verifier.judge_layers",
        asked="request",
        chosen="machines",
        how="the maximum flow through the machines and their links, from the tables of the request",
    ),
    MachineLine: Rules(
        chosen="machine first_layer n_layers",
        how="a machine that there is, once, with no more layers than it can hold; no layer is left "
        "to nobody",
    ),
    EngineDeployment: Rules(
        chosen="model formats n_tensor n_data n_stages n_expert_parallel n_expert_tensor batch "
        "chunk_tokens overlap n_drafted drafter command launch n_replicas role",
        asked="engine demand_tokens_per_s",
        how="choices that the request offers, degrees that divide the model and fit the pool; "
        "passes kernel by kernel and message by message, what they hold, and rent; of plans and "
        "audits the commands are written again",
    ),
    TableDeployment: Rules(
        chosen="table line role",
        how="the row of that line and role that the request carries, of the model, the lengths and "
        "the devices that are asked for; targets and the memory of a device are kept; money from "
        "the row, or from the price of its devices",
    ),
    EconomicsDeployment: Rules(
        chosen="weights_format layout batch draft n_replicas",
        asked="demand_tokens_per_s",
        how="formats and batches among those offered, stages and ranks that the rules of division "
        "allow; the paper's pass in scalar arithmetic, bytes by the rule that was asked for, rent "
        "over decoded tokens",
    ),
    EconomicsDraft: Rules(
        chosen="layout n_drafted",
        how="tokens drafted among those offered, on the devices of its target",
    ),
    Split: Rules(
        chosen="n_stages n_tensor n_expert n_attention",
        how="stages, ranks, spread of experts and ranks of attention that may be deployed",
    ),
    PassCount: Rules(how="the equations of the paper with these integers, in the faster shape"),
    Audit: Rules(
        by="verifier.audits.judge_audit",
        asked="request",
        chosen="possible equal_speed equal_cost changes weights_formats kv_formats speculation",
        proved="untried",
        how="each a deployment that is counted anew, within what it is to be compared at: the "
        "devices and the batch that run, their speed, or their cost",
    ),
    Observation: Rules(
        chosen="n_devices tpot_s",
        asked="weights_format kv_format batch",
        how="its owner's word, on devices of the pool; rent and FLOP over decoded tokens",
    ),
    AuditedChange: Rules(
        chosen="deployment",
        unverified="command",
        how="a change that there is, and a deployment at the speed of what runs that differs in no "
        "more; the cheapest first",
    ),
    EngineAudit: Rules(
        by="verifier.audits.judge_engine_audit",
        asked="request observed_tpot_s",
        chosen="predicted same_devices equal_speed equal_cost",
        unverified="command",
        how="each a deployment that is counted anew, within what it is to be compared at",
    ),
    Prediction: Rules(
        by="verifier.predictions.judge_prediction",
        asked="request batch n_input_tokens n_output_tokens hit_fraction",
        how="the deployment of the request, kernel by kernel and message by message, in scalars",
    ),
    LayoutPrediction: Rules(
        by="verifier.layouts.predictions.judge_layout_prediction",
        chosen="plan",
        how="a plan of what was given; messages by kind and axes, and the most tokens that fit, by "
        "the scalar model that judges plans",
    ),
    Traffic: Rules(how="what one layer sends for one micro-batch, of all layers and micro-batches"),
    ToyModel: Rules(how="Eqs. 9 to 17 of Erdil 2025, by the bytes of all parameters"),
    Load: Rules(
        asked="requests_per_s",
        how="as many as end while others wait, and requests served again with the same seed; in "
        "flight each is from its arrival to its last token",
    ),
    Waves: Rules(
        asked="n_waves",
        how="passes full of prompts one after the other, and those that come as others end",
    ),
    Interval: Rules(how="errors of forms added up, those of one form together"),
    PassLine: Rules(
        asked="name", how="the sum of its kernels and messages, but for what overlap hides"
    ),
    OperationLine: Rules(
        how="the kernels and messages of a pass in their order, from the layers of the model"
    ),
    FirstTokenPart: Rules(how="their sum is the time"),
    MemoryLine: Rules(how="of a device of the fullest stage"),
    RedundantExperts: Rules(
        how="copies as many as the engine's users give so many groups, dealt by a second greedy "
        "balancer"
    ),
    BalanceLine: Rules(how="from peaks, bytes of formats and the model"),
    Launch: Rules(
        chosen="command version n_nodes n_servers variables remarks",
        how="flags that the engine has; of plans, audits and predictions written again",
    ),
    RepairPoint: Rules(
        proved="moved_bytes objective",
        how="in order; the chosen one is the placement's, the last one the best",
    ),
}
"""Every record of every kind of answer that can be verified, and how its fields are judged."""


def names_of(record: type, rule: str) -> tuple[str, ...]:
    """Fields of a record that is judged by a rule."""
    if rule != COUNTED:
        return FIELDS[record].names(rule)
    others = {name for one in RULES[1:] for name in FIELDS[record].names(one)}
    return tuple(one.name for one in dataclasses.fields(record) if one.name not in others)


Judge = Callable[[Any], tuple[Any, list[Finding]]]
"""From an answer to the one that is true of what was chosen, and all that is not so in it."""


def judge_of(record: type) -> Judge | None:
    """Who judges answers of a record; None if nobody can."""
    module, _, name = (FIELDS[record].by if record in FIELDS else "").rpartition(".")
    judge: Judge | None = getattr(import_module(f"planner.{module}"), name) if module else None
    return judge


@cache
def rule_of(record: type, name: str) -> str:
    """The rule of a field; of records of requests and of kinds that are not verified `asked`."""
    if record not in FIELDS:
        return ASKED
    return next((rule for rule in RULES[1:] if name in FIELDS[record].names(rule)), COUNTED)
