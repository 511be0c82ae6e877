"""SGLang's own scheduler, driven pass by pass without a GPU.

python -m tests.schedulers.sglang FOLDER < workloads.jsonl > outcomes.jsonl

FOLDER has the package of the engine, torch and the few packages that both import, see
docs/rules.md. Each line of stdin is a workload of `tests.schedulers.workloads`; one line each has
the first and the last token of every request [s] and how often one was retracted. What the
scheduler imports and does not need becomes a stand-in; its loops, its queues, its batches, its
radix tree and its pools are the engine's. Its clock is the workload's: a pass takes `pass_s` and
`token_s` for each token.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import types
from array import array
from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.launch.parsers import Finder, StandIn, Values, function_in

PARTS = tuple(
    f"sglang.{name}"
    for name in (
        *("kernels", "srt.platforms", "srt.hardware_backend", "srt.distributed", "srt.layers"),
        *("srt.model_loader", "srt.models", "srt.lora", "srt.multimodal", "srt.speculative"),
        *("srt.disaggregation", "srt.observability", "srt.model_executor.model_runner"),
        *("srt.configs", "srt.parser", "srt.constrained", "srt.utils"),
        *("srt.entrypoints", "srt.tokenizer", "srt.server_args", "srt.managers.io_struct"),
        "srt.managers.multimodal_processor",
    )
)
"""Modules that a pass of a scheduler of text asks nothing of."""

LONGEST = 1 << 14
"""Tokens of a request, at most: the width of the table of its places."""

OWN = 2_000_000_000
"""Tokens that a request writes are of its own, from here on."""

Work = dict[str, Any]


class EndedError(Exception):
    """All requests have all of their tokens."""


class Engine:
    """The engine's modules, and what they are told of an installation."""

    def __init__(self, folder: str) -> None:
        sys.path.insert(0, folder)
        load = importlib.import_module
        self.torch = load("torch")
        for name in ("sympy", "torch.distributed", "torch._dynamo"):  # before there are stand-ins
            load(name)
        self.torch.set_num_threads(1)
        self.torch.compile = lambda it=None, **_: it or (lambda made: made)
        package = types.ModuleType("sglang")  # without what it imports first
        package.__path__ = [f"{folder}/sglang"]
        sys.modules["sglang"] = package
        sys.meta_path.insert(0, Finder("sglang", PARTS))
        sys.meta_path.append(Finder("sglang"))
        self._of_utils(f"{folder}/sglang/srt/utils/common.py")
        mixin: Any = load("sglang.srt.disaggregation.decode_schedule_batch_mixin")
        mixin.ScheduleBatchDisaggregationDecodeMixin = type("Mixin", (), {})
        stages: Any = load("sglang.srt.observability.scheduler_stage_metrics")
        stages.scheduler_stage_method = lambda _: lambda made: made
        self.context: Any = load("sglang.srt.runtime_context")
        self.batch: Any = load("sglang.srt.managers.schedule_batch")
        pages: Any = load("sglang.srt.mem_cache.allocation")
        pages.attention_backends = lambda: ("torch_native", "torch_native")
        self.batch.SamplingBatchInfo = Values(from_schedule_batch=lambda *_: StandIn())
        self.policy: Any = load("sglang.srt.managers.schedule_policy")
        self.ratio: Any = load("sglang.srt.managers.scheduler_components.new_token_ratio_tracker")
        self.results: Any = load("sglang.srt.managers.scheduler_components.batch_result_processor")
        self.scheduler: Any = load("sglang.srt.managers.scheduler")
        self.scheduler.DisaggregationMode = Values(NULL=0, PREFILL=1, DECODE=2)
        self.scheduler.TEST_RETRACT = False
        self.pools: Any = load("sglang.srt.mem_cache.memory_pool")
        self.pools.TorchMemorySaverAdapter = Values(create=lambda **_: _Saver())
        self.tokens: Any = load("sglang.srt.mem_cache.allocator.token")
        self.paged: Any = load("sglang.srt.mem_cache.allocator.paged")
        self.cache: Any = load("sglang.srt.mem_cache.unified_radix_cache")
        self.full: Any = load(
            "sglang.srt.mem_cache.unified_cache.component_type"
        ).ComponentType.FULL
        self.asked: Any = load("sglang.srt.mem_cache.cache_init_params").CacheInitParams

    def _of_utils(self, path: str) -> None:
        """Of the engine's utilities those that pools reckon with."""
        for name in ("sglang.srt.utils", "sglang.srt.utils.common"):
            module: Any = importlib.import_module(name)
            module.is_pin_memory_available = lambda *_: False
            divided = function_in(path, "ceil_div")
            for function in ("ceil_align", "next_power_of_2", "get_num_new_pages"):
                known = {"torch": self.torch, "ceil_div": divided}
                setattr(module, function, function_in(path, function, **known))

    def configure(self, work: Work) -> None:
        """As if its server had been started with options, or without."""
        schedule = Values(
            schedule_policy="fcfs", retraction_policy="length",
            schedule_conservativeness=work["reserves"],
            schedule_low_priority_values_first=True, prefill_max_requests=None,
            chunked_prefill_size=work["chunk"],
        )  # fmt: skip
        names = ("exec", "memory", "disagg", "serving", "spec", "observability", "mm", "device")
        bags = {name: Values(features=Values(), mamba=Values()) for name in names}
        bags["memory"].radix_eviction_policy = "lru"
        bags["spec"].speculative_algorithm = None
        self.context._CONTEXT._config_bags = {"schedule": schedule, **bags}
        self.context._PARALLEL = Values(
            pp_size=1, pp_max_micro_batch_size=work["running"], attn_dcp_size=1, tp_size=1
        )

    def pool(self, work: Work) -> Any:
        size, page = work["n_blocks"] * work["block"], work["block"]
        places = {"dtype": None, "device": "cpu", "kvcache": None, "need_sort": False}
        if page == 1:
            return self.tokens.TokenToKVPoolAllocator(size, **places)
        found = self.paged.PagedTokenToKVPoolAllocator(size, page, **places)
        found.use_triton_kernels = False
        return found


class _Saver:
    def region(self, _: object) -> _Saver:
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class _TimeStats(StandIn):
    """When a request came into line, as the engine's queue orders them."""

    turns = count()
    wait_queue_entry_time = 0

    def set_wait_queue_entry_time(self) -> None:
        self.wait_queue_entry_time = next(self.turns)


class Drive:
    """One workload, through the engine's own event loop."""

    def __init__(self, engine: Engine, work: Work) -> None:
        engine.configure(work)
        self.engine, self.work = engine, work
        n = len(work["requests"])
        self.first, self.last = [-1.0] * n, [-1.0] * n
        self.left, self.now_s, self.free_s = n, 0.0, 0.0
        self.sent: list[Any] = []
        self.scheduler = self.made()

    def made(self) -> Any:
        """A scheduler without what its server starts beside it."""
        engine, work = self.engine, self.work

        class Driven(engine.scheduler.Scheduler):  # type: ignore[name-defined,misc]
            def __getattr__(self, name: str) -> Any:
                if name.startswith("__"):
                    raise AttributeError(name)
                return StandIn()

        one: Any = Driven.__new__(Driven)
        rows = engine.pools.ReqToTokenPool(work["running"], LONGEST, "cpu", False)
        pool = engine.pool(work)
        asked = engine.asked(
            disable=not work["caches"], req_to_token_pool=rows, token_to_kv_pool_allocator=pool,
            page_size=work["block"], tree_components=(engine.full,), tree_core_backend="python",
        )  # fmt: skip
        cache = engine.cache.UnifiedRadixCache(asked)
        is_none = Values(is_none=lambda: True)
        model = Values(is_encoder_decoder=False, vocab_size=1 << 40)
        one.__dict__.update(
            gracefully_exit=False, _engine_paused=False, waiting_queue=[], last_batch=None,
            running_batch=engine.batch.ScheduleBatch(reqs=[], batch_is_full=False),
            req_to_token_pool=rows, token_to_kv_pool_allocator=pool, tree_cache=cache,
            page_size=work["block"], model_config=model, spec_algorithm=is_none,
            enable_overlap=work["ahead"], chunked_prefill_size=work["chunk"], chunked_req=None,
            max_prefill_tokens=1 << 14, max_running_requests=work["running"],
            is_mixed_chunk=False, enable_priority_scheduling=work["priority"],
            enable_priority_preemption=False, schedule_low_priority_values_first=True,
            prefill_delayer=None, min_free_slots_delayer=None, dynamic_chunk_sizer=None,
            truncation_align_size=None, decode_offload_manager=None, dllm_config=None,
            hisparse_coordinator=None, _pending_chunked_abort_req=None, prefill_decode_interval=0,
            _prefill_decode_interval_remaining=0, max_queued_requests=None, is_generation=True,
            processed_tokens_counter=0, disaggregation_mode=0, result_queue=[], max_prefill_bs=0,
            new_token_ratio_tracker=engine.ratio.NewTokenRatioTracker.from_config(),
            grammar_manager=Values(has_waiting_grammars=lambda: False, grammar_queue=[]),
            beam_coordinator=Values(pending_member_rows=lambda _: 0, commit_decode=lambda _: set()),
            dp_attn_adapter=Values(
                maybe_prepare_mlp_sync_batch=lambda it, **_: it,
                maybe_convert_decode_to_extend=lambda it: it,
            ),
            ngram_embedding_manager=Values(prepare_for_forward=lambda it, **_: it),
            ingest_requests=self.arrive, run_batch=self.run, on_idle=self.idle,
            process_batch_result=self.processed, _process_hicache_events=lambda: None,
            launch_batch_sample_if_needed=lambda *_: None,
        )  # fmt: skip
        one.policy = engine.policy.SchedulePolicy("fcfs", cache, False, work["priority"], True)
        one.processor = engine.results.SchedulerBatchResultProcessor(
            is_generation=True, disaggregation_mode=0, enable_overlap=work["ahead"],
            enable_overlap_mlx=False, model_config=model, token_to_kv_pool_allocator=pool,
            tree_cache=cache, hisparse_coordinator=None, req_to_token_pool=rows,
            decode_offload_manager=None, metrics_collector=StandIn(), model_worker=Values(),
            metrics_reporter=Values(
                num_generated_tokens=0, forward_ct_decode=0, report_decode_stats=StandIn(),
                report_prefill_stats=StandIn(),
            ),
            draft_worker=None, logprob_result_processor=None, output_streamer=StandIn(),
            beam_coordinator=one.beam_coordinator, abort_request=StandIn(),
        )  # fmt: skip
        return one

    def outcome(self) -> dict[str, Any]:
        loop = "event_loop_overlap" if self.work["ahead"] else "event_loop_normal"
        with contextlib.suppress(EndedError):
            getattr(self.scheduler, loop)()
        n_retracted = sum(it.retraction_count for it in self.sent)
        return {"first": self.first, "last": self.last, "preempted": n_retracted}

    def request_of(self, number: int) -> Any:
        """Its tokens are its own, but for those at its beginning that its family shares."""
        _, n_input, n_output, family, n_shared, priority = self.work["requests"][number]
        own = 1_000_000 * (number + 1)
        tokens = [1 + 10_000 * (family + 1) + i for i in range(n_shared)]
        tokens += [own + i for i in range(n_shared, n_input)]
        asked = Values(max_new_tokens=n_output, stop_strs=[], stop_regex_strs=[])
        return self.engine.batch.Req(
            str(number), "", array("q", tokens), asked, priority=priority, time_stats=_TimeStats()
        )

    def arrive(self) -> None:
        """Who has come by now; when there is nothing to do, who comes next."""
        if not self.left:
            raise EndedError
        requests = self.work["requests"]
        while len(self.sent) < len(requests) and requests[len(self.sent)][0] <= self.now_s:
            self.sent.append(self.request_of(len(self.sent)))
            self.scheduler._add_request_to_queue(self.sent[-1])

    def idle(self) -> None:
        """Nothing runs: the engine counts anew what requests write, and waits."""
        if self.scheduler.is_fully_idle():
            self.scheduler.new_token_ratio_tracker.reset()
        self.now_s = max(self.now_s, self.work["requests"][len(self.sent)][0])

    def run(self, batch: Any) -> Any:
        """A pass begins when the one before it has ended."""
        n = batch.extend_num_tokens if batch.forward_mode.is_extend() else len(batch.reqs)
        begins_s = max(self.free_s, self.now_s)
        self.free_s = begins_s + self.work["pass_s"] + self.work["token_s"] * n
        return Values(
            copy_done=None, routed_experts_output=None, indexer_topk_output=None,
            done_s=self.free_s, logits_output=None, auxiliary_host_output=None,
            speculative_output_stride=None,
            next_token_ids=self.engine.torch.tensor([OWN + int(it.rid) for it in batch.reqs]),
            get_num_generated_tokens=lambda n: n, extend_input_len_per_req=None,
        )  # fmt: skip

    def processed(self, batch: Any, result: Any) -> None:
        """The tokens of a pass that has ended: one of each request whose prompt is read."""
        self.now_s = max(self.now_s, result.done_s)
        before = [len(it.output_ids) for it in batch.reqs]
        kind = "decode" if batch.forward_mode.is_decode() else "prefill"
        getattr(self.scheduler.processor, f"process_batch_result_{kind}")(batch, result)
        for request, n_before in zip(batch.reqs, before, strict=True):
            number = int(request.rid)
            if len(request.output_ids) > n_before:
                if n_before == 0:
                    self.first[number] = self.now_s
                self.last[number] = self.now_s
                self.left -= request.finished()


def outcomes(folder: str, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    engine = Engine(folder)
    for line in lines:
        yield Drive(engine, json.loads(line)).outcome()


if __name__ == "__main__":
    for found in outcomes(sys.argv[1], iter(sys.stdin)):
        print(json.dumps(found))
