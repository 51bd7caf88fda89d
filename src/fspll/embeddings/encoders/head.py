"""A frozen encoder with a head on its features: see :mod:`fspll.metalearning.heads`.

Shapes: n samples, m features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from fspll.embeddings.encoders.base import Encoder, Progress
from fspll.embeddings.encoders.network import NetworkEncoder


class AdaptedEncoder(NetworkEncoder):
    """An encoder whose features go through a small network.

    Parameters
    ----------
    base : Encoder
        Makes features of samples.
    head : nn.Module
        Of a registered architecture; from features (n, m) to features.
    name : str, optional
        For tables and messages.
    device : str or torch.device, default="auto"
        Where the head computes; the base has its own.
    metadata : dict, optional
        What the checkpoint file said about the head.
    """

    def __init__(
        self,
        base: Encoder,
        head: nn.Module,
        name: str | None = None,
        *,
        device: str | torch.device = "auto",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            head, None, name or f"{base.name}, adapted", device=device, metadata=metadata
        )
        self.base = base
        self.input_spec = getattr(base, "input_spec", None)
        self.modality = base.modality
        self.per_sample = base.per_sample

    @property
    def fingerprint(self) -> str | None:
        """A hash of the base's fingerprint and of the head; None where the base has none."""
        known = self.base.fingerprint
        return None if known is None else self._digest(known)

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of X, (n, m); see :meth:`~fspll.embeddings.Encoder.encode`.

        The base takes as many samples at a time as it likes; ``batch_size`` is not used.
        """
        found = self.base.encode(X, device=device, progress=progress, polarity=polarity)
        return self.adapt(found, device)

    def adapt(self, features: np.ndarray, device: str | torch.device | None = None) -> np.ndarray:
        """Return what the head makes of features (n, m) of the base."""
        head = NetworkEncoder(self.network, None, self.name, device=device or self.device)
        return head.encode(features)
