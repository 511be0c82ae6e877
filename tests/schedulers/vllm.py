"""vLLM's own scheduler, driven pass by pass without a GPU and without torch.

python -m tests.schedulers.vllm FOLDER < workloads.jsonl > outcomes.jsonl

FOLDER has the package of the engine, see docs/rules.md. Each line of stdin is a workload of
`tests.schedulers.workloads`; one line each has the first and the last token of every request [s]
and how often one was preempted. What the scheduler imports and does not need becomes a stand-in;
the scheduler, its queues, its caches and its pool of blocks are the engine's. Its clock is the
workload's: a pass takes `pass_s` and `token_s` for each token that was scheduled.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from tests.launch.parsers import Finder, Values

PARTS = (
    *("vllm.platforms", "vllm.distributed", "vllm.multimodal", "vllm.compilation", "vllm.lora"),
    *("vllm.v1.structured_output", "vllm.v1.spec_decode", "vllm.v1.attention", "vllm.v1.worker"),
    *("vllm.v1.engine", "vllm.v1.metrics", "vllm.v1.hisparse", "vllm.utils.torch_utils"),
    *("vllm.sampling_params", "vllm.pooling_params", "vllm.model_executor", "vllm.triton_utils"),
    "vllm.config",
)
"""Modules that a pass of a scheduler of text asks nothing of."""

Work = dict[str, Any]


class Engine:
    """The engine's modules, and schedulers of them."""

    def __init__(self, folder: str) -> None:
        sys.path.insert(0, folder)
        sys.meta_path.insert(0, Finder("vllm", PARTS))
        sys.meta_path.append(Finder("vllm"))
        name = "vllm.v1.core.sched"
        load = importlib.import_module
        load(f"{name}.scheduler").KV_FETCH_STAGES = ()  # of caches that come from elsewhere
        self.sync = load(f"{name}.scheduler").Scheduler
        self.ahead = load(f"{name}.async_scheduler").AsyncScheduler
        self.kinds = load("vllm.v1.kv_cache_interface")
        requests = load("vllm.v1.request")
        requests.StructuredOutputRequest = Values(from_sampling_params=lambda _: None)
        self.request = requests.Request
        utils = load("vllm.v1.core.kv_cache_utils")
        utils.NONE_HASH = b"nothing"
        self.hasher = lambda size: utils.get_request_block_hasher(size, hashed)

    def scheduler(self, work: Work) -> Any:
        """As the engine makes it; one block of the pool is its own (the null block)."""
        size, n_blocks = work["block"], work["n_blocks"] + 1
        longest = 1 << 20
        spec = self.kinds.FullAttentionSpec(
            block_size=size, num_kv_heads=1, head_size=1, dtype="bfloat16"
        )
        groups = [self.kinds.KVCacheGroupSpec(["layer"], spec)]
        cache = self.kinds.KVCacheConfig(
            num_blocks=n_blocks, kv_cache_tensors=[], kv_cache_groups=groups
        )
        nothing = {
            "lora_config": None, "kv_events_config": None, "kv_transfer_config": None,
            "ec_transfer_config": None, "speculative_config": None, "num_speculative_tokens": 0,
            "num_lookahead_tokens": 0, "num_hash_lookahead_tokens": 0,
            "num_prefill_lookahead_tokens": 0,
        }  # fmt: skip
        config = Values(
            **nothing,
            max_in_flight_tokens=2 * work["chunk"],
            scheduler_config=Values(
                max_num_seqs=work["running"],
                max_num_active_seqs=None,
                max_num_scheduled_tokens=None,
                max_num_batched_tokens=work["chunk"],
                long_prefill_token_threshold=0,
                prefill_schedule_interval=1,
                scheduler_reserve_full_isl=True,
                enable_chunked_prefill=True,
                watermark=work["watermark"],
                policy="priority" if work["priority"] else "fcfs",
            ),
            cache_config=Values(
                num_gpu_blocks=n_blocks, enable_prefix_caching=work["caches"], block_size=size
            ),
            parallel_config=Values(
                decode_context_parallel_size=1,
                prefill_context_parallel_size=1,
                pipeline_parallel_size=1,
                data_parallel_size=1,
                data_parallel_index=0,
            ),
            model_config=Values(max_model_len=longest, runner_type="generate"),
            ec_manager_config=Values(get_encoder_cache_manager_obj=lambda: None),
            aux_output_config=Values(),
            observability_config=Values(per_request_spec_decode_metrics="none"),
        )
        kind = self.ahead if work["ahead"] else self.sync
        grammar = Values(accept_tokens=lambda *_: True)
        return kind(config, cache, grammar, size)

    def request_of(self, work: Work, number: int) -> Any:
        """Its tokens are its own, but for those at its beginning that its family shares."""
        at_s, n_input, n_output, family, n_shared, priority = work["requests"][number]
        own = 1_000_000 * (number + 1)
        tokens = [-(10_000 * (family + 1) + i) for i in range(n_shared)]
        tokens += [own + i for i in range(n_shared, n_input)]
        one = Values(max_tokens=n_output, min_tokens=n_output, skip_reading_prefix_cache=False)
        one.extra_args = None
        one.eos_token_id, one.stop_token_ids, one.repetition_detection = None, [], None
        return self.request(
            f"{number:06d}", tokens, one, None,
            arrival_time=at_s, priority=priority, block_hasher=self.hasher(work["block"]),
        )  # fmt: skip


def hashed(value: object) -> bytes:
    return sha256(repr(value).encode()).digest()


class Drive:
    """One workload: passes one after the other, or each composed while the one before it runs."""

    def __init__(self, engine: Engine, work: Work) -> None:
        self.engine, self.work = engine, work
        self.scheduler = engine.scheduler(work)
        n = len(work["requests"])
        self.first: list[float] = [-1.0] * n
        self.last: list[float] = [-1.0] * n
        self.left, self.sent, self.now_s, self.n_preempted = n, 0, 0.0, 0

    def outcome(self) -> dict[str, Any]:
        queue: deque[Any] = deque()
        free_s = 0.0  # when the device ends what it was given
        while self.left:
            self.arrive()
            if not self.scheduler.has_requests() and not queue:
                self.now_s = max(self.now_s, self.work["requests"][self.sent][0])
                continue
            if self.scheduler.has_requests():
                planned = self.scheduler.schedule()
                n_tokens = sum(planned.num_scheduled_tokens.values())
                took_s = self.work["pass_s"] + self.work["token_s"] * n_tokens if n_tokens else 0.0
                free_s = max(free_s, self.now_s) + took_s
                self.n_preempted += len(planned.preempted_req_ids or ())
                requests = self.scheduler.requests
                names = set(planned.num_scheduled_tokens)
                writing = {it for it in names if not requests[it].is_prefill_chunk}
                queue.append((planned, writing, free_s))
                if self.work["ahead"] and len(queue) < 2:
                    continue
                if not n_tokens and len(queue) == 1:
                    queue.clear()
                    self.wait()
                    continue
            planned, writing, done_s = queue.popleft()
            self.now_s = max(self.now_s, done_s)
            self.write(planned, writing)
        return {"first": self.first, "last": self.last, "preempted": self.n_preempted}

    def arrive(self) -> None:
        requests = self.work["requests"]
        while self.sent < len(requests) and requests[self.sent][0] <= self.now_s:
            self.scheduler.add_request(self.engine.request_of(self.work, self.sent))
            self.sent += 1

    def wait(self) -> None:
        """Nothing fits: until another comes."""
        self.now_s = self.work["requests"][self.sent][0]

    def token(self, name: str) -> list[int]:
        """One that no other request has."""
        return [2_000_000_000 + int(name) * 10_000 + self.scheduler.requests[name].num_tokens]

    def write(self, planned: Any, writing: set[str]) -> None:
        """The tokens of a pass that has ended: one of each request whose prompt is read."""
        names = list(planned.num_scheduled_tokens)
        tokens = [self.token(name) if name in writing else [] for name in names]
        said = Values(
            sampled_token_ids=tokens,
            req_id_to_index={name: i for i, name in enumerate(names)},
            prompt_logprobs_dict={},
            prompt_token_id_logprobs_dict={},
            logprobs=None, pooler_output=None, num_nans_in_logits=None,
            kv_connector_output=None, ec_connector_output=None, cudagraph_stats=None,
        )  # fmt: skip
        self.scheduler.update_from_output(planned, said)
        for name, some in zip(names, tokens, strict=True):
            if some:
                number = int(name)
                if self.first[number] < 0.0:
                    self.first[number] = self.now_s
                self.last[number] = self.now_s
                self.left -= name not in self.scheduler.requests


def outcomes(folder: str, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    engine = Engine(folder)
    for line in lines:
        yield Drive(engine, json.loads(line)).outcome()


if __name__ == "__main__":
    for found in outcomes(sys.argv[1], iter(sys.stdin)):
        print(json.dumps(found))
