"""PL-LEAF: confidences from the graph of the features, then a regression with a margin.

Min-Ling Zhang, Bin-Bin Zhou and Xu-Ying Liu, "Partial Label Learning via Feature-Aware
Disambiguation", ACM SIGKDD Conference on Knowledge Discovery and Data Mining, 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fspll._common.arguments import check_choice, check_count, check_positive
from fspll.baselines.base import PartialLabelClassifier
from fspll.baselines.graph import feature_graph, weight_matrix
from fspll.baselines.kernel_ridge import kernel_outputs, training_kernel
from fspll.baselines.margin_regression import MarginProblem, public_steps, solve_regression
from fspll.baselines.simplex import CandidateSimplexes, graph_confidence

SOLVERS = ("exact", "reference")


class PLLEAF(PartialLabelClassifier):
    """Partial-label learner by feature-aware disambiguation (PL-LEAF).

    First, each sample becomes a mixture of its nearest neighbors, and the confidences y_i over
    the candidates are those that the same mixtures rebuild best. Then a kernel regression f with
    several outputs is fitted to them, in whose tube errors are free, and which is rewarded where
    the candidates' outputs stand above the others': it minimizes

        1/2 |f|^2 + C1 sum_i max(|y_i - f(x_i)| - epsilon, 0)^2 - C2 sum_i <z_i, f(x_i)>,

    z_ij = 1/|S_i| for a candidate and -1/(l - |S_i|) for another class. The kernel is Gaussian, as
    wide as the mean distance of two samples; f has a free bias.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors of a sample; all others where there are not as many.
    C1 : float, default=10.0
        Weight of the errors.
    C2 : float, default=1.0
        Weight of the candidates' margin.
    epsilon : float, default=0.1
        Width of the tube.
    solver : {"exact", "reference"}, default="exact"
        "exact" finds the minimum. "reference" does what the public program does, which stops
        after about one step and, where a step puts all samples inside the tube, as happens in
        few-shot tasks, returns the same outputs for every sample: for comparison only.
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
    beta_, bias_ : ndarray of shape (n, l) and (l,)
        The regression: f(x) = sum_i k(x, x_i) beta_i + bias.
    X_fit_, sigma_ : ndarray of shape (n, d) and float
        The scaled training samples and the width of the kernel.
    n_iter_ : int
        Steps of the regression.
    n_neighbors_ : int
        The number of neighbors that was used.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = PLLEAF(n_neighbors=2).fit(X, y)
    >>> clf.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 10,
        C1: float = 10.0,
        C2: float = 1.0,
        epsilon: float = 0.1,
        solver: str = "exact",
        scale: str = "standard",
        classes: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.C1 = C1
        self.C2 = C2
        self.epsilon = epsilon
        self.solver = solver
        self.scale = scale
        self.classes = classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, SOLVERS)
        check_count("n_neighbors", self.n_neighbors, 1)
        check_positive("C1", self.C1)
        check_positive("C2", self.C2, zero=True)
        check_positive("epsilon", self.epsilon, zero=True)

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        neighbors, _, weights = feature_graph(X, int(self.n_neighbors))
        confidence = graph_confidence(weight_matrix(neighbors, weights), CandidateSimplexes(mask))
        kernel, self.sigma_ = training_kernel(X)
        problem = MarginProblem(
            kernel, confidence, candidate_margin(mask), self.C1, self.C2, self.epsilon
        )
        if self.solver == "exact":
            solution = solve_regression(problem, overwrite_kernel=True)
        else:
            solution = public_steps(problem)
        self.beta_, self.bias_, self.n_iter_ = solution
        self.X_fit_ = X
        self.n_neighbors_ = neighbors.shape[1]
        self.confidence_ = confidence
        self.labels_ = self._most_credible(confidence, mask)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return kernel_outputs(X, self.X_fit_, self.sigma_, self.beta_, self.bias_)


def candidate_margin(mask: np.ndarray) -> np.ndarray:
    """Return z (n, l): <z_i, f> is the candidates' mean output less the other classes' mean.

    A sample for which every class is a candidate has no others, and 1/l everywhere.
    """
    sizes = mask.sum(axis=1, keepdims=True)
    others = np.maximum(mask.shape[1] - sizes, 1)
    return np.where(mask, 1.0 / sizes, -1.0 / others)
