"""Kernel ridge regression of label shares, with leave-one-out predictions in closed form.

The kernel is k(x, y) = exp(-|x - y|^2 / (2 w d^2)) + 1, where d is the mean distance between two
samples, so that nothing depends on the scale of the features. With G = (K + ridge I)^-1, the
prediction for sample i from all others is Q_i - (G Q)_i / G_ii: no sample confirms itself, at no
extra cost. Beyond :data:`MOST_EXACT` samples the kernel is approximated by its values at
:data:`LANDMARKS` samples (Nystrom), where the same holds with the diagonal of the hat matrix.

Shapes: n samples, l classes, m features, q queries, L basis samples; ``...`` for leading batch
dimensions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fspll.rectifiers.assignment import widest_float

WIDTH, RIDGE = 1.0, 0.1  # chosen on Lost and on 64 meta-training classes of photos
MOST_EXACT = 2048  # samples, up to which the kernel is exact
LANDMARKS = 1024
_CLOSEST = 0.999  # share of a sample's own label in its prediction, at most
_NEAR = 0.1  # of the mean squared distance
_LEAST_SURE = 1e-3
_ROWS_AT_ONCE = 1 << 14


class KernelRidge:
    """Kernel ridge regression from embeddings to label shares.

    Parameters
    ----------
    embeddings : Tensor of shape (..., n, m)
    width, ridge : float
        w, and what is added to the kernel's diagonal.
    square : Tensor of shape (..., n, n), optional
        Squared distances between the samples, where they are known already. Not used where the
        kernel is approximated.

    Attributes
    ----------
    basis : Tensor of shape (..., L, m)
        The samples that the kernel is evaluated at, as they came.
    center : Tensor of shape (..., 1, m)
    reach : Tensor of shape (..., 1, 1)
        2 w d^2.

    Examples
    --------
    >>> e = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> regression = KernelRidge(e)
    >>> regression.left_out(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).round()
    tensor([[1., 0.],
            [1., 0.],
            [0., 1.],
            [0., 1.]], dtype=torch.float64)
    """

    def __init__(
        self,
        embeddings: Tensor,
        width: float = WIDTH,
        ridge: float = RIDGE,
        square: Tensor | None = None,
    ) -> None:
        e = embeddings.to(widest_float(embeddings))
        n = e.shape[-2]
        self.center = e.mean(dim=-2, keepdim=True)
        e = e - self.center
        exact = n <= MOST_EXACT
        chosen = slice(None) if exact else _landmarks(n, e.device)
        self.basis, centered = embeddings[..., chosen, :], e[..., chosen, :]
        if square is None or not exact:
            square = squared_distances(centered, centered)
        pairs = max(1, square.shape[-1] * (square.shape[-1] - 1))
        distance = square.sqrt().sum(dim=(-1, -2), keepdim=True) / pairs
        self.reach = torch.where(distance > 0, 2 * width * distance.square(), 1)
        kernel = self._kernel(square)
        if exact:
            identity = torch.eye(n, dtype=e.dtype, device=e.device)
            self._inverse = torch.cholesky_inverse(torch.linalg.cholesky(kernel + ridge * identity))
            self._diagonal = self._inverse.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        else:
            self._factor(e, centered, kernel, ridge)
        self.is_exact = exact

    def _factor(self, e: Tensor, landmarks: Tensor, kernel: Tensor, ridge: float) -> None:
        """Prepare the regression on the features k(x, basis) times kernel^(-1/2)."""
        value, vector = torch.linalg.eigh(kernel)
        value = value.clamp_min(1e-10 * value[..., -1:])
        root = vector / value.sqrt().unsqueeze(-2)
        parts = e.split(_ROWS_AT_ONCE)
        feature = torch.cat(
            [self._kernel(squared_distances(part, landmarks)) @ root for part in parts]
        )
        identity = torch.eye(feature.shape[-1], dtype=e.dtype, device=e.device)
        lower = torch.linalg.cholesky(feature.T @ feature + ridge * identity)
        # H = R R^T is the hat matrix, and R^T Q leads to the coefficients at the basis.
        hat_root = torch.linalg.solve_triangular(lower, feature.T, upper=False).T
        self._to_dual = root @ torch.linalg.inv(lower).T
        self._hat = hat_root.square().sum(dim=-1, keepdim=True).clamp_max(_CLOSEST)
        # Every round of an inference multiplies by it twice, which is most of the work. Nothing is
        # inverted after this, so single precision costs no more than its rounding.
        self._hat_root = hat_root.float()

    def _kernel(self, square: Tensor) -> Tensor:
        return torch.exp(-square / self.reach) + 1

    def left_out(self, shares: Tensor) -> Tensor:
        """Predict the shares (..., n, l) of every sample from those of all others."""
        shares = shares.to(self.center)
        if self.is_exact:
            return shares - (self._inverse @ shares) / self._diagonal
        fitted = self._hat_root @ self._projected(shares)
        return (fitted - self._hat * shares) / (1 - self._hat)

    def dual(self, shares: Tensor) -> Tensor:
        """Return the coefficients (..., L, l) by which new samples are predicted."""
        shares = shares.to(self.center)
        if self.is_exact:
            return self._inverse @ shares
        return self._to_dual @ self._projected(shares).to(shares)

    def _projected(self, shares: Tensor) -> Tensor:
        """Return R^T Q of the hat matrix R R^T, in single precision."""
        return self._hat_root.T @ shares.to(self._hat_root)

    def predict(
        self, queries: Tensor, dual: Tensor, square: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Predict the shares of queries; see :func:`kernel_scores`.

        ``square`` are their squared distances (..., q, L) to the basis, where they are known.
        """
        if square is not None:
            return _scores_at(square, self.reach, dual)
        return kernel_scores(queries, self.basis, self.center, self.reach, dual)

    def nearest_others(self, embeddings: Tensor) -> Tensor:
        """Squared distance of each of the n samples (n, m) to the nearest other basis sample.

        Of one task; in units of the reach, (n, 1).
        """
        basis = self.basis.to(self.center) - self.center
        own = torch.arange(len(embeddings))
        place = own if self.is_exact else _landmarks(len(embeddings), own.device)
        found = []
        for part, rows in zip(
            embeddings.split(_ROWS_AT_ONCE), own.split(_ROWS_AT_ONCE), strict=True
        ):
            square = squared_distances(part.to(basis) - self.center, basis) / self.reach
            square[rows.unsqueeze(1) == place] = torch.inf
            found.append(square.min(dim=-1, keepdim=True).values)
        return torch.cat(found)


def kernel_scores(
    queries: Tensor, basis: Tensor, center: Tensor, reach: Tensor, dual: Tensor
) -> tuple[Tensor, Tensor]:
    """Evaluate a fitted regression at queries (..., q, m).

    Returns
    -------
    scores : Tensor of shape (..., q, l)
    nearest : Tensor of shape (..., q, 1)
        Squared distance to the nearest basis sample, in units of the reach.
    """
    basis = basis.to(center) - center
    # A graph for another runtime is the same for any number of queries.
    whole = torch.compiler.is_exporting()
    parts = [
        _scores_at(squared_distances(part.to(basis) - center, basis), reach, dual)
        for part in ([queries] if whole else queries.split(_ROWS_AT_ONCE, dim=-2))
    ]
    scores, nearest = (torch.cat(one, dim=-2) for one in zip(*parts, strict=True))
    return scores, nearest


def _scores_at(square: Tensor, reach: Tensor, dual: Tensor) -> tuple[Tensor, Tensor]:
    """Evaluate a fitted regression at squared distances (..., q, L) from its basis."""
    kernel = torch.exp(-square / reach)
    return (kernel + 1) @ dual, -kernel.max(dim=-1, keepdim=True).values.log()


def usual_distance(nearest: Tensor, width: float) -> Tensor:
    """Return the squared distance up to which predictions are as sure as they may be, of shape ().

    The median of what samples have (n, 1), in units of the reach; where most samples have near
    twins, such as texts of one template, a tenth of the mean squared distance.
    """
    return nearest.median().clamp_min(_NEAR / (2 * width))


def tempering(nearest: Tensor, usual: Tensor) -> Tensor:
    """Return the factor of logits at a squared distance from the nearest sample, of any shape.

    One up to the usual distance; beyond, predictions are the less sure the farther they are made
    from any sample. In training data such samples are few, and held-out ones cannot tell much
    about them; in new data that differ from the training data they may be most. It is never quite
    zero, so that the most probable class stays what it is.

    >>> tempering(torch.tensor([0.5, 1.0, 4.0]), torch.tensor(1.0))
    tensor([1.0000, 1.0000, 0.2500])
    """
    return torch.where(nearest > usual, usual / nearest, 1.0).clamp_min(_LEAST_SURE)


def distances_within(embeddings: Tensor) -> Tensor | None:
    """Squared distances between samples (n, m) as (n, n), where their kernel is exact.

    For several regressions on the same samples, or on parts of them.
    """
    if len(embeddings) > MOST_EXACT:
        return None
    e = embeddings.to(widest_float(embeddings))
    e = e - e.mean(dim=0)
    return squared_distances(e, e)


def squared_distances(samples: Tensor, others: Tensor) -> Tensor:
    """Squared distances (..., q, L) of samples (..., q, m) to others (..., L, m)."""
    product = samples @ others.transpose(-1, -2)
    norms = samples.square().sum(dim=-1).unsqueeze(-1) + others.square().sum(dim=-1).unsqueeze(-2)
    return product.mul_(-2).add_(norms).clamp_min_(0)


def _landmarks(n: int, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(n, generator=generator)[:LANDMARKS].sort().values.to(device)
