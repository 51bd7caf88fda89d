"""What a network wants its pictures to be, and how any picture becomes that.

Shapes: n pictures, C channels, S pixels per side.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from fspll._common.arguments import check_count
from fspll._common.errors import InputError
from fspll.embeddings.pictures import collect_pictures, is_pil_image, read_pictures

POLARITIES = ("bright-ink", "dark-ink")
# ITU-R 601, the weights Pillow uses for mode "L".
LUMA = (0.299, 0.587, 0.114)
# How many times the size that is needed a picture keeps at least before it is resized with care:
# nothing that is seen after that is lost.
ENOUGH = 2
# Raise it when the same picture gets other values: features of earlier ones are not found again.
PREPARATION = 2


@dataclass(frozen=True)
class InputSpec:
    """The pictures a network was trained on.

    Attributes
    ----------
    size : int
        S, pixels per side; pictures are resized to a square.
    channels : {1, 3}
        Gray or RGB.
    polarity : {None, "bright-ink", "dark-ink"}
        For drawings, whether the ink is bright on dark paper or dark on light paper; ``None`` for
        photos and everything else that must not be inverted.

    Examples
    --------
    >>> spec = InputSpec(size=28, channels=1, polarity="bright-ink")
    >>> InputSpec.from_dict(spec.to_dict()) == spec
    True
    """

    size: int
    channels: int
    polarity: str | None = None

    def __post_init__(self) -> None:
        check_count("size of an input", self.size, 1)
        if self.channels not in (1, 3) or isinstance(self.channels, bool):
            raise InputError(f"channels of an input must be 1 or 3, not {self.channels!r}")
        if self.polarity is not None and self.polarity not in POLARITIES:
            raise InputError(
                f"polarity of an input must be None or one of {POLARITIES}, not {self.polarity!r}"
            )

    @classmethod
    def of_images(cls, images: np.ndarray) -> InputSpec:
        """Return the spec of an image set's uint8 pictures: gray ones are bright ink."""
        gray = images.ndim == 3
        return cls(images.shape[1], 1 if gray else 3, "bright-ink" if gray else None)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> InputSpec:
        """Make a spec from what :meth:`to_dict` returned."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise InputError(f"an input spec has the fields {sorted(names)}, not {values!r}")
        return cls(**values)


def prepare_images(
    X: Any, spec: InputSpec, polarity: str = "auto", *, first_index: int = 0
) -> Tensor:
    """Turn pictures of any common shape into what a network wants.

    Pictures are scaled to [0, 1], laid on white where they are transparent, made gray or RGB,
    inverted where the ink has the other polarity, and resized with antialiasing. A picture that
    is not square is squeezed into one, as is usual for miniImageNet. Of files and PIL images with
    more than a million pixels, a side that is at least four times as long as needed is first
    shrunk by a whole number (in a JPEG file, while it is decoded) to no less than twice of that.

    Parameters
    ----------
    X : list of paths, PIL images or arrays; or array or tensor
        Arrays have shape (n, H, W), (n, H, W, C) or (n, C, H, W) with C of 1, 3 or 4, and values
        that are uint8, bool, or float in [0, 1]. An array (3, H, W) is three gray pictures. The
        pictures of a list may differ in size and kind.
    spec : InputSpec
        What the network wants.
    polarity : {"auto", "bright-ink", "dark-ink"}, default="auto"
        What the pictures have. ``"auto"`` decides for each picture alone: the paper is light when
        the median of its border pixels is above a half. Only for specs that have a polarity.
    first_index : int, default=0
        Index of the first picture in messages, for a caller that works in batches.

    Returns
    -------
    float32 tensor of shape (n, C, S, S)

    Raises
    ------
    InputError, InputTypeError
        With the index or path of the first picture that cannot be used.

    Examples
    --------
    >>> paper = np.full((2, 50, 40), 255, dtype=np.uint8)
    >>> prepare_images(paper, InputSpec(28, 1, "bright-ink")).unique()
    tensor([0.])
    """
    check_polarity(polarity, spec)
    pictures = read_pictures(collect_pictures(X), first_index, min_side=ENOUGH * spec.size)
    if isinstance(pictures, np.ndarray):
        return _fit(torch.from_numpy(pictures), spec, polarity)
    return torch.cat([_fit(torch.from_numpy(one)[None], spec, polarity) for one in pictures])


def check_polarity(polarity: str, spec: InputSpec) -> None:
    """Refuse a polarity that there is not, and any for an embedding that is not one of drawings."""
    if polarity not in ("auto", *POLARITIES):
        raise InputError(f"polarity must be 'auto', 'bright-ink' or 'dark-ink', not {polarity!r}")
    if polarity != "auto" and spec.polarity is None:
        raise InputError(
            f"polarity={polarity!r} has no meaning here: this embedding is not one of ink drawings"
        )


def prepare_arrays(X: Any, *, first_index: int = 0) -> Tensor:
    """Turn samples into a float32 tensor for a network of which only the code is known.

    Tensors keep their layout. Matrices are features and keep their values. Everything else is
    read as pictures, which keep their size and get their channels first. uint8 and bool pictures
    are scaled to [0, 1]; float values pass unchanged, because the user's own normalization may
    lie anywhere.

    Returns
    -------
    float32 tensor of shape (n, ...)
    """
    samples = collect_samples(X)
    if isinstance(samples, Tensor):
        values = samples.detach().to(torch.float32)
        scaled = samples.dtype == torch.uint8 and samples.ndim > 2
        values = values / 255 if scaled else values
    elif isinstance(samples, np.ndarray) and samples.ndim == 2:
        values = torch.from_numpy(samples.astype(np.float32))
    else:
        pictures = list(read_pictures(samples, first_index, unit_range=False))
        shapes = {picture.shape for picture in pictures}
        if len(shapes) > 1:
            raise InputError(
                f"the pictures differ in shape ({', '.join(map(str, sorted(shapes)[:3]))}); "
                "resize them, or save the network with the size of the pictures that it takes"
            )
        values = torch.from_numpy(np.stack(pictures))
    finite = values.reshape(len(values), -1).isfinite().all(dim=1)
    if not finite.all():
        index = first_index + int(finite.int().argmin())
        raise InputError(f"sample {index} holds NaN or infinite values")
    return values


def image_tensor(images: np.ndarray) -> Tensor:
    """Turn the uint8 pictures of an image set into what a network takes, with nothing to guess.

    Parameters
    ----------
    images : uint8 array of shape (n, H, W) or (n, H, W, C)

    Returns
    -------
    float32 Tensor of shape (n, C, H, W), in [0, 1]

    Examples
    --------
    >>> image_tensor(np.full((2, 8, 9), 51, dtype=np.uint8)).shape
    torch.Size([2, 1, 8, 9])
    """
    pictures = torch.from_numpy(np.ascontiguousarray(images)).float().div_(255)
    return pictures.unsqueeze(1) if pictures.ndim == 3 else pictures.permute(0, 3, 1, 2)


def collect_samples(X: Any) -> Tensor | np.ndarray | list[Any]:
    """Return X as something that can be cut into batches: a tensor, a matrix, or pictures."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    if isinstance(X, Tensor):
        if X.ndim < 2 or len(X) == 0:
            raise InputError(f"X must have at least one sample and two axes, not {tuple(X.shape)}")
        return X
    is_rows = isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple | np.ndarray)
    if is_rows and np.ndim(X[0]) == 1:
        widths = {len(row) for row in X}
        if len(widths) > 1:
            raise InputError(f"the rows of X differ in length: {sorted(widths)[:5]}")
        X = np.asarray(X)
    if hasattr(X, "__array__") and not is_pil_image(X):
        X = np.asarray(X)
        if X.ndim == 2 and len(X) and X.dtype.kind in "fiub":
            return X
    return collect_pictures(X)


def _fit(images: Tensor, spec: InputSpec, polarity: str) -> Tensor:
    """Make (n, 1 or 3, H, W) into (n, C, S, S)."""
    if images.shape[1] == 3 and spec.channels == 1:
        luma = torch.tensor(LUMA).view(1, 3, 1, 1)
        images = (images * luma).sum(dim=1, keepdim=True)
    if spec.polarity is not None:
        # Before resizing, which would smear thin strokes into the border.
        inverted = _has_light_paper(images, polarity) != (spec.polarity == "dark-ink")
        images = torch.where(inverted.view(-1, 1, 1, 1), 1 - images, images)
    if images.shape[2:] != (spec.size, spec.size):
        images = interpolate(images, size=(spec.size, spec.size), mode="bilinear", antialias=True)
    # Gray to RGB comes last, so that the work above is done once.
    return images.clamp(0, 1).expand(-1, spec.channels, -1, -1).contiguous()


def _has_light_paper(images: Tensor, polarity: str) -> Tensor:
    """Say for each of (n, C, H, W) whether its ink is dark on light paper: (n,) bool."""
    if polarity != "auto":
        return torch.full((len(images),), polarity == "dark-ink")
    gray = images.mean(dim=1)
    border = torch.cat([gray[:, 0], gray[:, -1], gray[:, 1:-1, 0], gray[:, 1:-1, -1]], dim=1)
    return border.median(dim=1).values > 0.5
