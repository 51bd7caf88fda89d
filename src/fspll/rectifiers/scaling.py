"""Features of unusual size: brought to an ordinary one before anything is squared.

Squares of features around 1e-200 (in float32: around 1e-23) are zero. Rectifiers whose results do
not depend on the size of the features therefore get them in units of a power of two, which rounds
nothing, and so do queries. Features of ordinary size are not touched.

Shapes: n samples, l classes, m features, q queries; ``...`` for leading batch dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from fspll._common.errors import InputError
from fspll.candidates.estimators import largest_coordinate
from fspll.candidates.observed import Observed
from fspll.rectifiers.base import Fitted, Rectifier

_USUAL = 32  # largest features from 2**-32 to 2**32 are taken as they are
_RANGE = 1100  # exponents of float64, with room


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledModel(Fitted):
    """A model that was fitted in units of ``2**exponent``; it takes and shows ordinary units.

    Attributes
    ----------
    inner : Fitted
        The model in those units.
    exponent : int
    """

    inner: Fitted
    exponent: int

    file_version: ClassVar[int] = 6

    @classmethod
    def of(cls, inner: Fitted, exponent: int) -> ScaledModel:
        """Wrap a model whose features were divided by ``2**exponent``."""
        shown = {field.name: getattr(inner, field.name) for field in fields(Fitted)}
        shown["prototypes"] = _times_power(inner.prototypes, exponent)
        if inner.trace is not None:
            prototypes = _times_power(inner.trace.prototypes, exponent)
            shown["trace"] = replace(inner.trace, prototypes=prototypes)
        return cls(**shown, inner=inner, exponent=exponent)

    def predict_proba(self, queries: Tensor) -> Tensor:
        """Return the probability of every class for queries (..., q, m), as (..., q, l)."""
        return self.inner.predict_proba(self._in_units(queries))

    def most_probable(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable class of each query, by column, and its probability."""
        return self.inner.most_probable(self._in_units(queries))

    def _in_units(self, queries: Tensor) -> Tensor:
        queries = queries.to(torch.promote_types(queries.dtype, torch.float32))
        limit = largest_coordinate(queries.shape[-1], str(queries.dtype).removeprefix("torch."))
        return _times_power(queries, -self.exponent).clamp(-limit, limit)

    def attributes(self) -> dict[str, Any]:
        """Return what a classifier shows of the model."""
        found = self.inner.attributes() | {"prototypes_": self.prototypes.cpu().numpy()}
        if "spread_" in found:
            found["spread_"] *= 2.0**self.exponent * 2.0**self.exponent
        return found

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the state of the model in its own units."""
        return self.inner.state()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


def fit_scaled(
    rectifier: Rectifier, embeddings: Tensor, observed: Observed, *, trace: bool = False
) -> Fitted:
    """Fit a rectifier; where it ignores the size of features, in units that suit them.

    Parameters
    ----------
    rectifier : Rectifier
    embeddings : float Tensor of shape (..., n, m)
    observed, trace
        As of :meth:`Rectifier.fit`.
    """
    largest = max(abs(float(end)) for end in embeddings.aminmax())  # without a copy of them all
    _, exponent = math.frexp(largest)
    if not rectifier.ignores_scale or largest == 0 or abs(exponent) <= _USUAL:
        return rectifier.fit(embeddings, observed, trace=trace)
    inner = rectifier.fit(_times_power(embeddings, -exponent), observed, trace=trace)
    return ScaledModel.of(inner, exponent)


def restore_scaled(model: Fitted, exponent: Any) -> Fitted:
    """Wrap a model that was read from a file again; ``exponent`` may be anything."""
    if exponent is None:
        return model
    if not isinstance(exponent, int) or isinstance(exponent, bool) or abs(exponent) > _RANGE:
        raise InputError(f"the exponent of its units is {exponent!r:.20}")
    return ScaledModel.of(model, exponent)


def _times_power(values: Tensor, exponent: int) -> Tensor:
    """Return values times ``2**exponent``, which itself may be beyond the range of their type."""
    half = exponent // 2
    return values * 2.0**half * 2.0 ** (exponent - half)
