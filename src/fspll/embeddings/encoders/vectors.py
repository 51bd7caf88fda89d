"""Feature vectors on one scale, as an encoder that can be saved with a classifier.

Shapes: n samples, m features.
"""

from __future__ import annotations

import numpy as np
import torch

from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.networks.standardize import Standardize


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

    scaler = StandardScaler().fit(np.asarray(features, dtype=np.float64))
    network = Standardize(scaler.n_features_in_)
    network.mean.copy_(torch.from_numpy(scaler.mean_))
    network.scale.copy_(torch.from_numpy(scaler.scale_))
    return NetworkEncoder(network.eval(), None, Standardize.architecture, device="cpu")
