"""Records as files would say them: what no file could say is refused where a record is used."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace

import pytest

from planner import RequestError, load_architecture, load_cluster, load_model, plan
from planner.specs.ask.checking import (
    architecture_problems,
    cluster_problems,
    model_problems,
)
from planner.specs.files.listing import list_files
from planner.specs.files.places import Kind
from planner.specs.records.devices import NodesFabric

MODELS = tuple(one.name for one in list_files(Kind.MODEL))
CLUSTERS = tuple((one.examples or (one.name,))[0] for one in list_files(Kind.CLUSTER))
MODEL, POOL = load_model("deepseek-v3"), load_cluster("h100-nvl8-x1")
ALTERED = (0, -1, math.nan, math.inf, 1e30)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_that_ships_is_what_its_file_says(name):
    model = load_model(name)
    assert model_problems(model, "model") == []
    assert list(architecture_problems(load_architecture(name), "model")) == []


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_cluster_that_ships_is_what_its_file_says(name):
    cluster = load_cluster(name)
    assert cluster_problems(cluster, "cluster") == []


def altered(record, *names):
    """Records with one number altered, however deep, and the way to it."""
    for field in fields(record):
        value = getattr(record, field.name)
        way = (*names, field.name)
        if is_dataclass(value):
            for inner, path, new in altered(value, *way):
                yield replace(record, **{field.name: inner}), path, new
        elif isinstance(value, int | float) and not isinstance(value, bool):
            for new in ALTERED:
                yield replace(record, **{field.name: new}), way, new


SPARE = {
    *("n_shared_experts", "n_dense_layers", "n_encoder_params"),
    *("reserve_bytes", "layer_overhead_s"),
    *("scale_up_latency_s", "scale_out_latency_s"),
}
"""Numbers that may be 0."""

NOT_READ = {"n_params_published", "n_active_params_published"}
"""Of a record, beyond their sign: the shape says how many there are."""

WRONG = [
    *(("model", *one) for one in altered(MODEL) if one[1][-1] not in NOT_READ),
    *(("cluster", *one) for one in altered(POOL)),
]
WRONG = [one for one in WRONG if not (one[3] == 0 and one[2][-1] in SPARE)]


@pytest.mark.parametrize(
    ("argument", "record", "way", "new"), WRONG, ids=[f"{'.'.join(w)}={n}" for _, _, w, n in WRONG]
)
def test_a_number_that_cannot_be_is_refused_by_its_name(argument, record, way, new):
    with pytest.raises(RequestError) as caught:
        plan(**{"model": MODEL, "cluster": POOL, argument: record})
    told = " ".join(map(str, caught.value.problems))
    assert way[-1] in told or (way[-1] == "usd_per_hour" and "--price" in told)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"block": "round"}, "block"),
        ({"n_kv_heads": 7}, "n_kv_heads"),
        ({"weights_formats": ()}, "weights_formats"),
        ({"weights_formats": ("bf17",)}, "weights_formats"),
        ({"n_ffn_matrices": 5}, "n_ffn_matrices"),
        ({"quality_losses": {"int8": 2.0}}, "quality_losses.int8"),
        ({"moe": replace(MODEL.moe, n_active_experts=300)}, "moe.n_active_experts"),
        ({"mla": replace(MODEL.mla, d_rope=1)}, "d_head"),
    ],
)
def test_what_does_not_fit_together_is_refused_as_a_file_is(changed, key):
    with pytest.raises(RequestError) as caught:
        plan(replace(MODEL, **changed), POOL)
    assert key in " ".join(map(str, caught.value.problems))


def test_a_network_that_cannot_be_is_refused():
    assert isinstance(POOL.fabric, NodesFabric)
    odd = replace(POOL, fabric=replace(POOL.fabric, activation_network="flat"))
    with pytest.raises(RequestError, match=r"nodes\.activation_network"):
        plan(MODEL, odd)


def test_classes_of_layers_that_do_not_fit_are_refused():
    model = load_architecture("llama-3.1-8b")
    (layers,) = model.layers
    odd = replace(
        model,
        order=(*model.order[:-1], 7),
        layers=(replace(layers, mixer=replace(layers.mixer, n_kv_heads=5)),),
    )
    with pytest.raises(RequestError) as caught:
        plan(odd, POOL, "vllm")
    told = [(one.where, one.key) for one in caught.value.problems]
    assert told == [
        ("model", "order[31]"),
        ("model", "layers[0].n_layers"),
        ("model", "layers[0].mixer.n_heads"),
    ]
