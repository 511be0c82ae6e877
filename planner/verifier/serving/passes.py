"""One pass of a deployment: its layers, what is outside of them, and what overlap hides."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.results.predictions import Interval
from planner.verifier.serving.kernels import Run
from planner.verifier.serving.layers import (
    Spent,
    embedding_spent,
    encoder_spent,
    head_spent,
    layer_spent,
    unfilled_s,
)
from planner.verifier.serving.mixers import Tokens
from planner.verifier.serving.pools import Rounds, pass_s, rounds_of
from planner.verifier.serving.ranks import COUNTED, ERRORS, Rank

HOST_ERROR = 0.5
"""Relative error of what hosts take, `assumed`."""

OUTSIDE = "model"
"""What kernels outside of all layers have as their layer."""

OF_A_MEDIAN = 1.4826
"""Standard deviations of a normal error in one of its medians."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass of all stages, one after the other.

    Args:
        seconds: of devices, messages behind kernels and kernels behind messages once.
        by_form: seconds of whatever is timed by one form times its error.
        listed_s: of all kernels and messages, whether hidden or not.
        n_parts: micro-batches that go through the layers.
        rounds: of them between devices of attention and of experts, where these are apart.
        spent: kernels and messages of one micro-batch, each with its class of layers, `model`
            outside of them, and how often a micro-batch runs it.
    """

    seconds: float
    by_form: Mapping[str, float]
    listed_s: float
    n_parts: float
    spent: Sequence[tuple[str, int, Spent]]
    rounds: Sequence[Rounds] = ()

    @property
    def hidden_s(self) -> float:
        """Of messages behind kernels, and of kernels behind messages."""
        return self.listed_s - self.seconds if self.n_parts > 1 else 0.0

    def error(self, host_s: float) -> float:
        """Relative standard deviation, with what hosts take: forms err apart from each other."""
        squares = (host_s * HOST_ERROR) ** 2 + sum(one**2 for one in self.by_form.values())
        return OF_A_MEDIAN * math.sqrt(squares) / (host_s + self.listed_s)


def interval(value: float, error: float) -> Interval:
    """What is within a relative standard deviation of a value; a ratio, as errors are."""
    return Interval(value=value, low=value / (1 + error), high=value * (1 + error))


def pass_of(rank: Rank, tokens: Tokens, *, overlaps: bool, message_share: float) -> Pass:
    """Of one deployment.

    Args:
        overlaps: two micro-batches hide each other's messages.
        message_share: of multiprocessors that messages take while prompts are read.
    """
    n_parts = _n_parts(rank, tokens, overlaps=overlaps)
    once = tokens.parted(n_parts)
    outside = [*_outside(rank, tokens), *encoder_spent(rank, tokens)]
    seconds = sum(n * spent.seconds for n, spent in outside)
    # how often a pass runs each kernel: what is outside of layers sees both halves of its tokens
    runs = [(float(n), spent) for n, spent in outside]
    named, rounds = [], []
    for layer in rank.model.layers:
        spent = layer_spent(layer, rank, once)
        runs += [(layer.n_layers * n_parts, one) for one in spent]
        named += [(layer.name, layer.n_layers, one) for one in spent]
        sums = _sums(spent)
        if rank.n_expert_devices:  # of one micro-batch's host is counted beside the pass
            rounds.append(rounds_of(layer, sums, n_parts))
            seconds += layer.n_layers * (n_parts - 1) * unfilled_s(layer, rank.kernels.engine)
        elif overlaps:
            reads = tokens.prompts > 0
            seconds += layer.n_layers * _overlapped_s(sums, message_share, reads=reads)
        else:
            seconds += layer.n_layers * sum(sums.values())
    by_form: dict[str, float] = {}
    for times, one in runs:
        by_form[one.form] = by_form.get(one.form, 0.0) + times * one.seconds * one.error
    return Pass(
        seconds=seconds + pass_s(rounds),
        by_form=by_form,
        listed_s=sum(times * one.seconds for times, one in runs),
        n_parts=n_parts,
        spent=[*named, *((OUTSIDE, *each) for each in outside)],
        rounds=rounds,
    )


def _n_parts(rank: Rank, tokens: Tokens, *, overlaps: bool) -> float:
    """Micro-batches of a pass: of those that go between pools none has less than a sequence."""
    if rank.n_expert_devices:
        return min(float(rank.n_microbatches), tokens.decoding)
    return 2.0 if overlaps else 1.0


def _outside(rank: Rank, tokens: Tokens) -> list[tuple[int, Spent]]:
    """The embedding, the head, and what stages hand on, once each."""
    n_bytes = tokens.n * rank.model.d_model * 2 / rank.n_tensor
    handed_s = sum(rank.links.send_s(n_bytes, leaves_node=leaves) for leaves in _hand_overs(rank))
    n_sends = rank.n_stages - 1
    handing = Run(
        name="hand-over between stages",
        part="model",
        family="send",
        arguments={"n_bytes": n_bytes, "n_sends": n_sends, "n_group": rank.n_group},
        sent_bytes=n_sends * n_bytes,
    )
    handed = Spent(run=handing, seconds=handed_s, form=COUNTED, error=ERRORS[COUNTED])
    ends = (embedding_spent(rank, tokens.n), *head_spent(rank, tokens.n_logits), handed)
    return [(1, one) for one in ends]


def _hand_overs(rank: Rank) -> Iterator[bool]:
    """Of each stage but the first, whether a device gets its input from another node.

    Devices fill one node after the other: device i of a stage hands to i + group.
    """
    group, per_node = rank.n_group, rank.links.n_per_node
    for stage in range(1, rank.n_stages):
        first = (stage - 1) * group
        yield any(i // per_node != (i + group) // per_node for i in range(first, first + group))


def _sums(spent: Iterable[Spent]) -> dict[str, float]:
    parts = ("project", "attend", "feed", "share", "dispatch", "combine", "reduce")
    sums = dict.fromkeys(parts, 0.0)
    for one in spent:
        sums[one.run.part] += one.seconds
    return sums


def _overlapped_s(once: Mapping[str, float], message_share: float, *, reads: bool) -> float:
    """Both halves of a layer; without messages to hide they run one after the other."""
    if not (once["dispatch"] or once["combine"]):
        return 2 * sum(once.values())
    return _reading_s(once, 1 - message_share) if reads else _decoding_s(once)


def _reading_s(once: Mapping[str, float], left: float) -> float:
    """Two halves of a prompt's pass: kernels of one beside messages of the other."""
    mixing = (once["project"] + once["attend"]) / left
    feeding = (once["feed"] + once["share"]) / left
    there, back = once["dispatch"], once["combine"]
    behind_mixing = max(mixing, back) + max(mixing, there)
    return behind_mixing + max(feeding, there) + max(feeding, back) + 2 * once["reduce"]


def _decoding_s(once: Mapping[str, float]) -> float:
    """Two halves of a decode pass: messages of one behind what the other does before or after."""
    ahead = max(once["project"] + once["share"], once["dispatch"])
    behind = max(once["attend"], once["combine"])
    return 2 * (ahead + once["feed"] + once["reduce"] + behind)
