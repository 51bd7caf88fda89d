"""The parts of ``make bench``: what each is called, what measures it, and its time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from bench_parts.rows import Row


class Part(NamedTuple):
    """A part of the benchmark, measured in a process of its own."""

    title: str
    module: str  # imported only in that process
    function: str  # from whether it is the short form to rows
    seconds: int  # after which it is stopped

    def rows(self, short: bool) -> Iterator[Row]:
        """Measure, row by row."""
        find: Callable[[bool], Iterator[Row]]
        find = getattr(import_module(f"bench_parts.{self.module}"), self.function)
        return find(short)


PARTS = {
    "machine": Part("The machine's limits", "limits", "machine", 120),
    "training-28": Part("Training step, 28x28", "steps", "training_28", 400),
    "training-84": Part("Training step, 84x84", "steps", "training_84", 900),
    "encoder": Part("Photo encoder", "steps", "encoder", 400),
    "rectification": Part("Rectification of many tasks", "methods", "rectify_tasks", 300),
    "classifier": Part("Fit and predict", "methods", "classifier", 200),
    "labelme": Part("Real annotators: LabelMe", "labelme", "labelme", 300),
    "programs": Part("Baselines' programs", "methods", "quadratic_programs", 200),
    "lost": Part("Real candidate sets: Lost", "methods", "lost", 300),
    "samples": Part("Cost against the number of samples", "growth", "samples", 900),
    "label": Part("The command fspll label", "growth", "label_command", 120),
    "app": Part("The review page", "growth", "app", 120),
}
