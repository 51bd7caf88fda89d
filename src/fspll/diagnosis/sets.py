"""What candidate sets show by themselves, before anything is known of the samples."""

from __future__ import annotations

import numpy as np

from fspll._common.words import counted, listed
from fspll.annotations.samples import Annotations


def describe_sets(data: Annotations) -> list[str]:
    """Return what the sets alone show, line by line."""
    sets = data.candidates
    summary = sets.summary()
    sizes = np.bincount(sets.sizes)
    spread = ", ".join(f"{count} with {size}" for size, count in enumerate(sizes.tolist()) if count)
    lines = [
        f"{counted(summary.n_samples, 'sample')}, "
        f"{counted(summary.n_classes, 'class', 'classes')}, "
        f"{summary.average_size:.2f} candidates per sample ({spread})"
    ]
    votes = data.votes.data
    if len(votes) and votes.min() != votes.max():
        lines.append(f"{int(votes.sum()):,} votes; labels with more votes count more")
    lines += [
        f"always together, cannot be told apart by any sample: {listed(group)}"
        for group in summary.always_together
    ]
    counts = np.bincount(sets.matrix.indices, minlength=sets.n_classes)
    single = sets.matrix.indptr[:-1][sets.sizes == 1]  # where the sets of one label are
    alone = np.bincount(sets.matrix.indices[single], minlength=sets.n_classes)
    few = [f"{sets.classes[c]} ({counts[c]})" for c in np.flatnonzero(counts < 2)]
    if few:
        lines.append(f"too few samples that may have the label: {listed(few)}")
    lines.append(
        f"{int((alone > 0).sum())} of {counted(sets.n_classes, 'class has', 'classes have')} a "
        "sample with no other candidate"
    )
    return lines
