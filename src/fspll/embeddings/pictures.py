"""Read pictures in the shapes people have them: files, PIL images, arrays and tensors.

Shapes: n pictures, C channels (1 or 3), H rows, W columns. Values are float32 in [0, 1].
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll._common.errors import InputError, InputTypeError
from fspll._common.pictures import damaged, open_picture

CHANNEL_COUNTS = (1, 3, 4)
NOTHING = "X is empty; at least one picture is needed"
LARGE = 1_000_000  # pixels; smaller pictures are resized as they are
_SLACK = 1e-6  # rounding of a user's own resizing may leave [0, 1] by this much


def collect_pictures(X: Any) -> np.ndarray | list[Any]:
    """Return X as an array or a list with one item per picture; refuse one picture alone.

    Nothing is decoded or copied here, so that X can be cut into batches first.
    """
    if isinstance(X, str | Path) or is_pil_image(X):
        what = repr(str(X)) if isinstance(X, str | Path) else "a PIL image"
        raise InputError(f"X is one picture ({what}); wrap it in a list: [X]")
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu()
        # NumPy has no bfloat16.
        X = (X.float() if X.is_floating_point() else X).numpy()
    elif not isinstance(X, list | tuple):
        if not hasattr(X, "__array__"):
            raise InputTypeError(
                "X must be a list of paths, PIL images or arrays, or an array or tensor of "
                f"pictures, not a {type(X).__name__}"
            )
        X = np.asarray(X)
        if X.dtype.kind in "OU" and X.ndim == 1:
            X = X.tolist()
    if isinstance(X, np.ndarray):
        _check_dimensions(X.shape)
        return X
    if not X:
        raise InputError(NOTHING)
    return list(X)


def read_pictures(
    pictures: np.ndarray | Sequence[Any],
    first_index: int = 0,
    *,
    unit_range: bool = True,
    min_side: int | None = None,
    crop: bool = False,
) -> np.ndarray | Iterator[np.ndarray]:
    """Decode pictures into float32 in [0, 1] with channels first and no alpha.

    Parameters
    ----------
    pictures : array or list
        What :func:`collect_pictures` returned, or a slice of it.
    first_index : int, default=0
        Index of the first picture in the user's X, for messages.
    unit_range : bool, default=True
        Whether floats must lie in [0, 1]; otherwise finite floats pass unchanged.
    min_side : int, optional
        Pixels per side that are enough: a side of at least twice as many of a large picture (a
        file or a PIL image) is shrunk by a whole number, to no less than this, before anything
        else is done.
    crop : bool, default=False
        Whether the central square is all that is needed.

    Returns
    -------
    float32 array of shape (n, C, H, W), or n arrays of shape (C, H, W)
        For a list, whose pictures may differ in size, they are decoded one by one as they are
        asked for: photos of full size would take much memory together.
    """
    if isinstance(pictures, np.ndarray):
        names = [f"picture {first_index + i}" for i in range(len(pictures))]
        return _without_alpha(_scaled(_channels_first(pictures, "X"), names, unit_range))
    return _decoded(pictures, first_index, unit_range, min_side, crop)


def _decoded(
    pictures: Sequence[Any], first_index: int, unit_range: bool, min_side: int | None, crop: bool
) -> Iterator[np.ndarray]:
    for index, picture in enumerate(pictures, start=first_index):
        name = f"picture {index}"
        if isinstance(picture, str | Path):
            name = f"picture {index} ({picture})"
        array = _as_array(picture, name, min_side, crop)
        if array.ndim not in (2, 3):
            raise InputError(
                f"{name} has shape {array.shape}; one picture is (H, W), (H, W, C) or (C, H, W)"
            )
        stack = _channels_first(array[None], name)
        yield _without_alpha(_scaled(stack, [name], unit_range))[0]


def is_pil_image(value: Any) -> bool:
    """Tell whether this is a PIL image; Pillow is not imported for it."""
    # A PIL image can only exist once its module has been imported.
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def _check_dimensions(shape: tuple[int, ...]) -> None:
    if shape and shape[0] == 0:
        raise InputError(NOTHING)
    if len(shape) == 2:
        raise InputError(
            f"X of shape {shape} is one gray picture or a matrix of features; pictures come as "
            "(n, H, W), (n, H, W, C) or (n, C, H, W), so wrap one picture in a list: [X]"
        )
    if len(shape) == 3 and shape[-1] in (3, 4):
        raise InputError(f"X of shape {shape} is one color picture; wrap it in a list: [X]")
    if len(shape) not in (3, 4):
        raise InputError(
            f"X has shape {shape}; pictures come as (n, H, W), (n, H, W, C) or (n, C, H, W)"
        )


def _channels_first(stack: np.ndarray, name: str) -> np.ndarray:
    """Return a view (n, C, H, W) of (n, H, W), (n, H, W, C) or (n, C, H, W)."""
    if 0 in stack.shape:
        raise InputError(f"{name} has shape {stack.shape}, which holds no pixels")
    if stack.ndim == 3:
        return stack[:, None]
    last, first = stack.shape[3] in CHANNEL_COUNTS, stack.shape[1] in CHANNEL_COUNTS
    shape = stack.shape if name == "X" else stack.shape[1:]
    if last and first:
        raise InputError(
            f"{name} of shape {shape} may have its channels first or last; pass gray pictures "
            "without a channel axis and color pictures as PIL images to be clear"
        )
    if not last and not first:
        raise InputError(
            f"{name} of shape {shape} has no channel axis: 1, 3 or 4 channels must come last or "
            "right before the rows"
        )
    return stack.transpose(0, 3, 1, 2) if last else stack


def _scaled(stack: np.ndarray, names: list[str], unit_range: bool) -> np.ndarray:
    """Return a float32 copy with every value in [0, 1]."""
    if stack.dtype == np.uint8:
        return stack.astype(np.float32) / np.float32(255)
    if stack.dtype == np.bool_:
        return stack.astype(np.float32)
    if stack.dtype.kind != "f":
        raise InputError(
            f"{names[0]} has values of type {stack.dtype}; pictures are uint8 from 0 to 255, bool, "
            "or float from 0 to 1"
        )
    flat = stack.reshape(len(stack), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    for index in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high))):
        raise InputError(f"{names[index]} holds NaN or infinite values")
    if not unit_range:
        return stack.astype(np.float32)
    for index in np.flatnonzero((low < -_SLACK) | (high > 1 + _SLACK)):
        raise InputError(
            f"{names[index]} has float values from {low[index]:g} to {high[index]:g}; float "
            "pictures go from 0 to 1 (divide by 255, or pass uint8)"
        )
    return stack.astype(np.float32).clip(0, 1)


def _without_alpha(stack: np.ndarray) -> np.ndarray:
    """Lay pictures with an alpha channel on white paper."""
    if stack.shape[1] != 4:
        return stack
    color, alpha = stack[:, :3], stack[:, 3:]
    return color * alpha + (1 - alpha)


def _as_array(picture: Any, name: str, min_side: int | None, crop: bool) -> np.ndarray:
    if isinstance(picture, str | Path):
        with open_picture(Path(picture), name, min_side=min_side, in_full=LARGE) as opened:
            return _decode(opened, min_side, crop)
    if is_pil_image(picture):
        from PIL import ImageOps

        try:  # it may belong to a file of which nothing but the header was read so far
            return _decode(ImageOps.exif_transpose(picture), min_side, crop)
        except Exception as error:
            raise InputError(damaged(name, error)) from error
    if isinstance(picture, torch.Tensor):
        picture = picture.detach().cpu()
        return (picture.float() if picture.is_floating_point() else picture).numpy()
    if isinstance(picture, np.ndarray | list):
        return np.asarray(picture)
    raise InputTypeError(
        f"{name} is a {type(picture).__name__}; a picture is a path, a PIL image or an array"
    )


def _decode(image: Any, min_side: int | None, crop: bool) -> np.ndarray:
    """Return a PIL image as an array (H, W) or (H, W, C)."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits per pixel, or 32 that hold 16
        image = Image.fromarray(np.asarray(image).astype(np.float32) / np.float32(65535))
    elif "transparency" in image.info or image.mode in ("LA", "PA", "RGBA", "RGBa"):
        image = image.convert("RGBA")
    elif image.mode not in ("1", "L", "F", "RGB"):
        image = image.convert("RGB")
    if min_side is not None and image.width * image.height > LARGE:
        image = _shrunk(image, min_side, crop)
    return np.asarray(image)


def _shrunk(image: Any, min_side: int, crop: bool) -> Any:
    """Return a large PIL image with no side of twice as many pixels as are enough, or more.

    As floats it would take four times the memory, several times over.
    """
    from PIL import Image

    if crop:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        image = image.crop((left, top, left + side, top + side))
    if image.mode == "1":
        image = image.convert("L")
    size = tuple(pixels // max(1, pixels // min_side) for pixels in image.size)
    return image if size == image.size else image.resize(size, Image.Resampling.BOX)
