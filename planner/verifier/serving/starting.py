"""Whether an engine starts a deployment: its rules on one at a time, in plain numbers."""

import ast
from collections.abc import Callable, Iterator, Mapping
from operator import add, floordiv, ge, gt, le, lt, mod, mul, sub

from planner.results.engines import EngineDeployment
from planner.specs.ask.engine import PredictionRequest
from planner.specs.records.architecture import Architecture, Experts, FeedForward
from planner.specs.records.devices import ClusterSpec, NodesFabric
from planner.specs.records.engine_rules import EngineRule, parsed
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.findings import Finding
from planner.verifier.serving.kernels import STATIC
from planner.verifier.serving.ranks import has_experts, usual_copies

Value = int | str | tuple[object, ...]
Values = Mapping[str, Value]


Deployed = EngineDeployment | PredictionRequest
"""What was chosen of a deployment."""


def unstartable(
    engine: EngineSpec,
    model: Architecture,
    cluster: ClusterSpec,
    says: Deployed,
    *,
    loaded: ServedFormats,
    overlaps: bool,
    balances: bool = False,
) -> Iterator[Finding]:
    """Rules of an engine that a deployment breaks, and what no engine could start.

    Args:
        cluster: with as many devices to a node as the deployment may have there.
        loaded: formats of what is loaded.
        balances: whether copies of experts have to be as many as the engine's users give them.
    """
    group = says.n_tensor * says.n_data
    if says.n_stages > len(model.order):
        fact = f"are more than the {len(model.order)} layers"
        yield Finding(path=("n_stages",), says=says.n_stages, fact=fact)
    is_mixture = has_experts(model)
    holding = says.n_expert_devices or group
    if is_mixture and says.n_expert_parallel * says.n_expert_tensor != holding:
        fact = f"times {says.n_expert_parallel} are not the {holding} devices of a stage"
        yield Finding(path=("n_expert_tensor",), says=says.n_expert_tensor, fact=fact)
    values = _of_deployment(says, has_experts=is_mixture, overlaps=overlaps) | _of_model(model)
    if isinstance(fabric := cluster.fabric, NodesFabric):
        per_node = fabric.n_devices_per_node
        values |= {"per_node": per_node, "nodes": -(-group * says.n_stages // per_node)}
    values |= {
        "device": cluster.device.name,
        "multiplies": tuple(cluster.device.peak_flop_per_s),
        "weights": loaded.weights.removesuffix(STATIC),
        "experts_format": loaded.experts.removesuffix(STATIC),
        "cache": loaded.cache,
    }
    for rule in _rules_of(engine, says):
        if _breaks(rule, values, model):
            yield Finding(path=("n_tensor",), says=says.n_tensor, fact=f"{rule.words}")
    yield from _miscounted(engine, model, says, values) if balances else ()


def _rules_of(engine: EngineSpec, says: Deployed) -> Iterator[EngineRule]:
    """Rules that one replica is asked by: how one pool is cut, says nothing of two."""
    for rule in engine.rules:
        if not (rule.is_of_pairs or (rule.is_of_one_pool and says.n_expert_devices)):
            yield rule


def _miscounted(
    engine: EngineSpec, model: Architecture, says: Deployed, values: Values
) -> Iterator[Finding]:
    usual = usual_copies(engine, model, says.n_expert_parallel)
    copied = {**values, "redundant": usual}
    rules = (it for it in _rules_of(engine, says) if "redundant" in it.names)
    if any(_breaks(one, copied, model) for one in rules):
        usual = 0
    if says.n_redundant_experts != usual:
        path, fact = ("redundant_experts", "n_redundant"), f"are not the {usual} of its users"
        yield Finding(path=path, says=says.n_redundant_experts, fact=fact)


def _breaks(rule: EngineRule, values: Values, model: Architecture) -> bool:
    """Whether a rule does not hold: of any layer that has all quantities of layers it names."""
    for layer in _layers(model):
        known = {**values, **layer}
        if all(name in known for name in rule.names):
            try:
                if _holds(rule.when, known) and not _holds(rule.require, known):
                    return True
            except TypeError:  # a word against a number
                return True
    return False


def unpaired(
    engine: EngineSpec, model: Architecture, prefill: Deployed, decode: Deployed
) -> Iterator[str]:
    """Rules that two replicas break, of which one hands caches over to the other."""
    values = _of_model(model)
    values |= {
        f"{role}_{name}": value
        for role, deployment in (("prefill", prefill), ("decode", decode))
        for name, value in (
            ("tp", deployment.n_tensor),
            ("dp", deployment.n_data),
            ("pp", deployment.n_stages),
        )
    }
    for rule in engine.rules:
        if rule.is_of_pairs and _breaks(rule, values, model):
            yield rule.words


def _of_deployment(says: Deployed, *, has_experts: bool, overlaps: bool) -> dict[str, Value]:
    group = says.n_tensor * says.n_data
    return {
        "tp": says.n_tensor,
        "dp": says.n_data,
        "pp": says.n_stages,
        "ep": says.n_expert_parallel,
        "etp": says.n_expert_tensor,
        "redundant": says.n_redundant_experts,
        "group": group,
        "world": group * says.n_stages,
        "exchanges": has_experts and says.n_data > 1 and says.n_expert_parallel > 1,
        "sequences": says.batch,
        "chunk": says.chunk_tokens,
        "overlaps": overlaps,
        "drafter": says.drafter if says.n_drafted else "",
        "drafted": says.n_drafted,
        "role": says.role,
    }


def _of_model(model: Architecture) -> dict[str, Value]:
    mixers = [layer.mixer for layer in model.layers]
    return {
        "family": model.family,
        "layers": len(model.order),
        "vocabulary": model.vocab_size,
        "mixture": any(isinstance(layer.ffn, Experts) for layer in model.layers),
        "latent": any(isinstance(one, LatentAttention) for one in mixers),
        "window": any(getattr(one, "span", "all") != "all" for one in mixers),
        "state": any(isinstance(one, Recurrence) for one in mixers),
    }


def _layers(model: Architecture) -> Iterator[dict[str, Value]]:
    """Quantities of parts of layers; none of them first, of which rules of no layer are asked."""
    yield {}
    for layer in model.layers:
        mixer, ffn = layer.mixer, layer.ffn
        if isinstance(mixer, GroupedAttention):
            yield {"heads": mixer.n_heads, "kv_heads": mixer.n_kv_heads}
        elif mixer is not None:
            yield {"heads": mixer.n_heads}
        if isinstance(ffn, FeedForward):
            yield {"width": ffn.d_ff}
        elif ffn is not None:
            yield {"experts": ffn.n_experts, "expert_width": ffn.d_expert}


def _holds(condition: str, values: Values) -> bool:
    return bool(_counted(parsed(condition), values))


def _counted(node: ast.expr, values: Values) -> object:
    """What a part of a condition comes to."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return tuple(_counted(one, values) for one in elts)
        case ast.UnaryOp(operand=operand):
            return not _counted(operand, values)
        case ast.BoolOp(op=sign, values=parts):
            decides = any if isinstance(sign, ast.Or) else all
            return decides(_counted(one, values) for one in parts)
        case ast.BinOp(left=left, op=sign, right=right):
            return _sum(sign, _number(_counted(left, values)), _number(_counted(right, values)))
    assert isinstance(node, ast.Compare)
    ends = [_counted(one, values) for one in (node.left, *node.comparators)]
    return all(map(_compared, node.ops, ends[:-1], ends[1:]))


def _number(value: object) -> int:
    if not isinstance(value, int | float):
        raise TypeError("is no number")
    return int(value)


_Joins = Mapping[type[ast.operator], Callable[[int, int], int]]
_Orders = Mapping[type[ast.cmpop], Callable[[int, int], bool]]
_SUMS: _Joins = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv, ast.Mod: mod}
_ORDERS: _Orders = {ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge}


def _sum(sign: ast.operator, value: int, other: int) -> int:
    """Two numbers joined; nothing is divided by less than one."""
    divides = isinstance(sign, ast.FloorDiv | ast.Mod)
    return _SUMS[type(sign)](value, max(other, 1) if divides else other)


def _compared(sign: ast.cmpop, value: object, other: object) -> bool:
    match sign:
        case ast.Eq():
            return value == other
        case ast.NotEq():
            return value != other
        case ast.In():
            return isinstance(other, tuple) and value in other
        case ast.NotIn():
            return not (isinstance(other, tuple) and value in other)
    return _ORDERS[type(sign)](_number(value), _number(other))
