"""How many samples got each label, and how sure it is."""

from __future__ import annotations

import numpy as np

from fspll._common.words import percent, shorten
from fspll.labeling.report.map2d import chosen_columns
from fspll.labeling.result import Labeling

CLASS_COLUMNS = ("label", "chosen for", "candidate of", "mean confidence", "smallest")


def show_classes(result: Labeling, most: int) -> list[list[str]]:
    """Return a line per class, or per class of the least sure, in the order of CLASS_COLUMNS."""
    top, count = chosen_columns(result), len(result.classes)
    chosen = np.bincount(top, minlength=count)
    offered = np.bincount(result.candidates.matrix.indices, minlength=count)
    total = np.bincount(top, weights=result.confidence, minlength=count)
    smallest = np.full(count, np.inf)
    np.minimum.at(smallest, top, result.confidence)
    mean = total / np.maximum(chosen, 1)
    rows = np.arange(count)
    if len(rows) > most:
        rows = np.lexsort((mean, chosen == 0))[:most]
    return [
        [
            shorten(result.classes[row]),
            f"{chosen[row]:,}",
            f"{offered[row]:,}",
            percent(float(mean[row])) if chosen[row] else "–",
            percent(float(smallest[row])) if chosen[row] else "–",
        ]
        for row in rows
    ]
