"""How vLLM is started: flags of `vllm serve --help=all`."""

from collections.abc import Mapping

from planner.report.launch import words
from planner.results.predictions import Launch
from planner.specs.records.roles import DECODE, PREFILL

CACHES: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16"}
"""`--kv-cache-dtype` by format (vllm.config.cache: CacheDType)."""

_RPC_PORT = 13345
"""Of data parallelism over nodes, as the documentation's example has it."""


def launch(started: words.Started) -> Launch:
    """`vllm serve`: its batch and its chunk are of one attention rank."""
    model, variables = words.checkpoint(started, casts=True)
    drafter, drafts = words.drafting(started)
    n_nodes, between = _nodes(started)
    copies = started.n_redundant_experts
    options: dict[str, object] = {
        "--tensor-parallel-size": started.n_tensor,
        "--pipeline-parallel-size": started.n_stages if started.n_stages > 1 else None,
        "--data-parallel-size": started.n_data if started.n_data > 1 else None,
        "--enable-expert-parallel": started.n_expert_parallel > 1,
        "--all2all-backend": "deepep_low_latency" if started.exchanges else None,
        "--enable-eplb": copies > 0,
        "--eplb-config": f'{{"num_redundant_experts":{copies}}}' if copies else None,
        "--enable-dbo": started.overlaps,
        "--quantization": "fp8" if started.is_cast and not started.is_published else None,
        "--moe-backend": started.experts_backend or None,
        "--kv-cache-dtype": started.cache_word(CACHES),
        "--max-num-seqs": started.batch,
        "--max-num-batched-tokens": started.chunk_tokens,
        "--max-model-len": started.n_tokens,
        "--gpu-memory-utilization": words.decimal(started.memory_fraction),
        "--enable-prefix-caching": started.reuses_prefixes,
        "--spec-method": started.drafter or None,
        "--spec-model": drafter,
        "--spec-tokens": started.n_drafted or None,
        "--kv-transfer-config": _handing_over(started),
        **between,
    }
    line = words.command(("vllm", "serve", model), options)
    remarks = [*words.fetched(started)]
    if started.exchanges:
        remarks.append(
            "prompts are timed with DeepEP's normal kernels, decodes with those of low latency; "
            "vLLM takes one of the two: `deepep_high_throughput` where prompts weigh more"
        )
    return words.made(
        started.version, line, n_nodes=n_nodes, variables=variables | drafts, remarks=remarks
    )


def _handing_over(started: words.Started) -> str | None:
    """The connector, and which end of it this is (vllm.config.kv_transfer: KVRole)."""
    end = {PREFILL: "kv_producer", DECODE: "kv_consumer"}.get(started.role)
    return None if end is None else f'{{"kv_connector":"NixlConnector","kv_role":"{end}"}}'


def _nodes(started: words.Started) -> tuple[int, dict[str, object]]:
    """Nodes of the server, and the flags that join them.

    Whole ranks are dealt to nodes (documentation, data parallel deployment); a rank that spans
    nodes is one of several nodes itself (documentation, parallelism and scaling).
    """
    rank, n_nodes = started.n_tensor * started.n_stages, started.n_nodes_of(started.n_devices)
    joined = f'$([ "${words.NODE_RANK}" = 0 ] || echo --headless)'
    if n_nodes == 1:
        return 1, {}
    if started.n_data > 1 and rank <= started.n_per_node:
        here = started.n_data // n_nodes
        flags: dict[str, object] = {
            "--data-parallel-size-local": here,
            "--data-parallel-start-rank": f"$(({here} * {words.NODE_RANK}))",
            "--data-parallel-address": f"${words.HEAD}",
            "--data-parallel-rpc-port": _RPC_PORT,
            joined: True,
        }
        return n_nodes, flags
    return n_nodes, {
        "--nnodes": n_nodes,
        "--node-rank": f"${words.NODE_RANK}",
        "--master-addr": f"${words.HEAD}",
        joined: True,
    }
