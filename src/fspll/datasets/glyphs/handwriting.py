"""From a character to pixels: a person's hand, how each drawing varies, and the ink on the page.

Shapes: ``n`` drawings of ``S`` = MAX_STROKES strokes with ``K`` = N_CONTROL control points or ``P``
pen positions each; ``present`` of shape (n, S) says which strokes a character has.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from fspll.datasets.glyphs.strokes import MAX_STROKES, N_CONTROL, StableRandom

_N_KNOTS = 5  # of the slow drift of a hand along a stroke
_REACH_AT_28 = 12.5  # pixels from the middle of a 28-pixel page that writing may reach


@dataclass(frozen=True, eq=False)
class Hand:
    """The personal style of drawers; every array has the shape of the drawers asked for.

    Attributes
    ----------
    slant, rotation, aspect : float array
        How a drawer's letters lean, tilt (radians) and widen.
    size : float array
        Half the height of a letter, as a share of half the page.
    left, top : float array
        Where on the page a drawer begins, as a shift in the same unit.
    looseness : float array
        How far a drawer strays from the model; 1 is the average.
    tremor : float array
        Fine shaking of the hand.
    roundness : float array
        0 writes with corners, 1 with curves.
    pen, pressure : float array
        The pen's radius in pixels of a 28-pixel page, and how much it varies.
    """

    slant: np.ndarray
    rotation: np.ndarray
    aspect: np.ndarray
    size: np.ndarray
    left: np.ndarray
    top: np.ndarray
    looseness: np.ndarray
    tremor: np.ndarray
    roundness: np.ndarray
    pen: np.ndarray
    pressure: np.ndarray

    @classmethod
    def of_drawers(cls, n_drawers: int, *key: int) -> Hand:
        """Return the hands of the first ``n_drawers`` drawers of a random stream."""
        numbers = StableRandom(*key).near_normal((n_drawers, len(fields(cls)))).T
        return cls(
            slant=0.08 + 0.13 * numbers[0],
            rotation=0.07 * numbers[1],
            aspect=0.09 * numbers[2],
            size=0.76 + 0.08 * numbers[3],
            left=0.06 * numbers[4],
            top=0.06 * numbers[5],
            looseness=1.0 + 0.2 * numbers[6],
            tremor=0.012 * (1.0 + 0.3 * numbers[7]),
            roundness=np.clip(0.75 + 0.25 * numbers[8], 0.2, 1.0),
            pen=0.68 + 0.07 * numbers[9],
            pressure=0.10 + 0.03 * numbers[10],
        )

    def repeated(self, times: int) -> Hand:
        """Return the same drawers several times over, one after another."""
        return Hand(*(np.tile(getattr(self, field.name), times) for field in fields(self)))


# The random numbers that one drawing uses, by purpose. One row of them per drawing, always of
# this width, makes drawing d the same however many drawings are asked for.
_VARIATIONS: dict[str, tuple[int, ...]] = {
    "bow": (MAX_STROKES, 1),
    "angle": (MAX_STROKES, 1),
    "stretch": (MAX_STROKES, 1, 2),
    "shift": (MAX_STROKES, 1, 2),
    "drift": (MAX_STROKES, _N_KNOTS, 2),
    "tremor": (MAX_STROKES, N_CONTROL, 2),
    "pressure": (MAX_STROKES, _N_KNOTS),
    "warp": (2, 4),
    "whole": (6,),
}
N_VARIATIONS = sum(int(np.prod(shape)) for shape in _VARIATIONS.values())


def _by_purpose(numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Cut rows of random numbers (n, N_VARIATIONS) into one array (n, ...) per purpose."""
    parts, position = {}, 0
    for purpose, shape in _VARIATIONS.items():
        width = int(np.prod(shape))
        parts[purpose] = numbers[:, position : position + width].reshape(-1, *shape)
        position += width
    return parts


def _linear_weights(n_points: int, n_knots: int) -> np.ndarray:
    """Return the weights that join knots by straight lines, of shape (n_points, n_knots)."""
    position = np.linspace(0.0, n_knots - 1.0, n_points)
    return np.maximum(0.0, 1.0 - np.abs(position[:, None] - np.arange(n_knots)))


def _spline_weights(n_points: int, n_knots: int) -> np.ndarray:
    """Return the weights of the cubic B-spline that meets both ends, (n_points, n_knots)."""
    position = np.linspace(0.0, n_knots - 1.0, n_points)
    gap = np.abs(position[:, None] - np.arange(-1, n_knots + 1))
    padded = np.where(
        gap < 1.0, 2.0 / 3.0 - gap**2 + 0.5 * gap**3, np.maximum(0.0, 2.0 - gap) ** 3 / 6.0
    )
    # The knot beyond each end is 2 * end - its neighbor, which makes the curve meet the end.
    weights = padded[:, 1:-1].copy()
    for end, neighbor in ((0, 1), (-1, -2)):
        weights[:, end] += 2.0 * padded[:, end]
        weights[:, neighbor] -= padded[:, end]
    return weights


def _turn(points: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Turn points (..., 2) about the origin by angles that broadcast to (...)."""
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y = points[..., 0], points[..., 1]
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)


def _vary_strokes(
    strokes: np.ndarray, pivots: np.ndarray, hand: Hand, noise: dict[str, np.ndarray]
) -> np.ndarray:
    """Move each stroke a little against the others: bow, turn, stretch, shift, drift, tremor."""
    loose = hand.looseness[:, None, None, None]
    share = np.linspace(0.0, 1.0, N_CONTROL)[:, None]
    chord = strokes[:, :, :1] + share * (strokes[:, :, -1:] - strokes[:, :, :1])
    drawn = chord + (1.0 + 0.2 * loose * noise["bow"][..., None]) * (strokes - chord)
    drawn = (drawn - pivots[:, :, None]) * (1.0 + 0.12 * loose * noise["stretch"])
    drawn = _turn(drawn, 0.10 * loose[..., 0] * noise["angle"]) + pivots[:, :, None]
    drawn = drawn + 0.05 * loose * noise["shift"]
    # Short strokes leave the hand less room to drift.
    length = np.sqrt((np.diff(strokes, axis=2) ** 2).sum(axis=-1)).sum(axis=-1)
    room = np.minimum(1.0, 0.2 + 0.5 * length)[..., None, None]
    drift = 0.05 * loose * (_linear_weights(N_CONTROL, _N_KNOTS) @ noise["drift"])
    return drawn + room * (drift + hand.tremor[:, None, None, None] * noise["tremor"])


def _vary_whole(points: np.ndarray, hand: Hand, noise: dict[str, np.ndarray]) -> np.ndarray:
    """Bend the drawing as a whole and give it its drawer's slant, width, size and place."""
    loose = hand.looseness[:, None, None]
    pushes = []
    for wave in np.moveaxis(noise["warp"], 1, 0):  # a slow wave sideways and one up and down
        along_x, along_y, phase, height = (wave[:, i, None, None] for i in range(4))
        ripple = np.sin(1.2 * (along_x * points[..., 0] + along_y * points[..., 1]) + 2.0 * phase)
        pushes.append(0.08 * loose * height * ripple)
    bent = points + np.stack(pushes, axis=-1)
    whole = [noise["whole"][:, i, None, None] for i in range(6)]
    personal = {f.name: getattr(hand, f.name)[:, None, None] for f in fields(hand)}
    wider = 1.0 + personal["aspect"] + 0.07 * loose * whole[0]
    size = personal["size"] * (1.0 + 0.07 * loose * whole[1])
    slant = personal["slant"] + 0.06 * loose * whole[2]
    x = size * wider * (bent[..., 0] - slant * bent[..., 1])
    y = size / wider * bent[..., 1]
    tilted = _turn(np.stack([x, y], axis=-1), personal["rotation"] + 0.05 * loose * whole[3])
    place = np.stack(
        [personal["left"] + 0.04 * whole[4], personal["top"] + 0.04 * whole[5]], axis=-1
    )
    return tilted + place


def _keep_on_page(points: np.ndarray) -> np.ndarray:
    """Shrink what is too large for [-1, 1] and shift what leaves it; (n, S, P, 2) in and out."""
    low, high = (extreme(points, axis=(1, 2), keepdims=True) for extreme in (np.min, np.max))
    middle, reach = 0.5 * (low + high), 0.5 * (high - low)
    shrink = 1.0 / np.maximum(1.0, reach.max(axis=-1, keepdims=True))
    room = 1.0 - shrink * reach
    return np.clip(middle, -room, room) + shrink * (points - middle)


def write(
    strokes: np.ndarray,
    pivots: np.ndarray,
    present: np.ndarray,
    hand: Hand,
    numbers: np.ndarray,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Let hands write characters: where the pen goes and how broad its line is.

    Parameters
    ----------
    strokes : float array of shape (n, S, K, 2)
        Control points of the model.
    pivots : float array of shape (n, S, 2)
        The point of each stroke that stays when the stroke varies.
    present : bool array of shape (n, S)
        Which strokes there are, the first among them; the others may hold any numbers.
    hand : Hand
        One hand per drawing, arrays of shape (n,).
    numbers : float array of shape (n, N_VARIATIONS)
        The drawing's own random numbers, of mean 0 and variance 1.
    size : int
        Pixels of a side of the page.

    Returns
    -------
    points : float32 array of shape (n, S, P, 2)
        Pen positions in pixels, x before y, close enough together to leave no gap.
    radius : float32 array of shape (n, S, P)
        Radius of the pen in pixels.
    """
    noise = _by_purpose(numbers)
    controls = _vary_whole(_vary_strokes(strokes, pivots, hand, noise), hand, noise)
    # An absent stroke must not decide how far the drawing reaches, so it lies on the first one.
    controls = np.where(present[:, :, None, None], controls, controls[:, :1])
    n_points = 4 * size
    roundness = hand.roundness[:, None, None, None]
    points = (1.0 - roundness) * (_linear_weights(n_points, N_CONTROL) @ controls)
    points += roundness * (_spline_weights(n_points, N_CONTROL) @ controls)
    scale = size / 28.0
    points = 0.5 * (size - 1) + scale * _REACH_AT_28 * _keep_on_page(points)
    swelling = noise["pressure"] @ _linear_weights(n_points, _N_KNOTS).T
    radius = scale * hand.pen[:, None, None] * (1.0 + hand.pressure[:, None, None] * swelling)
    # Sines and matrix products may differ in their last bits between machines; rounding here
    # makes the drawings, whose remaining arithmetic is exact everywhere, the same.
    points, radius = (np.rint(4096.0 * array) / 4096.0 for array in (points, radius))
    return points.astype(np.float32), radius.astype(np.float32)


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
