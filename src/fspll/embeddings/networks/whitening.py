"""A linear head on features of another encoder: what earlier tasks say about distances.

Shapes: n samples, m features, k features of the head.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from fspll._common.arguments import check_count, check_positive, is_flag
from fspll._common.errors import InputError


class Whitening(nn.Module):
    """Compress features, take their mean off, multiply them by a matrix, and scale to one length.

    Until they are set, the mean is 0 and the matrix the identity.

    Parameters
    ----------
    n_inputs : int
        m.
    n_features : int, optional
        k, by default m.
    power : float
        sign(x) |x|^power is taken of every feature x: below 1, a few large features count less.
    unit_length : bool
        Whether vectors are scaled to the same length, before the mean is taken off and at the end.
    scale : float
        The factor at the end; for rules that read distances as they are.
    """

    architecture: ClassVar[str] = "whitening"
    modality: ClassVar[str] = "vector"
    mean: Tensor
    matrix: Tensor

    def __init__(
        self,
        n_inputs: int,
        n_features: int | None = None,
        power: float = 1.0,
        unit_length: bool = True,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        n_features = n_inputs if n_features is None else n_features
        for name, count in (("n_inputs", n_inputs), ("n_features", n_features)):
            check_count(f"{name} of {self.architecture}", count, 1)
        for name, value in (("power", power), ("scale", scale)):
            check_positive(f"{name} of {self.architecture}", value)
        if not is_flag(unit_length):
            raise InputError(
                f"unit_length of {self.architecture} must be True or False, not {unit_length!r}"
            )
        self.n_inputs, self.n_features, self.power = n_inputs, n_features, float(power)
        self.unit_length, self.scale = bool(unit_length), float(scale)
        self.register_buffer("mean", torch.zeros(n_inputs))
        self.register_buffer("matrix", torch.eye(n_inputs, n_features))

    @property
    def settings(self) -> dict[str, Any]:
        """What makes this network again."""
        names = ("n_inputs", "n_features", "power", "unit_length", "scale")
        return {name: getattr(self, name) for name in names}

    def extra_repr(self) -> str:
        """Return the settings, which are part of the encoder's fingerprint."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())

    def compress(self, features: Tensor) -> Tensor:
        """Return (n, m) features to the power, of length one where the head asks for that."""
        if self.power != 1:
            features = features.sign() * features.abs().pow(self.power)
        return normalize(features, dim=-1) if self.unit_length else features

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, k) features in which Euclidean distances are those of the head."""
        moved = (self.compress(features) - self.mean) @ self.matrix
        return self.scale * (normalize(moved, dim=-1) if self.unit_length else moved)
