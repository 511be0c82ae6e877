"""One pass of [Erdil2025] at one batch, counted by hand: seconds, and bytes of a device.

Plain numbers and loops, written from the paper's equations and the rules of division; it
shares records with the arrays that choices are found in, and no arithmetic.

Source: [Erdil2025] Eqs. 20-46 and the published program.
"""

from math import ceil, inf, log2, sqrt

from planner.results.erdil2025 import PassCount, Split
from planner.specs.records.economics import (
    DecodePass,
    EconomicsDevice,
    EconomicsModel,
    RingCollectives,
)


def count_pass(decode: DecodePass, way: Split, batch: int) -> PassCount:
    """Time of one pass of `batch` requests, in the faster shape."""
    model, device = decode.model, decode.device
    n_layers = ceil(model.n_layers / way.n_stages) * way.n_stages
    n_tokens = ceil(batch / way.n_stages) * decode.n_scored_tokens
    token_bytes = n_tokens * model.d_model * model.activation_bytes
    per_device = token_bytes / way.n_tensor
    spread = min(model.n_active_experts, way.n_expert)
    nodes = ceil(spread / device.n_devices_per_node)
    experts = 2 * n_layers * _collective(device, 1, per_device * spread, spread, nodes)
    stages = (way.n_stages - 1) * _collective(device, 1, per_device, 2, 2)
    (attention, attention_shape), (ffn, ffn_shape) = _tensor_network(decode, way, n_tokens)
    return PassCount(
        launch_s=4 * n_layers * device.kernel_launch_s,
        attention_network_s=n_layers * attention,
        ffn_network_s=n_layers * ffn,
        expert_network_s=experts,
        pipeline_network_s=stages,
        memory_s=_memory_s(decode, way, batch, n_layers),
        compute_s=_compute_s(decode, way, batch, n_layers),
        attention_shape=attention_shape,
        ffn_shape=ffn_shape,
    )


Timed = tuple[float, str]


def _tensor_network(decode: DecodePass, way: Split, n_tokens: float) -> tuple[Timed, Timed]:
    """All-reduces of one layer around attention and FFN, both in one dimension or both in two."""
    model = decode.model
    n_active, ranks = model.n_active_experts, way.n_tensor // way.n_expert
    inner = n_active * model.n_ffn_in * model.d_ff
    outer = n_active * model.n_ffn_out * model.d_model
    sides = (
        (way.n_attention, way.n_attention, model.n_heads, model.d_qkv, model.d_model),
        (ranks, way.n_tensor, ranks, inner, outer),
    )
    x = n_tokens * model.activation_bytes
    line = tuple(_line(decode.device, n, group, out * x) for n, group, _, _, out in sides)
    grid = tuple(
        _grid(decode, n, (model.d_model, cut), (into * x / group, out * x / group))
        for n, group, cut, into, out in sides
    )
    first, two = line[0][0] + line[1][0], grid[0][0] + grid[1][0]
    chosen = grid if two < first else line
    return chosen[0], chosen[1]


def _line(device: EconomicsDevice, n_ranks: int, n_group: int, n_bytes: float) -> Timed:
    nodes = ceil(n_ranks / device.n_devices_per_node)
    share = n_bytes * n_ranks / n_group
    return _collective(device, 2, share, n_ranks, nodes), "1D"


def _grid(
    decode: DecodePass, n_ranks: int, cuts: tuple[float, float], n_bytes: tuple[float, float]
) -> Timed:
    """The fastest of the squarest grids; `n_bytes` of both products are those of one device."""
    n_nodes = ceil(n_ranks / decode.device.n_devices_per_node)
    grids = [
        (r, n_ranks // r)
        for r in _divisors(n_ranks)
        if cuts[0] % r == 0 and cuts[1] % (n_ranks // r) == 0
    ]
    squarest = min(map(max, grids), default=0)
    best: Timed = (inf, "")
    for r, c in (grid for grid in grids if max(grid) == squarest):
        for down in _divisors(n_nodes):
            across = n_nodes // down
            if r % down == 0 and c % across == 0:
                first = _collective(decode.device, 2, n_bytes[0] * r, r, down)
                second = _collective(decode.device, 2, n_bytes[1] * c, c, across)
                best = min(best, (first + second, f"2D {r}×{c}" if n_ranks > 1 else "1D"))
    return best


def _divisors(n: int) -> list[int]:
    return [divisor for divisor in range(1, n + 1) if n % divisor == 0]


def _collective(
    device: EconomicsDevice, n_phases: int, n_bytes: float, n_ranks: int, n_nodes: int
) -> float:
    """Two phases are an all-reduce; one phase is anything else, and moves half as much."""
    if n_ranks <= 1:
        return 0.0
    tree, half = device.collectives, n_phases / 2
    out = device.scale_out_all_reduce_bytes_per_s
    if isinstance(tree, RingCollectives):
        moved = n_bytes * (n_ranks - 1) / n_ranks / out
        return n_phases * (n_ranks - 1) * tree.hop_s + half * moved
    up = device.scale_up_all_reduce_bytes_per_s
    tiers = (
        max(n_ranks - n_nodes, 0) / n_ranks * n_bytes / up,
        (n_nodes - 1) / n_ranks * n_bytes / out,
    )
    moved = half * (max(tiers) if tree.tiers_overlap else sum(tiers))
    return min(
        n_phases * (n_ranks / n_nodes - 1) * protocol.scale_up_hop_s
        + n_phases * log2(n_nodes) * protocol.scale_out_hop_s
        + protocol.base_s
        + moved / protocol.bandwidth_fraction
        for protocol in tree.protocols
    )


def _unevenness(model: EconomicsModel, way: Split) -> float:
    """The fullest device's columns of an expert and its experts, over even shares of both."""
    ranks = way.n_tensor // way.n_expert
    columns = ceil(model.d_ff / ranks) / (model.d_ff / ranks)
    return columns * (ceil(model.n_experts / way.n_expert) / (model.n_experts / way.n_expert))


def _product_bytes(
    model: EconomicsModel, shape: tuple[float, float], n_tokens: float, n_ranks: float
) -> float:
    """Weight, inputs and outputs of one product over all its ranks."""
    m, k = shape
    t_1 = max(1.0, min(sqrt(n_ranks * m / k), n_ranks))
    moved = (t_1 * k + n_ranks / t_1 * m) * n_tokens
    return m * k * model.weight_bytes + moved * model.activation_bytes


def _memory_s(decode: DecodePass, way: Split, batch: int, n_layers: int) -> float:
    """Every stage reads its weights and caches for every micro-batch."""
    model = decode.model
    micro = ceil(batch / way.n_stages)
    n_tokens = micro * decode.n_scored_tokens
    heads = model.n_heads * model.d_head
    cached = 2 * model.n_heads / model.n_heads_per_group * model.d_head
    wide = heads + cached
    if model.latent is None:
        projections = [(wide, model.d_model), (model.d_model, heads)]
    else:
        cached, low = model.latent.d_kv, model.latent.d_kv + model.latent.d_query
        projections = [(low, model.d_model), (wide, low), (model.d_model, heads)]
    attention = sum(
        _product_bytes(model, shape, n_tokens, way.n_attention) for shape in projections
    )
    s = model.n_experts // model.n_active_experts
    touched: float = 1 - pow(1 - 1 / s, n_tokens)
    matrix = _product_bytes(
        model, (model.d_model, model.d_ff), n_tokens / s, way.n_tensor // way.n_expert
    )
    ffn = touched * model.n_experts * (model.n_ffn_in + model.n_ffn_out) * matrix
    shared = cached * model.activation_bytes * decode.n_context_tokens * micro
    shared += _unevenness(model, way) * ffn
    read = n_layers * (shared / way.n_tensor + attention / way.n_attention)
    read += model.weight_bytes * model.vocab_size * model.d_model / way.n_tensor
    return read / (decode.device.peak_hbm_bytes_per_s * decode.device.hbm_fraction)


def _compute_s(decode: DecodePass, way: Split, batch: int, n_layers: int) -> float:
    """A multiply-add for each active parameter and token, and the scores."""
    model = decode.model
    n_tokens = ceil(batch / way.n_stages) * way.n_stages * decode.n_scored_tokens
    s = model.n_experts // model.n_active_experts
    experts = n_layers * model.n_experts * model.n_ffn_matrices * model.d_model * model.d_ff
    width = model.latent.d_kv if model.latent else model.d_head
    scores = 4 * width * model.n_heads * n_layers * decode.n_context_tokens
    rest = 2 * n_layers * _attention_params(model) + 4 * model.vocab_size * model.d_model
    rest += 2 * (experts // s) - 2 * experts / s  # the paper rounds active experts down
    everywhere = (2 * _unevenness(model, way) * experts / s + scores) / way.n_devices
    attention_only = rest / (way.n_attention * way.n_stages)
    rate = decode.device.peak_flop_per_s[8 * model.weight_bytes] * decode.device.compute_fraction
    return n_tokens * (everywhere + attention_only) / rate


def _attention_params(model: EconomicsModel) -> float:
    heads = model.n_heads * model.d_head
    pairs = 2 * model.n_heads / model.n_heads_per_group * model.d_head
    if model.latent is None:
        return (2 * heads + pairs) * model.d_model
    low, query = model.latent.d_kv, model.latent.d_query
    down = (2 * low + query + heads) * model.d_model
    return down + pairs * low + heads * query


def count_bytes(
    model: EconomicsModel, way: Split, batch: int, *, n_cached_tokens: float, rule: str
) -> tuple[float, float]:
    """Weights and caches on the busiest device; see `memory.held` for the rules [bytes]."""
    cached = 2 * model.n_heads / model.n_heads_per_group * model.d_head
    per_token = (model.latent.d_kv if model.latent else cached) * model.activation_bytes
    matrices = model.n_experts * model.n_ffn_matrices * model.d_model * model.d_ff
    embedding = model.vocab_size * model.d_model
    if rule == "one-microbatch":
        weights = model.n_layers * (_attention_params(model) + matrices) + 2 * embedding
        n_cached = ceil(batch / way.n_stages) * n_cached_tokens
        caches = model.n_layers * per_token * n_cached
        return weights * model.weight_bytes / way.n_devices, caches / way.n_devices
    n_layers = ceil(model.n_layers / way.n_stages)
    layer = _attention_params(model) / way.n_attention
    layer += matrices * _unevenness(model, way) / way.n_tensor
    ends = embedding * (2 if way.n_stages == 1 else 1) / way.n_tensor
    weights = (n_layers * layer + ends) * model.weight_bytes
    return weights, n_layers * per_token * batch * n_cached_tokens / way.n_tensor
