"""Profiles: how much work a reproduction may be, the same for every method unless it says so.

The budget of meta-training is counted in images passed through the network, because a task of one
method holds more of them than a task of another: the default method reads no queries, and MAML
passes its support set three times for every inner step. Networks that need more to reach a plateau
have a :class:`Budget` of their own.
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
class Budget:
    """How the networks of one regime are trained, where that differs from the profile.

    Attributes
    ----------
    regime : str
    r : int, optional
        Only networks for this r.
    images : int, optional
        Passed through the network.
    settings : tuple of (str, value)
        Of the :class:`~fspll.metalearning.TrainingPlan`, e.g. ``(("n_way", 20), ("epochs", 30))``.

    Examples
    --------
    >>> longer = Budget("fspll", r=3, images=1_800_000)
    >>> profile = replace(PROFILES["cpu"], budgets=(longer,))
    >>> [profile.plan("fspll", r).epochs for r in (2, 3)]
    [3, 30]
    """

    regime: str
    r: int | None = None
    images: int | None = None
    settings: tuple[tuple[str, Any], ...] = ()


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
    budgets, photo_budgets : tuples of Budget
        Networks that are trained otherwise, on characters and on photos; of several that fit, the
        later one wins.
    photo_tasks, photo_size, photo_epochs : int
        Meta-test tasks per setting, height and width in pixels, and epochs, where the data are
        photos; 0 epochs means as many as for characters.
    many_shots, many_shot_tasks : int
        From this K2 on only so many of the tasks; 0 tasks are as many as at fewer shots.
    photo_encoder : str
        A frozen encoder whose features, as they are and adapted to the meta-training classes, get
        rows of their own where the data are photos; "" for none.
    n_ways, n_shots, rs : tuples of int
        The Omniglot grid: N2, K2, r.
    photo_ways, photo_shots, photo_rs : tuples of int
        The miniImageNet grid.
    maml_steps : int
        Steps of adaptation at test.
    maml_test, photo_maml_test : tuples of (str, int, int, float)
        Regime ("" for all), least N2, steps of adaptation at test, and their rate in units of the
        one in training; of several that fit, the later one wins.
    maml_per_way : bool
        Whether MAML has a network for every N2, trained on tasks of as many classes.
    maml_tasks : int
        Only so many of the tasks for MAML, whose rows cost more than all others together; 0 is as
        many as the others.
    maml_samples, photo_maml_samples : int
        MAML's rows are left out where a task has more support samples (N2 K2); 0 is never.
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
    budgets: tuple[Budget, ...] = ()
    photo_budgets: tuple[Budget, ...] = ()
    n_tasks: int = 100
    photo_tasks: int = 100
    photo_size: int = 84
    photo_epochs: int = 0
    many_shots: int = 30
    many_shot_tasks: int = 0
    photo_encoder: str = ""
    n_ways: tuple[int, ...] = (5, 10, 20, 30)
    n_shots: tuple[int, ...] = (5, 10)
    rs: tuple[int, ...] = (1, 2, 3)
    photo_ways: tuple[int, ...] = (5, 10, 15, 20)
    photo_shots: tuple[int, ...] = (5, 10, 20, 30, 40, 50)
    photo_rs: tuple[int, ...] = (1, 2, 3)
    maml_steps: int = 5
    maml_test: tuple[tuple[str, int, int, float], ...] = ()
    photo_maml_test: tuple[tuple[str, int, int, float], ...] = ()
    maml_per_way: bool = False
    maml_tasks: int = 0
    maml_samples: int = 0
    photo_maml_samples: int = 0

    def for_photos(self) -> Profile:
        """Return the profile as it is where the data are photos."""
        return replace(
            self,
            epochs=self.photo_epochs or self.epochs,
            n_tasks=self.photo_tasks,
            n_ways=self.photo_ways,
            n_shots=self.photo_shots,
            rs=self.photo_rs,
            budgets=self.photo_budgets,
            maml_test=self.photo_maml_test,
            maml_samples=self.photo_maml_samples,
        )

    @property
    def images(self) -> int:
        """Images passed through each network in meta-training."""
        return self.epochs * _EPOCH * self.n_way * (5 + self.n_query)

    def tasks_for(self, *, n_shot: int = 0, adapts: bool = False) -> int:
        """Return how many tasks of a setting are solved, by MAML where ``adapts``."""
        limits = [self.n_tasks]
        if adapts and self.maml_tasks:
            limits.append(self.maml_tasks)
        if n_shot >= self.many_shots and self.many_shot_tasks:
            limits.append(self.many_shot_tasks)
        return min(limits)

    def adaptation(self, regime: str, n_way: int) -> tuple[int, float]:
        """Return MAML's steps at test and their rate, for a network of a regime and an N2."""
        found = (self.maml_steps, 1.0)
        for name, least, steps, factor in self.maml_test:
            if name in ("", regime) and n_way >= least:
                found = (steps, factor)
        return found

    def plan(self, regime: str, r: int, seed: int = 0, n_way: int | None = None) -> TrainingPlan:
        """Return how a network is meta-trained: under a regime, on sets with r extra labels.

        ``n_way`` is the N2 of the tasks that it is for, where MAML has a network for each.
        """
        adapts = REGIMES.get(regime).learner.adapts
        rates = dict(self.learning_rate)
        settings: dict[str, Any] = {"n_way": self.n_way, "n_query": self.n_query}
        if adapts:  # five classes and one inner step, as its authors train on Omniglot
            settings = {"n_way": 5, "n_query": 5, "inner_steps": 1, "tasks_per_step": 4}
        elif not REGIMES.get(regime).reads_queries:
            settings["n_query"] = 1
        settings |= {"n_shot": 5, "learning_rate": rates.get(regime, rates[""])}
        images = self.images if self.fresh else None
        for budget in self.budgets:
            if budget.regime == regime and budget.r in (None, r):
                settings |= dict(budget.settings)
                images = budget.images or images
        if adapts and self.maml_per_way and n_way is not None:
            settings["n_way"] = n_way
        settings |= {"regime": regime, "r": (r,), "seed": seed, "n_tasks": _EPOCH}
        plan = TrainingPlan(fresh=self.fresh, **{**settings, "epochs": 1})
        epochs = settings.get("epochs") or self.epochs
        if images is not None and "epochs" not in settings:
            epochs = max(1, round(images / (images_per_task(plan) * _EPOCH)))
        halve = settings.get("halve_every") or self.halve_every or ceil(epochs / 3)
        return replace(plan, epochs=epochs, halve_every=halve)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as a dictionary that JSON can hold."""
        return {**asdict(self), "learning_rate": dict(self.learning_rate), "images": self.images}


def images_per_task(plan: TrainingPlan) -> int:
    """Return how many images pass through a network for a task of its training."""
    passes = 1
    if REGIMES.get(plan.regime).learner.adapts:
        # Each step is made once, and the second order goes through it twice again.
        passes = (1 if plan.first_order else 3) * plan.inner_steps
    return plan.n_way * (plan.n_shot * passes + plan.n_query)


# Chosen on meta-training classes. With true labels one large step, differentiated through, learns
# fastest. With candidate sets one step mostly learns how often each label is a candidate, and
# several smaller ones are needed to undo that; without the second order they are affordable.
_PLUS_STEPS = (("inner_steps", 1), ("inner_rate", 5.0))
_SET_STEPS = (("inner_steps", 5), ("inner_rate", 0.5), ("first_order", True))
_MAML_TASKS = (("n_way", 20), ("n_query", 5), ("tasks_per_step", 1), ("learning_rate", 1e-3))
_MAML_EPOCHS = {1: 8, 2: 12, 3: 16}

_CPU_BUDGETS = (
    Budget("precise", images=540_000),
    Budget("fspll", r=3, images=1_080_000),
    Budget("maml+", settings=(*_MAML_TASKS, *_PLUS_STEPS, ("epochs", 15))),
    *(
        Budget(regime, r, settings=(*_MAML_TASKS, *_SET_STEPS, ("epochs", epochs)))
        for regime in ("maml", "maml-total")
        for r, epochs in _MAML_EPOCHS.items()
    ),
)
# MAML on photos, chosen on held-out meta-training classes at 64x64: rates above 0.05 overshoot, and
# one large step of the second order, best on characters, learns less than five small ones, as
# MAML's authors take. With r = 3, tasks of five classes taught nothing (a loss of log 5 after 200
# of them), tasks of 20 a little.
_PHOTO_WAYS = ((1, 5), (2, 20), (3, 20))  # classes of a meta-training task, by r
_PHOTO_MAML = (
    *(("n_query", 5), ("tasks_per_step", 1), ("learning_rate", 1e-3)),
    *(("inner_steps", 5), ("inner_rate", 0.01), ("first_order", True)),
)
# A few photos hardly tell one candidate from another. On held-out meta-training classes (32x32,
# r = 3) 20 shots in training had 28% of the queries right, 5 shots 22%, true labels 29%.
_PHOTO_BUDGETS = (
    Budget("leave-one-out", settings=(("n_shot", 20),)),
    *(
        Budget(regime, r, images=images, settings=(("n_way", n_way), *_PHOTO_MAML))
        for regime, r, n_way, images in (
            # It still learns after as many pictures as all others have.
            ("maml+", None, 5, 240_000),
            *(
                (regime, r, n_way, 120_000)
                for regime in ("maml", "maml-total")
                for r, n_way in _PHOTO_WAYS
            ),
        )
    ),
)
# Ten steps, of a rate that grows with the classes: the gradient of a class falls with their number.
_CPU_MAML_TEST = tuple(
    (regime, n_way, 10, round(share * n_way, 3))
    for regime, share in (("maml", 0.03), ("maml-total", 0.03), ("maml+", 0.002))
    for n_way in (5, 10, 20, 30)
)
_PHOTO_MAML_TEST = tuple(("", n_way, 10, round(0.2 * n_way, 3)) for n_way in (5, 10, 15, 20))

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
            photo_epochs=2,
            photo_tasks=50,
            photo_size=64,
            many_shot_tasks=25,
            photo_encoder="efficientnet-lite0",
            budgets=_CPU_BUDGETS,
            photo_budgets=_PHOTO_BUDGETS,
            maml_test=_CPU_MAML_TEST,
            photo_maml_test=_PHOTO_MAML_TEST,
            maml_tasks=25,
            photo_maml_samples=50,
        ),
        Profile(
            "paper",
            "the paper's budgets: 200 epochs over the same 100 tasks; for a GPU",
            epochs=200,
            fresh=False,
            halve_every=20,
            learning_rate=(("", 1e-3),),
            photo_encoder="efficientnet-lite0",
            maml_steps=10,
        ),
    )
}


def find_profile(name: str) -> Profile:
    """Return a profile by its name; a wrong one lists the right ones."""
    check_choice("profile", name, PROFILES)
    return PROFILES[name]
