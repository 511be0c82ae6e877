"""Modules that a quantization leaves as they are: attention, experts or FFNs, by their names.

Who quantises lists names, names with `*` (ModelOpt, transformers) or regular expressions behind
`re:` (compressed-tensors), of whole modules or of parts of them. A part of a model counts as left
out where most of its layers do.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from typing import Any

from planner.errors import Problem

KEYS = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers")
"""Of lists of such modules: transformers, compressed-tensors, ModelOpt, vLLM."""

ATTENTION = ("self_attn.q_proj", "self_attn.q_b_proj", "linear_attn.in_proj_qkv", "attn.wq_b")
EXPERTS = ("mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w2", "experts.0.down_proj")
FFNS = ("mlp.down_proj",)
"""Modules that stand for their part, by families: those that read the most of its weights."""

_EXPRESSION = "re:"
_LONGEST, _MOST_REPEATED = 200, 6
"""Of an expression that is read: more could take for ever."""


def leaves_out(
    table: dict[str, Any], modules: Sequence[str], n_layers: int, *, about: str = ""
) -> bool:
    """Whether the lists of a table leave out one of some modules in most layers.

    Args:
        about: words alone count that speak of it, if named: `layers.3.mlp*` beside
            `layers.3.experts.0` is no experts.
    """
    words = [word for _, word in _words(table) if isinstance(word, str) and about in word]
    names, patterns = set[str](), list[Callable[[str], Any]]()
    for word in words:
        if word.startswith(_EXPRESSION):
            patterns += filter(None, [_expression(word)])
        elif "*" in word:
            below = _below_layers(word)
            patterns += [_glob(below), _glob(f"{below}.*")]
        else:
            names.add(_below_layers(word))

    def is_left(module: str) -> bool:
        parts = module.split(".")
        ends = range(1, len(parts) + 1)
        is_named = any(".".join(parts[a:b]) in names for b in ends for a in range(b))
        return is_named or any(matches(module) for matches in patterns)

    n_left = sum(any(is_left(f"layers.{i}.{it}") for it in modules) for i in range(n_layers))
    return 2 * n_left > n_layers


def unread(table: dict[str, Any], shown: str, key: str) -> Iterator[Problem]:
    """What in the lists of a table is no module, or an expression that is not read."""
    for name, word in _words(table):
        if not isinstance(word, str):
            fact = "is no name of a module"
        elif word.startswith(_EXPRESSION) and _expression(word) is None:
            fact = "is no expression that is understood"
        else:
            continue
        yield Problem(where=shown, key=f"{key}.{name}", value=str(word)[:60], fact=fact)


def _words(table: dict[str, Any]) -> Iterator[tuple[str, object]]:
    for key in KEYS:
        said = table.get(key)
        listed = said if isinstance(said, list) else [said]
        yield from ((key, word) for word in listed if word is not None)


def _below_layers(word: str) -> str:
    """A module without what holds the decoder: `model.language_model.layers.3.mlp`."""
    _, layers, rest = word.partition("layers.")
    return layers + rest if layers else word


def _glob(pattern: str) -> Callable[[str], Any]:
    return re.compile(translate(re.sub(r"\*+", "*", pattern))).match


def _expression(word: str) -> Callable[[str], Any] | None:
    """A regular expression; None where it is none, or could take for ever.

    Names of modules begin with `model.`, which an expression may say.
    """
    text = word.removeprefix(_EXPRESSION)
    repeated = len(re.findall(r"[*+{]", text))
    if len(text) > _LONGEST or repeated > _MOST_REPEATED or re.search(r"\)[*+{]", text):
        return None
    try:
        match = re.compile(text).match
    except re.error:
        return None
    return lambda module: match(f"model.{module}") or match(f"language_model.model.{module}")
