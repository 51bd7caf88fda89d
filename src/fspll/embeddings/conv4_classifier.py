"""Conv4 with a linear head: the network that MAML adapts to each task."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll.embeddings.conv4 import Conv4


class Conv4Classifier(nn.Module):
    """Conv4 features and one linear layer to ``n_way`` scores.

    Batch norm always uses the statistics of the batch at hand, in training and in test, as in C.
    Finn, P. Abbeel and S. Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep
    Networks" (2017): the queries of a task are normalized together.

    Parameters
    ----------
    in_channels, width, size : int
        As for :class:`~fspll.embeddings.Conv4`.
    n_way : int, default=5
        Classes a task.

    Examples
    --------
    >>> import torch
    >>> Conv4Classifier(n_way=3)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    architecture: ClassVar[str] = "conv4-classifier"

    def __init__(
        self, in_channels: int = 1, width: int = 64, size: int = 28, n_way: int = 5
    ) -> None:
        super().__init__()
        check_count(f"n_way of {self.architecture}", n_way, 1)
        self.embedding = Conv4(in_channels, width, size)
        for module in self.embedding.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.track_running_stats = False
                module.running_mean = module.running_var = module.num_batches_tracked = None
        self.n_features = self.embedding.n_features
        self.settings: dict[str, Any] = {**self.embedding.settings, "n_way": n_way}
        self.head = nn.Linear(self.n_features, n_way)

    def forward(self, images: Tensor) -> Tensor:
        """Return scores (n, n_way) of images (n, C, S, S)."""
        return self.head(self.embedding(images))
