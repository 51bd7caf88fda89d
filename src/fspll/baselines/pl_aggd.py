"""PL-AGGD: the graph, the labels and the classifier improve each other.

Deng-Bao Wang, Li Li and Min-Ling Zhang, "Adaptive Graph Guided Disambiguation for Partial Label
Learning", ACM SIGKDD Conference on Knowledge Discovery and Data Mining, 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fspll._common.arguments import check_count, check_positive
from fspll.baselines.base import PartialLabelClassifier
from fspll.baselines.graph import (
    difference_grams,
    feature_graph,
    simplex_weights,
    weight_matrix,
)
from fspll.baselines.kernel_ridge import KernelRidge, kernel_outputs, training_kernel
from fspll.baselines.simplex import CandidateSimplexes, graph_confidence, smooth_confidence


class PLAGGD(PartialLabelClassifier):
    """Partial-label learner with an adaptive graph (PL-AGGD).

    A sample should be a mixture of its nearest neighbors, in its features and in its label
    confidences alike, and a kernel regression should reproduce the confidences. With x of length
    one, y_i in the simplex over the candidates of sample i and the weights W_i in the simplex over
    its neighbors, the method takes turns to minimize

        sum_i |f(x_i) - y_i|^2 + ridge |f|^2 + label_weight sum_i |y_i - sum_j W_ij y_j|^2
              + feature_weight sum_i |x_i - sum_j W_ij x_j|^2

    over W, Y and f, in this order. The neighbors never change. Each turn's problem is solved
    exactly; the kernel is Gaussian, as wide as the mean distance of two samples, and f has a free
    bias.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors of a sample; all others where there are not as many.
    n_iterations : int, default=20
        Turns; 0 leaves the confidences of the features' graph.
    feature_weight : float, default=1.0
        How much the weights should rebuild the features. The authors' program calls it lambda.
    label_weight : float, default=1.0
        How much the weights should rebuild the confidences, mu.
    ridge : float, default=0.05
        Weight of the regression's squared norm. The authors' program calls it gamma; their paper
        seems to have the names of this and ``feature_weight`` the other way round, and results are
        much worse with the values exchanged.
    scale : {"standard", "minmax", "none"}, default="standard"
        How features are scaled; see :class:`fspll.baselines.base.PartialLabelClassifier`.
    classes : sequence, optional
        All classes in the order wanted.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated: the most credible candidate of each.
    confidence_ : ndarray of shape (n, l)
        How credible each candidate is; rows sum to one, zero off the candidates.
    alpha_, bias_ : ndarray of shape (n, l) and (l,)
        The regression: f(x) = sum_i k(x, x_i) alpha_i + bias.
    X_fit_, sigma_ : ndarray of shape (n, d) and float
        The scaled training samples and the width of the kernel.
    n_neighbors_ : int
        The number of neighbors that was used.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = PLAGGD(n_neighbors=2).fit(X, y)
    >>> clf.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        n_iterations: int = 20,
        feature_weight: float = 1.0,
        label_weight: float = 1.0,
        ridge: float = 0.05,
        scale: str = "standard",
        classes: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_iterations = n_iterations
        self.feature_weight = feature_weight
        self.label_weight = label_weight
        self.ridge = ridge
        self.scale = scale
        self.classes = classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_neighbors", self.n_neighbors, 1)
        check_count("n_iterations", self.n_iterations, 0)
        check_positive("feature_weight", self.feature_weight, zero=True)
        check_positive("label_weight", self.label_weight)
        check_positive("ridge", self.ridge)

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        simplexes = CandidateSimplexes(mask)
        neighbors, grams, weights = feature_graph(X, int(self.n_neighbors))
        confidence = graph_confidence(weight_matrix(neighbors, weights), simplexes)
        kernel, self.sigma_ = training_kernel(X)
        regression = KernelRidge(kernel, float(self.ridge))
        alpha, bias, outputs = regression.fit(confidence)
        for _ in range(self.n_iterations):
            weights = simplex_weights(
                self.feature_weight * grams
                + self.label_weight * difference_grams(confidence, neighbors),
                start=weights,
            )
            confidence, _ = smooth_confidence(
                weight_matrix(neighbors, weights),
                simplexes,
                confidence,
                pull=1.0 / self.label_weight,
                target=outputs,
            )
            alpha, bias, outputs = regression.fit(confidence)
        self.X_fit_, self.alpha_, self.bias_ = X, alpha, bias
        self.n_neighbors_ = neighbors.shape[1]
        self.confidence_ = confidence
        self.labels_ = self._most_credible(confidence, mask)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return kernel_outputs(X, self.X_fit_, self.sigma_, self.alpha_, self.bias_)
