"""What a user should know about samples and labels before trusting a result."""

from __future__ import annotations

from fspll._common.words import listed
from fspll.annotations.addresses import without_prefix_note
from fspll.annotations.samples import Annotations
from fspll.annotations.variants import similar_note
from fspll.candidates.sets import Candidates
from fspll.labeling.samples import Prepared

_UNEVEN = 100.0  # factor between the scales of features from which a note is made
_SHOWN = 5


def notes_on(annotations: Annotations, made: Prepared, candidates: Candidates) -> list[str]:
    """Return sentences on unreadable samples, uneven features, and labels that say little."""
    notes = []
    if made.unreadable:
        count = len(made.unreadable)
        names = listed([one.name for one in made.unreadable], _SHOWN)
        plural = "s that cannot be read were" if count > 1 else " that cannot be read was"
        notes.append(f"{count} sample{plural} left out: {names}")
    if made.pictures is not None:
        written = annotations.names if annotations.files is None else annotations.files
        renamed = without_prefix_note(written, [path.name for path in made.pictures])
        notes += [renamed] if renamed else []
    if made.encoder is None:
        scale = made.features.astype(float).std(axis=0)
        scale = scale[scale > 0]
        if len(scale) and scale.max() > _UNEVEN * scale.min():
            notes.append(
                f"some features vary {scale.max() / scale.min():.0f} times as much as others and "
                f"decide nearly alone; standardize=True puts them on one scale"
            )
    if candidates.n_classes == 1:
        notes.append(
            f"there is only one label, {candidates.classes[0]!s}: nothing was decided, and the "
            "model knows no other"
        )
    elif len(candidates) > 1 and (candidates.sizes == candidates.n_classes).all():
        notes.append(
            f"all samples have the same candidates ({listed(candidates.classes.tolist(), _SHOWN)}):"
            " only answers can tell which label is whose"
        )
    alike = similar_note(annotations) if annotations.source else None
    return [*notes, *([alike] if alike else [])]
