"""What the default rectifier found: class means, a kernel, and how much each counts.

Shapes: B tasks, n samples, l classes, m features, q queries; ``...`` for leading batch dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fspll._common.stored_arrays import FLOATS, require
from fspll.rectifiers.base import Fitted, StoredState
from fspll.rectifiers.class_model import ClassModel, ManyClassModel
from fspll.rectifiers.held_out import Check
from fspll.rectifiers.kernel import KernelRidge, kernel_scores, tempering

# Chosen on meta-training classes of photos; docs/real.md.
HALF = 0.5  # weight of the kernel for new samples, where nothing was held out
SHARPNESSES = (4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0)
_LEAST = 1e-12
_AT_ONCE = 1 << 12  # queries


@dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveModel(Fitted):
    """Class means and a kernel, and how much each counts for new samples.

    Attributes
    ----------
    means : ClassModel or ManyClassModel
    basis, center, reach, dual : Tensor
        Of the kernel, see :class:`fspll.rectifiers.kernel.KernelRidge`.
    kernel_weight, means_weight : Tensor of shape (..., 1, 1)
    bias : Tensor of shape (..., 1, l)
        Log-probabilities are kernel_weight times the kernel's predictions, plus means_weight times
        those of the class means, plus this, up to a constant.
    usual : Tensor of shape (..., 1, 1)
        Squared distance to the nearest sample, in units of the reach, beyond which
        log-probabilities shrink; infinite where nothing was held out.
    check : Check, optional
        What held-out samples say, where they were asked.
    doubt : float
        The share of sets that lack their true label, or, where annotators are known, the exponent
        of their judgments' likelihood.
    """

    means: ClassModel | ManyClassModel
    basis: Tensor
    center: Tensor
    reach: Tensor
    dual: Tensor
    kernel_weight: Tensor
    means_weight: Tensor
    bias: Tensor
    usual: Tensor
    check: Check | None = None
    doubt: float = 0.0

    file_version = 5

    def predict_proba(self, queries: Tensor) -> Tensor:
        """Return the probability of every class for queries (..., q, m), as (..., q, l)."""
        by_means = self.means.predict_proba(queries)
        scores, nearest = kernel_scores(queries, self.basis, self.center, self.reach, self.dual)
        logits = self.kernel_weight * scores + self.bias
        logits = logits + self.means_weight * by_means.to(logits).clamp_min(_LEAST).log()
        logits = tempering(nearest, self.usual) * logits
        allowed = self.means.has_support.to(logits.device).unsqueeze(-2)
        present = self.present.to(logits.device).unsqueeze(-2)
        allowed = allowed | (self.kernel_weight > 0) & present
        return logits.masked_fill(~allowed, -torch.inf).softmax(dim=-1).to(by_means)

    def most_probable(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable class of each query, by column, and its probability."""
        parts = [self.predict_proba(part).max(dim=-1) for part in queries.split(_AT_ONCE, dim=-2)]
        best, probability = (
            torch.cat(one, dim=-1)
            for one in zip(*((p.indices, p.values) for p in parts), strict=True)
        )
        return best, probability

    def attributes(self) -> dict[str, Any]:
        """Return what a classifier shows of the model."""
        return {**self.means.attributes(), "check_": self.check}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors of a model file."""
        tensors, about = self.means.state()
        tensors |= {f"kernel.{name}": getattr(self, name) for name in _KERNEL_TENSORS}
        about = {**about, "doubt": self.doubt}
        if self.check is not None:
            about["check"] = vars(self.check)
        return tensors, about


_KERNEL_TENSORS = (
    *("basis", "center", "reach", "dual"),
    *("kernel_weight", "means_weight", "bias", "usual"),
)


# -------------------------------------------------------------------- few samples


def few_samples_model(embeddings: Tensor, means: ClassModel) -> AdaptiveModel:
    """Add a kernel fitted to the class means' confidences, for new samples (B, n, m).

    Its sharpness is the one that predicts the confidences best, each from those of the others.
    """
    confidence = means.confidence
    kernel = KernelRidge(embeddings)
    left_out = kernel.left_out(confidence)
    target = confidence.to(left_out)
    sharpnesses = torch.tensor(SHARPNESSES, dtype=left_out.dtype, device=left_out.device)
    losses = torch.stack(
        [
            -(target * (value * left_out).log_softmax(dim=-1)).sum(dim=(-1, -2))
            for value in sharpnesses
        ]
    )
    sharpness = sharpnesses[losses.argmin(dim=0)][..., None, None]
    return AdaptiveModel(
        confidence=confidence,
        prototypes=means.prototypes,
        present=means.present,
        n_neighbors=means.n_neighbors,
        trace=means.trace,
        means=means,
        basis=kernel.basis,
        center=kernel.center,
        reach=kernel.reach,
        dual=kernel.dual(confidence),
        kernel_weight=HALF * sharpness,
        means_weight=torch.full_like(sharpness, 1 - HALF),
        bias=torch.zeros_like(target[..., :1, :]),
        usual=torch.full_like(sharpness, torch.inf),
    )


# -------------------------------------------------------------------- batches and files


def task_of(model: Any, shape: torch.Size, task: int) -> Any:
    """Return one task of a fitted batch of leading dimensions ``shape``."""

    def pick(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.reshape(-1, *value.shape[len(shape) :])[task]
        return task_of(value, shape, task) if isinstance(value, ClassModel) else value

    return replace(model, **{name: pick(value) for name, value in vars(model).items()})


def with_tasks(
    model: AdaptiveModel, shape: torch.Size, found: dict[int, AdaptiveModel]
) -> AdaptiveModel:
    """Return a fitted batch of leading dimensions ``shape`` with some tasks fitted otherwise."""

    def put(value: Any, others: list[Any]) -> Any:
        if isinstance(value, Tensor):
            flat = value.reshape(-1, *value.shape[len(shape) :]).clone()
            for task, other in zip(found, others, strict=True):
                flat[task] = other
            return flat.reshape(value.shape)
        if isinstance(value, ClassModel):
            return ClassModel(**entries(value, others, vars(value)))
        return value if all(other == value for other in others) else None

    def entries(value: Any, others: list[Any], names: Iterable[str]) -> dict[str, Any]:
        return {n: put(getattr(value, n), [getattr(one, n) for one in others]) for n in names}

    names = set(vars(model)) - {"check", "doubt", "posterior"}  # which belong to one task
    return AdaptiveModel(**entries(model, list(found.values()), names))


def restore_adaptive(stored: StoredState, means: Any) -> AdaptiveModel:
    """Read a model file; what does not fit together is refused."""
    endless = torch.full((1, 1), torch.inf)  # files of version 4 know no such distance
    stored_kernel = {"kernel.usual": endless, **stored.tensors}
    kernel = {name: stored_kernel[f"kernel.{name}"] for name in _KERNEL_TENSORS}
    n_classes, width = stored.candidates.n_classes, means.prototypes.shape[-1]
    n_basis = len(kernel["basis"]) if kernel["basis"].ndim else 0
    shapes = {
        "basis": (n_basis, width),
        "center": (1, width),
        "reach": (1, 1),
        "dual": (n_basis, n_classes),
        "kernel_weight": (1, 1),
        "means_weight": (1, 1),
        "bias": (1, n_classes),
        "usual": (1, 1),
    }
    for name, shape in shapes.items():
        tensor = kernel[name]
        numbers = ~tensor.isnan() if name == "usual" else tensor.isfinite()
        require(
            tensor.dtype in FLOATS and tensor.shape == shape and bool(numbers.all()),
            f"its {name} is no array of numbers of shape {shape}",
        )
    require(float(kernel["reach"]) > 0, "its reach is no positive number")
    require(float(kernel["usual"]) >= 0, "its usual distance is negative")
    about = stored.about
    check, doubt = about.get("check"), about.get("doubt", 0.0)
    require(isinstance(doubt, int | float) and 0 <= doubt <= 1, "its doubt is no share")
    return AdaptiveModel(
        confidence=means.confidence,
        prototypes=means.prototypes,
        present=means.present,
        means=means,
        basis=kernel["basis"],
        center=kernel["center"],
        reach=kernel["reach"],
        dual=kernel["dual"],
        kernel_weight=kernel["kernel_weight"],
        means_weight=kernel["means_weight"],
        bias=kernel["bias"],
        usual=kernel["usual"],
        check=None if check is None else read_check(check),
        doubt=float(doubt),
    )


def read_check(check: Any) -> Check:
    """Read what held-out samples said from a model file."""
    names = set(Check.__dataclass_fields__)
    require(isinstance(check, dict), "its check is not complete")
    check = {"decides": True, **check}  # earlier files do not say so
    require(set(check) == names, "its check is not complete")
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
        for name, value in check.items()
        if name != "decides"
    )
    require(numbers and check["n_samples"] > 0, "its check holds no numbers")
    require(isinstance(check["decides"], bool), "its check does not say whether it decides")
    return Check(**check)
