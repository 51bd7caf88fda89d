"""Batch norm, 2x2 max-pool and ReLU in one differentiable step, for training on large maps.

The maps between a convolution and its pooling are the largest tensors of Conv4, and ordinary
modules pass over them many times. Three facts spare most of that:

- with a positive scale, normalizing commutes with the maximum: pool first, normalize a quarter;
- the sums that batch norm's gradient needs run over the pooled positions only, because the gradient
  is zero elsewhere;
- what is left on the large map is one affine function of the map per channel.

Shapes: n images, C channels, H x W pixels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import max_pool2d, relu

from fspll.embeddings.networks.firstblock import FirstBlock, per_channel


class _NormPoolReLU(torch.autograd.Function):
    """relu(max_pool2d(batch_norm(x), 2)) with statistics of the batch, for scales above zero."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, rstd: Tensor
    ) -> Tensor:
        pooled, where = max_pool2d(x, 2, return_indices=True)
        normal = pooled.sub_(per_channel(mean)).mul_(per_channel(rstd))
        out = torch.addcmul(per_channel(offset), normal, per_channel(scale)).clamp_min_(0)
        ctx.save_for_backward(x, where, normal, out, scale, mean, rstd)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, where, normal, out, scale, mean, rstd = ctx.saved_tensors
        grad = grad * (out > 0)
        d_offset = grad.sum(dim=(0, 2, 3))
        d_scale = (grad * normal).sum(dim=(0, 2, 3))
        # With x^ = (x - mean) rstd, M values per channel and g the gradient after the pooling:
        # dx = scale rstd (g at the maxima - d_offset / M - x^ d_scale / M), affine in x.
        factor = scale * rstd
        count = x.numel() / x.shape[1]
        slope = -factor * rstd * d_scale / count
        level = -factor * d_offset / count - slope * mean
        grad = grad.mul_(per_channel(factor)).contiguous(memory_format=torch.channels_last)
        dx = torch.ops.aten.max_pool2d_with_indices_backward(
            grad, x, [2, 2], [2, 2], [0, 0], [1, 1], False, where
        )
        return (
            dx.addcmul_(x, per_channel(slope)).add_(per_channel(level)),
            d_scale,
            d_offset,
            None,
            None,
        )


class NormPoolReLU(nn.BatchNorm2d):
    """Batch norm followed by a 2x2 max-pool and ReLU; the same function as the three modules.

    The fast way is taken in training on a CPU; it can be differentiated once. In eval mode, without
    running statistics (as MAML has it, which differentiates twice), or with a scale that is not
    positive, the three steps are taken one after the other.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return maps of shape (n, C, H // 2, W // 2) for maps (n, C, H, W)."""
        if not self.is_fast(x):
            # ReLU after the pool, where a quarter of the values is left.
            return relu(max_pool2d(super().forward(x), 2))
        with torch.no_grad():
            mean, variance = torch.batch_norm_update_stats(
                x, self.running_mean, self.running_var, self.momentum or 0.0
            )
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
            rstd = torch.rsqrt(variance + self.eps)
        return _NormPoolReLU.apply(x, self.weight, self.bias, mean, rstd)

    def after(self, convolution: nn.Conv2d, images: Tensor) -> Tensor:
        """Return what :meth:`forward` does for the maps of a 3x3 convolution of the input."""
        single = images.dtype == torch.float32 and not images.requires_grad
        if not single or not torch.is_grad_enabled() or not self.is_fast(images):
            return self(convolution(images))
        out, mean, variance = FirstBlock.apply(
            images, convolution.weight, self.weight, self.bias, self.eps
        )
        assert self.running_mean is not None and self.running_var is not None  # noqa: PT018
        with torch.no_grad():
            count = images.numel() / images.shape[1]
            share = self.momentum or 0.0
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(variance * (count / max(1.0, count - 1)), share)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
        return out

    def is_fast(self, x: Tensor) -> bool:
        """Tell whether the fast way can be taken for such maps."""
        fast = self.training and self.running_mean is not None and x.device.type == "cpu"
        return fast and bool((self.weight > 0).all())
