"""Profiles: how much work a reproduction may be, the same for every method inside one.

The budget of meta-training is counted in images passed through the network, because a task of one
method holds more of them than a task of another: the default method reads no queries, and MAML
passes its support set three times for every inner step.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

from fspll._common.arguments import check_choice
from fspll.metalearning import REGIMES
from fspll.metalearning.plan import TrainingPlan

_EPOCH = 100  # tasks per epoch: the paper's T


@dataclass(frozen=True)
class Profile:
    """How much is trained and how many tasks are tested.

    Attributes
    ----------
    name, about : str
    epochs : int
        Rounds of 100 meta-training tasks, for methods that read the queries.
    n_way, n_query : int
        Classes of a meta-training task (N1) and queries per class; K1 is 5.
    fresh : bool
        Whether every epoch draws new tasks; the paper's profile goes over the same 100 again.
    halve_every : int
        Epochs after which the learning rate is halved; 0 halves it after each third of a run.
    learning_rate : dict of str to float
        By regime; "" is for those not named. Chosen on meta-training classes.
    n_tasks : int
        Meta-test tasks per setting; the paper's 100 rounds.
    photo_tasks, photo_size, photo_epochs : int
        Meta-test tasks per setting, height and width in pixels, and epochs, where the data are
        photos; 0 epochs means as many as for characters.
    n_ways, n_shots, rs : tuples of int
        The Omniglot grid: N2, K2, r.
    photo_ways, photo_shots, photo_rs : tuples of int
        The miniImageNet grid.
    maml_steps : int
        Steps of adaptation at test.
    maml_tasks : int
        Only so many of the tasks for MAML, whose rows cost more than all others together; 0 is as
        many as the others.
    """

    name: str
    about: str
    epochs: int
    n_way: int = 30
    n_query: int = 15
    fresh: bool = True
    halve_every: int = 0
    learning_rate: tuple[tuple[str, float], ...] = (
        ("precise", 1e-3),
        ("leave-one-out", 1e-3),
        ("maml", 2e-3),
        ("maml+", 2e-3),
        ("", 3e-4),
    )
    n_tasks: int = 100
    photo_tasks: int = 100
    photo_size: int = 84
    photo_epochs: int = 0
    n_ways: tuple[int, ...] = (5, 10, 20, 30)
    n_shots: tuple[int, ...] = (5, 10)
    rs: tuple[int, ...] = (1, 2, 3)
    photo_ways: tuple[int, ...] = (5, 10, 15, 20)
    photo_shots: tuple[int, ...] = (5, 10, 20, 50)
    photo_rs: tuple[int, ...] = (1, 2, 3)
    maml_steps: int = 5
    maml_tasks: int = 0

    def for_photos(self) -> Profile:
        """Return the profile as it is where the data are photos."""
        return replace(
            self,
            epochs=self.photo_epochs or self.epochs,
            n_tasks=self.photo_tasks,
            n_ways=self.photo_ways,
            n_shots=self.photo_shots,
            rs=self.photo_rs,
        )

    @property
    def images(self) -> int:
        """Images passed through each network in meta-training."""
        return self.epochs * _EPOCH * self.n_way * (5 + self.n_query)

    def tasks_for(self, method: str) -> int:
        """Return how many tasks of a setting a method solves."""
        return (
            min(self.maml_tasks or self.n_tasks, self.n_tasks) if method == "MAML" else self.n_tasks
        )

    def plan(self, regime: str, r: int, seed: int = 0) -> TrainingPlan:
        """Return how a network is meta-trained: under a regime, on sets with r extra labels."""
        rates = dict(self.learning_rate)
        common: dict[str, Any] = {
            "regime": regime,
            "n_shot": 5,
            "r": (r,),
            "fresh": self.fresh,
            "learning_rate": rates.get(regime, rates[""]),
            "seed": seed,
        }
        if REGIMES.get(regime).learner.adapts:
            # Five classes and one inner step, as its authors train on Omniglot.
            shape: dict[str, Any] = {
                "n_way": 5,
                "n_query": 5,
                "inner_steps": 1,
                "tasks_per_step": 4,
            }
            # The support passes forward, back, and through the step again for the second order.
            passes = 5 * (5 * 3 * shape["inner_steps"] + shape["n_query"])
        else:
            reads = REGIMES.get(regime).reads_queries
            shape = {"n_way": self.n_way, "n_query": self.n_query if reads else 1}
            passes = shape["n_way"] * (5 + shape["n_query"])
        epochs = max(1, round(self.images / (passes * _EPOCH))) if self.fresh else self.epochs
        halve = self.halve_every or ceil(epochs / 3)
        return TrainingPlan(**common, **shape, n_tasks=_EPOCH, epochs=epochs, halve_every=halve)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as a dictionary that JSON can hold."""
        return {**asdict(self), "learning_rate": dict(self.learning_rate), "images": self.images}


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "quick",
            "minutes on two cores, for trying",
            epochs=1,
            n_way=10,
            n_query=5,
            n_tasks=25,
            photo_tasks=25,
            photo_size=32,
            n_ways=(5, 10),
            n_shots=(5,),
            photo_ways=(5, 10),
            photo_shots=(5, 10),
            photo_rs=(1,),
            maml_tasks=10,
        ),
        Profile(
            "cpu",
            "some hours on two cores",
            epochs=3,
            photo_epochs=1,
            photo_tasks=50,
            photo_size=32,
            maml_tasks=25,
        ),
        Profile(
            "paper",
            "the paper's budgets: 200 epochs over the same 100 tasks; for a GPU",
            epochs=200,
            fresh=False,
            halve_every=20,
            learning_rate=(("", 1e-3),),
            photo_shots=(5, 10, 20, 30, 40, 50),
            maml_steps=10,
        ),
    )
}


def find_profile(name: str) -> Profile:
    """Return a profile by its name; a wrong one lists the right ones."""
    check_choice("profile", name, PROFILES)
    return PROFILES[name]
