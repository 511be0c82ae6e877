"""What no engine runs, or what says nothing, as problems of the options that ask for it.

Each names the nearest value that its option can have while the others stay.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.errors import Problem
from planner.estimates.serving.deployments import DeploymentTable, deployments, has_experts
from planner.estimates.serving.rules import Context, cut_rules, faults
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.specs.records.architecture import Architecture
from planner.specs.records.engine_rules import MENDED_BY, SAID_BY, names_in
from planner.specs.records.roles import DECODE, PREFILL, ROLES, TOGETHER

MOST_DEGREE = 4096
"""Degrees up to which the nearest possible one is looked for."""

DEGREES = {"n_tensor": "--tp", "n_data": "--dp", "n_stages": "--pp", "n_expert_parallel": "--ep"}
"""Options by the column of a table that they fill."""

_OPTIONS = {
    **DEGREES,
    "batch": "--batch",
    "chunk_tokens": "--chunk",
    "n_redundant": "--redundant-experts",
    **SAID_BY,
}
"""Options by what a rule is mended by: a column, or a name of a condition."""


def refusals(
    model: Architecture,
    table: DeploymentTable,
    traffic: Traffic,
    *,
    ground: Context | None = None,
) -> list[Problem]:
    """Everything about one deployment and its traffic that cannot be; empty if it can.

    Args:
        table: of that one deployment.
        ground: what the engine starts; cuts into equal parts alone where it is left out.
    """
    return [
        *_broken_rules(model, table, ground or cut_rules()),
        *_overlap_problems(model, table),
        *traffic_problems(traffic),
        *_part_problems(table, traffic),
    ]


def role_problems(traffic: Traffic, drafts: Drafts | None) -> Iterator[Problem]:
    """What nothing does of a request, or drafts where nothing is written."""
    yield from unknown_role(traffic.role)
    if traffic.role == PREFILL and drafts is not None and drafts.kind:
        fact = "drafts nothing where no answer is written"
        yield Problem(where="--draft", value=drafts.kind, fact=fact, remedy="leave it out")
    if traffic.role in (PREFILL, DECODE) and traffic.n_waves:
        fact = "are of replicas that read prompts and write answers"
        yield Problem(where="--waves", value=str(traffic.n_waves), fact=fact, remedy="leave it out")


def unknown_role(role: str) -> Iterator[Problem]:
    """A role that no deployment has."""
    if role not in ROLES:
        fact, remedy = "no such role", f"it is {', '.join(ROLES[:-1])} or {ROLES[-1]}"
        yield Problem(where="--role", value=role, fact=fact, remedy=remedy)


def completed(
    model: Architecture, *, tensor: int, data: int | None, expert: int | None
) -> tuple[int, int]:
    """Data and expert degree of a stage, where one of them or both are not said.

    Experts are dealt over all ranks where there are several; as many ranks as the experts need.
    """
    if expert is None:
        expert = tensor * data if data is not None and data > 1 and has_experts(model) else 1
    if data is None:
        data = max(1, expert // tensor) if has_experts(model) else 1
    return data, expert


def _broken_rules(
    model: Architecture, table: DeploymentTable, ground: Context
) -> Iterator[Problem]:
    """Of several degrees, those that come later are mended beside the nearest ones before."""
    reasons: dict[str, list[str]] = {name: [] for name in _OPTIONS}
    for fact, hit in faults(model, table, ground).items():
        reasons[_mended_by(fact, ground)] += [fact] * int(hit[0])
    mended = table
    for name, facts in filter(lambda pair: pair[1], reasons.items()):
        nearest = _nearest(model, mended, name, facts, ground) if hasattr(table, name) else ()
        if nearest and name in DEGREES:
            changed: dict[str, Any] = {name: np.array(nearest[:1])}
            mended = replace(mended, **changed)
        option = _OPTIONS[name]
        yield Problem(
            where=option,
            value=_said(model, table, name, ground),
            fact="; ".join(_words(fact, ground) for fact in facts),
            remedy=f"nearest: {' or '.join(f'`{option} {n}`' for n in nearest)}" if nearest else "",
        )


def _words(fact: str, ground: Context) -> str:
    """A rule of the engine's own with its source; that parts are equal needs none."""
    known = {one.says: one for one in ground.rules if one not in cut_rules().rules}
    return known[fact].words if fact in known else fact


def _said(model: Architecture, table: DeploymentTable, name: str, ground: Context) -> str:
    """What an option says that a broken rule is mended by."""
    if name in DEGREES or name in ("batch", "chunk_tokens", "n_redundant"):
        return f"{getattr(table, name)[0]:.0f}"
    run, device = ground.run, ground.device
    formats = run.formats if run else table.formats[0]
    return {
        "family": model.name,
        "overlaps": "two-batch",
        "drafter": run.drafter if run else "",
        "role": run.role if run else "",
        "cache": formats.cache,
        "weights": formats.weights,
        "experts_format": formats.experts,
        "device": device.name if device else "",
    }[name]


def _mended_by(fact: str, ground: Context) -> str:
    """The column or the name of a condition that a broken rule is to be mended by."""
    rule = next((one for one in ground.rules if one.says == fact), None)
    if rule is not None:
        names = names_in(rule.require)
        wanted = [*(name for name in _OPTIONS if name not in (*DEGREES, "role")), *MENDED_BY]
        name = next((one for one in wanted if one in names), "tp")
        return MENDED_BY.get(name, name)
    words = {"batch": "batch", "stages": "n_stages", "expert": "n_expert_parallel"}
    return next((name for word, name in words.items() if word in fact), "n_tensor")


def _nearest(
    model: Architecture, table: DeploymentTable, name: str, facts: list[str], ground: Context
) -> tuple[int, ...]:
    """The next smaller and the next larger value with which these rules hold."""
    if name not in DEGREES:
        return (1,) if name == "batch" and table.batch[0] < 1 else ()
    degree = int(getattr(table, name)[0])
    sizes = np.arange(1, MOST_DEGREE + 1)
    sizes_held = sizes[_holding(model, _varied(model, table, name, sizes), facts, ground)]
    below, above = sizes_held[sizes_held < degree], sizes_held[sizes_held > degree]
    return (*map(int, below[-1:]), *map(int, above[:1]))


def _varied(
    model: Architecture, table: DeploymentTable, name: str, sizes: IntArray
) -> DeploymentTable:
    """The deployment with other values of one degree; ranks follow where experts need them."""
    degrees = {key: np.full(len(sizes), getattr(table, key)[0]) for key in DEGREES}
    degrees[name] = sizes
    if name == "n_expert_parallel" and has_experts(model):
        follows = sizes % degrees["n_tensor"] == 0
        ranks = np.maximum(1, sizes // degrees["n_tensor"])
        own = degrees["n_tensor"] * degrees["n_data"] % sizes == 0
        degrees["n_data"] = np.where(follows & ~own, ranks, degrees["n_data"])
    kept = ("n_redundant", "batch", "n_expert_devices", "n_microbatches")
    same = {name: getattr(table, name)[0] for name in kept}
    return deployments(formats=table.formats, **same, **degrees)


def _holding(
    model: Architecture, table: DeploymentTable, facts: list[str], ground: Context
) -> BoolArray:
    """Where none of these rules is broken; of a rule on experts, none of them all."""
    faults_found = faults(model, table, ground)
    words = "expert" if any("expert" in fact for fact in facts) else ""
    broken = [hit for key, hit in faults_found.items() if key in facts or (words and words in key)]
    return np.asarray(~np.any(broken, axis=0), dtype=bool)


def _overlap_problems(model: Architecture, table: DeploymentTable) -> Iterator[Problem]:
    if not table.overlaps[0]:
        return
    if not (has_experts(model) and table.exchanges[0]):
        fact = "hides the messages between ranks of experts, and there are none"
        more = ", or ranks by `--dp` and `--ep`" if has_experts(model) else ""
        yield Problem(
            where="--overlap", value="two-batch", fact=fact, remedy=f"write `--overlap none`{more}"
        )
    elif table.batch[0] < 2:
        fact = "needs two requests a rank to take turns"
        remedy = "write `--batch 2` or more, or `--overlap none`"
        yield Problem(where="--overlap", value="two-batch", fact=fact, remedy=remedy)


def traffic_problems(traffic: Traffic) -> Iterator[Problem]:
    """Lengths of which nothing can be said, and what is without effect on them."""
    n_input, block, n_shared = (
        traffic.n_input_tokens,
        traffic.n_block_tokens,
        traffic.n_shared_tokens,
    )
    if traffic.n_output_tokens < 2:
        value, fact = (
            f"{traffic.n_output_tokens:.0f}",
            "is the prompt's own token, so that no pass decodes",
        )
        remedy = "write `--output 2`; its TTFT is the same"
        yield Problem(where="--output", value=value, fact=fact, remedy=remedy)
    common_fraction = traffic.n_common_tokens / n_input
    if n_shared > n_input:
        fact, remedy = "is more than a request reads", f"write at most `--shared {n_input:.0f}`"
        yield Problem(where="--shared", value=f"{n_shared:.0f}", fact=fact, remedy=remedy)
    elif n_shared and not common_fraction:
        fact = f"has no whole block of {block} tokens before the last token of a prompt"
        remedy = f"write `--shared {block}` or more, of a longer prompt; or leave it out"
        yield Problem(where="--shared", value=f"{n_shared:.0f}", fact=fact, remedy=remedy)
    if 0.0 < traffic.hit_fraction <= common_fraction:
        fact = f"is no more than the {common_fraction:.3g} that `--shared` lets each request find"
        value, remedy = f"{traffic.hit_fraction:g}", "leave it out, or say what is found in all"
        yield Problem(where="--hit-rate", value=value, fact=fact, remedy=remedy)
    if traffic.is_fetching:
        yield from _offload_problems(traffic)


def _offload_problems(traffic: Traffic) -> Iterator[Problem]:
    """Caches that nobody could fetch."""
    where = Problem(where="--kv-offload", value=traffic.offload, fact="")
    if traffic.n_hit_tokens <= traffic.n_common_tokens:
        fact = "holds what requests find beyond what they share, and that is nothing"
        yield replace(where, fact=fact, remedy="say how much: `--hit-rate 70%`")
    if traffic.host_bytes_per_s is None:
        fact = "is fetched over links to the host, of which the device's file says nothing"
        remedy = "take `h100-sxm` or `h200`, or write `[host]` with its `bandwidth` in a file"
        yield replace(where, fact=fact, remedy=remedy)
    if traffic.role != TOGETHER or traffic.n_waves:
        fact = "is of replicas that do both phases, in a loop without waves"
        yield replace(where, fact=fact, remedy="leave it out")


def _part_problems(table: DeploymentTable, traffic: Traffic) -> Iterator[Problem]:
    """What a worker of one phase has nothing to do with, and requests that lack samples."""
    if traffic.role == DECODE and traffic.hit_fraction:
        value, fact = f"{traffic.hit_fraction:g}", "is of prompts, and none is read"
        yield Problem(where="--hit-rate", value=value, fact=fact, remedy="leave it out")
    if traffic.role == PREFILL and traffic.n_samples > 1:
        value, fact = str(traffic.n_samples), "are of answers, and none is written"
        yield Problem(where="--samples", value=value, fact=fact, remedy="leave it out")
    n, batch = traffic.n_sequences, int(table.batch[0])
    if batch % n:
        fact = f"counts sequences, and a request has {n} samples"
        near = sorted({max(n, batch // n * n), (batch // n + 1) * n})
        remedy = "write " + " or ".join(f"`--batch {size}`" for size in near)
        yield Problem(where="--batch", value=str(batch), fact=fact, remedy=remedy)
