"""CC: the total probability of the candidates is made as high as possible.

Lei Feng, Jiaqi Lv, Bo Han, Miao Xu, Gang Niu, Xin Geng, Bo An and Masashi Sugiyama, "Provably
Consistent Partial-Label Learning", Advances in Neural Information Processing Systems, 2020.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from fspll.baselines.mlp import NetworkClassifier, Objective


class CandidateLikelihood(Objective):
    """Minus the log-probability of the candidate sets."""

    def loss(self, log_p: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the mean of -log sum_{j in S} p_j."""
        return -log_p.masked_fill(~self.mask[rows], -math.inf).logsumexp(dim=1).mean()


class CC(NetworkClassifier):
    """Classifier-consistent partial-label learning (CC).

    If every set that contains the true label is equally probable, the set S of a sample depends on
    x through the total probability of its labels only. With the network's probabilities g(x), the
    method maximizes the likelihood of the sets:

        mean_i -log sum_{j in S_i} g_j(x_i)

    has, with enough samples, the same best classifier as cross-entropy to the true labels. Its
    gradient is that of :class:`fspll.baselines.PRODEN` with weights that are always up to date.

    Parameters
    ----------
    hidden : tuple of int, default=(500,)
        Widths of the hidden layers; () for a linear model.
    n_epochs : int, default=100
        Passes over the training samples.
    batch_size : int, default=32
        Least number of samples in a minibatch.
    learning_rate : float, default=0.01
        Highest rate of AdamW.
    weight_decay : float, default=1.0
        Share by which weights shrink, times the rate, in each step.
    scale : {"standard", "minmax", "none"}, default="standard"
        How features are scaled; see :class:`fspll.baselines.base.PartialLabelClassifier`.
    classes : sequence, optional
        All classes in the order wanted.
    random_state : int, generator or None, default=None
        Draws the initial weights and the minibatches.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated: the most probable candidate of each.
    confidence_ : ndarray of shape (n, l)
        g(x) restricted to the candidates; rows sum to one.
    coefs_, intercepts_ : list of ndarray
        The trained layers.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = CC(random_state=0).fit(X, y)
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
    >>> clf.predict_proba([[0.3]]).shape
    (1, 3)
    """

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (500,),
        n_epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 0.01,
        weight_decay: float = 1.0,
        scale: str = "standard",
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.scale = scale
        self.classes = classes
        self.random_state = random_state

    def _objective(self, mask: torch.Tensor) -> Objective:
        return CandidateLikelihood(mask)
