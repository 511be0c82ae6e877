"""How SGLang is started: flags of `python -m sglang.launch_server --help`."""

from collections.abc import Mapping

from planner.report.launch import words
from planner.results.predictions import Launch
from planner.specs.records.roles import TOGETHER

MOST_PROMPT_TOKENS = 16_384
"""Default of `--max-prefill-tokens`, beyond which a larger chunk says nothing."""

CACHES: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "auto", "fp8": "fp8_e4m3"}
"""`--kv-cache-dtype` by format, where it has another word."""

_SPARE_TOKENS = 2
"""A request's output is cut at the context less two: Scheduler.init_req_max_new_tokens takes one,
the longest request is one shorter than the context."""

_PORT = 5000
"""Where nodes meet, as the documentation's example has it."""


def launch(started: words.Started) -> Launch:
    """`sglang.launch_server`: with attention data parallel, batch and chunk are of all ranks.

    `--tp-size` counts the devices of a stage, whichever way attention uses them; chunk and
    requests are divided by its ranks (server_args, model_runner). Those of a model without
    experts share nothing, and are servers of their own.
    """
    model, variables = words.checkpoint(started, casts=True)
    drafter, drafts = words.drafting(started)
    n_servers = 1 if started.has_experts else started.n_data
    n_ranks = started.n_data // n_servers
    n_devices = started.n_tensor * n_ranks * started.n_stages
    n_nodes = started.n_nodes_of(n_devices)
    chunk = started.chunk_tokens * n_ranks
    options: dict[str, object] = {
        "--model-path": model,
        "--tp-size": started.n_tensor * n_ranks,
        "--pp-size": started.n_stages if started.n_stages > 1 else None,
        "--attn-dp-size": n_ranks if n_ranks > 1 else None,
        "--ep-size": started.n_expert_parallel if started.n_expert_parallel > 1 else None,
        **_between_experts(started),
        "--quantization": "fp8" if started.is_cast and not started.is_published else None,
        "--moe-runner-backend": started.experts_backend or None,
        "--kv-cache-dtype": started.cache_word(CACHES),
        "--max-running-requests": started.batch * n_ranks,
        "--chunked-prefill-size": chunk,
        "--max-prefill-tokens": chunk if chunk > MOST_PROMPT_TOKENS else None,
        "--context-length": _context(started),
        "--mem-fraction-static": words.decimal(started.memory_fraction),
        **_handing_over(started),
        **_drafting(started, drafter),
        **_between(n_nodes),
    }
    line = words.command(("python", "-m", "sglang.launch_server"), options)
    return words.made(
        started.version,
        line,
        n_nodes=n_nodes,
        n_servers=n_servers,
        variables=variables | drafts,
        remarks=words.fetched(started),
    )


def _between_experts(started: words.Started) -> dict[str, object]:
    """Messages, and copies that are balanced over all nodes at once."""
    copies = started.n_redundant_experts
    return {
        "--moe-a2a-backend": "deepep" if started.exchanges else None,
        "--deepep-mode": "auto" if started.exchanges else None,
        "--enable-eplb": copies > 0,
        "--eplb-algorithm": "deepseek" if copies else None,
        "--ep-num-redundant-experts": copies or None,
        "--enable-two-batch-overlap": started.overlaps,
    }


def _handing_over(started: words.Started) -> dict[str, object]:
    if started.role == TOGETHER:
        return {}
    return {"--disaggregation-mode": started.role, "--disaggregation-transfer-backend": "nixl"}


def _context(started: words.Started) -> int:
    wanted, longest = started.n_tokens + _SPARE_TOKENS, started.n_context_tokens
    return wanted if longest is None else min(wanted, max(longest, started.n_tokens))


def _drafting(started: words.Started, drafter: str | None) -> dict[str, object]:
    """A chain: each draft is of one token, so that a round checks one more than was drafted."""
    if not started.n_drafted:
        return {}
    return {
        "--speculative-algorithm": "NEXTN" if drafter is None else started.drafter.upper(),
        "--speculative-draft-model-path": drafter,
        "--speculative-num-steps": started.n_drafted,
        "--speculative-eagle-topk": 1,
        "--speculative-num-draft-tokens": started.n_drafted + 1,
    }


def _between(n_nodes: int) -> dict[str, object]:
    if n_nodes == 1:
        return {}
    return {
        "--nnodes": n_nodes,
        "--node-rank": f"${words.NODE_RANK}",
        "--dist-init-addr": f"${words.HEAD}:{_PORT}",
    }
