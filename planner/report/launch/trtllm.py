"""How TensorRT-LLM is started: `trtllm-serve`, and YAML for what has no flag."""

from collections.abc import Mapping

from planner.report.launch.words import (
    Started,
    checkpoint,
    command,
    decimal,
    drafting,
    fetched,
    made,
)
from planner.results.predictions import Launch
from planner.specs.records.roles import PREFILL, TOGETHER

FILE = "trtllm.yaml"
"""What is written where keys have no flag; nodes of one server have to see it."""

CACHES: Mapping[str, str] = {"bf16": "auto", "fp16": "auto"}
"""`--kv_cache_dtype` by format. It has no word for 16 bits: `auto` is what the checkpoint says."""


def launch(started: Started) -> Launch:
    """`trtllm-serve`: batch and chunk are of one rank; experts' devices are those of a stage.

    Ranks of a model without experts share nothing, and are servers of their own.
    """
    model, variables = checkpoint(started, casts=False)
    drafter, drafts = drafting(started)
    n_servers = 1 if started.has_experts else started.n_data
    n_ranks = started.n_data // n_servers
    n_devices = started.n_tensor * n_ranks * started.n_stages
    n_nodes = started.n_nodes_of(n_devices)
    options: dict[str, object] = {
        "--tp_size": started.n_tensor * n_ranks,
        "--pp_size": started.n_stages if started.n_stages > 1 else None,
        "--ep_size": started.n_expert_parallel if started.n_expert_parallel > 1 else None,
        "--gpus_per_node": n_devices // n_nodes if n_nodes > 1 else None,
        "--enable_attention_dp": n_ranks > 1,
        "--kv_cache_dtype": None if _says_cache(started) else started.cache_word(CACHES),
        "--max_batch_size": started.batch,
        "--max_num_tokens": started.chunk_tokens,
        "--enable_chunked_prefill": True,
        "--max_seq_len": started.n_tokens,
        "--free_gpu_memory_fraction": decimal(started.memory_fraction),
    }
    yaml = _yaml(started, drafter)
    words = ["trtllm-serve", model]
    if n_nodes > 1:
        words = [*_ranks(n_nodes, n_devices), "trtllm-llmapi-launch", *words]
    line = command(words, options | {"--config": FILE if yaml else None})
    if yaml:  # in double quotes, in which the shell fills in variables
        line = f'echo "{_flow(yaml)}" > {FILE} && {line}'
    return made(
        started.version,
        line,
        n_nodes=n_nodes,
        n_servers=n_servers,
        variables=variables | drafts,
        remarks=fetched(started),
    )


def _ranks(n_nodes: int, n_devices: int) -> list[str]:
    """A process a device, as the documentation starts several nodes."""
    return ["srun", "--nodes", str(n_nodes), "--ntasks", str(n_devices), "--mpi=pmix"]


def _yaml(started: Started, drafter: str | None) -> dict[str, object]:
    """Keys that have no flag."""
    keys: dict[str, object] = {}
    if _says_cache(started):
        keys["kv_cache_config"] = {"dtype": "bfloat16"}
    if started.experts_backend:
        keys["moe_config"] = {"backend": started.experts_backend}
    if started.n_drafted:
        keys["speculative_config"] = _drafting(started, drafter)
    if started.role != TOGETHER:  # which end it is, the orchestrator's file says
        keys["cache_transceiver_config"] = {"backend": "NIXL"}
    if started.role == PREFILL:  # which servers of contexts cannot do, as their examples have it
        keys["disable_overlap_scheduler"] = "true"
    return keys


def _says_cache(started: Started) -> bool:
    """Whether 16 bits have to be said: checkpoints of fewer may ask for a cache of 8."""
    return started.formats.cache == "bf16" and started.weights not in ("bf16", "fp16")


def _drafting(started: Started, drafter: str | None) -> dict[str, object]:
    kind = {"mtp": "MTP", "eagle": "Eagle3", "medusa": "Medusa"}[started.drafter]
    said: dict[str, object] = {"decoding_type": kind, "max_draft_len": started.n_drafted}
    return said if drafter is None else said | {"speculative_model": drafter}


def _flow(keys: Mapping[str, object]) -> str:
    """YAML in one line.

    >>> _flow({"kv_cache_config": {"dtype": "bfloat16"}})
    '{kv_cache_config: {dtype: bfloat16}}'
    """
    pairs = (
        f"{key}: {_flow(value) if isinstance(value, Mapping) else value}"
        for key, value in keys.items()
    )
    return f"{{{', '.join(pairs)}}}"
