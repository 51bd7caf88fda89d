"""From the path of a pen to pixels."""

from __future__ import annotations

import numpy as np


def draw_ink(points: np.ndarray, radius: np.ndarray, present: np.ndarray, size: int) -> np.ndarray:
    """Draw pen positions on paper, antialiased.

    A pixel is as bright as the best of the pen's positions covers it: fully within the radius,
    fading over one pixel at the rim.

    Parameters
    ----------
    points, radius : float32 arrays of shape (n, S, P, 2) and (n, S, P)
    present : bool array of shape (n, S)
        Which strokes to draw.
    size : int
        Pixels of a side of the page.

    Returns
    -------
    uint8 array of shape (n, size, size)
    """
    margin = int(np.ceil(radius.max() + 0.5))
    side = size + 2 * margin
    paper = np.zeros(len(points) * side * side, dtype=np.float32)
    window = np.arange(-margin, margin + 1)
    for slot in range(points.shape[1]):
        drawings = np.flatnonzero(present[:, slot])
        nearest = np.rint(points[drawings, slot]).astype(np.int64)  # (m, P, 2)
        off = window.astype(np.float32) - (points[drawings, slot] - nearest)[..., None]
        off *= off
        distance = np.sqrt(off[:, :, 1, :, None] + off[:, :, 0, None, :])
        cover = radius[drawings, slot, :, None, None] + np.float32(0.5) - distance
        corner = (drawings[:, None] * side + nearest[..., 1] + margin) * side
        corner = corner + nearest[..., 0] + margin
        spread = window[:, None] * side + window[None, :]
        # One pen position of every drawing at a time: no pixel occurs twice in a step, so plain
        # indexing does what the far slower np.maximum.at would.
        for position in range(points.shape[2]):
            pixels = corner[:, position, None, None] + spread
            paper[pixels] = np.maximum(paper[pixels], cover[:, position])
    page = paper.reshape(-1, side, side)[:, margin:-margin, margin:-margin]
    return np.rint(np.float32(255.0) * np.minimum(page, np.float32(1.0))).astype(np.uint8)
