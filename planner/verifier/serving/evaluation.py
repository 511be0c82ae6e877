"""One given deployment of an engine, evaluated: the rank, what it serves, holds and takes."""

from __future__ import annotations

from dataclasses import dataclass

from planner.specs.serving_records import PredictionRequest
from planner.verifier.findings import Refused
from planner.verifier.serving.drafts import draft_of
from planner.verifier.serving.kernels import STATIC, STORED, Kernels
from planner.verifier.serving.links import Links
from planner.verifier.serving.ranks import Rank, loaded
from planner.verifier.serving.rounds import Felt, Held, Served, felt, held_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One attention rank of a deployment, with what it is to serve, and its bytes and seconds."""

    rank: Rank
    served: Served
    held: Held
    times: Felt


def evaluation(given: PredictionRequest) -> Evaluation:
    """A deployment, kernel by kernel.

    Raises:
        Refused: a degree, batch, chunk or format that nothing has, or drafts that cannot be.
    """
    rank, served = rank_of(given), served_by(given)
    held = held_by(rank, served)
    times = felt(rank, served, held.largest_batch)
    return Evaluation(rank=rank, served=served, held=held, times=times)


def rank_of(given: PredictionRequest) -> Rank:
    """One attention rank.

    Raises:
        Refused: a degree, batch, chunk or format that nothing has.
    """
    degrees = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor")
    for name in (*degrees, "batch", "chunk_tokens"):
        if getattr(given, name) < 1:
            raise Refused("is below one", path=(name,), says=getattr(given, name))
    if (copies := given.n_redundant_experts) < 0:
        raise Refused("is below zero", path=("n_redundant_experts",), says=copies)
    for name in ("weights", "experts", "cache"):
        number_format = getattr(given.formats, name)
        if number_format.removesuffix(STATIC) not in STORED:
            raise Refused("is no number format", path=("formats", name), says=number_format)
    records = given.records
    (model,) = records.models
    return Rank(
        model=model,
        formats=loaded(model, given.formats, records.engine),
        kernels=Kernels(records.cluster.device, records.kernels, records.engine),
        links=Links(records.cluster.fabric),
        n_small_kernels=records.engine.n_small_kernels,
        n_tensor=given.n_tensor,
        n_data=given.n_data,
        n_stages=given.n_stages,
        n_expert_parallel=given.n_expert_parallel,
        n_expert_tensor=given.n_expert_tensor,
        n_redundant=given.n_redundant_experts,
        exchanges=given.exchanges,
    )


def served_by(given: PredictionRequest) -> Served:
    """What a deployment is to serve.

    Raises:
        Refused: the model cannot be drafted so.
    """
    (model,) = given.records.models
    return Served(
        engine=given.records.engine,
        hbm_bytes=given.records.cluster.device.hbm_bytes,
        batch=given.batch,
        chunk_tokens=given.chunk_tokens,
        overlaps=given.overlaps,
        n_input_tokens=float(given.n_input_tokens),
        n_output_tokens=float(given.n_output_tokens),
        hit_fraction=given.hit_fraction,
        n_shared_tokens=float(given.n_shared_tokens),
        draft=draft_of(model, given.drafter, given.n_drafted, given.acceptance),
        role=given.role,
        n_waves=given.n_waves,
    )
