"""Rectifiers by name, and how one is made from a name and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fspll._common.arguments import check_count, check_positive, is_flag
from fspll._common.errors import InputError, InputTypeError
from fspll._common.registry import Registry
from fspll.rectifiers.base import Rectifier, check_neighbors
from fspll.rectifiers.equations import check_metric

RECTIFIERS: Registry[type[Rectifier]] = Registry(
    "rectifier",
    "fspll.rectifiers",
    {
        "adaptive": "fspll.rectifiers.adaptive:AdaptiveRule",
        "evidence": "fspll.rectifiers.evidence:EvidenceRule",
        "fspll": "fspll.rectifiers.paper:FsPLLRule",
        "none": "fspll.rectifiers.paper:EqualWeights",
    },
    expected="a subclass of Rectifier",
    accepts=lambda thing: isinstance(thing, type) and issubclass(thing, Rectifier),
)
"""Every known rectifier; other packages add theirs through the group ``fspll.rectifiers``."""
DEFAULT = "adaptive"
"""The name of the default rectifier."""


def make_rectifier(spec: Any, shortcuts: Mapping[str, Any] | None = None) -> Rectifier:
    """Return the rectifier that a name stands for, or the one that was given.

    Parameters
    ----------
    spec : str or Rectifier
    shortcuts : mapping, optional
        Settings that several rectifiers share. A named rectifier takes those that it has.

    Examples
    --------
    >>> make_rectifier("fspll", {"manifold_weight": 0.3, "class_balance": False})
    FsPLLRule(n_neighbors='auto', manifold_weight=0.3, n_iterations=10, metric='euclidean')
    """
    shortcuts = dict(shortcuts or {})
    check_shortcuts(shortcuts)
    if isinstance(spec, Rectifier):
        return spec
    if isinstance(spec, type):
        raise InputTypeError(f"rectifier is the class {spec.__name__}; pass an instance of it")
    kind = RECTIFIERS.get(spec)
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in shortcuts.items() if name in known})


def restore_rectifier(name: Any, settings: Any) -> Rectifier:
    """Return the rectifier that a model file names, with the settings that it holds.

    Nothing is imported unless the name is registered.
    """
    if not isinstance(name, str) or not isinstance(settings, dict):
        raise InputError("its rectifier is no name with settings")
    kind = RECTIFIERS.get(name)
    known = {field.name for field in fields(kind)}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise InputError(f"its rectifier {name!r} has no setting {unknown[0]!r}")
    return kind(**settings)


def check_shortcuts(shortcuts: Mapping[str, Any]) -> None:
    """Check shared settings, whether or not the rectifier at hand uses them."""
    for name, value in shortcuts.items():
        if name == "n_neighbors":
            check_neighbors(value)
        elif name == "n_iterations":
            check_count(name, value, 0)
        elif name == "manifold_weight":
            check_positive(name, value, zero=True)
        elif name == "metric":
            check_metric(value)
        elif name == "class_balance" and not is_flag(value):
            raise InputError(f"class_balance must be True or False, not {value!r}")
