"""Rectifiers: how candidates are weighted, and what is known about the classes then.

:data:`RECTIFIERS` has them by name; :mod:`fspll.rectifiers.base` is the interface.
"""

from fspll.rectifiers.adaptive import AdaptiveRule
from fspll.rectifiers.base import Fitted, Groups, Rectifier, Trace, is_large
from fspll.rectifiers.evidence import EvidenceRule, infer_labels
from fspll.rectifiers.held_out import Check
from fspll.rectifiers.paper import EqualWeights, FsPLLRule, rectify
from fspll.rectifiers.prototypes import PrototypeModel, PrototypeRectifier
from fspll.rectifiers.registry import DEFAULT, RECTIFIERS, make_rectifier

__all__ = [
    "AdaptiveRule",
    "Check",
    "DEFAULT",
    "EqualWeights",
    "EvidenceRule",
    "Fitted",
    "FsPLLRule",
    "Groups",
    "PrototypeModel",
    "PrototypeRectifier",
    "RECTIFIERS",
    "Rectifier",
    "Trace",
    "infer_labels",
    "is_large",
    "make_rectifier",
    "rectify",
]
