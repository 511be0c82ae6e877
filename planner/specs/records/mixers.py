"""How a layer mixes tokens: attention of several kinds, and recurrences with a state.

Each mixer knows its parameters, what one token leaves in the cache, and what one
sequence keeps whatever its length. Widths are in numbers, not bytes: formats are the
caller's choice. Biases and norms are counted where a family has them, because
published counts include them.
"""

from dataclasses import dataclass
from typing import Literal

Span = Literal["all", "window", "chunk"]
StateKind = Literal["delta", "kda", "mamba1", "mamba2", "lightning", "convolution", "rwkv6"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedAttention:
    """Softmax attention over cached keys and values; heads of a group share theirs.

    Multi-head (`n_kv_heads == n_heads`), grouped-query and multi-query (`n_kv_heads == 1`).

    Args:
        d_head: width of a head's query and key.
        d_value_head: width of a head's value.
        span: `all` tokens, a sliding `window` of the last `n_span_tokens`, or the `chunk` of that
            many tokens that the query lies in.
        n_span_tokens: width of the window or chunk; None with `all`.
        is_gated: the output is multiplied by a gate as wide as the queries, which has columns of
            its own in the query projection.
        makes_keys: False where it reads an earlier layer's cache and has none of its own.
        shares_values: values are the keys themselves, so that half is projected and cached.
        n_other_params: biases, norms of queries and keys, sinks.
        shares_projection: values are made by the projection of the keys, but cached beside them:
            keys are normed and rotated, values are not (Gemma 4).
        norms_heads: queries and keys are normed before they are rotated.
    """

    n_heads: int
    n_kv_heads: int
    d_head: int
    d_value_head: int
    span: Span = "all"
    n_span_tokens: int | None = None
    is_gated: bool = False
    makes_keys: bool = True
    shares_values: bool = False
    n_other_params: int = 0
    shares_projection: bool = False
    norms_heads: bool = False

    @property
    def has_inner_norms(self) -> bool:
        """Whether anything is normed between its projections."""
        return self.norms_heads

    @property
    def d_queries(self) -> int:
        """Columns of the query projection, gate included."""
        return self.n_heads * self.d_head * (2 if self.is_gated else 1)

    @property
    def d_keys_and_values(self) -> int:
        """Columns of the key and value projections."""
        if self.makes_keys and self.shares_projection:
            return self.n_kv_heads * self.d_head
        return self.d_cached

    def n_params(self, d_model: int) -> int:
        inputs = d_model * (self.d_queries + self.d_keys_and_values)
        return inputs + self.n_heads * self.d_value_head * d_model + self.n_other_params

    @property
    def d_cached(self) -> int:
        """Numbers that one token leaves in the cache of this layer."""
        if not self.makes_keys:
            return 0
        return self.d_read

    @property
    def d_kept(self) -> int:
        return self.d_cached

    @property
    def d_read(self) -> int:
        """Numbers of a token that queries meet, in its own cache or an earlier layer's."""
        return self.n_kv_heads * (self.d_head + (0 if self.shares_values else self.d_value_head))

    def n_cached_tokens(self, n_tokens: float) -> float:
        """Tokens of a sequence of `n_tokens` that this layer keeps."""
        kept = n_tokens if self.n_span_tokens is None else min(n_tokens, self.n_span_tokens)
        return kept if self.makes_keys else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """What picks the tokens of sparse attention: small heads that score every cached token.

    Args:
        n_heads: heads that score.
        d_head: width of their queries, and of the one key a token that they share.
        n_selected_tokens: tokens that attention then reads.
        n_other_params: of its norms.
        is_shared: it reads what an earlier layer's picked: no weights, no keys, no scores.
    """

    n_heads: int
    d_head: int
    n_selected_tokens: int
    n_other_params: int = 0
    is_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: one latent and one rotated key a token, for all heads.

    Args:
        d_q_latent: width of the latent that queries are made from; None if they are not.
        indexer: what picks tokens, where attention is sparse (DeepSeek-V3.2, GLM-5).
        n_other_params: norms of the latents.
    """

    n_heads: int
    d_kv_latent: int
    d_q_latent: int | None
    d_rope: int
    d_nope: int
    d_value_head: int
    indexer: Indexer | None = None
    n_other_params: int = 0

    @property
    def has_inner_norms(self) -> bool:
        """Whether anything but latents is: the keys of an indexer."""
        return self.own_indexer is not None

    @property
    def own_indexer(self) -> Indexer | None:
        """What the layer scores tokens with itself; not what it takes over from an earlier one."""
        return None if self.indexer is None or self.indexer.is_shared else self.indexer

    @property
    def d_head(self) -> int:
        return self.d_rope + self.d_nope

    def n_params(self, d_model: int) -> int:
        d_queries = self.n_heads * self.d_head
        queries = d_model * d_queries
        if self.d_q_latent is not None:
            queries = self.d_q_latent * (d_model + d_queries)
        latent = d_model * self.d_cached
        made = self.d_kv_latent * self.n_heads * (self.d_nope + self.d_value_head)
        output = self.n_heads * self.d_value_head * d_model
        return (
            queries + latent + made + output + self._indexer_params(d_model) + self.n_other_params
        )

    def _indexer_params(self, d_model: int) -> int:
        index = self.own_indexer
        if index is None:
            return 0
        d_from = d_model if self.d_q_latent is None else self.d_q_latent
        heads, width = index.n_heads, index.d_head
        return d_from * heads * width + d_model * (width + heads) + index.n_other_params

    @property
    def d_cached(self) -> int:
        """Numbers of the latent and the rotated key; an indexer's key is kept beside them."""
        return self.d_kv_latent + self.d_rope

    @property
    def d_read(self) -> int:
        return self.d_cached

    @property
    def d_kept(self) -> int:
        """Numbers of a token that are kept: of the cache, and of the key of its own indexer."""
        return self.d_cached + (self.own_indexer.d_head if self.own_indexer else 0)

    def n_cached_tokens(self, n_tokens: float) -> float:
        return n_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """Linear attention or a state-space layer: a state of fixed size instead of a cache.

    Args:
        kind: `delta` (gated delta net), `kda` (one with a decay a channel), `mamba1`, `mamba2`,
            `lightning` attention, `rwkv6`, or a short `convolution` alone.
        n_heads: heads of the state (value heads of a delta net).
        d_key: rows of one head's state: key width, or state size of Mamba.
        d_value: columns of one head's state: value width, or channels a head of Mamba.
        n_groups: heads whose keys are shared: key heads of a delta net, groups of Mamba 2.
        n_conv_taps: taps of the short convolution before it; 0 without.
        d_conv: channels that the convolution runs over.
        n_input_columns: columns of all input projections together.
        n_output_rows: rows of the output projection.
        n_other_params: what is neither an input nor an output projection: taps, norms, decays,
            time steps.
        state_bytes_per_number: states are kept in single precision unless told
            otherwise.
    """

    kind: StateKind
    n_heads: int
    d_key: int
    d_value: int
    n_groups: int
    n_conv_taps: int
    d_conv: int
    n_input_columns: int
    n_output_rows: int
    n_other_params: int = 0
    state_bytes_per_number: float = 4.0

    # Of every recurrence: what enters a state and what leaves it is normed, and no token is cached.
    has_inner_norms = True
    d_cached = d_kept = d_read = 0

    def n_params(self, d_model: int) -> int:
        return d_model * (self.n_input_columns + self.n_output_rows) + self.n_other_params

    def n_cached_tokens(self, n_tokens: float) -> float:
        return 0

    @property
    def n_state_numbers(self) -> int:
        """Numbers of one sequence's recurrent state in this layer."""
        return self.n_heads * self.d_key * self.d_value

    @property
    def n_conv_numbers(self) -> int:
        """Inputs of the convolution that one sequence keeps in this layer."""
        return max(0, self.n_conv_taps - 1) * self.d_conv


Mixer = GroupedAttention | LatentAttention | Recurrence
