"""The first block of Conv4 in training: convolution, batch norm, max-pool and ReLU without the map.

The map between the first convolution and its pooling is by far the largest tensor of the network
(1 GB for 600 color images of 84x84), and it is cheap to compute: reading and writing it takes
longer than the arithmetic. Here it exists for a few images at a time, in the processor's cache.

What batch norm needs of the whole map follows from sums over the images. With the patches z of the
images, k = 9 values each, a value of the map is w z, so that

- the mean of a channel is w s / M, its mean square w G w / M, with s the sum of all M patches and
  G = sum z z' of shape (k, k);
- the part of the gradient that is affine in the map, slope w z + level at every position, gives the
  weights the gradient slope G w + level s.

Only the gradient at the maxima passes through a convolution. Images take no gradient: they are the
network's input.

Shapes: n images, C channels of the input, D of the output, H x W pixels, k = 9 C values per patch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv2d, pad

_MAP_VALUES = 1 << 20  # of the map at a time; 4 MB are in the cache of most processors


class FirstBlock(torch.autograd.Function):
    """relu(max_pool2d(batch_norm(conv2d(x, w, padding=1)), 2)) for scales above zero.

    ``apply(images, weight, scale, offset, eps)`` returns the output (n, D, H // 2, W // 2), and
    the mean and the variance of the map, (D,) each and without gradients.
    """

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, scale: Tensor, offset: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Keep what is a quarter of the map or less."""
        n, _, height, width = images.shape
        shape = (n, len(weight), height // 2, width // 2)
        normal = torch.empty(shape, memory_format=torch.channels_last)
        where = torch.empty(shape, dtype=torch.int64, memory_format=torch.channels_last)
        for part in _parts(images, weight):
            maps = conv2d(images[part], weight, padding=1)
            torch.ops.aten.max_pool2d_with_indices.out(
                maps, [2, 2], out=normal[part], indices=where[part]
            )
        gram, total = patch_sums(images)
        count = n * height * width
        rows = _rows(weight)
        mean = rows @ total / count
        variance = ((rows @ gram * rows).sum(dim=1) / count - mean.square()).clamp_min(0)
        rstd = torch.rsqrt(variance + eps).float()
        mean, variance = mean.float(), variance.float()
        normal.sub_(per_channel(mean)).mul_(per_channel(rstd))
        out = torch.addcmul(per_channel(offset), normal, per_channel(scale)).clamp_min_(0)
        ctx.save_for_backward(images, weight, where, normal, out, scale, mean, rstd, gram, total)
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor, _mean: Tensor, _variance: Tensor
    ) -> tuple[None, Tensor, Tensor, Tensor, None]:
        """Return the gradients of weight, scale and offset."""
        images, weight, where, normal, out, scale, mean, rstd, gram, total = ctx.saved_tensors
        factor = scale * rstd
        d_offset, d_scale = torch.zeros_like(scale), torch.zeros_like(scale)
        d_weight = torch.zeros_like(weight)
        for part in _parts(images, weight):
            g = torch.where(out[part] > 0, grad[part], 0)
            d_offset += g.sum(dim=(0, 2, 3))
            d_scale += (g * normal[part]).sum(dim=(0, 2, 3))
            g = g.mul_(per_channel(factor)).contiguous(memory_format=torch.channels_last)
            x = images[part]
            like = torch.empty(  # whose values are not read
                (len(x), len(weight), *x.shape[2:]), memory_format=torch.channels_last
            )
            at_maxima = torch.ops.aten.max_pool2d_with_indices_backward(
                g, like, [2, 2], [2, 2], [0, 0], [1, 1], False, where[part]
            )
            d_weight += torch.ops.aten.convolution_backward(
                at_maxima,
                x,
                weight,
                None,
                [1, 1],
                [1, 1],
                [1, 1],
                False,
                [0, 0],
                1,
                [False, True, False],
            )[1]
        # As in normpool: the rest of the map's gradient is slope y + level at every value y.
        count = images.numel() / images.shape[1]
        slope = -factor * rstd * d_scale / count
        level = -factor * d_offset / count - slope * mean
        affine = slope.double().unsqueeze(1) * (_rows(weight) @ gram)
        affine += level.double().unsqueeze(1) * total
        d_weight += affine.view(len(weight), 3, 3, -1).permute(0, 3, 1, 2).to(weight.dtype)
        return None, d_weight, d_scale, d_offset, None


def patch_sums(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums over all 3x3 patches z of z z', (k, k), and of z, (k,), in float64.

    The values of a patch are in the order of rows, columns and channels.
    """
    n, channels, height, width = images.shape
    k = 9 * channels
    gram = torch.zeros((k, k), dtype=torch.float64)
    total = torch.zeros(k, dtype=torch.float64)
    center = None
    for part in images.split(max(1, _MAP_VALUES // (k * height * width))):
        padded = pad(part.permute(0, 2, 3, 1), (0, 0, 1, 1, 1, 1))
        # First three columns beside each other, then three rows of these: long runs to copy.
        wide = torch.cat([padded[:, :, i : i + width] for i in range(3)], dim=-1)
        patches = torch.cat([wide[:, i : i + height] for i in range(3)], dim=-1).view(-1, k)
        if center is None:
            # Variances are differences of these sums; far from zero, float32 would lose digits.
            center = patches.mean(dim=0)
        patches -= center
        gram += (patches.mT @ patches).double()
        total += patches.sum(dim=0).double()
    assert center is not None
    shift, count = center.double(), n * height * width
    cross = torch.outer(total, shift)
    gram += cross + cross.mT + count * torch.outer(shift, shift)
    return gram, total + count * shift


def _parts(images: Tensor, weight: Tensor) -> list[slice]:
    """Return slices of images whose maps are small enough together."""
    step = max(1, _MAP_VALUES // (len(weight) * images[0, 0].numel()))
    return [slice(start, start + step) for start in range(0, len(images), step)]


def _rows(weight: Tensor) -> Tensor:
    """Return the weights (D, k) in the order of :func:`patch_sums`."""
    return weight.permute(0, 2, 3, 1).flatten(1).double()


def per_channel(values: Tensor) -> Tensor:
    """Return values (D,) in a shape that goes with maps (n, D, H, W)."""
    return values.view(1, -1, 1, 1)
