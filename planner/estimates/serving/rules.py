"""Which deployments an engine starts: its rules as masks on arrays, evaluated once for all uses.

Every search, audit and refusal asks here. A rule of which some quantity is not known yet is left
out: `degrees` asks of cuts alone, and what follows of the rest.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.serving.deployments import DeploymentTable, has_experts
from planner.estimates.serving.traffic import Drafts
from planner.specs.files.engines import CUTS, load_rules
from planner.specs.records.architecture import Architecture, Experts, FeedForward
from planner.specs.records.devices import DeviceSpec
from planner.specs.records.engine_rules import LAYER, EngineRule, parsed
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.records.served_formats import STATIC, ServedFormats

Values = Mapping[str, Any]
"""Quantities by name: a number or a word that all deployments have, or an array of them (N,)."""

OF_PASSES = ("sequences", "chunk")
"""Quantities that deployments of one cut differ in: what names none is asked of each cut once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What else deployments have in common.

    Args:
        formats: as they are loaded.
        drafter, n_drafted: what drafts, and how many tokens at once; empty and 0 without.
    """

    role: str
    formats: ServedFormats
    drafter: str = ""
    n_drafted: int = 0

    @classmethod
    def of(cls, role: str, formats: ServedFormats, drafts: Drafts | None) -> Run:
        """With what is drafted, if anything is."""
        if drafts is None or not drafts.n_drafted:
            return cls(role=role, formats=formats)
        return cls(role=role, formats=formats, drafter=drafts.kind, n_drafted=drafts.n_drafted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What engines ask of, as far as it is known.

    Args:
        n_per_node: devices of a node.
        run: None where only cuts are asked of.
        chunks: that each deployment is asked of in the place of its own (C, 1).
    """

    rules: tuple[EngineRule, ...]
    device: DeviceSpec | None = None
    n_per_node: int | None = None
    run: Run | None = None
    chunks: FloatArray | None = None


def cut_rules() -> Context:
    """The rules of equal parts, for whatever engine."""
    return Context(rules=_cut_rules())


@lru_cache(maxsize=1)
def _cut_rules() -> tuple[EngineRule, ...]:
    return load_rules(CUTS).rules


def faults(
    model: Architecture, table: DeploymentTable, ground: Context | None = None
) -> dict[str, BoolArray]:
    """Which rule each deployment breaks, by the words that say so; none where all are False.

    Args:
        ground: the engine's rules; those of equal parts alone where it is left out.
    """
    degrees = (table.n_tensor, table.n_data, table.n_stages, table.n_expert_parallel)
    masks: dict[str, BoolArray] = {
        "a degree is below one": np.any([n < 1 for n in (*degrees, table.n_expert_tensor)], axis=0),
        "the batch is below one": table.batch < 1,
        "more stages than layers": table.n_stages > model.n_layers,
    }
    if has_experts(model):
        group = table.n_expert_parallel * table.n_expert_tensor
        key = "expert groups times their cuts are not the devices of a stage"
        masks[key] = group != table.n_experts_group
    return masks | {one.says: hit for one, hit in broken(ground or cut_rules(), model, table)}


def is_valid(
    model: Architecture, table: DeploymentTable, ground: Context | None = None
) -> BoolArray:
    """Deployments that break no rule, (N,)."""
    hits = np.any(list(faults(model, table, ground).values()), axis=0)
    return np.asarray(~hits, dtype=bool)


def broken(
    ground: Context, model: Architecture, table: DeploymentTable, *, beyond: Context | None = None
) -> Iterator[tuple[EngineRule, BoolArray]]:
    """Each rule of which all quantities are known, and the deployments that break it, (N,).

    Args:
        beyond: what was asked already; its rules are left out.
    """
    heads, row = table.cut_runs()
    values, of_cuts = (_quantities(ground, model, one) for one in (table, table.take(heads)))
    needed = set(_quantities(beyond, model, table)) | set(LAYER) if beyond else None
    for rule in (it for it in ground.rules if not (it.is_of_one_pool and table.has_pools)):
        names = rule.names
        if not names - set(LAYER) <= values.keys() or (needed is not None and names <= needed):
            continue
        if names.isdisjoint(OF_PASSES):
            yield rule, _of_layers(rule, model, of_cuts, len(heads))[row]
        else:
            yield rule, _of_layers(rule, model, values, len(row))


def _of_layers(rule: EngineRule, model: Architecture, values: Values, n: int) -> BoolArray:
    """What breaks a rule on any layer that has what it names."""
    named = rule.names & set(LAYER)
    hit = np.zeros(n, dtype=np.bool_)
    for layer in _layers(model) if named else ({},):
        if named <= layer.keys():
            hit = hit | _breaks(rule, {**values, **layer})
    return hit


def breaks_alone(
    ground: Context, model: Architecture, table: DeploymentTable
) -> dict[str, BoolArray]:
    """Of each rule that is the engine's own, by name: deployments that break it and nothing else.

    Rules of equal parts are none of these: what breaks them nobody can time.
    """
    hits = faults(model, table, ground)
    is_alone = np.sum(list(hits.values()), axis=0) == 1
    own = [one for one in ground.rules if one.says in hits and one not in cut_rules().rules]
    return {one.name: hits[one.says] & is_alone for one in own}


def starts(
    ground: Context, model: Architecture, table: DeploymentTable, *, beyond: Context | None = None
) -> BoolArray:
    """Deployments that break none of the rules, (N,)."""
    is_started = np.ones(len(table), dtype=np.bool_)
    for _, hit in broken(ground, model, table, beyond=beyond):
        is_started = is_started & ~hit
    return is_started


def pairs_start(
    rules: Sequence[EngineRule], model: Architecture, prefill: Values, decode: Values
) -> BoolArray:
    """Which replicas may hand caches over to which, (P, D).

    Args:
        prefill, decode: degrees by name, (P,) and (D,) each.
    """
    values = _of_model(model)
    values |= {f"prefill_{name}": np.asarray(n)[:, None] for name, n in prefill.items()}
    values |= {f"decode_{name}": np.asarray(n)[None, :] for name, n in decode.items()}
    mask = np.ones((len(prefill["tp"]), len(decode["tp"])), dtype=np.bool_)
    for rule in rules:
        if rule.is_of_pairs and rule.names <= values.keys():
            mask &= ~_breaks(rule, values)
    return mask


def _quantities(ground: Context, model: Architecture, table: DeploymentTable) -> dict[str, Any]:
    values = _of_model(model) | {
        "tp": table.n_tensor,
        "dp": table.n_data,
        "pp": table.n_stages,
        "ep": table.n_expert_parallel,
        "etp": table.n_expert_tensor,
        "redundant": table.n_redundant,
        "group": table.n_group,
        "world": table.n_devices,
        "exchanges": table.exchanges,
    }
    if ground.n_per_node is not None:
        nodes = -(-table.n_devices // ground.n_per_node)
        values |= {"per_node": ground.n_per_node, "nodes": nodes}
    if ground.device is not None:
        values |= {"device": ground.device.name, "multiplies": tuple(ground.device.peak_flop_per_s)}
    if (run := ground.run) is not None:
        chunks = table.chunk_tokens if ground.chunks is None else ground.chunks
        values |= {"sequences": table.batch, "chunk": chunks, "overlaps": table.overlaps}
        values |= {"role": run.role, "drafter": run.drafter, "drafted": run.n_drafted}
        values["weights"] = run.formats.weights.removesuffix(STATIC)
        values["experts_format"] = run.formats.experts.removesuffix(STATIC)
        values["cache"] = run.formats.cache
    return values


def _of_model(model: Architecture) -> dict[str, Any]:
    mixers = [layer.mixer for layer in model.layers]
    return {
        "family": model.family,
        "layers": model.n_layers,
        "vocabulary": model.vocab_size,
        "mixture": has_experts(model),
        "latent": any(isinstance(one, LatentAttention) for one in mixers),
        "window": any(isinstance(one, GroupedAttention) and one.span != "all" for one in mixers),
        "state": any(isinstance(one, Recurrence) for one in mixers),
    }


def _layers(model: Architecture) -> list[dict[str, int]]:
    """Quantities of each part of a layer, each once."""
    layers: dict[object, dict[str, int]] = {}
    for layer in model.layers:
        if layer.mixer is not None:
            layers[layer.mixer] = {"heads": layer.mixer.n_heads}
            if isinstance(layer.mixer, GroupedAttention):
                layers[layer.mixer]["kv_heads"] = layer.mixer.n_kv_heads
        if isinstance(layer.ffn, FeedForward):
            layers[layer.ffn] = {"width": layer.ffn.d_ff}
        elif isinstance(layer.ffn, Experts):
            experts = {"experts": layer.ffn.n_experts, "expert_width": layer.ffn.d_expert}
            layers[layer.ffn] = experts
    return list({tuple(one.items()): one for one in layers.values()}.values())


def _breaks(rule: EngineRule, values: Values) -> Any:  # noqa: ANN401 a scalar or (N,)
    when = _value(parsed(rule.when), values)
    if when is False:
        return False
    return np.logical_and(when, np.logical_not(_value(parsed(rule.require), values)))


_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // np.maximum(b, 1),
    ast.Mod: lambda a, b: a % np.maximum(b, 1),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b if isinstance(a, str) else np.isin(a, b),
    ast.NotIn: lambda a, b: a not in b if isinstance(a, str) else ~np.isin(a, b),
}


def _value(node: ast.expr, values: Values) -> Any:  # noqa: ANN401 a scalar or (N,)
    """A condition's value, with arrays as numpy broadcasts them."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.Tuple | ast.List):
        return [_value(one, values) for one in node.elts]
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, values)
        return not value if isinstance(value, bool) else np.logical_not(value)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.BoolOp):
        return _joined(node, values)
    assert isinstance(node, ast.Compare)
    return _compared(node, values)


def _compared(node: ast.Compare, values: Values) -> Any:  # noqa: ANN401 a scalar or (N,)
    """`a < b <= c`: each end with the next."""
    ends = [_value(one, values) for one in (node.left, *node.comparators)]
    links = zip(node.ops, ends[:-1], ends[1:], strict=True)
    return reduce(np.logical_and, [_OPERATORS[type(link)](a, b) for link, a, b in links])


def _joined(node: ast.BoolOp, values: Values) -> Any:  # noqa: ANN401 a scalar or (N,)
    """`and` and `or`; what a scalar decides is not looked at further."""
    is_or = isinstance(node.op, ast.Or)
    value: Any = not is_or
    for part in node.values:
        operand = _value(part, values)
        if isinstance(operand, bool) and operand is is_or:
            return is_or
        value = np.logical_or(value, operand) if is_or else np.logical_and(value, operand)
    return bool(value) if np.ndim(value) == 0 else value
