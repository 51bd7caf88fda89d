"""What neighbors' candidate sets say about a sample's label, before any class mean is known.

The k nearest samples share a sample's class with a probability rho that falls with their squared
distance, in relation to that of the first sample that is no neighbor (the mean of both sides'):
logit rho = slope (midpoint - ratio) + shift. The shift belongs to the task and is estimated from
its candidate sets alone: two sets that overlap little are unlikely to share their class, and
disjoint ones cannot.

Shapes: B tasks, n samples, l classes, m features.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fspll.rectifiers import neighbors as neighborhood

# Chosen on meta-training classes of Omniglot and of small photos; accuracy is flat around them.
SLOPE, MIDPOINT = 10.4, 0.92  # of a neighbor's reliability, fitted by logistic regression
SHIFT_SPREAD = 1.0  # standard deviation of a task's shift, in logits
SYMMETRY = 1.0  # logits that separate labels which occur in the same sets
_SHIFT_STEPS = 3
_LONGEST_STEP = 4 * SHIFT_SPREAD


def neighbor_log_likelihood(embeddings: Tensor, candidates: Tensor, k: int) -> Tensor:
    """Log-likelihood of the neighbors' candidate sets for every label, up to a constant per sample.

    A neighbor of reliability rho has a set S of size s with a probability proportional to
    rho + (1 - rho)(s - 1)/(l - 1) if it holds the label, and to (1 - rho) s/(l - 1) if not.

    Parameters
    ----------
    embeddings : Tensor of shape (B, n, m)
    candidates : bool Tensor of shape (B, n, l)

    Returns
    -------
    Tensor of shape (B, n, l)
    """
    n, n_classes = candidates.shape[-2:]
    mask = candidates.to(embeddings.dtype)
    k = min(k, n - 1)
    if k <= 0 or n_classes == 1:
        return torch.zeros_like(mask)
    square = neighborhood.squared_distances(embeddings)
    near = neighborhood.neighbors(square, embeddings, neighborhood.squared_norms(embeddings), k)
    edge = square.masked_fill(near, torch.inf).amin(dim=-1)
    farthest = square.masked_fill(~near, 0).amax(dim=-1)
    edge = torch.where(edge.isfinite(), edge, farthest)
    task, i, j = near.nonzero(as_tuple=True)
    reference = (edge[task, i] + edge[task, j]) / 2
    ratio = square[task, i, j] / reference.clamp_min(torch.finfo(square.dtype).tiny)
    size = mask.sum(dim=-1)
    mine, other = size[task, i], size[task, j]
    overlap = (mask @ mask.transpose(-1, -2))[task, i, j]
    # Labels that are nobody's candidate are no distractors: they must not count.
    others = (candidates.any(dim=-2).sum(dim=-1) - 1).clamp_min(1)[task]
    same = overlap / mine  # likelihood of the neighbor's set given mine, if they share a class
    different = (other - same) / others  # and if not; a common factor is left out
    logit = SLOPE * (MIDPOINT - ratio)
    logit = logit + _task_shift(logit, same, different, task, len(candidates))[task]
    rho = logit.sigmoid().clamp(1e-3, 1 - 1e-3)
    holds = (rho + (1 - rho) * (other - 1) / others).log()
    lacks = ((1 - rho) * other / others).log()
    weight = torch.zeros_like(square)
    weight[task, i, j] = holds - lacks
    return weight @ mask


def _task_shift(
    logit: Tensor, same: Tensor, different: Tensor, task: Tensor, n_tasks: int
) -> Tensor:
    """Most likely shift of the reliabilities of each task, given its candidate sets, (B,).

    A few bounded, cautious Newton steps, which may stop short of the maximum, on
    sum_pairs log(rho same + (1 - rho) different) - shift^2 / (2 SHIFT_SPREAD^2).
    """

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(n_tasks).index_add_(0, task, values)

    shift = logit.new_zeros(n_tasks)
    prior = 1 / SHIFT_SPREAD**2
    for _ in range(_SHIFT_STEPS):
        rho = (logit + shift[task]).sigmoid()
        shared = rho * same
        posterior = shared / (shared + (1 - rho) * different).clamp_min(1e-12)
        slope = total(posterior - rho) - prior * shift
        step = slope / (total(rho * (1 - rho)) + prior)
        # Sure neighbors leave no curvature: unbounded steps would run away.
        shift = shift + step.clamp(-_LONGEST_STEP, _LONGEST_STEP)
    return shift


def break_symmetry(embeddings: Tensor, candidates: Tensor) -> Tensor:
    """Logits that separate labels which occur in exactly the same sets, of shape (B, n, l).

    They lean toward the outermost sample, or away from it.

    Nothing tells such labels apart, so their means would stay on top of each other for ever, even
    if the samples form two groups. Zero for all other labels.
    """
    mask = candidates.to(embeddings.dtype)
    shared = mask.transpose(-1, -2) @ mask
    size = mask.sum(dim=-2)
    same = (shared == size.unsqueeze(-1)) & (shared == size.unsqueeze(-2))  # itself too
    earlier = same.tril(-1).sum(dim=-1)
    side = earlier - (same.sum(dim=-1) - 1) / 2
    norms = embeddings.square().sum(dim=-1)
    far = embeddings.take_along_dim(norms.argmax(dim=-1)[:, None, None], dim=-2)
    near = (embeddings * far).sum(dim=-1) / norms.amax(dim=-1, keepdim=True).clamp_min(1e-30)
    return near.unsqueeze(-1) * side.unsqueeze(-2).to(near.dtype)
