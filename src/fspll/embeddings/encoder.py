"""Samples in, features out: one face for packaged models, files, modules and functions.

Shapes: n samples, m features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll._common.devices import choose_device
from fspll._common.errors import InputError, InputTypeError
from fspll.embeddings.checkpoints import load_checkpoint
from fspll.embeddings.checks import require_features
from fspll.embeddings.inputs import InputSpec, collect_samples, prepare_arrays, prepare_images
from fspll.embeddings.pictures import collect_pictures

Progress = Callable[[int, int], None]
WEIGHTS = Path(__file__).parent / "weights"
PHOTOS = "efficientnet-lite0"  # see fspll.embeddings.photos
TEXT = "text"  # see fspll.embeddings.text
ALIASES = {"photos": PHOTOS}


@runtime_checkable
class Embedding(Protocol):
    """Anything with a name that turns n samples into a float32 array (n, m)."""

    name: str

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of X."""


class Encoder:
    """A network that knows what its pictures look like.

    Parameters
    ----------
    network : nn.Module
        Takes a float tensor with one sample a row and returns (n, m).
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

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of X, computed batch by batch.

        Parameters
        ----------
        X : pictures, or features for a network without an ``input_spec``
            See :func:`fspll.embeddings.prepare_images`.
        batch_size : int, default=256
            Samples at a time; changes memory and speed, and the result only by rounding.
        device : str or torch.device, optional
            Where to compute this time; the network moves there.
        progress : callable, optional
            Called as ``progress(done, total)`` after every batch.
        polarity : {"auto", "bright-ink", "dark-ink"}, default="auto"
            For embeddings of ink drawings: what the pictures of X have.

        Returns
        -------
        float32 array of shape (n, m)
        """
        check_count("batch_size of encode", batch_size, 1)
        target = self.device if device is None else choose_device(device)
        samples = collect_samples(X) if self.input_spec is None else collect_pictures(X)
        self.network.to(target)
        batches = []
        with _eval_mode(self.network), torch.inference_mode():
            for start in range(0, len(samples), batch_size):
                batch = self._prepare(samples[start : start + batch_size], polarity, start)
                features = self._forward(batch.to(target, _dtype(self.network)))
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
        return f"Encoder({self.name!r}, {self.input_spec}, device={str(self.device)!r})"


class FunctionEncoder:
    """A user's own function from n samples to an array (n, m), checked.

    The function is called once with all of X: it knows best what its samples are.
    """

    def __init__(self, function: Callable[[Any], Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return ``function(X)`` as a float32 array (n, m); the other arguments are not used."""
        n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
        result = self.function(X)
        if isinstance(result, Tensor):
            result = result.detach().to("cpu", torch.float32).numpy()
        elif hasattr(result, "toarray"):
            result = result.toarray()
        try:
            features = np.asarray(result)
        except ValueError as error:  # rows of different lengths
            raise InputError(f"the embedding {self.name!r} returned no array: {error}") from error
        require_features(features, n_samples, f"the embedding {self.name!r}")
        if progress is not None:
            progress(n_samples, n_samples)
        return features.astype(np.float32)

    def __repr__(self) -> str:
        return f"FunctionEncoder({self.name!r})"


def available_models() -> dict[str, Path]:
    """Return the models of pictures that can be named: their names, sorted, and their files.

    ``"efficientnet-lite0"`` is one of them when the packages of the extra ``photos`` are installed.
    """
    from fspll.embeddings.photos import find_weights

    models = {path.stem: path for path in WEIGHTS.glob("*.safetensors")}
    photos = find_weights()
    if photos is not None:
        models[PHOTOS] = photos
    return dict(sorted(models.items()))


def load_embedding(
    spec: Any,
    device: str | torch.device = "auto",
    *,
    input_spec: InputSpec | None = None,
) -> Embedding:
    """Return an embedding for whatever names or makes one.

    Parameters
    ----------
    spec : str, path, nn.Module, callable or embedding
        The name of a packaged model, ``"photos"`` (``"efficientnet-lite0"``, with the extra
        ``photos``), ``"text"`` (with the extra ``text``), the path of a checkpoint file, a
        network, or a function from samples to an array (n, m). What is an embedding already
        comes back as it is.
    device : str or torch.device, default="auto"
        Where a network computes.
    input_spec : InputSpec, optional
        For an ``nn.Module``: what pictures are turned into. A checkpoint brings its own.

    Returns
    -------
    Embedding
        With ``name`` and ``encode(X)``.
    """
    if isinstance(spec, Encoder | FunctionEncoder):
        return spec
    if isinstance(spec, nn.Module):
        return Encoder(spec, input_spec, device=device)
    if isinstance(spec, str) and ALIASES.get(spec, spec) == PHOTOS:
        from fspll.embeddings.photos import photo_encoder

        return photo_encoder(device)
    if isinstance(spec, str) and spec == TEXT:
        from fspll.embeddings.text import text_encoder

        return text_encoder(device)
    if isinstance(spec, str | Path):
        path, name = _find_model(spec)
        found = load_checkpoint(path)
        return Encoder(
            found.network, found.input_spec, name, device=device, metadata=found.metadata
        )
    if isinstance(spec, type):
        raise InputTypeError(f"embedding is the class {spec.__name__}; pass an instance of it")
    if callable(spec):
        return FunctionEncoder(spec)
    raise InputTypeError(
        f"embedding must be a name, a path, an nn.Module or a callable, not a {type(spec).__name__}"
    )


def _find_model(spec: str | Path) -> tuple[Path, str]:
    models = available_models()
    if isinstance(spec, str) and spec in models:
        return models[spec], spec
    path = Path(spec).expanduser()
    means_a_file = isinstance(spec, Path) or len(path.parts) > 1 or path.is_file()
    if means_a_file or path.suffix == ".safetensors":
        return path, path.stem
    raise InputError(
        f"no embedding is called {spec!r}; the packaged models are: {', '.join(models) or 'none'}; "
        "the path of a checkpoint file, an nn.Module or a callable may be given as well"
    )


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


def _dtype(network: nn.Module) -> torch.dtype:
    for parameter in network.parameters():
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.float32
