"""Encode samples once: features are kept by the content of the sample and the encoder's weights.

A file for each encoder under the user's cache folder holds one row a sample. The same picture under
another name is found again; a changed picture, or another network, is not mistaken for it. The
cache is a convenience: whatever happens to its file costs time, never a result.

Shapes: n samples, m features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError, InputError, InputTypeError
from fspll._common.version import __version__
from fspll.embeddings.architectures import describe_network
from fspll.embeddings.encoder import Embedding, Encoder
from fspll.embeddings.photos import PhotoEncoder
from fspll.embeddings.store import FeatureStore
from fspll.embeddings.text import TextEncoder

Progress = Callable[[int, int], None]
AT_A_TIME = 32  # samples between two reports of progress
_LAYOUT = 1  # of a cache file
_SHOWN = 5  # unreadable samples in a message


@dataclass(frozen=True)
class Unreadable:
    """A sample that could not be encoded.

    Attributes
    ----------
    index : int
        Its row in X.
    name : str
        What to call it in messages.
    reason : str
        What is wrong with it.
    """

    index: int
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.reason}"


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features of the samples that could be read.

    Attributes
    ----------
    features : float32 array of shape (n, m)
    kept : int array of shape (n,)
        The rows of X that they belong to, in order.
    unreadable : list of Unreadable
        The other rows of X.
    n_cached : int
        How many were found in the cache.
    """

    features: np.ndarray
    kept: np.ndarray
    unreadable: list[Unreadable]
    n_cached: int


def encode_cached(
    encoder: Embedding,
    X: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    skip_bad: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> Encoded:
    """Encode samples in batches, taking what an earlier run has encoded from the cache.

    Parameters
    ----------
    encoder : Embedding
        A network or function of the user's own has no known identity and is not cached.
    X : sequence
        Paths of pictures, texts (for the embedding ``"text"``), PIL images or arrays.
    names : sequence of str, optional
        What to call the samples in messages; by default their paths or rows.
    skip_bad : bool, default=False
        Leave unreadable samples out, instead of raising an error that names them.
    cache : bool, default=True
        Whether to use the cache.
    progress : callable, optional
        Called as ``progress(done, total)``; total counts all samples.

    Raises
    ------
    DataError
        When samples cannot be read and ``skip_bad`` is False, or none can be read at all.
    """
    samples = list(X)
    if not samples:
        raise InputError("there is nothing to encode; at least one sample is needed")
    labels = [_called(sample, row) for row, sample in enumerate(samples)]
    labels = list(names) if names is not None else labels
    identity = _identity(encoder) if cache else None
    bad: dict[int, str] = {}
    keys: list[bytes | None] = [None] * len(samples)
    if identity is not None:
        for row, sample in enumerate(samples):
            keys[row] = _key(sample, isinstance(encoder, TextEncoder))
    with FeatureStore.open(identity) as store:
        found = store.find([key for key in keys if key is not None])
        rows = [row for row, key in enumerate(keys) if key is None or key not in found]
        report = _Counter(progress, len(samples) - len(rows), len(samples))
        fresh = _encode(encoder, samples, rows, labels, bad, report, store, keys)
    unreadable = [Unreadable(row, labels[row], reason) for row, reason in sorted(bad.items())]
    if unreadable and (not skip_bad or len(unreadable) == len(samples)):
        raise DataError(complaint(unreadable, len(samples)))
    kept = np.array([row for row in range(len(samples)) if row not in bad])
    chosen = [fresh[row] if row in fresh else found[keys[row] or b""] for row in kept]
    widths = {len(vector) for vector in chosen}
    if len(widths) > 1:
        raise InputError(f"the embedding {encoder.name!r} gives {sorted(widths)} features")
    return Encoded(np.stack(chosen), kept, unreadable, len(samples) - len(rows))


def _encode(
    encoder: Embedding,
    samples: list[Any],
    rows: list[int],
    names: list[str],
    bad: dict[int, str],
    report: _Counter,
    store: FeatureStore,
    keys: list[bytes | None],
) -> dict[int, np.ndarray]:
    """Encode some rows; what cannot be read goes to ``bad`` with the reason."""
    fresh: dict[int, np.ndarray] = {}
    # A function of the user's own is called once with everything: it knows best what it does.
    size = AT_A_TIME if isinstance(encoder, Encoder) else max(1, len(rows))
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        try:
            features = encoder.encode([samples[row] for row in batch])
            done = dict(zip(batch, features, strict=True))
        except (InputError, InputTypeError):
            if not isinstance(encoder, Encoder):
                raise
            done = _one_by_one(encoder, samples, batch, bad)
        fresh |= done
        store.keep({key: done[row] for row in done if (key := keys[row]) is not None})
        report.add(len(batch))
    return fresh


def _one_by_one(
    encoder: Encoder, samples: list[Any], batch: list[int], bad: dict[int, str]
) -> dict[int, np.ndarray]:
    done = {}
    for row in batch:
        try:
            done[row] = encoder.encode([samples[row]])[0]
        except (InputError, InputTypeError) as error:
            bad[row] = _reason(str(error), samples[row])
    return done


def _reason(message: str, sample: Any) -> str:
    """Return a message about the only sample of a batch without its name."""
    for start in (f"picture 0 ({sample}) ", "picture 0 ", "text 0 ", "sample 0 "):
        if message.startswith(start):
            return message.removeprefix(start)
    return f"cannot be encoded: {message}"


def _called(sample: Any, row: int) -> str:
    return str(sample) if isinstance(sample, Path) else f"sample {row}"


def complaint(unreadable: Sequence[Unreadable], total: int) -> str:
    """Say which samples cannot be read, and what to do."""
    shown = "; ".join(str(one) for one in unreadable[:_SHOWN])
    more = len(unreadable) - _SHOWN
    shown += f"; and {more} more" if more > 0 else ""
    told = f"{len(unreadable)} of {total} samples cannot be read: {shown}"
    if len(unreadable) == total:
        return f"{told}; none is left"
    return f"{told}; repair them, or leave them out with skip_bad=True (--skip-bad)"


class _Counter:
    def __init__(self, progress: Progress | None, done: int, total: int) -> None:
        self.progress, self.done, self.total = progress, done, total
        self.add(0)

    def add(self, count: int) -> None:
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


# -------------------------------------------------------------------- what is what


def _identity(encoder: Embedding) -> str | None:
    """Return what tells this encoder from all others, or None when nothing does."""
    if not isinstance(encoder, Encoder):
        return None
    if not isinstance(encoder, PhotoEncoder | TextEncoder):
        try:
            describe_network(encoder.network)
        except InputTypeError:  # a module whose code may change under the same name
            return None
    about = (_LAYOUT, __version__, type(encoder).__name__, encoder.input_spec, encoder.network)
    digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
    for name, tensor in sorted(encoder.network.state_dict().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).data)
    return digest.hexdigest()


def _key(sample: Any, is_text: bool) -> bytes | None:
    """Return the hash of a sample's content; None for what has none to be hashed."""
    digest = hashlib.blake2b(digest_size=20)
    if is_text:
        if not isinstance(sample, str):
            return None
        digest.update(b"text" + sample.encode("utf-8", "surrogatepass"))
    elif isinstance(sample, str | Path):
        try:
            digest.update(b"file" + Path(sample).read_bytes())
        except (OSError, ValueError):  # the encoder will say what is wrong
            return None
    elif isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf":
        digest.update(f"array {sample.dtype.str} {sample.shape}".encode())
        digest.update(np.ascontiguousarray(sample).tobytes())
    else:
        return None
    return digest.digest()
