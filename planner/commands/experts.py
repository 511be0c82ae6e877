"""`plan experts`, `plan stages`, `plan layers`: models divided over unequal ranks and devices."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from planner.commands.options.said import Said
from planner.commands.reporting import reported
from planner.report.files import Answer
from planner.specs.ask.stages import ExpertWeights
from planner.specs.files.engines import load_engine
from planner.specs.files.layer_files import load_layers
from planner.specs.files.reading import load_architecture
from planner.specs.options.readers import OF_THE_MODEL
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.devices import FORMAT_BYTES, Workload
from planner.specs.records.served_formats import as_published

if TYPE_CHECKING:
    from planner.equations.arrays import FloatArray


def experts(said: Said) -> Answer:
    """Experts on ranks: least load of the fullest, with its bound."""
    from planner_workshop.experts.loads import load_coactivation, load_placement
    from planner_workshop.experts.placing import place_experts

    model = said.load("--model", load_architecture)
    block, n_layers = _experts_of(model, said)
    if said.groups == OF_THE_MODEL and said.model is None:
        fact, remedy = "no model is named", "write `--groups 8`, or name a `--model`"
        said.refuse("--groups", fact, remedy)
    loads = _loads(said, block)
    pairs = said.load("--coactivation", load_coactivation)
    present = said.load("--present", load_placement)
    weights = _weights(said, model, block)
    n_slots = _slots(said, weights.n_bytes, n_layers)
    n_groups = said.groups or 0
    if said.groups == OF_THE_MODEL:
        n_groups = block.n_groups if block and block.n_groups > 1 else 0
    said.check()
    assert loads is not None
    plan = place_experts(
        **said.sets()
        | said.sets("SolverOptions")
        | {"loads": loads, "n_slots": n_slots, "n_groups": n_groups}
        | {"present": present, "coactivation": pairs, "weights": weights},
    )
    return reported(said, plan, is_whole=said.all)


def _experts_of(model: Architecture | None, said: Said) -> tuple[Experts | None, int | None]:
    """The experts of a model's layers, and how many layers have them."""
    if model is None:
        return None, None
    blocks = [layer.ffn for layer in model.layers if isinstance(layer.ffn, Experts)]
    if not blocks:
        said.refuse("--model", "has no experts", value=model.name)
        return None, None
    return blocks[0], sum(isinstance(model.layers[i].ffn, Experts) for i in model.order)


def _loads(said: Said, block: Experts | None) -> FloatArray | None:
    """Loads of a file, or drawn ones."""
    from planner_workshop.experts.loads import load_loads, zipf_loads

    both, remedy = "cannot go with `--zipf`", "name a file, or draw loads with `--zipf 1.0`"
    if not said.need_one("--loads", "--zipf", both=both, remedy=remedy):
        return None
    n_experts = said.experts or (block.n_experts if block else None)
    if said.loads is None:
        if n_experts is None and not said.is_given("--experts"):
            remedy = "write how many there are, or name a `--model`"
            said.refuse("--experts", "is not given", remedy)
        if n_experts is None or said.zipf is None:
            return None
        return zipf_loads(n_experts, said.zipf, seed=said.seed)
    loads = said.load("--loads", partial(load_loads, layer=said.layer))
    if loads is not None and n_experts not in (None, len(loads)):
        said.refuse("--loads", f"has {len(loads)} loads for {n_experts} experts")
    return loads


def _weights(said: Said, model: Architecture | None, block: Experts | None) -> ExpertWeights:
    source = said.loads or f"drawn by Zipf's law, exponent {said.text('--zipf')}, seed {said.seed}"
    if said.layer is not None and said.loads is not None:
        source += f", layer {said.layer}"
    name = said.weights or (as_published(model)[0] if model else "bf16")
    if model is None or block is None:
        return ExpertWeights(source=source)
    n_bytes = block.expert_params(model.d_model) * FORMAT_BYTES.get(name, 0.0)
    return ExpertWeights(model=model.name, n_bytes=n_bytes, source=source)


def _slots(said: Said, n_bytes: float | None, n_layers: int | None) -> int | None:
    """Slots of a rank, as many as its memory has room for."""
    slots: int | None = said.slots
    if said.memory is None or not n_bytes or n_layers is None:  # what is missing is said
        return slots
    room = int(said.memory // (n_bytes * n_layers))
    if room < 1 or (slots is not None and slots > room):
        fact = f"has room for {room} experts of {n_layers} layers, {n_bytes / 1e6:.3g} MB each"
        remedy = f"write `--slots {room}`" if room else "take more memory or fewer bytes"
        said.refuse("--memory", fact, remedy)
    return slots or room


def stages(said: Said) -> Answer:
    """A model cut into pipeline stages."""
    from planner_workshop.staging.asking import cut_stages, read_groups

    model = said.load("--model", load_architecture)
    engine = said.load("--engine", load_engine)
    groups = engine and said.load("--groups", partial(read_groups, engine=engine))
    said.check()
    assert model is not None
    assert groups is not None
    options = said.sets() | said.sets("SolverOptions") | {"groups": groups}
    best = cut_stages(model, **options, workload=Workload(**said.sets("Workload")))
    return reported(said, best)


def layers(said: Said) -> Answer:
    """Layers placed on mixed machines."""
    from planner_workshop.staging.placing import place_layers

    spec = said.load("--machines", load_layers)
    said.check()
    assert spec is not None
    best = place_layers(spec, **said.sets("SolverOptions"))
    return reported(said, best)
