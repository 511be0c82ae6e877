"""The field table `keys.toml`: what a key of a `config.json` means, and which mean nothing here.

Families name the same thing differently. `MEANINGS` has the names of each thing, the
usual one first. Keys that no family asks for are one of three: known not to matter
(`is_irrelevant`), able to change the shape of a model (`is_shapely`), or neither.
"""

import re
from collections.abc import Mapping, Sequence

from planner.quantities.tables import packaged_table

_KEYS = packaged_table("specs/huggingface/keys.toml")

MEANINGS: Mapping[str, Sequence[str]] = _KEYS["meanings"]
"""Names of one thing in all families, by what this package calls it."""

REFUSED = {
    family: (row["fact"], row["remedy"])
    for row in _KEYS["refused"]
    for family in row["families"].split()
}
"""Families that are known and not read, by `model_type`: why not, and what to do instead."""

DTYPES: Mapping[str, str] = _KEYS["dtypes"]
ALGORITHMS: Mapping[str, str] = _KEYS["algorithms"]
RECURRENCES: Mapping[str, str] = _KEYS["recurrences"]
"""What recurrences are called, by their kind."""

_IRRELEVANT = frozenset(_KEYS["irrelevant"].split())
_IRRELEVANT_ENDS = re.compile(
    r"(_token_id|_token_ids|_token_index|_tokens_id|_eps|_epsilon|_dropout|_coef|_pdrop|_range"
    r"|_softcapping|_alpha|_beta|_std|_loss_weight)$"
)
_IRRELEVANT_STARTS = re.compile(r"^(rope_|mrope_|mup_|initializer_|layernorm_|im_|vision_|audio_)")
_IRRELEVANT_STARTS_EXCEPT = re.compile(r"_(layers?|types?|heads?|pattern|interval)$")

_SHAPELY = re.compile(
    r"(^|_)(n|num|d|dim|dims|size|sizes|rank|ranks|layer|layers|head|heads|type|types|pattern"
    r"|patterns|list|period|offset|interval|freq|step|stride|ratio|ratios|expert|experts|mult"
    r"|width|wide|depth|block|blocks|window|windows|chunk|chunks|shared|share|expand|kernel"
    r"|groups?|bias|norm|gate|gated|rows|columns|conv|state|lora|latent|mtp|nextn|predict"
    r"|attn|attention|mlp|ffn|moe|mamba|ssm|linear|recurrent|sparse|dense|cla|kv|index|indexer"
    r"|compress|hash|topk|factor)($|_|\d)"
)
_SWITCH = re.compile(r"^(use|enable|has|with|add|is)_")


def is_irrelevant(key: str) -> bool:
    """Whether a key is known to change neither weights nor caches."""
    key = key.rpartition(".")[2]
    if key in _IRRELEVANT or _IRRELEVANT_ENDS.search(key):
        return True
    return bool(_IRRELEVANT_STARTS.match(key) and not _IRRELEVANT_STARTS_EXCEPT.search(key))


def is_shapely(key: str, value: object) -> bool:
    """Whether a key that nothing is known about could change the shape of the model.

    What is absent or off, `null`, `false`, `0` or empty, changes nothing.
    """
    if not value:
        return False
    if value is True and _SWITCH.match(key):
        return True
    return bool(_SHAPELY.search(key))
