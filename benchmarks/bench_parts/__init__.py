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
    about: str  # what is measured, for the page

    def rows(self, short: bool) -> Iterator[Row]:
        """Measure, row by row."""
        find: Callable[[bool], Iterator[Row]]
        find = getattr(import_module(f"bench_parts.{self.module}"), self.function)
        return find(short)


PARTS = {
    "machine": Part(
        "The machine's limits",
        "limits",
        "machine",
        120,
        "The rate of a large matrix product in float32, by the fastest library at hand, and the "
        "bandwidth of memory on arrays that no cache holds.",
    ),
    "training-28": Part(
        "Training step, 28x28",
        "steps",
        "training_28",
        400,
        "One optimizer step of Conv4 on a 30-way episode with 5 support samples and 15 queries per "
        "class; every contender has a process of its own. The product rate counts the operations "
        "of the convolutions only; the roofline adds up, layer by layer, the larger of the time "
        "for the operations and the time for reading inputs and writing outputs once. Maps that "
        "stay in the cache, as those of our first block do, can beat it by a little.",
    ),
    "training-84": Part(
        "Training step, 84x84",
        "steps",
        "training_84",
        900,
        "The same episode with color pictures of 84x84.",
    ),
    "encoder": Part(
        "Photo encoder",
        "steps",
        "encoder",
        400,
        "Decoded photos to features: scaled, checked and passed through the network. One thread "
        "is timed by its processor time, several by the clock.",
    ),
    "rectification": Part(
        "Rectification of many tasks",
        "methods",
        "rectify_tasks",
        300,
        "Confidences of all support samples of all tasks, in one call. The limit is the time for "
        "the distances between the samples of each task alone.",
    ),
    "classifier": Part(
        "Fit and predict",
        "methods",
        "classifier",
        200,
        "`FsPLLClassifier` on candidate sets with two false labels per sample. Classifiers of "
        "scikit-learn know no sets: they get one candidate of each sample, drawn at random (as "
        "when times are compared), or every sample once per candidate, or, which nobody has in "
        "practice, the true labels. All have their default settings. Digits are scikit-learn's, "
        "the 30-way task is Gaussian; shares are means over several draws of samples and sets.",
    ),
    "labelme": Part(
        "Real annotators: LabelMe",
        "labelme",
        "labelme",
        300,
        "Outdoor scenes that people on Mechanical Turk labeled; figures are shares of right "
        "labels, and seconds without encoding the pictures. `fspll label` is the default "
        "with its review list; CROWDLAB, Dawid-Skene and Majority-Vote are our own baselines, "
        "which also fit a classifier. The time of cleanlab includes the cross-validated logistic "
        "regression that it needs.",
    ),
    "programs": Part(
        "Baselines against general solvers",
        "methods",
        "quadratic_programs",
        200,
        "PL-AGGD against the same method with every quadratic program solved by cvxopt, and the "
        "predictions of PL-ECOC against a loop; processor time of one thread.",
    ),
    "lost": Part(
        "Real candidate sets: Lost",
        "methods",
        "lost",
        300,
        "Four fifths of Lost for training, by one permutation: the default rule against the "
        "partial-label methods of `fspll.baselines`. One split says little about accuracy; "
        "[Real data](../docs/real.md) has more.",
    ),
    "samples": Part(
        "Cost against the number of samples",
        "growth",
        "samples",
        900,
        "Gaussian classes that overlap, 100 samples per class, 64 features, four candidates per "
        "sample; peers get one candidate of each, drawn at random.",
    ),
    "label": Part(
        "The command `fspll label`",
        "growth",
        "label_command",
        120,
        "A table and vectors in; labels, review list, model and report out.",
    ),
    "app": Part(
        "The review page",
        "growth",
        "app",
        120,
        "`fspll app` on a labeled table, with two windows that answer, skip and undo.",
    ),
}
