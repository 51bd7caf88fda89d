"""The interface of an encoder, and how whatever a user has becomes one.

Shapes: n samples, m features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fspll._common.errors import InputError, InputTypeError, MissingPackageError
from fspll._common.progress import Progress

MODALITIES = ("image", "text", "vector")


class Encoder:
    """What turns n samples into a float32 array (n, m).

    An encoder of another package needs no more than ``encode(samples)``; the other attributes are
    read where they are there. It is registered as a class or a function that makes it::

        [project.entry-points."fspll.encoders"]
        colors = "my_package.colors:ColorEncoder"

    Samples come as the caller has them: pictures are paths, PIL images or arrays, all of which
    :func:`fspll.embeddings.prepare_images` reads; texts are str; vectors are rows of numbers.

    Attributes
    ----------
    name : str
        For tables, messages and model files; by default the name of the class.
    modality : {"image", "text", "vector"} or None
        What its samples are; None for an encoder that takes whatever comes.
    fingerprint : str or None
        What tells it from every other encoder: the same text means the same features for the same
        sample. Features are kept under it; without one they are computed every time.
    registered_name : str or None
        The name under which :data:`fspll.embeddings.ENCODERS` makes this same encoder again. A
        model file keeps this name instead of the encoder.
    metadata : dict
        What a checkpoint says about it.
    """

    name: str
    modality: str | None = None
    registered_name: str | None = None
    metadata: dict[str, Any]
    # Whether it may be called in batches, and again without a sample that it cannot read: the
    # features of a sample depend on that sample alone.
    per_sample: bool = True

    @property
    def fingerprint(self) -> str | None:
        """What tells this encoder from every other one."""
        return None

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: Any = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of X, a float32 array of shape (n, m).

        Parameters
        ----------
        X : sequence of n samples
        batch_size : int
            Samples at a time; changes memory and speed, and the result only by rounding.
        device : str or torch.device, optional
            Where to compute this time.
        progress : callable, optional
            Called as ``progress(done, total)`` after every batch.
        polarity : {"auto", "bright-ink", "dark-ink"}, default="auto"
            For encoders of ink drawings: what the pictures of X have.
        """
        raise NotImplementedError


class CustomEncoder(Encoder):
    """A user's own function from n samples to (n, m), or object with such an ``encode``, checked.

    Unless it has a fingerprint, it is called once with all samples: it knows best what they are.

    Examples
    --------
    >>> lengths = CustomEncoder(lambda texts: [[len(text)] for text in texts])
    >>> lengths.encode(["a", "bbb"]).tolist()
    [[1.0], [3.0]]
    """

    def __init__(self, source: Any, name: str | None = None) -> None:
        self.source = source
        self.function = getattr(source, "encode", source)
        kind = getattr(source, "__name__", type(source).__name__)
        self.name = name or str(getattr(source, "name", None) or kind)
        self.modality = getattr(source, "modality", None)
        self.metadata = dict(getattr(source, "metadata", None) or {})
        if self.modality not in (None, *MODALITIES):
            raise InputError(
                f"the modality of the encoder {self.name!r} must be one of "
                f"{', '.join(MODALITIES)}, not {self.modality!r}"
            )

    @property
    def per_sample(self) -> bool:  # type: ignore[override]
        """Whether its features depend on each sample alone, as a fingerprint promises."""
        return self.fingerprint is not None

    @property
    def fingerprint(self) -> str | None:
        """What the object says of itself, with the name of its class."""
        found = getattr(self.source, "fingerprint", None)
        if found is not None and not isinstance(found, str):
            raise InputTypeError(
                f"the fingerprint of the encoder {self.name!r} must be a text or None, "
                f"not a {type(found).__name__}"
            )
        return None if found is None else f"{type(self.source).__qualname__}:{found}"

    def encode(
        self,
        X: Any,
        batch_size: int = 256,
        device: Any = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return what the user's code gives for X; the other arguments are not used."""
        n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
        result = self.function(X)
        if hasattr(result, "detach"):  # a tensor of torch
            result = result.detach().cpu().float().numpy()
        elif hasattr(result, "toarray"):  # a sparse matrix of scipy
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
        return f"CustomEncoder({self.name!r})"


@dataclass(frozen=True)
class EncoderEntry:
    """An encoder of the registry, with what a list of encoders says about it.

    Attributes
    ----------
    make : callable
        Returns the encoder; called with ``device=`` where it takes that.
    about : callable
        Returns three texts: the network, what it takes, and what it was trained on.
    missing : callable
        Returns the error that says how to install what the encoder needs, or None.
    modality : {"image", "text", "vector"} or None
        What its samples are, as of :class:`Encoder`.
    """

    make: Callable[..., Any]
    about: Callable[[], tuple[str, str, str]]
    missing: Callable[[], MissingPackageError | None] = lambda: None
    modality: str | None = None


def require_features(
    features: np.ndarray, n_samples: int, owner: str, *, first_index: int = 0
) -> None:
    """Refuse what is not a finite numeric matrix with one row per sample."""
    if features.dtype.kind not in "fiub" or features.ndim != 2:
        raise InputError(
            f"{owner} must return a numeric array of shape (n_samples, n_features), "
            f"not {features.dtype} of shape {features.shape}"
        )
    if len(features) != n_samples:
        raise InputError(f"{owner} returned {len(features)} rows for {n_samples} samples")
    if features.shape[1] == 0:
        raise InputError(f"{owner} returned no features: its result has shape {features.shape}")
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{owner} returned NaN or infinite features for sample "
            f"{first_index + int(finite.argmin())}"
        )
