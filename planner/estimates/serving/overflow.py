"""What has no room in passes, pools or memory, and the largest value of its option that fits.

Weights are mended by more devices or fewer bytes a weight; activations by shorter passes,
`--chunk`; a sequence by fewer tokens, `--input` or `--output`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import Problem
from planner.estimates.pools import nearest_pools, pool_bytes
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.popularity import with_copies
from planner.estimates.serving.refusals import DEGREES
from planner.estimates.serving.rules import Context, is_valid
from planner.estimates.serving.traffic import Drafts, Traffic, has_room
from planner.specs.ask.targets import EXPERT_DEVICES, MICRO_BATCHES
from planner.specs.records.architecture import Architecture
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.roles import DECODE, TOGETHER
from planner.specs.records.served_formats import as_run

LEAST_CHUNK, LEAST_TOKENS = 1.0, 2.0
"""What no pass and no sequence goes below."""

_STAGES = (1, 2, 4, 8, 16)
_FACTORS = tuple(2**k for k in range(8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One deployment and what it is asked to hold.

    Args:
        table: of that one deployment.
        hbm_bytes: of one device.
        drafts: what proposes tokens ahead, beside the model.
    """

    model: Architecture
    engine: EngineSpec
    table: DeploymentTable
    traffic: Traffic
    hbm_bytes: float
    drafts: Drafts | None = None

    def holding(
        self,
        *,
        table: DeploymentTable | None = None,
        chunk_tokens: float | None = None,
        n_tokens: float | None = None,
    ) -> Holding:
        """Memory, of other deployments, with other passes or other sequences."""
        rows = self.table if table is None else table
        if chunk_tokens is not None:
            rows = rows.with_chunk(chunk_tokens)
        return holding(
            self.model,
            rows,
            rows.formats[int(rows.format_index[0])],
            self.engine,
            hbm_bytes=self.hbm_bytes,
            n_tokens=self.traffic.n_tokens if n_tokens is None else n_tokens,
            **self.traffic.sharing(),
            drafts=self.drafts,
        )

    def fits(self, *, chunk_tokens: float | None = None, n_tokens: float | None = None) -> bool:
        """Whether one sequence finds room."""
        held = self.holding(chunk_tokens=chunk_tokens, n_tokens=n_tokens)
        return bool(held.largest_batch[0] >= 1)


def chunk_problems(
    table: DeploymentTable, engine: EngineSpec, drafts: Drafts | None, role: str = TOGETHER
) -> Iterator[Problem]:
    """A pass that holds tokens of each sequence has to have room for one of a prompt.

    Of an engine that reads prompts by themselves any chunk has; where none is read, one that
    holds the batch.

    Args:
        drafts: that the pass checks; None if it decodes a token of each.
    """
    if has_room(engine, table, drafts, role)[0]:
        return
    batch, n_each = int(table.batch[0]), 1 + (drafts.n_drafted if drafts else 0)
    each = f"{n_each} tokens" if n_each > 1 else "a token"
    holds = f"a pass of {engine.name} holds {each} of each"
    beside, least = ("", 0) if role == DECODE else ("prompts beside ", 1)
    fact = f"has no room for {beside}a batch of {batch}: {holds}"
    remedy = f"write `--chunk {batch * n_each + least}` or more"
    yield Problem(where="--chunk", value=f"{table.chunk_tokens[0]:.0f}", fact=fact, remedy=remedy)


def pool_problems(
    model: Architecture, table: DeploymentTable, traffic: Traffic, drafts: Drafts | None
) -> Iterator[Problem]:
    """What a deployment of two pools cannot be or do."""
    if not model.expert_counts:
        fact = f"{model.name} has no experts"
        yield Problem(where=EXPERT_DEVICES, value=str(table.n_expert_devices[0]), fact=fact)
        return
    n, parts, batch = int(table.n_expert_devices[0]), table.n_microbatches[0], int(table.batch[0])
    counts = [it + int(table.n_redundant[0]) for it in model.expert_counts]
    near = _either(nearest_pools(counts, n))
    apart = "is of workers that decode: prompts are read where attention and experts lie"
    of_pools = (
        (traffic.role != DECODE, apart, "write `--role decode`"),
        (table.n_stages[0] > 1, "has one stage", "leave the others out"),
        (bool(drafts and drafts.kind), "is timed without drafts", "leave `--draft` out"),
        (table.overlaps[0], "overlaps in parts of its own", "leave one of the two out"),
        (table.n_expert_tensor[0] > 1, "hold whole experts", "cut none over several"),
        (bool(near), f"hold no equal parts of {min(counts)} experts", f"nearest: {near}"),
    )
    for hit, fact, remedy in of_pools:
        if hit:
            yield Problem(where=EXPERT_DEVICES, value=str(n), fact=fact, remedy=remedy)
    if parts > batch:
        fact, remedy = f"are more than the {batch} sequences of a rank", "write fewer"
        yield Problem(where=MICRO_BATCHES, value=str(parts), fact=fact, remedy=remedy)


def pool_overflows(
    model: Architecture, engine: EngineSpec, table: DeploymentTable, hbm_bytes: float
) -> Iterator[Problem]:
    """Experts that devices of their own have no room for."""
    n, limit = int(table.n_expert_devices[0]), hbm_bytes * engine.memory_fraction
    formats = as_run(model, table.formats[int(table.format_index[0])], engine)
    sizes = np.arange(1, max((0, *model.expert_counts)) + 1)
    some = table.take(np.zeros(len(sizes), dtype=np.int64))
    weights, activations = pool_bytes(model, replace(some, n_expert_devices=sizes), formats)
    held = weights + activations + engine.workspace_bytes
    if n and held[n - 1] > limit:
        is_equal = np.all([it % sizes == 0 for it in model.expert_counts], axis=0)
        fits = _either([*sizes[is_equal & (held <= limit)][:1]])
        fact = f"weights, buffers and the engine take {_gb(held[n - 1])} of a device of experts, "
        fact += f"of which it may take {_gb(limit)}"
        remedy = f"write {fits}" if fits else "use fewer bytes a weight"
        yield Problem(where=EXPERT_DEVICES, value=str(n), fact=fact, remedy=remedy)


def _either(sizes: list[int]) -> str:
    return " or ".join(f"`{EXPERT_DEVICES} {n}`" for n in sizes)


def size_problems(table: DeploymentTable, topology: str, n_devices: int) -> Iterator[Problem]:
    """A deployment of more devices than the topology that it is evaluated on has."""
    needed = int(table.n_devices[0])
    if needed > n_devices:
        fact = f"has {n_devices} devices, and the deployment takes {needed}"
        remedy = "name a larger one, or lower a degree"
        yield Problem(where="--topology", value=topology, fact=fact, remedy=remedy)


def overflows(account: Account) -> list[Problem]:
    """Which options ask for more memory than there is; empty if one sequence fits."""
    held = account.holding()
    if account.fits() or held.pool_bytes[0] > held.limit_bytes:
        return []  # devices of experts are told of by themselves
    if not account.fits(chunk_tokens=LEAST_CHUNK, n_tokens=LEAST_TOKENS):
        return [_weights(account)]
    chunk_alone = account.fits(n_tokens=LEAST_TOKENS)
    tokens_alone = account.fits(chunk_tokens=LEAST_CHUNK)
    if chunk_alone and tokens_alone:  # each would fit without the other: the larger one is named
        held = account.holding()
        sequence = held.sequence_bytes[0] + held.shared_bytes[0]
        return [_chunk(account) if held.activation_bytes[0] > sequence else _tokens(account)]
    if tokens_alone:
        return [_chunk(account)]
    if chunk_alone:
        return [_tokens(account)]
    usual = float(account.engine.n_chunk_tokens)
    chunk = usual if account.fits(chunk_tokens=usual, n_tokens=LEAST_TOKENS) else LEAST_CHUNK
    return [_chunk(account, most=chunk), _tokens(account, chunk_tokens=chunk)]


def _weights(account: Account) -> Problem:
    held, formats = account.holding(), account.table.formats[int(account.table.format_index[0])]
    fact = f"weights take {_gb(_parameters(held))} of a device{_drafted(held)}, {_room(held)}"
    more = "".join(f" with `{one}`" for one in _larger(account))
    remedy = f"they fit{more}, or in fewer bytes a weight" if more else "use fewer bytes a weight"
    return Problem(where="--weights", value=formats.weights, fact=fact, remedy=remedy)


def _chunk(account: Account, *, most: float | None = None) -> Problem:
    held, chunk = account.holding(), float(account.table.chunk_tokens[0])
    words = "write"
    if most is None:
        words = "write at most"
        most = _largest(lambda n: account.fits(chunk_tokens=n), chunk)
    fact = f"activations of such a pass take {_gb(held.activation_bytes[0])} of a device"
    beside = f" beside {_gb(_parameters(held))} of weights{_drafted(held)}, {_room(held)}"
    remedy = f"{words} `--chunk {most:.0f}`{_or_devices(account)}"
    return Problem(where="--chunk", value=f"{chunk:.0f}", fact=fact + beside, remedy=remedy)


def _tokens(account: Account, *, chunk_tokens: float | None = None) -> Problem:
    """Of input and output, the longer one is to give way."""
    traffic, held = account.traffic, account.holding()
    tokens = {
        "--input": traffic.n_input_tokens,
        "--output": traffic.n_tokens - traffic.n_input_tokens,
    }
    option = max(tokens, key=lambda name: tokens[name])
    other = traffic.n_tokens - tokens[option]
    most = _largest(lambda n: account.fits(chunk_tokens=chunk_tokens, n_tokens=n), traffic.n_tokens)
    cached = _gb(held.sequence_bytes[0] + held.shared_bytes[0])
    fact = f"the cache of one sequence takes {cached} of a device beside "
    fact += f"{_gb(_parameters(held))} of weights{_drafted(held)}, {_room(held)}"
    least = most - int(other)
    remedy = f"write at most `{option} {least}`" if least >= 1 else f"at most {most} tokens fit"
    remedy += _or_devices(account)
    return Problem(where=option, value=f"{tokens[option]:.0f}", fact=fact, remedy=remedy)


def _or_devices(account: Account) -> str:
    return "".join(f", or `{one}`" for one in _larger(account))


def _parameters(held: Holding) -> float:
    """The model's and the drafter's on a device [bytes]."""
    return float(held.weights_bytes[0] + held.drafter_bytes[0])


def _drafted(held: Holding) -> str:
    """How much of the weights a draft would save."""
    drafter = float(held.drafter_bytes[0])
    return f" ({_gb(drafter)} of them for `--draft`)" if drafter else ""


def _room(held: Holding) -> str:
    return (
        f"{_gb(held.workspace_bytes)} are the engine's, and it may take "
        f"{_gb(held.limit_bytes)} in all"
    )


def _gb(size: float) -> str:
    return f"{size / 1e9:.3g} GB" if size < 1e12 else f"{size / 1e12:.3g} TB"


def _largest(fits: Callable[[float], bool], beyond: float) -> int:
    """The largest whole number below `beyond` that fits, of a rule that is lost only once."""
    low, high = 1, int(beyond)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(float(middle)) else (low, middle)
    return low


def _larger(account: Account) -> Iterator[str]:
    """The options of the smallest larger deployment in which one sequence fits, if any does."""
    rows = _grown(account)
    if not len(rows) or account.table.has_pools:
        return
    fits = np.flatnonzero(account.holding(table=rows).largest_batch >= 1)
    if len(fits):
        row = fits[np.argmin(rows.n_devices[fits])]
        changed = {
            option: int(getattr(rows, name)[row])
            for name, option in DEGREES.items()
            if getattr(rows, name)[row] != getattr(account.table, name)[0]
        }
        yield " ".join(f"{option} {degree}" for option, degree in changed.items())


def _grown(account: Account) -> DeploymentTable:
    """Deployments with larger degrees: heads shared by more, or more ranks that share experts."""
    table, model = account.table, account.model
    degrees = {name: int(getattr(table, name)[0]) for name in DEGREES}
    growing = ("n_data", "n_expert_parallel") if degrees["n_expert_parallel"] > 1 else ("n_tensor",)
    ways = [
        {
            name: n * (k if name in growing else s if name == "n_stages" else 1)
            for name, n in degrees.items()
        }
        for s in _STAGES  # of as many devices those with the fewest stages come first
        for k in _FACTORS
    ]
    rows = deployments(
        formats=table.formats,
        format_index=table.format_index[0],
        batch=table.batch[0],
        chunk_tokens=table.chunk_tokens[0],
        **{name: np.array([way[name] for way in ways]) for name in degrees},
    )
    ground = Context(rules=account.engine.rules)
    rows = with_copies(model, rows, account.engine, ground)
    return rows.take(is_valid(model, rows, ground))
