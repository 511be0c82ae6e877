"""Configurations of an engine by role: what a placement may want, against all that there is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.placing.asking import placement_request
from planner.placing.engine_choosing import wanted_choices
from planner.placing.fabrics.domains import domains, needs
from planner.placing.fabrics.patterns import Beaten
from planner.placing.fabrics.site import configurations_of
from planner.placing.planning import task_of
from planner.results.placements import RunConfig
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture
from planner.specs.records.devices import Workload
from planner.specs.records.roles import DECODE, PREFILL, ROLES, TOGETHER
from planner.specs.region import BELIEFS, INSIDE, MEDIAN
from planner.verifier.engines import counted_engine
from planner.verifier.findings import with_differences
from planner.verifier.placing.placements import stand_of

CHAT = Workload(n_input_tokens=1500, n_output_tokens=300)
TARGETS = Targets(tpot_s=0.02, ttft_s=0.5, min_batch=3)


@cache
def _asked(engine="vllm", model="qwen3-8b", targets=TARGETS, workload=CHAT, objective="throughput"):
    """One server of eight H100, and who times a model on them."""
    request = placement_request(
        load_site("h100-nvl8-x1"),
        Serve(model=load_architecture(model), replicas=1, kv_formats=("bf16", "fp8")),
        engine=engine,
        workload=workload,
        targets=targets,
        state=None,
        objective=objective,
        limits=None,
        batches=(1, 3, 8, 64, 200),
        most_devices=4,
        options=SolverOptions(),
    )
    return task_of(request, None)


@cache
def _offered(**keywords):
    """All configurations of every role, as the request has them."""
    asked = _asked(**keywords)
    ((runtime,),) = asked.runtimes
    (kind,) = asked.site.clusters
    timed = replace(runtime, roles=ROLES, by_belief=False)
    return list(configurations_of(timed, 0, kind, asked.site.ground, several=False, whole=False))


def _of(role, **asked):
    found = [one for one in _offered(**asked) if one.role == role]
    assert found
    return found


def _counted(one, says, **keywords):
    """What the referee has of a deployment, and all that is not so in what it says."""
    asked = _asked(**keywords)
    recipe = RunConfig(
        model=says.model,
        engine=one.engine,
        kind=one.pattern.kind_name,
        span=one.pattern.span,
        speed_fraction=one.pattern.speed_fraction,
        counted_bytes_per_s=one.pattern.counted_bytes_per_s,
        pieces=one.pattern.pieces,
        deployment=says,
    )
    (wish,) = asked.request.models
    cluster, _ = stand_of(asked.request).cluster_of(recipe, wish)
    truth, wrong = counted_engine(asked.request, wish, cluster, recipe)
    return truth, with_differences(wrong, says, truth)


def _rows(source, targets, is_kept):
    """Every choice of a source as plain numbers: shape and format, rate, times."""
    choices, table = source.choices, source.choices.table
    for row in range(len(choices)):
        rate = table.batch[row] * table.n_data[row] / choices.place_s[row]
        tpot, ttft = choices.tpot_high_s[row], choices.ttft_high_s[row]
        if is_kept(targets, float(table.batch[row] * table.n_data[row]), tpot, ttft):
            shape = (int(table.n_tensor[row]), int(table.n_data[row]), int(table.n_stages[row]))
            cache_format = table.formats[int(table.format_index[row])].cache
            yield (shape, cache_format), float(rate), float(tpot), float(ttft)


def _by_source(found):
    sources = {}
    for one in found:
        sources.setdefault(id(one.source), (one.source, []))[1].append(one)
    return sources.values()


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_of_decode_there_is_the_best_of_each_shape_and_format(engine):
    found = _of(DECODE, engine=engine)

    def is_kept(targets, in_flight, tpot, _):
        return tpot <= targets.tpot_s and in_flight >= targets.min_batch

    for source, ones in _by_source(found):
        best = {}
        for key, rate, *_ in _rows(source, TARGETS, is_kept):
            best[key] = max(best.get(key, 0.0), rate)
        said = {(one.pattern.shape, one.kv_format): one.output_tokens_per_s for one in ones}
        assert len(said) == len(ones)
        assert said == pytest.approx(best)
        assert {fmt for _, fmt in said} == {"bf16", "fp8"}


def test_who_believes_what_is_predicted_plans_it_and_others_what_was_asked():
    """An answer of the median is held against its request at no confidence."""
    asked = _asked(objective="throughput")
    ((runtime,),), ground = asked.runtimes, asked.site.ground
    (kind,) = asked.site.clusters
    (span, need), *_ = needs(ground.inventory, kind)
    source = runtime.source(next(iter(domains(ground, kind, span, need))), TOGETHER)
    sure = replace(source, request=replace(source.request, confidence=0.8))
    planned = {belief: sure.believing(belief).request.confidence for belief in BELIEFS}
    assert planned == {"": 0.8, INSIDE: 0.8, MEDIAN: 0.0}


@pytest.mark.parametrize("objective", ["throughput", "latency"])
@pytest.mark.parametrize("whole", [False, True])
def test_of_both_phases_bounds_leave_out_only_what_is_not_the_best_of_its_shape(objective, whole):
    """By any belief: each chooses others, and copies of what else is known have outdo others."""
    asked = _asked(objective=objective)
    ((runtime,),), ground = asked.runtimes, asked.site.ground
    (kind,) = asked.site.clusters
    by_latency, chosen, n_less = objective == "latency", set(), 0
    for span, need in needs(ground.inventory, kind):
        for domain in domains(ground, kind, span, need):
            source = runtime.source(domain, TOGETHER)
            timed = {
                belief: sorted(_wanted(source.choices.believing(belief), by_latency, whole))
                for belief in BELIEFS
            }
            chosen |= {tuple(rates) for rates in timed.values()}
            for beaten in _beatens(timed, domain.n_devices):
                said = [*runtime.on_nodes(0, domain, beaten, whole=whole)]
                for belief in BELIEFS[:1] if whole else BELIEFS:
                    mine = sorted(
                        (one.output_tokens_per_s, one.n_devices, one.pattern.shape)
                        for one in said
                        if belief in one.beliefs
                    )
                    kept = timed[belief]
                    if beaten.rates and not by_latency and not whole:
                        kept = _undone(kept, kept, beaten.rates[belief])
                        # beside what others alone may want
                        mine = _undone(mine, timed[belief], beaten.rates[belief])
                        n_less += len(said) < len(timed[belief])
                    assert mine == kept
    assert len(chosen) == len(BELIEFS)
    assert bool(n_less) != (by_latency or whole)


def _beatens(timed, n_devices):
    """Nothing known; copies of what is met; of others besides."""
    yield Beaten()
    n = np.arange(n_devices + 1)
    for share in (0.0, 0.95):
        best = {one: max((r / k for r, k, _ in rates), default=0.0) for one, rates in timed.items()}
        yield Beaten(rates={belief: share * rate * n for belief, rate in best.items()})


def _undone(some, timed, least):
    """Those that serve no less than what is known (N,), and than copies of any of fewer devices."""

    def most(n):
        return max(least[n], *(n // fewer * rate for rate, fewer, _ in timed if fewer < n), 0.0)

    return [one for one in some if one[0] > most(one[1]) * (1 - 1e-9)]


def _wanted(choices, by_latency, whole):
    """Rates, devices and shapes of what is wanted of choices, as a belief has them."""
    table = choices.table
    rates = table.batch * table.n_data / choices.place_s
    for row in wanted_choices(choices, TARGETS, by_latency=by_latency, whole=whole):
        shape = table.n_tensor[row], table.n_data[row], table.n_stages[row]
        yield rates[row], table.n_devices[row], tuple(map(int, shape))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    "workload", [CHAT, Workload(n_input_tokens=200, n_output_tokens=50)], ids=["long", "short"]
)
def test_of_prefill_there_is_all_that_nothing_else_beats_in_both(engine, workload):
    found = _of(PREFILL, engine=engine, workload=workload)
    n_several = 0
    for source, ones in _by_source(found):
        rows = list(_rows(source, TARGETS, lambda targets, _, tpot, ttft: ttft <= targets.ttft_s))
        points = {(key, ttft, rate) for key, rate, _, ttft in rows}
        best = {
            (key, ttft, rate)
            for key, ttft, rate in points
            if not any(
                other == key and (t < ttft or r > rate) and t <= ttft and r >= rate
                for other, t, r in points
            )
        }
        said = {
            ((one.pattern.shape, one.kv_format), one.ttft_s, one.output_tokens_per_s)
            for one in ones
        }
        assert len(said) == len(ones)
        assert said == best
        n_several += len(best) > len({key for key, *_ in best})
    assert n_several or workload is CHAT  # short prompts share passes: sooner, or more of them


def test_a_cache_to_hand_over_is_that_of_the_input_in_whole_blocks_whoever_holds_it():
    """36 layers × 2 × 8 heads × 128 numbers, of 94 blocks of 16 tokens."""
    for one in _offered():
        each = {"bf16": 2, "fp8": 1, "": 0}[one.kv_format]
        assert one.handed_bytes == 1504 * 36 * 2 * 8 * 128 * each
        assert (one.kv_format == "") == (one.role == TOGETHER)


def test_each_role_keeps_the_targets_of_what_it_does():
    for one in _of(DECODE):
        assert (one.ttft_s, one.tpot_s <= TARGETS.tpot_s) == (0, True)
    for one in _of(PREFILL):
        assert (one.tpot_s, 0 < one.ttft_s <= TARGETS.ttft_s) == (0, True)
    slow = replace(TARGETS, ttft_s=0.004)  # the engine's constants alone take longer
    assert {one.role for one in _offered(targets=slow)} == {DECODE}
    assert PREFILL in {one.role for one in _offered(targets=replace(TARGETS, tpot_s=0.001))}


def test_both_roles_apart_serve_more_on_a_shape_than_together():
    """Targets that hold prompts back hold decodes back only where these are beside them."""
    most = {}
    for one in _offered():
        key = one.role, one.pattern.shape
        most[key] = max(most.get(key, 0.0), one.output_tokens_per_s)
    shapes = [
        shape for role, shape in most if role == PREFILL
    ]  # of one stage, as the engine has it
    assert len(shapes) > 5
    for shape in shapes:
        assert most[TOGETHER, shape] <= min(most[PREFILL, shape], most[DECODE, shape])


def test_the_quickest_decodes_are_taken_where_that_is_asked():
    rate, pace = _of(DECODE), _of(DECODE, objective="latency")
    quick = {(one.pattern, one.kv_format): one.tpot_s for one in pace}
    assert all(quick[one.pattern, one.kv_format] <= one.tpot_s for one in rate)
    assert any(quick[one.pattern, one.kv_format] < one.tpot_s for one in rate)


def test_reading_prompts_takes_few_candidates():
    n_of = {role: sum(s.n_candidates for s, _ in _by_source(_of(role))) for role in ROLES}
    assert n_of[PREFILL] <= n_of[TOGETHER]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("role", ROLES)
def test_every_deployment_is_counted_anew_to_the_same(engine, role):
    asked = {"engine": engine, "model": "qwen3-30b-a3b"}
    some = _of(role, **asked)[::3]
    assert len(some) > 3
    for one in some:
        says = one.deployment()
        assert _counted(one, says, **asked)[1] == []
        assert says.role == role
        assert says.output_tokens_per_s == pytest.approx(one.output_tokens_per_s)
        assert says.planned_tpot_s == pytest.approx(one.tpot_s)
        if role != TOGETHER:
            assert says.planned_ttft_s == pytest.approx(one.ttft_s)
            assert says.kv_format == one.kv_format
            assert f"to {role}" in says.summary
            assert f"to {role}" in says.where
        assert (f"--role {role}" in says.command) == (role != TOGETHER)


def _altered(says):
    """Each figure of a deployment, and each choice, as something else."""
    for name in ("planned_tpot_s", "planned_ttft_s", "usd_per_token", "output_tokens_per_s"):
        yield name, replace(says, **{name: getattr(says, name) * 1.01 + 1e-3})
    for name in ("weights_bytes", "used_bytes", "capacity_bytes", "usd_per_hour"):
        yield name, replace(says, **{name: getattr(says, name) * 1.01})
    for name in ("tpot_s", "ttft_s"):
        times = getattr(says, name)
        yield name, replace(says, **{name: replace(times, value=times.value + 1e-3)})
    yield "role", replace(says, role="neither")
    for role in ROLES:
        if role != says.role:
            yield "role", replace(says, role=role)
    if says.role == PREFILL:
        yield "batch", replace(says, batch=says.batch + 100)
    else:
        yield "batch", replace(says, batch=5)
    if says.role == DECODE:
        yield "chunk_tokens", replace(says, chunk_tokens=says.batch - 1)


@pytest.mark.parametrize("role", ROLES)
def test_whatever_is_altered_of_a_deployment_is_found(role):
    one = _of(role)[-1]
    says = one.deployment()
    for name, altered in _altered(says):
        found = {it.path[0] for it in _counted(one, altered)[1] if it.path}
        assert name in found if altered.role == says.role or altered.role not in ROLES else found


def test_a_prompt_more_than_share_a_pass_is_refused():
    """1500 tokens: one in a chunk of 2048, two stages make two."""
    asked = {"engine": "sglang"}  # vLLM hands no caches over from several stages
    one = next(it for it in _of(PREFILL, **asked) if it.pattern.shape == (1, 1, 2))
    says = one.deployment()
    for chunk, batch, fits in ((2048, 2, True), (2048, 3, False), (4096, 4, True)):
        _, wrong = _counted(one, replace(says, chunk_tokens=chunk, batch=batch), **asked)
        assert any(it.path == ("batch",) for it in wrong) != fits
