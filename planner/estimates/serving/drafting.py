"""What proposes tokens ahead, as a small model of its own that runs where the target does."""

from __future__ import annotations

from dataclasses import replace

from planner.specs.architecture import Architecture, FeedForward, LayerClass

KINDS = ("mtp", "eagle", "medusa")


def drafter_of(model: Architecture, kind: str) -> Architecture:
    """The drafter of a model.

    mtp: the layer that the model was trained with for it, run once for each token, with the
    head. eagle: one layer as wide as the model's, with an FFN as its first dense one has, or of
    four times its width. medusa: one square matrix for each token, and the head, all at once.

    Raises:
        ValueError: the kind is unknown, or a model without predictors is to use them.
    """
    if kind not in KINDS:
        raise ValueError(f"no drafter `{kind}`: there are {', '.join(KINDS)}")
    if kind == "mtp":
        if model.predictors is None:
            raise ValueError(f"{model.name} has no layer that predicts further tokens")
        return _of_layer(model, replace(model.predictors, name="predictor", n_layers=1))
    if kind == "medusa":
        square = FeedForward(d_ff=model.d_model, n_matrices=2)
        return _of_layer(model, LayerClass(name="heads", n_layers=1, mixer=None, ffn=square))
    first = next((layer for layer in model.layers if layer.mixer is not None), model.layers[0])
    dense = next(
        (layer.ffn for layer in model.layers if isinstance(layer.ffn, FeedForward)),
        FeedForward(d_ff=4 * model.d_model, n_matrices=2),
    )
    return _of_layer(model, replace(first, name="drafter", n_layers=1, ffn=dense))


def _of_layer(model: Architecture, layer: LayerClass) -> Architecture:
    return replace(model, layers=(layer,), order=(0,), predictors=None, n_other_params=0)
