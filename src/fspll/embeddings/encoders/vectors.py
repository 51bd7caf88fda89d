"""Feature vectors on one scale, as an encoder that can be saved with a classifier.

Shapes: n samples, m features.
"""

from __future__ import annotations

import numpy as np
import torch

from fspll._common.errors import InputError
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.networks.standardize import Standardize

_FLOAT32 = np.finfo(np.float32)


def standardizer(features: np.ndarray) -> NetworkEncoder:
    """Return an encoder that brings features like these to mean 0 and standard deviation 1.

    A feature that never changes is left at its distance from the mean.

    Parameters
    ----------
    features : array of shape (n, m)

    Examples
    --------
    >>> standardizer(np.array([[1.0, 5.0], [3.0, 5.0]])).encode(np.array([[5.0, 5.0]])).tolist()
    [[3.0, 0.0]]
    """
    from sklearn.preprocessing import StandardScaler

    features = np.asarray(features, dtype=np.float64)
    largest = float(np.abs(features).max(initial=0.0))
    if largest > float(_FLOAT32.max) or 0 < largest < float(_FLOAT32.tiny):
        raise InputError(
            f"the largest feature is {largest:.3g}, beyond what an encoder can take (float32); "
            f"multiply the features by a number that brings them closer to 1"
        )
    scaler = StandardScaler().fit(features)
    network = Standardize(scaler.n_features_in_)
    network.mean.copy_(torch.from_numpy(scaler.mean_))
    network.scale.copy_(torch.from_numpy(scaler.scale_))
    return NetworkEncoder(network.eval(), None, Standardize.architecture, device="cpu")
