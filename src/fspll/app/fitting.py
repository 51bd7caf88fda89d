"""Fits to samples that are encoded already, so that an answer is followed soon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fspll.annotations.answers import Answers
from fspll.annotations.samples import Annotations
from fspll.labeling.audit import Audit
from fspll.labeling.run import Run

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling

# What of a run concerns the fit; the rest was for reading and encoding.
_OPTIONS = ("rectifier", "method", "outside", "class_balance", "device")


@dataclass(frozen=True, eq=False)
class Encoded:
    """The samples that could be read, with their features.

    Attributes
    ----------
    annotations : Annotations
        With features in the place of pictures or texts.
    whole : Annotations
        As they were read.
    pictures : sequence of Path or None
        The picture of every sample of ``whole``.
    """

    annotations: Annotations
    whole: Annotations
    pictures: Sequence[Path] | None

    @classmethod
    def of(cls, whole: Annotations, result: Labeling, pictures: Sequence[Path] | None) -> Encoded:
        """Keep what a first fit encoded."""
        number = {name: row for row, name in enumerate(whole.names)}
        kept = whole.take(np.array([number[name] for name in result.names]))
        features = replace(kept, files=None, texts=None, features=result.features)
        return cls(features, whole, pictures)

    def fit(self, run: Run, answers: Answers, audit: Audit | None) -> Labeling:
        """Label again, as a run would with these answers."""
        from fspll.labeling.pipeline import label

        there = set(self.annotations.names)
        # Contents were compared when the samples were encoded; here they would be those of vectors.
        records = tuple(replace(one, content="") for one in answers.records if one.sample in there)
        result = label(
            self.annotations,
            encoder="features",
            answers=[Answers(records, kept=True)],
            audited=None if audit is None else replace(audit, contents=()),
            progress=None,
            **{name: value for name, value in run.labeling.items() if name in _OPTIONS},
        )
        return self._with_samples(result)

    def _with_samples(self, result: Labeling) -> Labeling:
        """Return a result of encoded samples with what the samples are."""
        number = {name: row for row, name in enumerate(self.whole.names)}
        rows = [number[name] for name in result.names]
        files, pictures = self.whole.files, self.pictures
        texts = self.whole.texts if pictures is None else None
        return replace(
            result,
            files=None if files is None else tuple(files[row] for row in rows),
            texts=None if texts is None else tuple(texts[row] for row in rows),
            pictures=None if pictures is None else tuple(pictures[row] for row in rows),
        )
