"""Tokens of one pass of an attention rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.specs.stages_request import StagesRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one pass has of tokens.

    Args:
        decoding: sequences that decode, at a context of `context` cached tokens each.
        positions: of each of them that are scored: one, and those that were drafted.
        prompts: that are read: `read` tokens of each, after `past` of it.
    """

    decoding: float = 0.0
    positions: float = 1.0
    context: float = 0.0
    prompts: float = 0.0
    read: float = 0.0
    past: float = 0.0

    @property
    def scored(self) -> float:
        """Positions of all sequences that decode."""
        return self.decoding * self.positions

    @property
    def new(self) -> float:
        """Tokens of prompts."""
        return self.prompts * self.read

    @property
    def n(self) -> float:
        """That every matrix meets."""
        return self.scored + self.new

    @property
    def n_logits(self) -> float:
        """Whose next token is wanted: each that decodes, and the last of a prompt."""
        return self.scored + self.prompts

    def beside(self, reading: Tokens) -> Tokens:
        """The same with prompts that ride along."""
        prompts, read, past = reading.prompts, reading.read, reading.past
        return replace(self, prompts=prompts, read=read, past=past)

    def halved(self) -> Tokens:
        """Of one of two micro-batches."""
        return replace(self, decoding=self.decoding / 2, prompts=self.prompts / 2)


def tokens_of(asked: StagesRequest) -> Tokens:
    """Decode at the mean context; or a chunk in the middle of a prompt."""
    work = asked.work
    if work.phase == "decode":
        context = work.n_input_tokens + work.n_output_tokens / 2
        return Tokens(decoding=float(work.batch), context=context)
    chunk = float(min(asked.engine.n_chunk_tokens, work.n_input_tokens))
    return Tokens(prompts=1.0, read=chunk, past=(work.n_input_tokens - chunk) / 2)
