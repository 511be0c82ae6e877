"""Over how many nodes replicas lie, beside every way to lay them out on up to 16 devices.

    python -m tests.placing.spreading [N] [SEED]      N placements, 60 where nothing is said

Servers are empty or in use in part; in every fourth case each replica does one phase. What a
replica of a shape and role does on so many nodes is taken from the planner; where replicas lie is
tried by hand: all of them, node by node, by dynamic programming over what is left of each node.
Of phases apart the less is served: tokens that are written, and those for which prompts are read.
A placement is spread further than it needs if some other within 0.5 % of the best has fewer
nodes beyond one a replica.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from planner import Placement, Serve, SolverOptions, Targets, Workload, load_architecture, place
from planner.errors import NoPlanError
from planner.placing.asking import placement_request
from planner.placing.handing import may_hand_over
from planner.placing.planning import task_of
from planner.placing.roles import asked_roles
from planner.placing.searching import offered
from planner.specs.files.pools import load_site
from planner.specs.files.state import State
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER

NEAR = 0.005
MODELS = ("llama-3.1-8b", "qwen3-32b", "llama-3.1-70b", "gpt-oss-120b", "qwen3-235b-a22b")
OPTIONS = SolverOptions(sort_price=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, and devices of each node of eight that others use.

    Args:
        demand_tokens_per_s: None asks for the most that can be served.
        roles: `together`, or `apart`: under vLLM and without a target on TTFT, so that each may
            hand over to each.
    """

    model: str
    engine: str
    topology: str
    busy: tuple[int, ...]
    tpot_s: float
    demand_tokens_per_s: float | None
    roles: str = "together"

    @property
    def is_apart(self) -> bool:
        return self.roles == "apart"

    @property
    def free(self) -> tuple[int, ...]:
        return tuple(8 - n for n in self.busy)

    @property
    def state(self) -> State:
        busy = [f"node{i}/gpu{g}" for i, n in enumerate(self.busy) for g in range(8 - n, 8)]
        return State(busy=tuple(busy))

    @property
    def asked(self) -> dict[str, object]:
        return {
            "engine": self.engine,
            "workload": Workload(n_input_tokens=1000, n_output_tokens=300),
            "targets": Targets(tpot_s=self.tpot_s, ttft_s=None if self.is_apart else 3.0),
            "state": self.state,
            "objective": "throughput" if self.demand_tokens_per_s is None else "devices",
            "batches": (1, 4, 16, 64, 256),
            "roles": self.roles,
        }

    @property
    def serve(self) -> Serve:
        model = load_architecture(self.model)
        return Serve(model=model, demand_tokens_per_s=self.demand_tokens_per_s)


def drawn(seed: int) -> Case:
    """A case of two servers, empty or half filled."""
    rng = np.random.default_rng(seed)
    busy = [(0, 0), (4, 4), (2, 6), (5, 5), (3, 3), (7, 1), (6, 6), (1, 1)][int(rng.integers(8))]
    is_apart = seed % 4 == 1
    return Case(
        model=str(rng.choice(MODELS)),
        engine=str(rng.choice(["vllm", "vllm" if is_apart else "sglang"])),
        topology=str(rng.choice(["h100-nvl8-x2", "h200-nvl8-x2"])),
        busy=busy,
        tpot_s=float(rng.choice([0.02, 0.05, 0.1])),
        demand_tokens_per_s=None if rng.random() < 0.5 else float(rng.choice([500, 2000, 6000])),
        roles="apart" if is_apart else "together",
    )


def placed(case: Case) -> Placement:
    return place(load_site(case.topology), case.serve, options=OPTIONS, **case.asked)


Rates = tuple[float, float]
"""Tokens a second for which prompts are read, and that are written."""


def rates(case: Case) -> list[tuple[int, int, Rates]]:
    """Replicas of so many devices on each of so many nodes: the most tokens a second, by role."""
    said = {**case.asked}
    roles = asked_roles(str(said.pop("roles")), None, prefill_devices=None, decode_devices=None)
    asked = placement_request(
        load_site(case.topology),
        case.serve,
        limits=None,
        most_devices=None,
        options=OPTIONS,
        roles=roles,
        **said,
    )
    found = [*offered(task_of(asked, None), whole=True).configurations]
    best: dict[tuple[int, int, str], float] = {}
    for one in found:
        assert len({*one.pattern.pieces}) == 1
        key = one.pattern.pieces[0], len(one.pattern.pieces), one.role
        best[key] = max(best.get(key, 0.0), one.output_tokens_per_s)
    apart = [one for one in found if one.role != TOGETHER]
    may = may_hand_over(apart)
    reads = np.array([one.role == PREFILL for one in apart], bool)
    assert may[np.ix_(reads, ~reads)].all(), "a pair is not let"
    does = {TOGETHER: (1.0, 1.0), PREFILL: (1.0, 0.0), DECODE: (0.0, 1.0)}
    return [
        (size, n_nodes, (rate * does[role][0], rate * does[role][1]))
        for (size, n_nodes, role), rate in sorted(best.items())
    ]


def fewest_nodes(case: Case) -> tuple[float, int] | None:
    """The best objective, and the fewest nodes beyond one a replica within 0.5 % of it."""
    options = rates(case)
    demand = case.demand_tokens_per_s or np.inf

    @cache
    def ways(left: tuple[int, ...], first: int) -> dict[tuple[int, int], list[Rates]]:
        """What replicas from the first option on do, by devices and further nodes: no less."""
        best: dict[tuple[int, int], list[Rates]] = {(0, 0): [(0.0, 0.0)]}
        for i in range(first, len(options)):
            size, n_nodes, rate = options[i]
            for nodes in combinations(range(len(left)), n_nodes):
                if any(left[n] < size for n in nodes):
                    continue
                rest = tuple(f - size * (n in nodes) for n, f in enumerate(left))
                for (devices, further), others in ways(rest, i).items():
                    key = devices + size * n_nodes, further + n_nodes - 1
                    both = [(read + rate[0], wrote + rate[1]) for read, wrote in others]
                    best[key] = _most([*best.get(key, []), *both])
        return best

    found = {key: max(map(min, each)) for key, each in ways(case.free, 0).items()}
    if case.demand_tokens_per_s is None:
        most = max(found.values())
        near = [k for (_, k), value in found.items() if value >= most * (1 - NEAR) * (1 - 1e-9)]
        return (most, min(near)) if most > 0 else None
    enough = [key for key, value in found.items() if value >= demand * (1 - 1e-9)]
    if not enough:
        return None
    least = min(devices for devices, _ in enough)
    return float(least), min(k for devices, k in enough if devices <= least * (1 + NEAR))


def _most(some: list[Rates]) -> list[Rates]:
    """Those of which none does more of both."""
    kept: list[Rates] = []
    for one in sorted(set(some), reverse=True):
        if not kept or one[1] > kept[-1][1]:
            kept.append(one)
    return kept


def further_nodes(placement: Placement) -> int:
    """Nodes beyond one a replica."""
    return sum(len(one.nodes) - 1 for one in placement.replicas)


def shares(placement: Placement) -> list[set[int]]:
    """Of each replica the different numbers of devices that it has on a node."""
    found = []
    for one in placement.replicas:
        names = [rank.node for rank in one.ranks]
        found.append({names.count(name) for name in names})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was placed, and what could be."""

    case: Case
    placement: Placement | None
    best: tuple[float, int] | None

    @property
    def is_right(self) -> bool:
        if self.placement is None or self.best is None:
            return self.placement is None and self.best is None
        value, further = self.best
        is_most = self.case.demand_tokens_per_s is None
        got = self.placement.output_tokens_per_s if is_most else float(self.placement.n_used)
        is_near = got >= value * (1 - NEAR) * (1 - 1e-9) if is_most else got <= value * (1 + NEAR)
        is_even = all(len(one) == 1 for one in shares(self.placement))
        return is_near and is_even and further_nodes(self.placement) <= further

    @property
    def line(self) -> str:
        case, at = self.case, self.placement
        got = "none" if at is None else f"{at.output_tokens_per_s:.0f} tok/s on {at.n_used}"
        nodes = "" if at is None else f"{further_nodes(at)} further nodes"
        asked = case.demand_tokens_per_s or "most"
        word = "right" if self.is_right else "WRONG"
        return (
            f"{word} {case.roles} {case.model} {case.engine} {case.topology} free {case.free} "
            f"{case.tpot_s * 1e3:.0f} ms {asked}: {got}, {nodes}; by hand {self.best}"
        )


def looked(case: Case) -> Looked:
    """A case placed, and tried by hand."""
    try:
        found: Placement | None = placed(case)
    except NoPlanError:
        found = None
    return Looked(case=case, placement=found, best=fewest_nodes(case))


def main(words: list[str]) -> int:
    """Print each case, and how many are spread further than they need; 1 if any is."""
    n_cases, seed = (
        (int(word) for word in (*words, "60", "0")[:2]) if len(words) < 2 else map(int, words)
    )
    began_s, wrong = time.process_time(), 0
    for number in range(seed, seed + n_cases):
        one = looked(drawn(number))
        wrong += not one.is_right
        print(number, one.line, flush=True)
    print(f"{n_cases - wrong} of {n_cases} right, {time.process_time() - began_s:.0f} s of CPU")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
