"""Experiments: methods run over many tasks, and what can be said about the figures."""

from fspll.experiments.evaluation import Row, evaluate, settings_grid
from fspll.experiments.methods import METHODS, Scores, find_method, method_names

__all__ = [
    "METHODS",
    "Row",
    "Scores",
    "evaluate",
    "find_method",
    "method_names",
    "settings_grid",
]
