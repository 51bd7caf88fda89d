"""A user's own ambiguous labels in; clean labels, a classifier and a review list out."""

from fspll.labeling.audit import Audit, read_audit
from fspll.labeling.auditing import draw_audit
from fspll.labeling.baseline_model import BaselineModel
from fspll.labeling.pipeline import label
from fspll.labeling.reasons import Undecided
from fspll.labeling.result import Annotator, Labeling, Rounds
from fspll.labeling.review import Question
from fspll.labeling.saving import load_model

__all__ = [
    "Annotator",
    "Audit",
    "BaselineModel",
    "Labeling",
    "Question",
    "Rounds",
    "Undecided",
    "draw_audit",
    "label",
    "load_model",
    "read_audit",
]
