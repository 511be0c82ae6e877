"""What sees or hears beside a decoder."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A tower of layers over patches of images, or frames of sound, and its projector.

    Args:
        n_layers, n_full_layers: in all; those in which a patch attends to its whole image, where
            it attends to its window of `n_window_patches` in the others.
        n_matrices: of an FFN.
        n_read_params, n_position_params: met by each patch before the layers; met by none.
        n_projector_params: met by each token that the decoder reads, of `n_joined` patches.
        images: how images were said, `2x1024`; empty where none are.
        patches_per_token: of the input of a request.
        n_image_patches: of one image.
    """

    n_layers: int
    n_full_layers: int
    n_window_patches: int
    width: int
    d_ff: int
    n_matrices: int
    n_read_params: int
    n_position_params: int
    n_projector_params: int
    n_joined: int
    images: str = ""
    patches_per_token: float = 0.0
    n_image_patches: int = 0

    @property
    def matrices(self) -> tuple[tuple[str, int, int, int], ...]:
        """Of each kind its name, how many there are, what they read, how many parameters it has."""
        width = self.width
        return (
            ("patches", 1, width, self.n_read_params),
            ("attention's products", self.n_layers, width, 4 * width**2),
            ("FFN", self.n_layers, width, self.n_matrices * width * self.d_ff),
            ("projector", 1, self.n_joined * width, self.n_projector_params),
        )

    @property
    def spans(self) -> tuple[tuple[str, int, int], ...]:
        """Names of attention, layers that have it, and patches that each patch attends to."""
        window = min(self.n_window_patches, self.n_image_patches)
        whole = ("attention", self.n_full_layers, self.n_image_patches)
        kinds = (whole, ("windows", self.n_layers - self.n_full_layers, window))
        return tuple(kind for kind in kinds if kind[1] and kind[2])

    @property
    def n_params(self) -> int:
        return sum(n * each for _, n, _, each in self.matrices) + self.n_position_params
