"""Jobs of a grid: everything that decides a figure, and a key made from it.

A *network job* meta-trains one network. A *score job* solves the meta-test tasks of one setting
with one method on one network; its tasks are numbered, so that a few more can always be added.

Keys hold a revision of every rule that took part, and not the version of the package: a rule that
computes something else gets a new revision and never meets figures of the old one, while a new
version of the package keeps the figures of the rules that it did not touch.

Costs are rough seconds, for the order of work and the time left; no figure depends on them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from fspll._common.errors import DataError
from fspll.datasets.base import DataSet, ImageSet
from fspll.datasets.registry import DATASETS, load_images
from fspll.embeddings.checkpoints import read_metadata
from fspll.experiments.methods import FORWARD_SECONDS, STEP_SECONDS, Method
from fspll.metalearning import REGIMES
from fspll.metalearning.plan import TrainingPlan
from fspll.tasks import TaskSettings

_PROTOCOL = "1"  # revision of how tasks are drawn and scored, which every figure depends on
# Settings of a plan that decide nothing unless a network is adapted to tasks.
_ONLY_MAML = ("inner_steps", "inner_rate", "first_order")
_UNTRAINED = "1"  # revision of how a network without training is made


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
        Height and width in pixels, for photos.
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

    @property
    def pixels(self) -> float:
        """Pixels of a meta-test image, in units of 28 x 28."""
        shape = self.load("test").images.shape
        return shape[1] * shape[2] / 784


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
        data = {"data": self.source.digest("train"), "seed": self.seed}
        if self.plan is None:
            return {**data, "plan": None, "revision": _UNTRAINED}
        plan, regime = self.plan.to_dict(), REGIMES.get(self.plan.regime)
        if not regime.learner.adapts:
            plan = {name: plan[name] for name in plan if name not in _ONLY_MAML}
        return {**data, "plan": plan, "revision": regime.revision}

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
        """Return where the network is trained: its state and its log, for going on."""
        return out / "networks" / self.key

    def file(self, out: Path) -> Path:
        """Return where the finished network is kept."""
        return out / "networks" / f"{self.key}.safetensors"

    def is_ready(self, out: Path) -> bool:
        """Tell whether the network is there, or needs no training.

        Raises
        ------
        CheckpointError, DataError
            When the file is damaged, or holds the network of another plan.
        """
        path = self.file(out)
        if self.plan is None or not path.exists():
            return self.plan is None
        plan = read_metadata(path).get("training", {}).get("plan", {})
        wanted = self.settings["plan"]
        if {name: plan.get(name) for name in wanted} != wanted:
            raise DataError(
                f"{path} holds another network than its name says; move it away, and run again "
                "to train the right one"
            )
        return True

    @property
    def training_seconds(self) -> float:
        """Roughly what meta-training costs."""
        plan = self.plan
        if plan is None:
            return 0.0
        images = plan.n_way * (plan.n_shot + plan.n_query)
        steps = plan.total_steps * plan.tasks_per_step
        adapting = 2.5 if REGIMES.get(plan.regime).learner.adapts else 1.0
        return STEP_SECONDS * images * steps * self.source.pixels * adapting

    @property
    def embedding_seconds(self) -> float:
        """Roughly what embedding the meta-test images costs."""
        return FORWARD_SECONDS * len(self.source.load("test")) * self.source.pixels


@dataclass(frozen=True)
class ScoreJob:
    """Solve meta-test tasks of one setting with one method on one network.

    ``n_tasks`` is how many tasks are wanted. It is no part of the key: task i is the same however
    many there are.
    """

    source: Source
    network: NetworkJob | None
    method: Method
    setting: TaskSettings
    seed: int = 0
    n_tasks: int = 100

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the figures of task i."""
        return {
            "data": self.source.digest("test"),
            "network": None if self.network is None else self.network.settings,
            "method": self.method.identity(),
            "setting": asdict(self.setting),
            "seed": self.seed,
            "protocol": _PROTOCOL,
        }

    @property
    def key(self) -> str:
        """The job's name in the store."""
        return key_of(self.settings)

    def seconds(self, n_tasks: int) -> float:
        """Return roughly what some tasks cost."""
        return n_tasks * self.method.seconds(self.setting, self.source.pixels)
