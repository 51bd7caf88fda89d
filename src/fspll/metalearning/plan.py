"""A training run as data: everything that decides its result, nothing that does not."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from fspll._common.arguments import check_choice, check_count, check_positive
from fspll._common.errors import InputError
from fspll.embeddings.networks.architectures import ARCHITECTURES
from fspll.metalearning import REGIMES
from fspll.rectifiers.equations import check_metric
from fspll.tasks import TaskSettings

DEFAULT = "leave-one-out"
OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class TrainingPlan:
    """What to meta-train and how; defaults are the paper's where it states them, except the regime.

    Attributes
    ----------
    regime : str
        A name of :data:`fspll.metalearning.REGIMES`, in any case.
    n_way, n_shot, n_query : int
        N1, K1 and queries per class.
    r : tuple of int
        Extra labels of an ambiguous sample; task i takes the (i mod len)-th.
    p : float
        Share of ambiguous samples.
    n_tasks : int
        T, tasks per epoch.
    fresh : bool
        Draw new tasks every epoch instead of going over the same T again, as the paper does.
    epochs : int
        Rounds over the T tasks; the paper goes up to 200.
    tasks_per_step : int
        Tasks whose gradients make one step: 1 is one step per task; T is Algorithm 1 taken
        literally, one step per epoch.
    optimizer : {"adam", "sgd"}
    learning_rate : float
    halve_every : int
        Epochs after which the learning rate is halved; 0 never.
    metric : {"euclidean", "sqeuclidean"}
        Distance to the prototypes, in the objective and in the rectification.
    architecture : str
        Of the embedding network.
    held_out : int
        Meta-training classes, each with its variants such as rotations, kept aside to choose the
        best epoch.
    patience : int
        Stop after so many epochs without a better one; 0 never. Needs ``held_out``.
    seed : int
        Of the network's weights and of the tasks.
    inner_steps, inner_rate, first_order
        MAML's steps on the support set, their learning rate (for the mean loss), and whether the
        second-order terms are left out.

    Examples
    --------
    >>> from fspll.metalearning import TrainingPlan
    >>> plan = TrainingPlan(regime="FsPLL", n_tasks=100, epochs=20, halve_every=10)
    >>> plan.regime, plan.total_steps, plan.rate(epoch=10)
    ('fspll', 2000, 0.0005)
    """

    regime: str = DEFAULT
    n_way: int = 30
    n_shot: int = 5
    n_query: int = 15
    r: tuple[int, ...] = (1,)
    p: float = 1.0
    n_tasks: int = 100
    fresh: bool = False
    epochs: int = 20
    tasks_per_step: int = 1
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    halve_every: int = 20
    metric: str = "euclidean"
    architecture: str = "conv4"
    held_out: int = 0
    patience: int = 0
    seed: int = 0
    inner_steps: int = 5
    inner_rate: float = 0.5
    first_order: bool = False

    def __post_init__(self) -> None:
        REGIMES.get(self.regime)
        object.__setattr__(self, "regime", REGIMES.find(self.regime))
        check_metric(self.metric)
        ARCHITECTURES.get(self.architecture)
        if not isinstance(self.r, tuple) or not self.r:
            raise InputError(f"r must be a tuple of numbers of extra labels, not {self.r!r}")
        for r in self.r:
            TaskSettings(self.n_way, self.n_shot, self.n_query, r, self.p)
        least = {"n_tasks": 1, "epochs": 1, "tasks_per_step": 1, "halve_every": 0, "held_out": 0}
        for name, low in (least | {"patience": 0, "seed": 0, "inner_steps": 1}).items():
            check_count(name, getattr(self, name), low)
        for name in ("learning_rate", "inner_rate"):
            check_positive(name, getattr(self, name))
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.n_tasks % self.tasks_per_step:
            raise InputError(
                f"tasks_per_step = {self.tasks_per_step} does not divide n_tasks = {self.n_tasks}"
            )
        if self.n_query < 1:
            raise InputError("n_query must be 1 or more in meta-training")
        if self.held_out and self.n_shot < 2:
            raise InputError("held_out needs n_shot of 2 or more: its score leaves samples out")
        if self.patience and not self.held_out:
            raise InputError("patience needs held_out classes to compare the epochs on")

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps per epoch."""
        return self.n_tasks // self.tasks_per_step

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole run."""
        return self.epochs * self.steps_per_epoch

    def task_settings(self, task: int) -> TaskSettings:
        """Return the shape of task number ``task`` of the run."""
        return TaskSettings(
            self.n_way, self.n_shot, self.n_query, self.r[task % len(self.r)], self.p
        )

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        halvings = epoch // self.halve_every if self.halve_every else 0
        return self.learning_rate * 0.5**halvings

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dictionary that JSON can hold."""
        return {**asdict(self), "r": list(self.r)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingPlan:
        """Make a plan from what :meth:`to_dict` returned."""
        strange = set(values) - {field.name for field in fields(cls)}
        if strange:
            raise InputError(f"a training plan has no setting {sorted(strange)[0]!r}")
        return cls(**{**values, "r": tuple(values.get("r", (1,)))})
