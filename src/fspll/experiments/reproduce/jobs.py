"""Jobs of a grid: everything that decides a figure, and a key made from it.

A *network job* meta-trains one network. A *score job* solves the meta-test tasks of one setting
with one method on one network; its tasks are numbered, so that a few more can always be added.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from fspll._common.version import __version__
from fspll.datasets import DATASETS, DataSet, ImageSet, load_images
from fspll.metalearning.plan import TrainingPlan
from fspll.tasks import TaskSettings


def key_of(settings: dict[str, Any]) -> str:
    """Return a name made from all settings: equal settings, equal name, on any machine."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Source:
    """A data set by name; where its files are does not decide a result, their pixels do.

    Attributes
    ----------
    name : str
        Of :data:`~fspll.datasets.DATASETS`.
    root : str, optional
        Folder of the files, when not in the data folder.
    size : int, optional
        Pixels per side, for photos.
    """

    name: str
    root: str | None = None
    size: int | None = None

    @property
    def dataset(self) -> DataSet:
        """The data set itself."""
        return DATASETS.get(self.name)

    def load(self, split: Literal["train", "test"]) -> ImageSet:
        """Load the meta-training or the meta-test classes; kept for the life of the process."""
        return _load(self, split)

    def digest(self, split: Literal["train", "test"]) -> str:
        """Return a fingerprint of pixels and labels."""
        return _digest(self, split)


@lru_cache(maxsize=4)
def _load(source: Source, split: Literal["train", "test"]) -> ImageSet:
    return load_images(source.name, split, root=source.root, size=source.size)


@lru_cache(maxsize=8)
def _digest(source: Source, split: Literal["train", "test"]) -> str:
    data = source.load(split)
    digest = hashlib.sha256(repr((data.name, data.images.shape)).encode())
    digest.update(data.labels.tobytes())
    for start in range(0, len(data), 4096):  # in parts: the images may be a large memory map
        digest.update(data.images[start : start + 4096].tobytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class NetworkJob:
    """Meta-train a network; without a plan, one with random weights."""

    source: Source
    plan: TrainingPlan | None
    seed: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the weights."""
        return {
            "data": self.source.digest("train"),
            "plan": None if self.plan is None else self.plan.to_dict(),
            "seed": self.seed,
            "version": __version__,
        }

    @property
    def key(self) -> str:
        """The network's name among files."""
        return f"{self.label}-{key_of(self.settings)[:12]}"

    @property
    def label(self) -> str:
        """The network's name for people."""
        if self.plan is None:
            return "untrained"
        return f"{self.plan.regime}-r{self.plan.r[0]}"

    def folder(self, out: Path) -> Path:
        """Return where the network is kept."""
        return out / "networks" / self.key


@dataclass(frozen=True)
class ScoreJob:
    """Solve meta-test tasks of one setting with one method on one network.

    Attributes
    ----------
    method : str
        As in :class:`~fspll.experiments.reproduce.rows.RowSpec`.
    n_neighbors, manifold_weight
        k and lambda of FsPLL, where they are varied.
    maml_steps : int
        Steps of adaptation; 0 for other methods.
    """

    source: Source
    network: NetworkJob | None
    method: str
    setting: TaskSettings
    seed: int = 0
    n_neighbors: int | None = None
    manifold_weight: float | None = None
    maml_steps: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the figures of task i."""
        return {
            "data": self.source.digest("test"),
            "network": None if self.network is None else self.network.settings,
            "method": self.method,
            "setting": asdict(self.setting),
            "seed": self.seed,
            "n_neighbors": self.n_neighbors,
            "manifold_weight": self.manifold_weight,
            "maml_steps": self.maml_steps,
            "version": __version__,
        }

    @property
    def key(self) -> str:
        """The job's name in the store."""
        return _score_key(self)


@lru_cache(maxsize=65536)
def _score_key(job: ScoreJob) -> str:
    return key_of(job.settings)
