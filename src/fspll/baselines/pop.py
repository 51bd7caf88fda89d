"""POP: candidates that the network has stopped believing are struck off the sets.

Ning Xu, Biao Liu, Jiaqi Lv, Congyu Qiao and Xin Geng, "Progressive Purification for
Instance-Dependent Partial Label Learning", International Conference on Machine Learning, 2023.
"""

from __future__ import annotations

from typing import Any

import torch

from fspll._common.arguments import check_count, check_positive
from fspll._common.errors import InputError
from fspll.baselines.mlp import NetworkClassifier, Objective
from fspll.baselines.proden import ProgressiveObjective

_FEW = 1e-4  # share of all entries; fewer removals than this raise the threshold
_HIGHEST = 0.4  # what the threshold is raised to at most


class PurifiedObjective(ProgressiveObjective):
    """PRODEN's loss on sets that shrink; ``mask`` has what is left of them."""

    def __init__(
        self, mask: torch.Tensor, n_warm_up: int, window: int, threshold: float, growth: float
    ) -> None:
        super().__init__(mask.clone())
        self.n_warm_up, self.window = n_warm_up, window
        self.threshold, self.growth = threshold, growth
        self.recent = torch.zeros(window, *mask.shape, dtype=torch.float64)

    def end_epoch(self, epoch: int) -> None:
        """Note the weights; at the end of a window after the warm-up, purify the sets."""
        self.recent[epoch % self.window] = self.weights
        if epoch >= self.n_warm_up and (epoch + 1) % self.window == 0:
            self._purify(self.recent.mean(dim=0))

    def _purify(self, mean: torch.Tensor) -> None:
        """Remove candidates far below their sample's best, which itself always stays."""
        doubtful = mean < self.threshold * mean.amax(dim=1, keepdim=True)
        n_removed = int((self.mask & doubtful).sum())
        self.mask &= ~doubtful
        kept = mean * self.mask
        self.weights = kept / kept.sum(dim=1, keepdim=True)
        if n_removed < _FEW * self.mask.numel() and self.threshold < _HIGHEST:
            self.threshold = min(self.threshold * (1 + self.growth), _HIGHEST)


class POP(NetworkClassifier):
    """Progressive purification of candidate sets (POP).

    Trains as :class:`fspll.baselines.PRODEN` does. After ``n_warm_up`` epochs, at the end of every
    ``window`` epochs, with w the mean of the label weights over these, label j leaves the set of
    sample i for good if

        w_ij < theta max_k w_ik.

    Whenever fewer than one in 10,000 entries of the mask leave, theta is multiplied by
    1 + ``growth``, up to 0.4. The rule and the values of its four parameters are those of the
    authors' program, which trains for 500 epochs.

    Parameters
    ----------
    n_warm_up : int, default=20
        Epochs before sets are purified.
    window : int, default=5
        Epochs over which weights are averaged, and after which sets are purified again.
    threshold : float, default=0.001
        The first theta, at most 1.
    growth : float, default=0.001
        How much theta is raised.
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
        The network's probabilities over what is left of each set; rows sum to one.
    coefs_, intercepts_ : list of ndarray
        The trained layers.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = POP(threshold=0.1, random_state=0).fit(X, y)
    >>> clf.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> (clf.confidence_ > 0).sum(axis=1).tolist()
    [1, 1, 1, 1, 1, 1]
    """

    def __init__(
        self,
        *,
        n_warm_up: int = 20,
        window: int = 5,
        threshold: float = 0.001,
        growth: float = 0.001,
        hidden: tuple[int, ...] = (500,),
        n_epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 0.01,
        weight_decay: float = 1.0,
        scale: str = "standard",
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_warm_up = n_warm_up
        self.window = window
        self.threshold = threshold
        self.growth = growth
        self.hidden = hidden
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.scale = scale
        self.classes = classes
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_warm_up", self.n_warm_up, 0)
        check_count("window", self.window, 1)
        check_positive("threshold", self.threshold, zero=True)
        if self.threshold > 1:
            raise InputError(f"threshold must be at most 1, not {self.threshold!r}")
        check_positive("growth", self.growth, zero=True)

    def _objective(self, mask: torch.Tensor) -> Objective:
        return PurifiedObjective(
            mask, int(self.n_warm_up), int(self.window), float(self.threshold), float(self.growth)
        )
