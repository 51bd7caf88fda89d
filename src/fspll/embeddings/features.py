"""Encode samples once: the one cache of features, by an encoder's fingerprint and by content.

One file per encoder under the user's cache folder holds the features of samples one by one, and
those of whole image sets in blocks. The same picture under another name is found again; a changed
picture, or another network, is not mistaken for it. The cache is a convenience: whatever happens to
its file costs time, never a result.

Shapes: n samples, m features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fspll._common.errors import DataError, InputError
from fspll._common.reading import check_plain_file
from fspll._common.words import counted
from fspll.datasets.base import ImageSet
from fspll.embeddings.batches import Batch, encode_batch, encode_on_workers
from fspll.embeddings.encoders.base import Encoder, Progress
from fspll.embeddings.encoders.head import AdaptedEncoder
from fspll.embeddings.registry import load_embedding
from fspll.embeddings.store import FeatureStore

BATCH = 32  # samples between two reports of progress
# Images per block of a whole set. Encoders take them in batches of 256 or of a divisor, so that a
# set gives the same features to the last bit however much of it was found in the cache.
BLOCK = 256
_SHOWN = 5  # unreadable samples in a message
_CHUNK = 1 << 20  # bytes of a file that are hashed at a time


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
    encoder: Any,
    X: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    keys: Sequence[bytes | None] | None = None,
    skip_bad: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    scheduler: str | None = None,
) -> Encoded:
    """Encode samples in batches, taking what an earlier run has encoded from the cache.

    Parameters
    ----------
    encoder : Encoder, or what :func:`load_embedding` takes
        Without a fingerprint, as a network or function of the user's own is, it is not cached.
    X : sequence of n samples
        Paths of pictures, texts (for an encoder of texts), PIL images or arrays.
    names : sequence of str, optional
        What to call the samples in messages; by default their paths or rows.
    keys : sequence of bytes or None, optional
        What :func:`content_key` returned for the samples, where it was asked already.
    skip_bad : bool, default=False
        Leave unreadable samples out, instead of raising an error that names them.
    cache : bool, default=True
        Whether to use the cache.
    progress : callable, optional
        Called as ``progress(done, total)``; total counts all samples.
    scheduler : str, optional
        The address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers encode what is not in
        the cache. They need this package, the encoder by the same name or as a network of a
        registered architecture, and pictures under the same paths.

    Raises
    ------
    DataError
        When samples cannot be read and ``skip_bad`` is False, or none can be read at all.

    Examples
    --------
    >>> pictures = [np.zeros((28, 28), dtype=np.uint8)] * 3
    >>> encode_cached("omniglot-conv4", pictures, cache=False).features.shape
    (3, 64)
    """
    encoder = load_embedding(encoder)
    if isinstance(encoder, AdaptedEncoder):  # what is slow is kept once for all heads
        below = encode_cached(
            encoder.base,
            X,
            names=names,
            keys=keys,
            skip_bad=skip_bad,
            cache=cache,
            progress=progress,
            scheduler=scheduler,
        )
        return replace(below, features=encoder.adapt(below.features))
    samples = list(X)
    if not samples:
        raise InputError("there is nothing to encode; at least one sample is needed")
    if names is None:
        names = [_display_name(sample, row) for row, sample in enumerate(samples)]
    fingerprint = encoder.fingerprint if cache else None
    if fingerprint is None:
        keys = [None] * len(samples)
    elif keys is None:
        keys = [content_key(sample, encoder.modality) for sample in samples]
    bad: dict[int, str] = {}
    with FeatureStore.open(fingerprint) as store:
        found = store.find([key for key in keys if key is not None])
        rows = [row for row, key in enumerate(keys) if key is None or key not in found]
        if progress is not None:
            progress(len(samples) - len(rows), len(samples))
        fresh: dict[int, np.ndarray] = {}
        left = len(rows)
        size = BATCH if encoder.per_sample else max(1, len(rows))
        batches = [rows[start : start + size] for start in range(0, len(rows), size)]
        for number, batch in _encoded(encoder, samples, batches, scheduler):
            done = {batches[number][place]: one for place, one in batch.features.items()}
            bad |= {batches[number][place]: reason for place, reason in batch.bad.items()}
            fresh |= done
            store.keep({key: done[row] for row in done if (key := keys[row]) is not None})
            left -= len(batches[number])
            if progress is not None:
                progress(len(samples) - left, len(samples))
    unreadable = [Unreadable(row, names[row], reason) for row, reason in sorted(bad.items())]
    if unreadable and (not skip_bad or len(unreadable) == len(samples)):
        raise DataError(unreadable_message(unreadable, len(samples)))
    kept = np.array([row for row in range(len(samples)) if row not in bad])
    chosen = [fresh[row] if row in fresh else found[keys[row] or b""] for row in kept]
    widths = {len(vector) for vector in chosen}
    if len(widths) > 1:
        raise InputError(f"the embedding {encoder.name!r} gives {sorted(widths)} features")
    return Encoded(np.stack(chosen), kept, unreadable, len(samples) - len(rows))


def _encoded(
    encoder: Encoder, samples: list[Any], batches: list[list[int]], scheduler: str | None
) -> Iterator[tuple[int, Batch]]:
    """Yield the number of each batch of rows with its features, in any order."""
    parts = [[samples[row] for row in rows] for rows in batches]
    if scheduler is not None and parts:
        yield from encode_on_workers(encoder, parts, scheduler)
        return
    for number, part in enumerate(parts):
        yield number, encode_batch(encoder, part)


def embed_images(encoder: Any, data: ImageSet, progress: Progress | None = None) -> Tensor:
    """Return the features of every image of a data set, of shape (n, m).

    A second evaluation of the same network starts at once, and one that was interrupted goes on.

    Parameters
    ----------
    encoder : Encoder, or what :func:`load_embedding` takes
    data : ImageSet
    progress : callable, optional
        Called as ``progress(done, total)``.

    Examples
    --------
    >>> from fspll.datasets import load_glyphs
    >>> drawings = load_glyphs(5, 2, split="test")
    >>> embed_images(lambda images: images.reshape(len(images), -1), drawings).shape
    torch.Size([10, 784])
    """
    encoder = load_embedding(encoder)
    if isinstance(encoder, AdaptedEncoder):
        below = embed_images(encoder.base, data, progress)
        return torch.from_numpy(encoder.adapt(below.numpy()))
    if encoder.modality not in ("image", None):
        raise InputError(f"{encoder.name!r} is an encoder of {encoder.modality}s, not of images")
    images = data.images
    spec = getattr(encoder, "input_spec", None)
    # What every image set of characters has.
    polarity = "bright-ink" if spec is not None and spec.polarity else "auto"
    size = BLOCK if encoder.per_sample else len(images)
    features = np.empty((len(images), 0), dtype=np.float32)
    with FeatureStore.open(encoder.fingerprint) as store:
        for start in range(0, len(images), size):
            block = images[start : start + size]
            key = _array_key(f"images {polarity}", block)
            found = store.find([key]).get(key)
            if found is None or found.size % len(block):
                found = encoder.encode(block, polarity=polarity)
                store.keep({key: found})
            found = found.reshape(len(block), -1)
            if start == 0:
                features = np.empty((len(images), found.shape[1]), dtype=np.float32)
            features[start : start + size] = found
            if progress is not None:
                progress(start + len(block), len(images))
    return torch.from_numpy(features)


def _display_name(sample: Any, row: int) -> str:
    return str(sample) if isinstance(sample, Path) else f"sample {row}"


def unreadable_message(unreadable: Sequence[Unreadable], total: int) -> str:
    """Return which samples cannot be read, and what to do."""
    shown = "; ".join(str(one) for one in unreadable[:_SHOWN])
    more = len(unreadable) - _SHOWN
    shown += f"; and {more} more" if more > 0 else ""
    message = f"{len(unreadable):,} of {counted(total, 'sample')} cannot be read: {shown}"
    if len(unreadable) == total:
        return f"{message}; none is left"
    them = "it" if len(unreadable) == 1 else "them"
    return f"{message}; repair {them}, or leave {them} out with skip_bad=True"


def content_key(sample: Any, modality: str | None) -> bytes | None:
    """Return the hash of a sample's content; None for what has none to be hashed.

    Parameters
    ----------
    sample : array, text or path
        Of a file, the bytes are hashed.
    modality : {"image", "text", "vector"} or None
        Of the encoder: it says whether a ``str`` is a text or a path.
    """
    if isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf":
        return _array_key("array", sample)
    if isinstance(sample, str) and modality == "text":
        return _digest("text", [sample.encode("utf-8", "surrogatepass")])
    # A text or a path? Only the modality can tell.
    if isinstance(sample, Path) or (isinstance(sample, str) and modality == "image"):
        try:
            check_plain_file(Path(sample))
            with Path(sample).open("rb") as file:
                return _digest("file", iter(lambda: file.read(_CHUNK), b""))
        except (OSError, ValueError):  # the encoder will say what is wrong
            return None
    return None


def _array_key(kind: str, array: np.ndarray) -> bytes:
    about = f"{kind} {array.dtype.str} {array.shape}"
    return _digest(about, [np.ascontiguousarray(array).data])


def _digest(kind: str, content: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256(kind.encode())  # processors have it built in
    for part in content:
        digest.update(part)
    return digest.digest()[:20]
