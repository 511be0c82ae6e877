"""Models and passes that the claims of [Lecture] are about, by the planner's own account."""

from __future__ import annotations

from dataclasses import replace

from planner.estimates.kernel_files import kernel_table
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.memory import Holding, holding
from planner.specs.files.engines import load_engine
from planner.specs.files.reading import load_cluster, load_device
from planner.specs.records.architecture import Architecture, FeedForward, LayerClass
from planner.specs.records.mixers import GroupedAttention, Mixer
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.serving.feeding import feeding_runs
from planner.verifier.serving.kernels import Kernels, Run
from planner.verifier.serving.mixers import Tokens, mixing_runs
from planner.verifier.serving.passes import pass_of
from planner.verifier.serving.ranks import Links, Rank

BF16 = ServedFormats(weights="bf16", experts="bf16", cache="bf16")
H100 = load_device("h100-sxm")
VLLM = load_engine("vllm")

ATTENTION = GroupedAttention(n_heads=40, n_kv_heads=40, d_head=128, d_value_head=128)
MLP = FeedForward(d_ff=13824, n_matrices=3)
LAYERS = 40


def llama_13b(*mixers: Mixer) -> Architecture:
    """Llama 2 13B, or one like it whose mixers repeat over the layers; all have one weight."""
    kinds = mixers or (ATTENTION,)
    order = tuple(i % len(kinds) for i in range(LAYERS))
    layers = tuple(
        LayerClass(
            name=f"kind {i}",
            n_layers=order.count(i),
            mixer=mixer,
            ffn=MLP,
            n_norm_params=2 * 5120,
        )
        for i, mixer in enumerate(kinds)
    )
    return Architecture(
        name="llama-2-13b",
        title="Llama 2 13B",
        d_model=5120,
        vocab_size=32000,
        tied_embeddings=False,
        layers=layers,
        order=order,
        published_weights=("bf16",),
        activation_format="bf16",
        n_other_params=5120,
        n_params_published=13_015_864_320,
    )


def with_kv_heads(n_kv_heads: int) -> Architecture:
    return llama_13b(replace(ATTENTION, n_kv_heads=n_kv_heads))


def table(batch=1.0, formats=BF16) -> DeploymentTable:
    """One device each."""
    return deployments(formats=formats, batch=batch)


def rank(model: Architecture, formats=BF16) -> Rank:
    """One H100 under vLLM that serves a model by itself."""
    return Rank(
        model=model,
        formats=formats,
        kernels=Kernels(H100, kernel_table(H100.name, VLLM.name), VLLM),
        links=Links(load_cluster("h100-nvl8-x1").fabric),
        n_small_kernels=3,
        n_tensor=1,
    )


def decoding(batch, context, n_positions=1.0) -> Tokens:
    return Tokens(decoding=float(batch), context=float(context), positions=n_positions)


def reading(prompts, n_tokens) -> Tokens:
    return Tokens(prompts=float(prompts), read=float(n_tokens))


def mlp(work: Tokens, ffn=MLP, formats=BF16) -> list[tuple[int, Run]]:
    """Products and activation of one FFN on one device."""
    found = feeding_runs(ffn, rank(llama_13b(), formats), work)
    return [(1, run) for run in found if not run.family.startswith("all_")]


def attention(work: Tokens, mixer=ATTENTION) -> list[tuple[int, Run]]:
    """Attention itself, without its projections."""
    found = mixing_runs(mixer, 5120, 1, work, BF16)
    return [(1, run) for run in found if run.family.endswith("_attention")]


def flop(operations) -> float:
    return sum(n * run.flop for n, run in operations)


def moved_bytes(operations) -> float:
    return sum(n * run.hbm_bytes for n, run in operations)


def intensity(operations) -> float:
    """FLOP for each byte of memory."""
    return flop(operations) / moved_bytes(operations)


def whole_pass(model: Architecture, work: Tokens) -> list[tuple[int, Run]]:
    found = pass_of(rank(model), work, overlaps=False, message_share=0.0)
    return [(n, spent.run) for _, n, spent in found.spent]


def held(model: Architecture, n_tokens, *, batch=1.0, n_shared_tokens=0.0) -> Holding:
    """Memory of one H100 under vLLM."""
    return holding(
        model,
        table(batch),
        BF16,
        VLLM,
        hbm_bytes=H100.hbm_bytes,
        n_tokens=n_tokens,
        n_shared_tokens=n_shared_tokens,
    )
