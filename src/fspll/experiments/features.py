"""Embeddings of a whole data set, computed once for each network and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from fspll._common.errors import DataError
from fspll._common.files import user_cache_dir, write_beside
from fspll.datasets import ImageSet
from fspll.embeddings import Encoder


def embed_images(
    encoder: Encoder, data: ImageSet, progress: Callable[[int, int], None] | None = None
) -> Tensor:
    """Return the features of every image of a data set, of shape (n, m).

    They are kept in the cache folder under a name made from the network's weights and the pixels:
    a second evaluation of the same checkpoint starts at once, and a changed network or data set is
    never mistaken for another.
    """
    path = user_cache_dir() / "features" / f"{_fingerprint(encoder, data)}.npy"
    try:
        return torch.from_numpy(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError):  # not there yet, or damaged: make it
        pass
    polarity = (
        "auto"
        if encoder.input_spec is None or not encoder.input_spec.polarity
        else (
            "bright-ink"  # what every ImageSet of characters has
        )
    )
    features = encoder.encode(data.images, progress=progress, polarity=polarity)
    # A full disk or a read-only home costs the next run some time, not this one its result.
    with suppress(DataError), write_beside(path) as beside, beside.open("wb") as file:
        np.save(file, features)
    return torch.from_numpy(features)


def _fingerprint(encoder: Encoder, data: ImageSet) -> str:
    digest = hashlib.sha256(repr((encoder.input_spec, data.name, data.images.shape)).encode())
    digest.update(repr(encoder.network).encode())  # layers without weights
    for name, tensor in sorted(encoder.network.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    for start in range(0, len(data), 4096):  # in parts: the images may be a large memory map
        digest.update(data.images[start : start + 4096].tobytes())
    return digest.hexdigest()[:32]
