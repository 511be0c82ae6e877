"""Whether an engine starts a deployment: its rules on one at a time, in plain numbers.

Rules of an engine's record are held against the files that ship, which are read here once more.
"""

import ast
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from operator import add, floordiv, ge, gt, le, lt, mod, mul, sub
from pathlib import Path
from typing import Any

from planner.results.engines import EngineDeployment
from planner.specs.ask.engine import PredictionRequest
from planner.specs.files.places import shipped_file
from planner.specs.files.texts import toml_of
from planner.specs.records.architecture import Architecture, Experts, FeedForward
from planner.specs.records.devices import ClusterSpec, NodesFabric
from planner.specs.records.engine_rules import EngineRule, parsed
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.findings import Finding, differences
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


def altered_rules(engine: EngineSpec, at_hand: Collection[str] = ()) -> Iterator[Finding]:
    """Where the rules of a record are not those that ship, nor changed by a user's file it names.

    Args:
        at_hand: paths of files that are here as they were; of a user's file that is not among
            them it is believed what the record says.
    """
    file = _table(f"engines/{engine.name}.toml")
    if not file:
        return  # an engine of the user's, who says what it starts
    shipped = [_table(f"engines/rules/{name}.toml") for name in file["engine"]["rules"]]
    version = next(it["rules"]["version"] for it in shipped[::-1] if "version" in it["rules"])
    lifted, own = _changes_of(engine, at_hand)
    copies = {f"n_{key}": one["value"] for key, one in file.get("experts", {}).items()}
    yield from differences(
        engine, replace(engine, started_version=version, lifted=lifted, **copies)
    )
    rules = {one.name: one for table in shipped for one in _rules_in(table)}
    rules = {name: one for name, one in rules.items() if name not in lifted}
    yield from _other_rules(engine, rules | {one.name: one for one in own}, version)


def _changes_of(
    engine: EngineSpec, at_hand: Collection[str]
) -> tuple[tuple[str, ...], list[EngineRule]]:
    """Names of rules that a user's file lifts, and the rules that it adds."""
    if engine.rules_file in at_hand:
        table = tomllib.loads(Path(engine.rules_file).read_text(encoding="utf-8"))
        lifted = tuple(table.get("rules", {}).get("lift", ()))
        return lifted, list(_rules_in(table, engine.rules_file))
    own = [one for one in engine.rules if one.origin and one.origin == engine.rules_file]
    return engine.lifted if engine.rules_file else (), own


def _other_rules(
    engine: EngineSpec, rules: Mapping[str, EngineRule], version: str
) -> Iterator[Finding]:
    """Rules that a record has and should not, or lacks, or has otherwise."""
    if lacking := sorted(rules.keys() - {one.name for one in engine.rules}):
        fact = f"lack {', '.join(f'`{name}`' for name in lacking)}, which nobody lifts"
        yield Finding(path=("rules",), says=len(engine.rules), fact=fact)
    for i, rule in enumerate(engine.rules):
        if rule.name in rules:
            yield from differences(rule, rules[rule.name], ("rules", str(i)))
        else:
            fact = f"is no rule of {engine.title} {version}, nor of a file that adds it"
            yield Finding(path=("rules", str(i), "name"), says=rule.name, fact=fact)


def _table(name: str) -> dict[str, Any]:
    """A file that ships; nothing of one that does not."""
    path = shipped_file(name)
    return toml_of(path.read_text(encoding="utf-8")) if path else {}


def _rules_in(table: Mapping[str, Any], origin: str = "") -> Iterator[EngineRule]:
    for one in table.get("rule", ()):
        plain = {key: " ".join(one.get(key, "").split()) for key in ("when", "require")}
        yield EngineRule(**{**one, **plain}, origin=origin)
