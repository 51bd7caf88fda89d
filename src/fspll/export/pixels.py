"""What encoders do to decoded pictures, in operations that a graph can hold for any size.

The library resizes with torch's ``interpolate``. A graph gets the same filter as a matrix per axis,
with the numbers that torch computes: the ``Resize`` of ONNX rounds elsewhere (by up to 3e-5 of a
pixel's value in onnxruntime), and not every runtime has its antialiasing.

Shapes: n pictures, H rows, W columns, C channels, S pixels per side that the network takes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fspll.embeddings.inputs import LUMA, InputSpec


class Pixels(nn.Module):
    """Turn RGB pixels into what :func:`fspll.embeddings.prepare_images` gives a network.

    Parameters
    ----------
    spec : InputSpec
        What the network takes. Ink of the other polarity is recognized as ``"auto"`` does it.
    photos : bool
        Crop to the central square, as for photos; otherwise pictures are squeezed into the square.
    cubic : bool
        Resize with the bicubic filter; otherwise with the bilinear one.

    Examples
    --------
    >>> paper = torch.full((1, 50, 40, 3), 255, dtype=torch.uint8)
    >>> Pixels(InputSpec(28, 1, "bright-ink"))(paper).unique()
    tensor([0.])
    """

    def __init__(self, spec: InputSpec, *, photos: bool = False, cubic: bool = False) -> None:
        super().__init__()
        self.spec, self.photos, self.cubic = spec, photos, cubic

    def forward(self, pixels: Tensor) -> Tensor:
        """Return float32 (n, C, S, S) in [0, 1] for uint8 (n, H, W, 3)."""
        images = pixels.permute(0, 3, 1, 2).to(torch.float32) / 255
        if self.spec.channels == 1:
            images = (images * torch.tensor(LUMA).view(1, 3, 1, 1)).sum(dim=1, keepdim=True)
        if self.spec.polarity is not None:
            inverted = _has_light_paper(images) != (self.spec.polarity == "dark-ink")
            images = torch.where(inverted, 1 - images, images)
        rows = torch.arange(images.shape[2], dtype=torch.float32)
        columns = torch.arange(images.shape[3], dtype=torch.float32)
        height, width = rows.amax(dim=0) + 1, columns.amax(dim=0) + 1
        size, cubic = self.spec.size, self.cubic
        if self.photos:
            height = width = torch.minimum(height, width)
            rows = rows - ((rows.amax(dim=0) + 1 - height) / 2).floor()
            columns = columns - ((columns.amax(dim=0) + 1 - width) / 2).floor()
        down = resizing_matrix(rows, height, size, cubic=cubic)
        across = resizing_matrix(columns, width, size, cubic=cubic)
        return (down @ (images @ across.T)).clamp(0, 1)


def resizing_matrix(places: Tensor, length: Tensor, size: int, *, cubic: bool) -> Tensor:
    """Return the weights (S, H) of pixels in an axis that is resized with antialiasing.

    Parameters
    ----------
    places : Tensor of shape (H,)
        Where the pixels are in the part that is resized, which begins at 0.
    length : Tensor of shape ()
        Of that part, in pixels; those outside of it get no weight.
    size : int
        S.
    cubic : bool
        Keys' cubic filter with a = -0.5; otherwise the triangle.
    """
    scale = length / size
    stretch = scale.clamp_min(1)
    support = (2.0 if cubic else 1.0) * stretch
    steps = torch.arange(size, dtype=torch.float64) + 0.5
    center = (scale.double() * steps).float().unsqueeze(1)
    first = (center - support + 0.5).clamp_min(0).floor()
    last = torch.minimum((center + support + 0.5).floor(), length)
    x = ((places - center + 0.5) / stretch).abs()
    if cubic:
        near, far = (1.5 * x - 2.5) * x * x + 1, -0.5 * (((x - 5) * x + 8) * x - 4)
        weight = torch.where(x < 1, near, torch.where(x < 2, far, 0.0))
    else:
        weight = (1 - x).clamp_min(0)
    weight = torch.where((places >= first) & (places < last), weight, 0.0)
    return weight / weight.sum(dim=1, keepdim=True)


def _has_light_paper(images: Tensor) -> Tensor:
    """Say for each of (n, C, H, W) whether more than half of its border is light: (n, 1, 1, 1)."""
    gray = images.mean(dim=1, keepdim=True)
    row, column = (torch.arange(side) for side in images.shape[2:])
    first_or_last = [(one == 0) | (one == one.amax(dim=0)) for one in (row, column)]
    border = first_or_last[0].unsqueeze(1) | first_or_last[1]
    light = ((gray > 0.5) & border).sum(dim=(2, 3), keepdim=True)
    return 2 * light > border.sum()
