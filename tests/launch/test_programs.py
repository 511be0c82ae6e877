"""Programs of layouts: they compile, say the layout, and run as it has them.

`pytest -m jax tests/launch` runs ten of them on eight devices of a CPU: what they answer is that
of one device, and of a decoder without any of it; what their layers send is what the plan counts.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from planner.commands.cli import main
from planner.errors import RequestError
from planner.planning.plans import plan
from planner.report.launch.programs import obstacles_of, order_of, program_of
from planner.results.audits import LayoutPrediction
from planner.results.deployments import Division
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec, Workload
from planner.verifier.layouts.predictions import layout_prediction

N_DEVICES, N_INPUT, N_OUTPUT = 8, 8, 4
HEADS = {"palm-62b": (16, 1), "llama-3.1-70b": (16, 4), "mt-nlg-530b": (8, 8), "qwen3-8b": (4, 2)}
"""Query heads and KV heads of each model, as small as it is served here."""

LAYOUTS = {
    "WS 1D over heads": ("palm-62b", "E F_xyz", "", "heads", 2, "", "heads", 8),
    "WS 1D over batch": ("palm-62b", "E F_xyz", "", "batch", 8, "", "batch", 16),
    "WS 2D over batch": ("palm-62b", "E_x F_yz", "", "batch", 8, "", "batch", 8),
    "WS 2D over heads, and WG XYZ": ("palm-62b", "E_x F_yz", "xyz", "batch", 8, "", "heads", 8),
    "WG X, and a batch that fills half": ("palm-62b", "E F_xyz", "x", "heads", 4, "", "batch", 4),
    "heads that devices share": ("llama-3.1-70b", "E_xy F_z", "", "heads", 1, "", "heads", 4),
    "WG XY, and WS 2D over batch": ("llama-3.1-70b", "E_x F_yz", "yz", "heads", 4, "", "batch", 8),
    "WG XYZ, and WG X": ("llama-3.1-70b", "E_x F_yz", "xyz", "batch", 8, "x", "batch", 8),
    "a plain FFN": ("mt-nlg-530b", "E_x F_yz", "x", "heads", 2, "", "batch", 16),
    "heads that devices of half an axis share": (
        *("llama-3.1-70b", "E F_yz", "", "heads", 2, "", "heads", 4, "tpu-v5e-2x4"),
    ),
    "fewer query heads than devices": ("qwen3-8b", "E_x F_yz", "", "heads", 2, "z", "heads", 4),
}
"""Model, weights at rest; of each phase what is gathered, what attention cuts, sequences; and the
pool, where it is no cube of eight devices."""


def small(name: str) -> ModelSpec:
    n_heads, n_kv_heads = HEADS[name]
    shape = {"n_layers": 2, "d_model": 64, "d_ff": 96, "d_head": 8, "vocab_size": 48}
    heads = {"n_heads": n_heads, "n_heads_served": n_heads, "n_kv_heads": n_kv_heads}
    return replace(load_model(name), **shape, **heads)


@cache
def planned(name: str, pool: str = "tpu-v4-2x2x2") -> Any:
    """Any plan of a small model on all devices of a pool."""
    return plan(
        small(name),
        load_cluster(pool),
        "roofline",
        workload=Workload(n_input_tokens=N_INPUT, n_output_tokens=N_OUTPUT),
        targets=Targets(degrees=Degrees(tensor=N_DEVICES)),
        weights_formats=("bf16",),
        batches=(8,),
        prefill_batches=(8,),
        objective="throughput",
    )


def laid_out(name: str, storage: str, *phases: Any) -> LayoutPrediction:
    """A plan with another layout, its messages counted anew."""
    answer = planned(name, *phases[6:])
    names, best = ("gathered_axes", "attention", "batch"), answer.deployment
    each = [dict(zip(names, it, strict=True)) for it in (phases[:3], phases[3:6])]
    best = replace(
        best,
        storage=storage,
        prefill=replace(best.prefill, **each[0]),
        decode=replace(best.decode, **each[1]),
    )
    return layout_prediction(replace(answer, deployment=best))


def text_of(answer: LayoutPrediction) -> str:
    return program_of(answer, "plan")[0]["model.py"]


def module_of(text: str) -> Any:
    """A program, in 32 bits."""
    import jax.numpy as jnp

    module = types.ModuleType("model")
    exec(compile(text, "model.py", "exec"), module.__dict__)
    module.WEIGHTS = module.CACHE = module.ACTIVATIONS = jnp.float32
    return module


_COLLECTIVE = re.compile(r"= (.*?) (all-gather|reduce-scatter|all-to-all|all-reduce)(?:-start)?\(")
_SHAPE = re.compile(r"f32\[([\d,]*)\]")


def received(hlo: str) -> Counter[str]:
    """Numbers that a device takes in, by the kind of collective, as compiled."""
    counts: Counter[str] = Counter()
    for line in hlo.splitlines():
        if not (told := _COLLECTIVE.search(line)):
            continue
        shapes, kind = _SHAPE.findall(told[1]), told[2]
        n = sum(math.prod(map(int, filter(None, it.split(",")))) for it in shapes)
        group = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
        iota = re.search(r"replica_groups=\[\d+,(\d+)\]", line)
        k = len(group[1].split(",")) if group else int(iota[1])
        shares = {"reduce-scatter": k - 1.0, "all-reduce": 2 - 2 / k}
        counts[kind] += round(n * shares.get(kind, 1 - 1 / k))
    return counts


def sent_by_layer(module: Any, mesh: Any, phase: Any, n_tokens: int) -> Counter[str]:
    """Of one layer of a compiled phase."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    sizes = module.SIZES._replace(layers=1)

    def like(shape: Any, spec: Any) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    stream = like((phase.batch, n_tokens, sizes.e), phase.residual)
    weights = {k: like((1, *it), module.SPECS[k]) for k, it in module.shapes(sizes).items()}
    held = module.empty_cache(mesh, phase, sizes)
    start = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, PartitionSpec()))
    lowered = jax.jit(module.layers(mesh, phase, sizes)).lower(
        stream, weights, like(held.shape, phase.cache), start
    )
    return received(lowered.compile().as_text())


def counted(traffic: Any, model: ModelSpec) -> Counter[str]:
    """Numbers of one layer, as planned in 16 bits; weights are gathered by all-gathers."""
    counts: Counter[str] = Counter()
    for row in traffic:
        n = row.received_bytes / FORMAT_BYTES["bf16"] / model.n_layers
        counts[row.kind.replace("weight-gather", "all-gather")] += round(n)
    return counts


def norms(module: Any, phase: Any, n_tokens: int, model: ModelSpec) -> Counter[str]:
    """What the plan does not count: of each norm a number a token, summed where E is cut."""
    k = math.prod(module.MESH[it] for it in phase.e)
    n_cut = math.prod(module.MESH[it] for it in phase.gathered)
    n_norms = 1 if model.is_parallel else 2
    n = round(n_norms * phase.batch // n_cut * n_tokens * (2 - 2 / k))
    return Counter({"all-reduce": n} if n else {})


@pytest.fixture(scope="module")
def devices():
    """Eight devices of a CPU, of a process that has not used JAX before."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_num_cpu_devices", N_DEVICES)
    return jax.devices("cpu")


def generated(module: Any, mesh: Any, n_steps: int = 3) -> np.ndarray:
    """Logits of each step; compiled in half the time, what is counted is not."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    try:
        return np.asarray(module.generate(mesh, module.SIZES, n_steps))
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.jax
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_runs_as_planned(name, devices):
    answer = laid_out(*LAYOUTS[name])
    model, module = answer.plan.request.model, module_of(text_of(answer))
    mesh = module.mesh_on(devices)
    assert mesh.size == N_DEVICES
    for phase, sent, n_tokens in (
        (module.PREFILL, answer.prefill_traffic, N_INPUT),
        (module.DECODE, answer.decode_traffic, 1),
    ):
        assert counted(sent, model), name
        beside = norms(module, phase, n_tokens, model)
        assert sent_by_layer(module, mesh, phase, n_tokens) == counted(sent, model) + beside
    sharded, alone = (generated(module, module.mesh_on(it)) for it in (devices, devices[:1]))
    np.testing.assert_allclose(sharded, alone, rtol=1e-4, atol=1e-4)


def rms(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5)


def turned(x: np.ndarray) -> np.ndarray:
    """Rotary positions of (tokens, heads, numbers), as products of complex numbers."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None] / 10_000.0 ** (np.arange(half) / half)
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)[:, None]
    return np.concatenate([z.real, z.imag], -1)


def decoder(model: ModelSpec, weights: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """Logits of the last of one sequence's tokens, without cache, mesh or batch."""
    x = weights["embedding"][tokens]
    n, n_kv_heads = len(tokens), model.n_kv_heads

    def times(i: int, x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[name][i] / math.sqrt(x.shape[-1])

    def attended(i: int, h: np.ndarray) -> np.ndarray:
        heads = (
            times(i, h, it).reshape(n, -1, model.d_head) for it in ("queries", "keys", "values")
        )
        q, k, v = heads
        q, k = (rms(q), rms(k)) if model.norms_heads else (q, k)
        q, k = turned(q), turned(k)
        y = np.empty_like(q)
        for head in range(q.shape[1]):
            own = head * n_kv_heads // q.shape[1]
            scores = q[:, head] @ k[:, own].T / math.sqrt(model.d_head)
            scores[np.triu_indices(n, 1)] = -np.inf
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            y[:, head] = shares / shares.sum(-1, keepdims=True) @ v[:, own]
        return times(i, y.reshape(n, -1), "attended")

    def fed(i: int, h: np.ndarray) -> np.ndarray:
        gate = times(i, h, "gate")
        return times(i, gate / (1 + np.exp(-gate)) * times(i, h, "up"), "down")

    for i in range(model.n_layers):
        if model.is_parallel:
            x = x + attended(i, rms(x)) + fed(i, rms(x))
        else:
            x = x + attended(i, rms(x))
            x = x + fed(i, rms(x))
    return rms(x)[-1] @ weights["embedding" if model.tied_embeddings else "logits"].T


@pytest.mark.jax
@pytest.mark.parametrize("name", ["palm-62b", "llama-3.1-70b", "qwen3-8b"])
def test_what_is_generated_is_what_a_plain_decoder_generates(name, devices):
    import jax

    answer = laid_out(name, "E_x F_yz", "", "heads", 4, "", "batch", 8)
    model, module = answer.plan.request.model, module_of(text_of(answer))
    mesh = module.mesh_on(devices)
    made = generated(module, mesh, 2)
    weights = {
        k: np.asarray(it, np.float64) for k, it in module.random_weights(mesh, module.SIZES).items()
    }
    prompts = jax.random.randint(jax.random.key(1), (2, 4, N_INPUT), 0, model.vocab_size)
    for sequence in (0, 5):
        tokens = [*np.asarray(prompts).reshape(8, N_INPUT)[sequence]]
        for logits in made[:, sequence]:
            expected = decoder(model, weights, np.array(tokens))
            np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
            tokens.append(expected.argmax())


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_program_compiles_and_states_its_layout(name):
    answer = laid_out(*LAYOUTS[name])
    text, best = text_of(answer), answer.plan.deployment
    compile(text, "model.py", "exec")
    assert f"Weights rest as {best.storage}." in text
    assert f"prefill: {best.prefill.layout}, attention over {best.prefill.attention}" in text
    assert f"decode: {best.decode.layout}, attention over {best.decode.attention}" in text
    for row in (*answer.prefill_traffic, *answer.decode_traffic):
        assert re.search(rf"{row.kind} +over {row.axes} +{row.received_bytes:.0f} B", text)


ON = "--topology tpu-v4-4x4x4 --engine roofline --emit jax {out}"
REFUSED = {
    "experts": (f"predict --model mixtral-8x7b --batch 8 {ON}", "it has experts: plan a dense"),
    "a pipeline": (
        "predict --model llama-3.1-70b --topology h100-nvl8-x2 --engine roofline --pp 2 --batch 8 "
        "--emit jax {out}",
        "it has a pipeline of 2 stages",
    ),
    "a format of weights": (
        f"predict --model llama-3.1-70b --weights int4 --batch 8 {ON}",
        "it has weights in int4: plan a dense model",
    ),
    "a draft": (
        f"--model llama-3.1-70b --draft llama-3.1-8b --acceptance 80% --batch 8 {ON}",
        "it has a draft",
    ),
    "an engine": (
        "predict --model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --emit jax {out}",
        "it has no layout of one model on a roofline",
    ),
    "layouts for a shell": (
        "predict --model palm-8b --topology tpu-v4-2x2x2 --batch 8 --emit shell {out}",
        "or of layouts write `--emit jax {out}`",
    ),
}


def run(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(words.split())
    out = capsys.readouterr()
    return code, " ".join(f"{out.out} {out.err}".split())


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_program_says_is_refused_with_what_one_can(name, tmp_path, capsys):
    out = tmp_path / "out"
    words, fact = REFUSED[name]
    code, said = run(words.format(out=out), capsys)
    assert code == 2
    assert fact.format(out=out) in said
    assert not out.exists()


def test_axes_that_no_order_serves_are_refused():
    """Attention cuts two sequences over x, which cuts F, and heads over yz, which cut E."""
    answer = laid_out("qwen3-8b", "E_yz F_x", "", "batch", 2, "", "batch", 8)
    assert order_of(answer.plan.deployment) == ""
    with pytest.raises(RequestError, match="no order of axes serves both"):
        program_of(answer, "plan")


def test_all_that_a_layout_has_and_no_program_says_is_told_at_once():
    answer = laid_out("llama-3.1-70b", "E F_xyz", "", "heads", 8, "", "heads", 8)
    request, best = answer.plan.request, answer.plan.deployment
    assert obstacles_of(request, best) == []
    uneven = Division(things="KV heads", n_things=4, n_parts=6)
    best = replace(best, kv_format="int4", decode=replace(best.decode, divisions=(uneven,)))
    odd = replace(request, model=replace(request.model, d_ff=100))
    assert obstacles_of(odd, best) == [
        "a KV cache in int4",
        "4 KV heads, dealt to 6",
        "an FFN dimension of 100, which 8 do not divide",
    ]


WRITTEN = {
    "a plan on a torus": ("--model palm-62b --topology tpu-v4-4x4x4 --engine roofline", 8),
    "a prediction on a node": (
        "predict --model llama-3.1-70b --topology h100-nvl8-x1 --engine roofline --tp 8 --batch 16 "
        "--layout prefill=WGX,decode=WS2D",
        8,
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_command_writes_a_program_and_a_receipt(name, tmp_path, capsys):
    words, n_devices = WRITTEN[name]
    code, said = run(f"{words} --emit jax {tmp_path / 'out'}", capsys)
    assert code == 0
    assert f"model.py on a mesh of {n_devices} devices, as planned" in said
    names = {"model.py", "receipt.md", "receipt.json"}
    assert {it.name for it in (tmp_path / "out").iterdir()} == names
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    assert receipt["gpus"] == {"files": n_devices, "plan": n_devices}
    compile((tmp_path / "out" / "model.py").read_text(), "model.py", "exec")
