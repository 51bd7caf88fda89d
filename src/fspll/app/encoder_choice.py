"""Which encoders a page offers, and which of them suits the samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import FsPLLError
from fspll._common.pictures import on_white, open_picture
from fspll.embeddings.registry import list_encoders
from fspll.labeling.samples import FEATURES

DRAWINGS, PHOTOS, TEXTS = "omniglot-conv4", "efficientnet-lite0", "text"
_LOOKED_AT, _SIDE = 8, 64  # pictures, and pixels per side of a copy
_COLORED = 8.0  # mean difference between the channels of a colored picture, of 255
_EXTREME, _TWO_TONED = 0.2, 0.7  # share of the range that counts as ink or paper, and of pixels


def list_choices() -> list[dict[str, Any]]:
    """Return the encoders, with what they take and how to install what they lack."""
    found = [
        {
            "name": one.name,
            "modality": one.modality,
            "takes": one.takes,
            "missing": None if one.missing is None else str(one.missing),
        }
        for one in list_encoders()
    ]
    vectors = {"modality": "vector", "takes": "vectors, as they are", "missing": None}
    return [*found, {"name": FEATURES, **vectors}]


def usual_encoder(kind: str, pictures: Sequence[Path | None] = ()) -> str:
    """Return the encoder for pictures, texts or vectors."""
    if kind != "pictures":
        return TEXTS if kind == "texts" else FEATURES
    looks = [_is_drawing(path) for path in pictures[:_LOOKED_AT] if path is not None]
    known = [one for one in looks if one is not None]
    return DRAWINGS if known and sum(known) * 2 > len(known) else PHOTOS


def _is_drawing(path: Path) -> bool | None:
    """Tell ink on paper from a photo: no colors, and hardly anything between the two tones."""
    try:
        with open_picture(path, path.name, min_side=_SIDE) as picture:
            small = on_white(picture).convert("RGB").resize((_SIDE, _SIDE))
            pixels = np.asarray(small, dtype=np.float32)
    except FsPLLError:
        return None
    if (pixels.max(axis=-1) - pixels.min(axis=-1)).mean() > _COLORED:
        return False
    gray = pixels.mean(axis=-1)
    span = float(gray.max() - gray.min()) or 1.0
    tone = (gray - gray.min()) / span
    return bool(((tone < _EXTREME) | (tone > 1 - _EXTREME)).mean() > _TWO_TONED)
