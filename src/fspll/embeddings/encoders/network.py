"""Encoders that are torch networks, with or without knowing what their pictures look like.

Shapes: n samples, m features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll._common.devices import choose_device
from fspll._common.errors import InputError, InputTypeError
from fspll._common.version import __version__
from fspll.embeddings.encoders.base import Encoder, Progress, require_features
from fspll.embeddings.inputs import (
    PREPARATION,
    InputSpec,
    collect_samples,
    prepare_arrays,
    prepare_images,
)
from fspll.embeddings.networks.architectures import build_network, describe_network
from fspll.embeddings.pictures import collect_pictures


class NetworkEncoder(Encoder):
    """A network that knows what its pictures look like.

    Parameters
    ----------
    network : nn.Module
        Takes a float tensor with one row per sample and returns (n, m).
    input_spec : InputSpec, optional
        What pictures are turned into. Without it, pictures keep their size and their channels
        come first, tensors keep their layout, and matrices of features pass as they are.
    name : str, optional
        For tables and messages; by default the class of the network.
    device : str or torch.device, default="auto"
        Where to compute. The network is moved there by the first call of :meth:`encode`.
    metadata : dict, optional
        What the checkpoint file said about the network.

    Notes
    -----
    Features are computed in eval mode, so batch norm uses its running statistics. Those of an
    untrained network are 0 and 1, which leaves its features unnormalized.

    Examples
    --------
    >>> network = build_network("conv4", width=8, size=16, seed=0)
    >>> encoder = NetworkEncoder(network, InputSpec(size=16, channels=1), device="cpu")
    >>> encoder.encode(np.zeros((3, 20, 20), dtype=np.uint8)).shape
    (3, 8)
    """

    def __init__(
        self,
        network: nn.Module,
        input_spec: InputSpec | None = None,
        name: str | None = None,
        *,
        device: str | torch.device = "auto",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.network = network
        self.input_spec = input_spec
        self.name = name or type(network).__name__
        self.device = choose_device(device)
        self.metadata = metadata or {}
        self.modality = "image" if input_spec is not None else getattr(network, "modality", None)

    @property
    def fingerprint(self) -> str | None:
        """A hash of the weights and of all else that decides the features.

        None for a network of the user's own, whose code may change under the same name.
        """
        try:
            describe_network(self.network)
        except InputTypeError:
            return None
        return self._digest()

    def _digest(self, *parts: str) -> str:
        # The version stands for the code that prepares samples; repr for layers without weights.
        kind = type(self).__qualname__
        about = (__version__, PREPARATION, kind, self.input_spec, self.network, parts)
        digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
        for name, tensor in sorted(self.network.state_dict().items()):
            # Bytes, because NumPy has no bfloat16.
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of X, computed batch by batch; see :meth:`Encoder.encode`.

        X holds pictures, as :func:`fspll.embeddings.prepare_images` takes them, or features for a
        network without an ``input_spec``. The network moves to ``device``.
        """
        check_count("batch_size of encode", batch_size, 1)
        target = self.device if device is None else choose_device(device)
        samples = collect_samples(X) if self.input_spec is None else collect_pictures(X)
        self.network.to(target)
        batches = []
        with _eval_mode(self.network), torch.inference_mode():
            for start in range(0, len(samples), batch_size):
                batch = self._prepare(samples[start : start + batch_size], polarity, start)
                features = self._forward(batch.to(target, parameter_dtype(self.network)))
                owner = f"the network {self.name!r}"
                require_features(features, len(batch), owner, first_index=start)
                batches.append(features)
                if progress is not None:
                    progress(start + len(batch), len(samples))
        return np.concatenate(batches)

    def _prepare(self, samples: Any, polarity: str, start: int) -> Tensor:
        if self.input_spec is None:
            return prepare_arrays(samples, first_index=start)
        return prepare_images(samples, self.input_spec, polarity, first_index=start)

    def _forward(self, batch: Tensor) -> np.ndarray:
        try:
            output = self.network(batch)
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:  # torch's word for shapes that do not fit
            raise InputError(
                f"the network {self.name!r} cannot take samples of shape "
                f"{tuple(batch.shape[1:])}: {str(error).splitlines()[0]}"
            ) from error
        if not isinstance(output, Tensor):
            raise InputTypeError(
                f"the network {self.name!r} must return a tensor, not a {type(output).__name__}"
            )
        return output.to("cpu", torch.float32).numpy()

    def __repr__(self) -> str:
        kind, device = type(self).__name__, str(self.device)
        return f"{kind}({self.name!r}, {self.input_spec}, device={device!r})"


def untrained_encoder(
    architecture: str, pictures: Any, input_spec: InputSpec, *, seed: int = 0, **settings: Any
) -> NetworkEncoder:
    """Return a network that has learned nothing: random weights, batch statistics of some pictures.

    Running statistics of a new network are 0 and 1, so that in eval mode its features would not be
    normalized at all. One pass over pictures of the same kind sets them; no label is read.

    Parameters
    ----------
    architecture : str
        A name of :data:`fspll.embeddings.ARCHITECTURES`.
    pictures : pictures
        Some hundreds are enough.
    input_spec : InputSpec
        What pictures are turned into.
    seed : int
        Of the random weights.
    **settings
        For the network's constructor.

    Examples
    --------
    >>> drawings = np.random.default_rng(0).integers(0, 256, (50, 28, 28), dtype=np.uint8)
    >>> untrained_encoder("conv4", drawings, InputSpec(28, 1)).encode(drawings[:2]).shape
    (2, 64)
    """
    network = build_network(architecture, seed=seed, **settings)
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # keep this one pass and nothing of the initial 0 and 1
    network.train()
    with torch.no_grad():
        network(prepare_images(pictures, input_spec))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return NetworkEncoder(network.eval(), input_spec, f"{architecture}-untrained")


@contextmanager
def _eval_mode(network: nn.Module) -> Iterator[None]:
    """Switch to eval mode and give every submodule its own flag back."""
    # Module by module: a user may have frozen some of them in eval mode.
    flags = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, flag in flags:
            module.training = flag


def parameter_dtype(network: nn.Module) -> torch.dtype:
    """Return the type of a network's weights, float32 where it has none."""
    for parameter in network.parameters():
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.float32
