"""The referee by hand, so that it and the array code are not wrong together."""

from __future__ import annotations

from dataclasses import replace

from planner.specs.records.devices import DeviceSpec, ModelSpec
from planner.specs.records.shapes import MlaShape, MoeShape, WindowShape
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.shapes import Layout, ScalarMesh
from planner.verifier.scalar.times import step_time
from tests.verifier.drawn import fabric_like

TINY = ModelSpec(
    name="tiny",
    title="",
    n_layers=2,
    d_model=10,
    d_ff=20,
    n_heads=2,
    n_heads_served=2,
    n_kv_heads=1,
    d_head=5,
    vocab_size=100,
    n_ffn_matrices=2,
    block="parallel",
    tied_embeddings=True,
    n_params_published=1.0,
    weights_formats=("bf16",),
    kv_format="bf16",
    activation_format="bf16",
)
UNIT = DeviceSpec(
    name="unit",
    title="",
    peak_flop_per_s={"bf16": 1.0},
    hbm_bytes=1e9,
    hbm_bytes_per_s=1.0,
    reserve_bytes=0.0,
    usd_per_hour=1.0,
    price_date="",
    compute_fraction=1.0,
    hbm_fraction=1.0,
    layer_overhead_s=1.0,
    roofline_exponent=1.0,
)


def ring_of(n_devices: int, n_stages: int = 1) -> ScalarMesh:
    return ScalarMesh(
        axes=(n_devices, 1, 1),
        wraps=(n_devices > 2, False, False),
        is_switch=False,
        axis_bytes_per_s=(10.0, 10.0, 10.0),
        axis_hop_s=(0.5, 0.5, 0.5),
        n_stages=n_stages,
        stage_bytes_per_s=10.0,
        stage_hop_s=0.5,
    )


def tiny_step(
    mesh: ScalarMesh, model: ModelSpec = TINY, *, device: DeviceSpec = UNIT, n_new: int = 1, **more
):
    """Batch 4 at context 6, weights cut along F and heads, attention over heads."""
    choice = {"n_microbatches": 1, "weights_format": "bf16", **more}
    layout = Layout(model=model, mesh=mesh, stored=0, gathered=0, attention="heads", **choice)
    fabric = fabric_like("ring", "ring")
    return step_time(layout, device, fabric, batch=4, n_new_tokens=n_new, n_context_tokens=6)


def tiny_bytes(mesh: ScalarMesh, model: ModelSpec = TINY, *, n_found_tokens: int = 0, **more):
    """Batch 4, of which 7 tokens each are kept."""
    layout = Layout(
        model=model,
        mesh=mesh,
        stored=0,
        gathered=0,
        attention="heads",
        n_microbatches=1,
        weights_format="bf16",
        **more,
    )
    work = {"batch": 4, "n_new_tokens": 1, "n_cached_tokens": 7}
    return held_bytes(layout, n_found_tokens=n_found_tokens, **work)


def test_one_device_by_hand():
    """P = 2·10·20 + 2·10·10 + 2·10·5 = 700 a layer, V E = 1000.

    Compute 2·4·(2·700 + 1000) = 19200 FLOP; weights (1400 + 1000)·2 = 4800 bytes; attention
    2 layers · max(4·10·6·4 = 960 FLOP, 4·6·2·5·2 = 480 bytes) = 1920; two layers' overhead.
    """
    time = tiny_step(ring_of(1))
    assert (time.compute_s, time.weights_s, time.attention_s) == (19200, 4800, 1920)
    assert (time.network_s, time.overhead_s) == (0, 2)
    assert time.total_s == 19200 + 4800 + 1920 + 2


def test_four_devices_in_a_ring_by_hand():
    """WS 1D: gather and scatter 4·10 numbers = 80 bytes each, 60 cross two links of 10: 3 s.

    The one KV head is shared by four: 4·2·5·2 = 80 bytes, 60 cross: 3 s. Of two query heads
    each is shared by two: 4·10/2·2 = 40 bytes, 20 cross: 1 s. So 10 s a layer, two layers.
    Four messages of two hops of half a second, and a second's overhead: 5 s a layer. Two
    devices work on each query head: 960/2 FLOP, beside 480 bytes of KV.
    """
    time = tiny_step(ring_of(4))
    assert (time.compute_s, time.weights_s, time.attention_s) == (4800, 1200, 960)
    assert (time.network_s, time.overhead_s) == (20, 10)


def test_two_stages_by_hand():
    """One layer a stage, two sequences a part: 2 + 2 − 1 = 3 beats.

    Compute 2·2·(700 + 1000) = 6800, weights 3400, attention 480; 2·10·2 = 40 bytes are handed
    over at 10 bytes/s after half a second: 4.5 s.
    """
    time = tiny_step(ring_of(1, n_stages=2), n_microbatches=2)
    assert (time.compute_s, time.weights_s, time.attention_s) == (3 * 6800, 3 * 3400, 3 * 480)
    assert (time.network_s, time.overhead_s) == (13.5, 3)


def test_bytes_by_hand():
    """Four devices: (1400 + 1000)·2/4 of weights; KV of 4·7 tokens·2 layers·20 bytes, copied.

    Activations of 4 tokens: 2·10/4 at rest, 10 gathered, (20 + 20)/4 hidden, 2 bytes each.
    """
    held = tiny_bytes(ring_of(4))
    assert (held.weights_bytes, held.kv_bytes) == (1200, 1120)
    assert (held.activation_bytes, held.gather_bytes) == (4 * (5 + 10 + 10) * 2, 0)


EXPERTS = replace(
    TINY,
    moe=MoeShape(n_experts=4, n_active_experts=2, n_shared_experts=1, d_expert=3, n_dense_layers=1),
)


def test_experts_behind_tensor_parallel_attention_by_hand():
    """One layer as above: 700 parameters, ten seconds of network. One with experts of 2·10·3.

    Attention, router and shared expert: 300 + 40 + 60 = 400. Compute 2·4·(700 + 400 + 1000)/4
    = 4200; each of four experts has two visits: 2·2·60 = 240. Read (700 + 400 + 1000)/4 and of
    one expert 1 − (1/2)⁴: 56.25; of two bytes. Two rounds of 6 s and copies of 4 s, beside the
    10 s: 26 s. Ten messages of a second, beside two seconds' overhead.
    """
    time = tiny_step(ring_of(4), EXPERTS)
    assert (time.compute_s, time.weights_s, time.attention_s) == (4440, 1162.5, 960)
    assert (time.network_s, time.overhead_s) == (26, 12)


def test_experts_behind_data_parallel_attention_by_hand():
    """A sequence each: 2·(700 + 400 + 1000) + 240 FLOP, 700 + 400 + 250 + 56.25 are read.

    Logits of four sequences are cut four ways. A token goes to two devices: 2·10 numbers are 40
    bytes, ten for each device. Round the ring they take 1 + 1 hops on links of 10: 2 s there
    and 2 s back, each after two hops of half a second. Nothing else is sent.
    """
    time = tiny_step(ring_of(4), EXPERTS, data=1)
    assert (time.compute_s, time.weights_s, time.attention_s) == (4440, 2812.5, 480)
    assert (time.network_s, time.overhead_s) == (4, 4)


def test_slices_of_experts_by_hand():
    """Four experts on 2×4 devices: four ways and two slices, so a token goes to 2·2 devices.

    Of four sequences a device has one at most: 4·10 numbers, 80 bytes, of which the pair of
    the short axis exchanges 40 over a link of 10 in 4 s; the ring of the long axis takes
    2·20/10 = 4 s beside it. A ring of eight has no four devices to share out whole experts:
    every device has a slice of all, and eight copies take (1 + 2 + 3 + 4/2)·20/10 = 16 s.

    Half of an expert is read, or all of an eighth of four: 700 + 400 + 125, and 56.25 of each 60.
    """
    grid = replace(ring_of(8), axes=(2, 4, 1), wraps=(False, True, False))
    shared_out, sliced = (tiny_step(mesh, EXPERTS, data=7) for mesh in (grid, ring_of(8)))
    assert (shared_out.network_s, sliced.network_s) == (2 * 4, 2 * 16)
    assert shared_out.weights_s == sliced.weights_s == 2 * (1225 + 56.25 / 2)


def test_bytes_of_experts_by_hand():
    """Tensor parallel (700 + 400)/4 + 60 + 250; data parallel 700 + 400 + 60 + 250: copies.

    The cache of a sequence each, 7·2·20, against all of it.
    """
    cut, copied = (tiny_bytes(ring_of(4), EXPERTS, data=data) for data in (0, 1))
    assert (cut.weights_bytes, cut.kv_bytes) == (2 * 585, 1120)
    assert (copied.weights_bytes, copied.kv_bytes) == (2 * 1410, 280)


def test_latent_attention_by_hand():
    """Queries 10·10, down 10·(4 + 1), up 4·2·(4 + 3), out 2·3·10: 266, with the FFN 666.

    A pair costs a head 2·(5 + 4) FLOP on latents: 36·6·4 = 864, beside 4·6·5·2 bytes. Where
    keys and values are made, all six tokens being new, 2·(5 + 3): 32·6·6·4 = 4608.
    """
    mla = MlaShape(d_kv_latent=4, d_q_latent=None, d_rope=1, d_nope=4, d_value=3)
    model = replace(TINY, mla=mla, n_kv_heads=2)
    decode, prefill = (tiny_step(ring_of(1), model, n_new=n_new) for n_new in (1, 6))
    assert decode.weights_s == 2 * (2 * 666 + 1000)
    assert (decode.attention_s, prefill.attention_s) == (2 * 864, 2 * 4608)
    assert tiny_bytes(ring_of(1), model).kv_bytes == 4 * 7 * 2 * 5 * 2


def test_a_window_by_hand():
    """One of two layers meets two of six tokens, 960/3 FLOP, and keeps two of seven."""
    model = replace(TINY, window=WindowShape(n_tokens=2, n_layers=1))
    assert tiny_step(ring_of(1), model).attention_s == 960 + 320
    assert tiny_bytes(ring_of(1), model).kv_bytes == 4 * (7 + 2) * 20


def test_what_a_phase_writes_by_hand():
    """Of seven tokens five were there: two are new, but none to a window of two."""
    assert tiny_bytes(ring_of(1)).written_bytes == 4 * (7 + 7) * 20
    assert tiny_bytes(ring_of(1), n_found_tokens=5).written_bytes == 4 * (2 + 2) * 20
    windowed = replace(TINY, window=WindowShape(n_tokens=2, n_layers=1))
    assert tiny_bytes(ring_of(1), windowed, n_found_tokens=5).written_bytes == 4 * 2 * 20


def test_formats_by_hand():
    """Twice the FLOP/s in int8, and half the bytes; fp8 is not multiplied, nor is attention."""
    device = replace(UNIT, peak_flop_per_s={"bf16": 1.0, "int8": 2.0})
    int8, fp8 = (
        tiny_step(ring_of(1), device=device, weights_format=name) for name in ("int8", "fp8")
    )
    assert (int8.compute_s, int8.weights_s, int8.attention_s) == (9600, 2400, 1920)
    assert (fp8.compute_s, fp8.weights_s, fp8.attention_s) == (19200, 2400, 1920)
    assert tiny_bytes(ring_of(1), kv_format="fp8").kv_bytes == 560


def test_whole_heads_by_hand():
    """Two heads among three devices: one has none, two have one, none two thirds."""
    assert tiny_step(ring_of(3)).attention_s == 960
    eight = replace(TINY, n_heads=8, n_heads_served=8, n_kv_heads=8)
    assert tiny_bytes(ring_of(3), eight).kv_bytes == 4 * 7 * 2 * 3 * (2 * 5 * 2)
