"""PRODEN: the network's own probabilities say, more clearly with each epoch, which label is true.

Jiaqi Lv, Miao Xu, Lei Feng, Gang Niu, Xin Geng and Masashi Sugiyama, "Progressive Identification of
True Labels for Partial-Label Learning", International Conference on Machine Learning, 2020.
"""

from __future__ import annotations

from typing import Any

import torch

from fspll.baselines.mlp import NetworkClassifier, Objective, on_candidates


class ProgressiveObjective(Objective):
    """Cross-entropy to label weights that each forward pass renews.

    Attributes
    ----------
    weights : tensor of shape (n, l)
        The paper's w, at first even over the candidates.
    """

    def __init__(self, mask: torch.Tensor) -> None:
        super().__init__(mask)
        self.weights = mask.double() / mask.sum(dim=1, keepdim=True)

    def loss(self, log_p: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the weighted cross-entropy; then renew the weights from the same outputs."""
        loss = -(self.weights[rows] * log_p).sum(dim=1).mean()
        self.weights[rows] = on_candidates(log_p.detach(), self.mask[rows])
        return loss


class PRODEN(NetworkClassifier):
    """Progressive identification of true labels (PRODEN).

    With the network's probabilities g(x) and the candidate set S of sample i, the method minimizes

        mean_i sum_{j in S_i} w_ij (-log g_j(x_i)),    w_ij = g_j(x_i) / sum_{k in S_i} g_k(x_i),

    where w is what the network said when it last saw the sample (at first 1 / |S_i|) and counts as
    a constant: a network and the labels that it identifies improve each other in every minibatch.

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
        The training samples, disambiguated: the most credible candidate of each.
    confidence_ : ndarray of shape (n, l)
        w of the trained network; rows sum to one, zero off the candidates.
    coefs_, intercepts_ : list of ndarray
        The trained layers.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = PRODEN(random_state=0).fit(X, y)
    >>> clf.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
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
        return ProgressiveObjective(mask)
