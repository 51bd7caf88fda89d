"""Read pictures in the shapes people have them: files, PIL images, arrays and tensors.

Shapes: n pictures, C channels (1 or 3), H rows, W columns. Values are float32 in [0, 1].
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll._common.errors import InputError, InputTypeError
from fspll._common.pictures import damaged, open_picture

CHANNEL_COUNTS = (1, 3, 4)
NOTHING = "X is empty; at least one picture is needed"
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
    pictures: np.ndarray | Sequence[Any], first_index: int = 0, *, unit_range: bool = True
) -> np.ndarray | list[np.ndarray]:
    """Decode pictures into float32 in [0, 1] with channels first and no alpha.

    Parameters
    ----------
    pictures : array or list
        What :func:`collect_pictures` returned, or a slice of it.
    first_index : int, default=0
        Index of the first picture in the user's X, for messages.
    unit_range : bool, default=True
        Whether floats must lie in [0, 1]; otherwise finite floats pass unchanged.

    Returns
    -------
    float32 array of shape (n, C, H, W), or a list of n arrays of shape (C, H, W)
        A list for a list, whose pictures may differ in size.
    """
    if isinstance(pictures, np.ndarray):
        names = [f"picture {first_index + i}" for i in range(len(pictures))]
        return _without_alpha(_scaled(_channels_first(pictures, "X"), names, unit_range))
    decoded = []
    for index, picture in enumerate(pictures, start=first_index):
        name = f"picture {index}"
        if isinstance(picture, str | Path):
            name = f"picture {index} ({picture})"
        array = _as_array(picture, name)
        if array.ndim not in (2, 3):
            raise InputError(
                f"{name} has shape {array.shape}; one picture is (H, W), (H, W, C) or (C, H, W)"
            )
        stack = _channels_first(array[None], name)
        decoded.append(_without_alpha(_scaled(stack, [name], unit_range))[0])
    return decoded


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


def _as_array(picture: Any, name: str) -> np.ndarray:
    if isinstance(picture, str | Path):
        with open_picture(Path(picture), name) as opened:
            return _decode(opened)
    if is_pil_image(picture):
        from PIL import ImageOps

        try:  # it may belong to a file of which nothing but the header was read so far
            return _decode(ImageOps.exif_transpose(picture))
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


def _decode(image: Any) -> np.ndarray:
    """Return a PIL image as an array (H, W) or (H, W, C)."""
    if image.mode.startswith("I"):  # 16 bits per pixel, or 32 that hold 16
        return np.asarray(image).astype(np.float32) / np.float32(65535)
    if "transparency" in image.info or image.mode in ("LA", "PA", "RGBA", "RGBa"):
        image = image.convert("RGBA")
    elif image.mode not in ("1", "L", "F", "RGB"):
        image = image.convert("RGB")
    return np.asarray(image)
