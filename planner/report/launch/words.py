"""What an engine is started for, and the words of its command line."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.results.predictions import Launch
from planner.specs.records.devices import STORES, Store
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.records.served_formats import STATIC, ServedFormats

_SHELL = re.compile(r"\$[A-Z_]+(:\d+)?|\$\(.*\)")
"""Words that a shell has to read: a variable, what a command says or a sum."""

CHECKPOINT, DRAFTER = "CHECKPOINT", "DRAFTER"
NODE_RANK, HEAD = "NODE_RANK", "HEAD"

_SAVED_AS: Mapping[str, str] = {
    "bf16": "in 16 bits",
    "fp16": "in 16 bits",
    "fp8_block": "in fp8 with a scale for each block of 128 × 128",
    "int8": "in int8 (W8A8)",
    "llm_int8": "in LLM.int8() (bitsandbytes)",
    "int4": "in int4 (AWQ or GPTQ)",
    "fp4": "in nvfp4",
    "nvfp4": "in nvfp4",
}
"""What checkpoints of a number format are called, where its name does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What an engine is started for.

    Args:
        version: of the engine whose flags these are: `vLLM 0.33.0`.
        model: repository or folder of the model, or its name where neither is known.
        published: format of its weights there; empty where nobody says.
        has_experts: any layer routes tokens to experts.
        n_context_tokens: longest context that the model was made for.
        n_per_node: devices of one node.
        n_tokens: input and output of one request.
        memory_fraction: share of a device's memory that the engine may take.
        exchanges: tokens are sent to their experts.
        overlaps: two micro-batches hide each other's messages.
        drafter: what drafts `n_drafted` tokens; empty without drafts.
        role: what it does of a request.
        experts_backend: program of routed experts; empty for the engine's own choice.
        n_redundant_experts: copies of experts of a layer beside the first of each, balanced.
    """

    version: str
    model: str
    published: str
    has_experts: bool
    n_context_tokens: int | None
    n_per_node: int
    formats: ServedFormats
    n_tensor: int
    n_data: int
    n_stages: int
    n_expert_parallel: int
    batch: int
    chunk_tokens: int
    n_tokens: int
    reuses_prefixes: bool
    memory_fraction: float
    exchanges: bool
    overlaps: bool
    drafter: str
    n_drafted: int
    role: str = TOGETHER
    experts_backend: str = ""
    n_redundant_experts: int = 0
    offload: Store = STORES[0]

    @property
    def n_group(self) -> int:
        """Devices of one stage."""
        return self.n_tensor * self.n_data

    @property
    def n_devices(self) -> int:
        return self.n_group * self.n_stages

    def n_nodes_of(self, n_devices: int) -> int:
        """Nodes that so many devices take, as many on each: the engine's rules saw to that."""
        return -(-n_devices // self.n_per_node)

    def cache_word(self, words: Mapping[str, str]) -> str:
        """What an engine calls the format of the cache."""
        return words.get(self.formats.cache, self.formats.cache)

    @property
    def weights(self) -> str:
        """The format of the weights, whoever scales their inputs."""
        return self.formats.weights.removesuffix(STATIC)

    @property
    def is_published(self) -> bool:
        """Whether the model's own checkpoint is in the formats that are served."""
        formats = self.formats
        saved = _sixteen(self.published or "bf16")
        wanted = {_sixteen(one.removesuffix(STATIC)) for one in (formats.weights, formats.experts)}
        is_plain = not formats.weights.endswith(STATIC)
        return is_plain and all(one in (saved, saved.partition("_")[0]) for one in wanted)

    @property
    def is_cast(self) -> bool:
        """Whether weights of 16 bits are served in 8 bits that an engine can make by itself."""
        formats = self.formats
        saved = _sixteen(self.published or "bf16")
        return saved == "16 bits" and formats.weights == formats.experts == "fp8"

    @property
    def saved_as(self) -> str:
        """What a checkpoint of the formats is called."""
        return saved_as(self.formats, has_experts=self.has_experts)


def saved_as(formats: ServedFormats, *, has_experts: bool) -> str:
    """What a checkpoint of some formats is called: `in fp8 with scales of its inputs in it`."""
    weights = formats.weights.removesuffix(STATIC)
    words = _SAVED_AS.get(weights, f"in {weights}")
    if formats.weights.endswith(STATIC):
        words += " with scales of its inputs in it"
    experts = formats.experts.removesuffix(STATIC)
    if has_experts and experts != weights:
        words += f", experts {_SAVED_AS.get(experts, f'in {experts}')}"
    return words


def _sixteen(number_format: str) -> str:
    return "16 bits" if number_format in ("bf16", "fp16") else number_format


def checkpoint(started: Started, *, casts: bool) -> tuple[str, dict[str, str]]:
    """The word for what is loaded, and what it stands for where the user has to say.

    Args:
        casts: the engine makes 8 bits of 16 by itself.
    """
    if started.is_published or (casts and started.is_cast):
        return started.model, {}
    return f"${CHECKPOINT}", {CHECKPOINT: f"a checkpoint of {started.model} {started.saved_as}"}


def fetched(started: Started) -> tuple[str, ...]:
    """What is said where a cache comes from elsewhere, which these flags do not bring about."""
    words = {
        PREFILL: "hands the cache of each prompt to a server that decodes",
        DECODE: "fetches the cache of each prompt from a server that reads it",
    }
    if started.offload != STORES[0]:
        return (
            "caches on the host need its memory besides: `--kv-offloading-size` of vLLM, `--enable-"
            "hierarchical-cache` of SGLang, `host_cache_size` of TensorRT-LLM",
        )
    if started.role == TOGETHER:
        return ()
    return (f"{words[started.role]}: a router sends each request to both",)


def drafting(started: Started) -> tuple[str | None, dict[str, str]]:
    """The word for what drafts, unless the model does so itself, and what it stands for."""
    if started.drafter in ("", "mtp"):
        return None, {}
    what = f"a checkpoint of {started.drafter} heads trained for {started.model}"
    return f"${DRAFTER}", {DRAFTER: what}


def command(words: Iterable[str], options: Mapping[str, object]) -> str:
    """One line: flags of `True` stand alone, what is None or `False` is left out."""
    said = list(words)
    for flag, value in options.items():
        if value is None or value is False:
            continue
        said += [flag] if value is True else [flag, str(value)]
    return " ".join(word if _SHELL.fullmatch(word) else shlex.quote(word) for word in said)


def decimal(fraction: float) -> str:
    """A share as flags take it.

    >>> decimal(0.9), decimal(0.88)
    ('0.9', '0.88')
    """
    return f"{fraction:.4g}"


def made(
    version: str,
    line: str,
    *,
    n_nodes: int = 1,
    n_servers: int = 1,
    variables: Mapping[str, str],
    remarks: Iterable[str] = (),
) -> Launch:
    """The record, with the variables of several nodes explained."""
    said = dict(variables)
    if NODE_RANK in line:
        said[NODE_RANK] = f"0 on the first of {n_nodes} nodes, to {n_nodes - 1} on the last"
    if HEAD in line:
        said[HEAD] = "address of the first node"
    return Launch(
        command=line,
        version=version,
        n_nodes=n_nodes,
        n_servers=n_servers,
        variables=said,
        remarks=tuple(remarks),
    )
