"""A `config.json` of Hugging Face as an `Architecture`: plain JSON, offline.

A key that is not understood and could change the shape is an error, never a guess.
Of parts that see or hear only the size is read; the decoder is that of `text_config`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.specs.files.ledger import Use
from planner.specs.files.texts import UnreadError, json_of, read_text
from planner.specs.huggingface.encoders import known_encoders
from planner.specs.huggingface.families import FAMILIES
from planner.specs.huggingface.fields import Fields
from planner.specs.huggingface.formats import Quantised, format_of_dtype, quantised, together
from planner.specs.huggingface.layers import Body, class_of, classes_of, name_of
from planner.specs.huggingface.locating import HubConfig, locate, read_variant
from planner.specs.huggingface.names import REFUSED
from planner.specs.huggingface.parts import Traits
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.models import FORMAT_BYTES
from planner.specs.records.served_formats import UNSERVED
from planner.specs.validation.problems import Problems

_INNER = ("text_config", "language_config", "llm_config")
_PARTS = ("attn_config", "ffn_config", "linear_attn_config")
_OUTSIDE = ("tie_word_embeddings",)  # written into parts too, and of none of them
_OF_THE_WRAPPER = ("tie_word_embeddings", "dtype", "torch_dtype")
_QUANTIZATIONS = ("quantization_config", "compression_config")
_QUANTIZATION_FILE = "hf_quant_config.json"

_ROUNDED = ("fp8", "int8", "llm_int8", "int4", "fp4")
"""Formats that checkpoints are quantised to: vLLM, `--quantization`."""

_CACHES = ("bf16", "fp8")
"""vLLM, `--kv-cache-dtype`."""

Table = dict[str, Any]


def read_config(name_or_path: str | Path, *, asked_by: str = "--model") -> Architecture:
    """Read a model from its `config.json`.

    Args:
        name_or_path: the file, a folder that holds it, or `org/name` of the local cache.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: there is no such file, it is not JSON, or it says what is not understood;
            all faults are listed.
    """
    config = locate(str(name_or_path), asked_by=asked_by)
    table = read_json(config.path, config.shown)
    inner, inside = _decoder(table)
    inner = _with_parts(inner)
    model_type = _model_type(table, inner, inside, config.shown)
    fields = Fields(inner, shown=config.shown, inside=inside, model_type=model_type)
    family = FAMILIES[model_type]
    body = family.read(fields, family.traits)
    return replace(_architecture(config, table, fields, body, family.traits), family=model_type)


def read_json(path: Path, shown: str) -> Table:
    """An object of a JSON file.

    Raises:
        SpecError: it cannot be read, is not JSON, is no object, or says a key twice.
    """
    try:
        table = json_of(read_text(path, use=Use(kind="config")), has_infinity=True)
    except UnreadError as error:
        raise SpecError([error.problem(shown)]) from None
    if not isinstance(table, dict):
        raise SpecError([Problem(where=shown, fact="is not a JSON object")])
    return table


def _decoder(table: Table) -> tuple[Table, str]:
    """The part that describes the decoder, and where it is."""
    for key in _INNER:
        inner = table.get(key)
        if isinstance(inner, dict):
            around = {k: table[k] for k in _OF_THE_WRAPPER if table.get(k) is not None}
            said = {k: v for k, v in inner.items() if v is not None or k not in around}
            if "dtype" in said or "torch_dtype" in said:
                around.pop("dtype", None)
                around.pop("torch_dtype", None)
            return {**around, **said}, f"{key}."
    return table, ""


def _with_parts(table: Table) -> Table:
    """With the keys of tables of one part of a layer in it, by their dotted names."""
    parts = {key: table[key] for key in _PARTS if isinstance(table.get(key), dict)}
    inside = {
        f"{key}.{k}": v for key, part in parts.items() for k, v in part.items() if k not in _OUTSIDE
    }
    return {key: value for key, value in table.items() if key not in parts} | inside


def _model_type(table: Table, inner: Table, inside: str, shown: str) -> str:
    word = inner.get("model_type")
    if not isinstance(word, str) and inside:
        word, inside = table.get("model_type"), ""
    for family in (word, f"{word}_text"):
        if isinstance(family, str) and family in FAMILIES:
            return family
    from difflib import get_close_matches

    key = f"{inside}model_type"
    listed = ", ".join(sorted(FAMILIES))
    if not isinstance(word, str) or not word:
        value = "" if word is None else str(word)
        fact, remedy = "is missing" if word is None else "is not text", ""
    else:
        close = get_close_matches(word, list(FAMILIES), n=1)
        remedy = f"did you mean `{close[0]}`?" if close else ""
        unknown = "is a family that is not understood", remedy
        is_encoder_decoder = inner.get("is_encoder_decoder") is True and not remedy
        fact, remedy = REFUSED.get(word, REFUSED["t5"] if is_encoder_decoder else unknown)
        value = word[:60]
    problem = Problem(where=shown, key=key, value=value, fact=fact, remedy=remedy)
    raise SpecError([problem], hint=f"understood are {listed}")


def _architecture(
    config: HubConfig, table: Table, fields: Fields, body: Body, traits: Traits
) -> Architecture:
    """The record, or every fault that was found on the way."""
    d_model = fields.count("d_model")
    vocab_size = fields.count("vocab_size", traits.vocab_size)
    is_tied = fields.flag("is_tied", default=traits.tied)
    n_biases = vocab_size if fields.switch("has_head_bias", default=traits.head_bias) else 0
    n_context = context_of(fields, traits)
    wrong = Problems()
    saved_as = wrong.collect(lambda: format_of_dtype(fields.raw("dtype"), config.shown))
    quantized = wrong.collect(lambda: _quantized(config, table, body))
    variant, others = read_variant(config.path, config.shown)
    if traits.is_diffusion and not others and (variant is None or variant.how != "diffusion"):
        fact = "is decoded by diffusion, and nothing beside it says in how many passes"
        remedy = 'write a `variant.toml` beside it, with `how = "diffusion"`'
        others = [Problem(where=config.shown, key="model_type", fact=fact, remedy=remedy)]
    SpecError.raise_if_any([*fields.problems(), *wrong.problems, *others])
    activation = saved_as if saved_as in ("bf16", "fp16") else "bf16"
    classes, order = classes_of(body.layers)
    predictor = None
    if body.predictor is not None and body.n_predictors:
        name = f"predictor: {name_of(body.predictor)}"
        predictor = class_of(body.predictor, body.n_predictors, name=name)
    towers = known_encoders(table, d_model, config.shown)
    return Architecture(
        name=config.name,
        title=config.name,
        d_model=d_model,
        vocab_size=vocab_size,
        tied_embeddings=is_tied,
        layers=classes,
        order=order,
        **_formats(
            saved_as, quantized, activation, has_experts=_has_experts(body), name=config.name
        ),
        activation_format=activation,
        n_context_tokens=n_context,
        predictors=predictor,
        n_other_params=body.n_other_params + n_biases,
        n_encoder_params=sum(one.n_params for one in towers),
        encoder=towers[0] if towers else None,
        variant=variant,
        provenance=tuple(fields.provenance(f"config.json of {config.name}")),
        is_parallel_block=body.is_parallel_block,
        repository=config.repository,
    )


def _formats(
    saved_as: str | None, read: Quantised | None, activation: str, *, has_experts: bool, name: str
) -> dict[str, Any]:
    """The format of a checkpoint, and those that it may be unpacked or rounded to where asked.

    Of what rounding loses a config says nothing; unpacking to 16 bits keeps every number, and
    LLM.int8() what is scored: up to 175B without degradation, arXiv 2208.07339, abstract.
    """
    source = f"config.json of {name}"
    checkpoint = read and read.checkpoint(
        sixteen=activation, has_experts=has_experts, source=source
    )
    published = checkpoint.format if checkpoint else saved_as
    usual = activation if published is None or published in UNSERVED else published
    narrower = [one for one in _ROUNDED if FORMAT_BYTES[one] < FORMAT_BYTES[usual]]
    kept = {"llm_int8"}.intersection(narrower)
    cache = read.cache if read and read.cache else activation
    return {
        "published_weights": () if published is None else (published,),
        "weights_formats": tuple(dict.fromkeys((usual, activation, *narrower))),
        "kv_format": cache,
        "kv_formats": tuple(dict.fromkeys((cache, activation, *_CACHES))),
        "quality_losses": dict.fromkeys((usual, activation, *kept), 0.0),
        "checkpoints": () if checkpoint is None else (checkpoint,),
    }


def _quantized(config: HubConfig, table: Table, body: Body) -> Quantised | None:
    """What quantized weights are in, said in the config or in a file beside it, or in both."""
    read = partial(quantised, n_layers=len(body.layers), has_experts=_has_experts(body))
    sources, wrong = (*_said_inside(config, table), *_said_beside(config)), Problems()
    known = list(filter(None, wrong.each(lambda source: read(*source), sources)))
    wrong.settle()
    return together(known) if known else None


def _said_inside(config: HubConfig, table: Table) -> list[tuple[object, str, str]]:
    """What a config says, where it stands, and under which key."""
    places = [("", table), *((f"{k}.", table[k]) for k in _INNER if isinstance(table.get(k), dict))]
    return [
        (part[key], config.shown, f"{inside}{key}")
        for inside, part in places
        for key in _QUANTIZATIONS
        if part.get(key) is not None
    ][:1]


def _said_beside(config: HubConfig) -> Iterator[tuple[object, str, str]]:
    """The same of the file beside it, if there is one."""
    beside = config.path.with_name(config.path.name.replace("config.json", _QUANTIZATION_FILE))
    if beside != config.path and beside.exists():
        whole = read_json(beside, str(beside))
        yield whole.get("quantization", whole), str(beside), "quantization"


def _has_experts(body: Body) -> bool:
    return any(isinstance(one.ffn, Experts) for one in body.layers)


_STRETCHING = ("linear", "dynamic", "yarn")
_LARGEST = 10_000
"""No factor is larger; one that is has lost its decimal point."""


def context_of(fields: Fields, traits: Traits) -> int | None:
    """Most tokens of one sequence, input and output together; None where nothing limits them.

    `linear`, `dynamic` and `yarn` stretch the positions that they were trained with by a factor;
    `yarn` says which these were. `llama3` and `longrope` give the stretched length itself, as all
    configs do that stretch nothing, and Command R beside those that it was trained with. A
    recurrence without attention has no such limit.

    Source: vLLM, `_get_and_verify_max_len`, which refuses longer requests.
    """
    n_positions = fields.optional("n_context_tokens")
    n_positions = fields.optional("n_most_context_tokens") or n_positions
    if n_positions is None:
        usual = None if fields.raw("has_alibi") is True else traits.n_context_tokens
        return None if usual is None else fields.count("n_context_tokens", usual)
    for meaning in ("rope_scaling", "rope_parameters"):
        rope = fields.raw(meaning)
        if isinstance(rope, Mapping):
            return _stretched(fields, meaning, n_positions, stretches=traits.stretches_context)
    return n_positions


def _stretched(fields: Fields, meaning: str, n_positions: int, *, stretches: bool) -> int:
    rope = fields.raw(meaning)
    kind = rope.get("rope_type", rope.get("type"))
    if not stretches or kind not in _STRETCHING:
        return n_positions
    factor = rope.get("factor")
    if factor is None:
        return n_positions
    if not _is_number(factor) or not 1.0 <= factor <= _LARGEST:
        fields.fault(meaning, "has a `factor` that is no number from 1", "write `4.0`")
        return n_positions
    trained = rope.get("original_max_position_embeddings") if kind == "yarn" else None
    if trained is not None and not (_is_number(trained) and 1 <= trained <= n_positions * factor):
        fact = "has `original_max_position_embeddings` that are no positions of it"
        fields.fault(meaning, fact, f"write how many it was trained with, `{n_positions}` at most")
        return n_positions
    return int((n_positions if trained is None else trained) * factor)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
