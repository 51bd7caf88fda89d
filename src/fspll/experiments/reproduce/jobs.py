"""Jobs of a grid: everything that decides a figure, and a key made from it.

A *network job* meta-trains one network, a *head job* adapts a frozen encoder. A *score job* solves
the meta-test tasks of one setting with one method on one of them; its tasks are numbered, so that a
few more can always be added.

Keys hold a revision of every rule that took part, and not the version of the package: a rule that
computes something else gets a new revision and never meets figures of the old one, while a new
version of the package keeps the figures of the rules that it did not touch.

Costs are rough seconds, for the order of work and the time left; no figure depends on them.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from fspll._common.errors import DataError
from fspll.datasets.base import DataSet, ImageSet
from fspll.datasets.registry import DATASETS, load_images
from fspll.embeddings.checkpoints import read_metadata
from fspll.experiments.methods import FORWARD_SECONDS, STEP_SECONDS, Method
from fspll.experiments.reproduce.profiles import images_per_task
from fspll.metalearning import REGIMES
from fspll.metalearning.head_tasks import HeadPlan
from fspll.metalearning.plan import TrainingPlan
from fspll.tasks import TaskSettings

_PROTOCOL = "1"  # revision of how tasks are drawn and scored, which every figure depends on
# Settings of a plan that decide nothing unless a network is adapted to tasks.
_ONLY_MAML = ("inner_steps", "inner_rate", "first_order")
_UNTRAINED = "1"  # revision of how a network without training is made
_ENCODING, _HEAD = "1", "1"  # revisions of the photo encoder's features and of how heads are fitted
_ENCODING_SECONDS, _HEAD_SECONDS = 0.03, 120.0  # for a photo, for a head

Split = Literal["train", "test"]


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

    def load(self, split: Split) -> ImageSet:
        """Load the meta-training or the meta-test classes; kept for the life of the process."""
        return _load(self, split)

    def digest(self, split: Split) -> str:
        """Return a fingerprint of pixels and labels."""
        return _digest(self, split)

    @property
    def pixels(self) -> float:
        """Pixels of a meta-test image, in units of 28 x 28."""
        shape = self.load("test").images.shape
        return shape[1] * shape[2] / 784


@lru_cache(maxsize=4)
def _load(source: Source, split: Split) -> ImageSet:
    return load_images(source.name, split, root=source.root, size=source.size)


@lru_cache(maxsize=8)
def _digest(source: Source, split: Split) -> str:
    data = source.load(split)
    digest = hashlib.sha256(repr((data.name, data.images.shape)).encode())
    digest.update(data.labels.tobytes())
    for start in range(0, len(data), 4096):  # in parts: the images may be a large memory map
        digest.update(data.images[start : start + 4096].tobytes())
    return digest.hexdigest()[:16]


class EmbeddingJob(ABC):
    """Make what embeds samples, or is adapted to tasks: a file, or nothing where none is needed.

    Attributes
    ----------
    source : Source
        What it is trained on, and what it embeds.
    plan : TrainingPlan, HeadPlan or None
        How it is trained; None where it is not.
    """

    source: Source
    plan: TrainingPlan | HeadPlan | None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All that decides the features."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Its name for people."""

    @property
    @abstractmethod
    def training_seconds(self) -> float:
        """Roughly what the training costs."""

    @property
    @abstractmethod
    def embedding_seconds(self) -> float:
        """Roughly what embedding the meta-test images costs."""

    @property
    def key(self) -> str:
        """Its name among files."""
        return f"{self.label}-{key_of(self.settings)[:12]}"

    def folder(self, out: Path) -> Path:
        """Return where it is trained: state and log, for going on."""
        return out / "networks" / self.key

    def file(self, out: Path) -> Path:
        """Return where it is kept when it is finished."""
        return out / "networks" / f"{self.key}.safetensors"

    def is_ready(self, out: Path) -> bool:
        """Tell whether it is there, or needs no training.

        Raises
        ------
        CheckpointError, DataError
            When the file is damaged, or of another plan.
        """
        path, wanted = self.file(out), self.settings["plan"]
        if wanted is None or not path.exists():
            return wanted is None
        plan = self.training(out).get("plan", {})
        if {name: plan.get(name) for name in wanted} != wanted:
            raise DataError(
                f"{path} holds another network than its name says; move it away, and run again "
                "to train the right one"
            )
        return True

    def training(self, out: Path) -> dict[str, Any]:
        """Return what the finished file says of its training."""
        found = read_metadata(self.file(out)).get("training")
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class NetworkJob(EmbeddingJob):
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
    def label(self) -> str:
        """The network's name for people."""
        if self.plan is None:
            return "untrained"
        ways = f"-{self.plan.n_way}way" if REGIMES.get(self.plan.regime).learner.adapts else ""
        return f"{self.plan.regime}-r{self.plan.r[0]}{ways}"

    @property
    def training_seconds(self) -> float:
        """Roughly what meta-training costs."""
        if self.plan is None:
            return 0.0
        images = images_per_task(self.plan) * self.plan.total_steps * self.plan.tasks_per_step
        return STEP_SECONDS * images * self.source.pixels

    @property
    def embedding_seconds(self) -> float:
        """Roughly what embedding the meta-test images costs."""
        return FORWARD_SECONDS * len(self.source.load("test")) * self.source.pixels


@dataclass(frozen=True)
class HeadJob(EmbeddingJob):
    """Adapt a frozen encoder to the meta-training classes; without a plan, take it as it is."""

    source: Source
    encoder: str
    plan: HeadPlan | None = None

    @property
    def base(self) -> HeadJob:
        """The encoder as it is."""
        return replace(self, plan=None)

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the features."""
        found = {"encoder": self.encoder, "encoding": _ENCODING, "plan": None}
        if self.plan is None:
            return found
        data = {"data": self.source.digest("train"), "revision": _HEAD}
        return {**found, **data, "plan": self.plan.to_dict()}

    @property
    def label(self) -> str:
        """The encoder's name for people."""
        if self.plan is None:
            return self.encoder
        which = "precise" if self.plan.precise else f"r{self.plan.r[0]}"
        return f"{self.encoder}-head-{which}"

    @property
    def training_seconds(self) -> float:
        """Roughly what the head costs, once its samples are encoded."""
        return 0.0 if self.plan is None else _HEAD_SECONDS

    @property
    def embedding_seconds(self) -> float:
        """Roughly what encoding the meta-test images costs; a head adds nothing to speak of."""
        return 0.0 if self.plan is not None else _ENCODING_SECONDS * len(self.source.load("test"))


@dataclass(frozen=True)
class ScoreJob:
    """Solve meta-test tasks of one setting with one method on one network.

    ``n_tasks`` is how many tasks are wanted. It is no part of the key: task i is the same however
    many there are.
    """

    source: Source
    network: EmbeddingJob | None
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
