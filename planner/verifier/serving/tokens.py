"""Tokens of one pass of a stage."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.stages_request import StagesRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one pass has of tokens.

    Args:
        decoding: sequences that decode, at a context of `context` cached tokens each.
        read: tokens of the one prompt that is read, after `past` of it.
    """

    decoding: float
    context: float
    read: float
    past: float

    @property
    def n(self) -> float:
        """That every matrix meets."""
        return self.decoding + self.read

    @property
    def n_logits(self) -> float:
        """Whose next token is wanted: each that decodes, and the last of a prompt."""
        return self.decoding + (1.0 if self.read else 0.0)


def tokens_of(asked: StagesRequest) -> Tokens:
    """Decode at the mean context; or a chunk in the middle of a prompt."""
    work = asked.work
    if work.phase == "decode":
        context = work.n_input_tokens + work.n_output_tokens / 2
        return Tokens(decoding=float(work.batch), context=context, read=0.0, past=0.0)
    chunk = float(min(asked.engine.n_chunk_tokens, work.n_input_tokens))
    return Tokens(decoding=0.0, context=0.0, read=chunk, past=(work.n_input_tokens - chunk) / 2)
