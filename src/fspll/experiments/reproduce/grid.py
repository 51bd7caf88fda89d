"""The paper's experiments as data: which rows under which conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fspll._common.errors import InputError
from fspll.experiments.methods import Maml, Method, Prototypes, find_method
from fspll.experiments.reproduce.jobs import NetworkJob, ScoreJob, Source
from fspll.experiments.reproduce.profiles import Profile
from fspll.experiments.reproduce.results import CEILING, DEFAULT, MANY_SHOT, Cell, Condition
from fspll.tasks import TaskSettings

EXPERIMENTS = ("omniglot", "mini-imagenet", "noise", "parameters")
PHOTOS = ("mini-imagenet", "parameters")

_K = (1, 2, 3, 5, 7, 9, 12, 15, 20, 30)  # k of Eq. (3); the paper's choice is K2 - 1 = 9
_LAMBDA = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class RowSpec:
    """A row of a table.

    Attributes
    ----------
    name : str
        As readers know it.
    method : str
        What solves the meta-test tasks, by the name that ``methods.find_method`` knows.
    network : str
        The regime that its network was meta-trained under; "untrained"; or "" for none.
    features : str
        As in :class:`~fspll.experiments.reproduce.results.Cell`.
    precise_training : bool
        Whether meta-training sees true labels, so that one network serves every r.
    precise_test : bool
        Whether the support of the meta-test tasks carries true labels.
    """

    name: str
    method: str
    network: str = ""
    features: str = ""
    precise_training: bool = False
    precise_test: bool = False


_PLAIN = (
    RowSpec("FsPLL", "FsPLL", "fspll"),
    RowSpec("FsPLL-nM", "FsPLL-nM", "fspll-nm"),
    RowSpec("PN", "PN", "pn"),
    RowSpec("MAML", "MAML", "maml"),
    *(RowSpec(name, name, "fspll", "trained") for name in MANY_SHOT),
    *(RowSpec(name, name, "untrained", "untrained") for name in MANY_SHOT),
)
_PLUS = (
    RowSpec("FsPLL+", "FsPLL", "precise", precise_training=True),
    RowSpec("PN+", "PN", "precise", precise_training=True),
    RowSpec("MAML+", "MAML", "maml+", precise_training=True),
)
_OURS = (RowSpec(DEFAULT, "Evidence", "leave-one-out"), RowSpec(CEILING, "ceiling"))

TABLE = (*_PLAIN, *_PLUS, *_OURS)
NOISE = (
    *(row for row in TABLE if row.name in ("PN", "FsPLL", "PN+", "FsPLL+")),
    RowSpec("PN++", "PN", "precise", precise_training=True, precise_test=True),
    RowSpec("FsPLL++", "FsPLL", "precise", precise_training=True, precise_test=True),
)
PARAMETERS = (RowSpec("FsPLL", "FsPLL", "fspll"),)


def grid(
    experiment: str,
    profile: Profile,
    source: Source,
    *,
    seed: int = 0,
    rows: Sequence[str] | None = None,
    rs: Sequence[int] | None = None,
    n_ways: Sequence[int] | None = None,
    n_shots: Sequence[int] | None = None,
) -> list[Cell]:
    """Return every cell of an experiment, with the job that measures it.

    Parameters
    ----------
    experiment : str
        One of :data:`EXPERIMENTS`.
    profile : Profile
    source : Source
        What tasks are made of.
    seed : int
        Of the networks and of the tasks.
    rows, rs, n_ways, n_shots : sequences, optional
        Only these rows (by name), r, N2 and K2.
    """
    if source.dataset.kind == "photos":
        profile = profile.for_photos()
    specs, conditions = _specs(experiment), _conditions(experiment, profile)
    if rows is not None:
        unknown = set(rows) - {spec.name for spec in specs}
        if unknown:
            known = ", ".join(dict.fromkeys(spec.name for spec in specs))
            raise InputError(f"{experiment} has no row {min(unknown)!r}; its rows are {known}")
        specs = [spec for spec in specs if spec.name in rows]
    if experiment in ("omniglot", "mini-imagenet"):
        for name, wanted in (("r", rs), ("n_way", n_ways), ("n_shot", n_shots)):
            conditions = [c for c in conditions if wanted is None or getattr(c, name) in wanted]
    if not conditions:
        raise InputError("nothing of the grid is left: no setting has the r, N2 and K2 asked for")
    data = source.load("test")
    fewest = int(data.samples_per_class.min())
    cells = []
    for condition in conditions:
        n_way, n_shot = condition.n_way, condition.n_shot
        if n_way > data.n_classes or n_shot >= fewest:
            raise InputError(
                f"{n_way}-way {n_shot}-shot tasks cannot be drawn from {data.name}: "
                f"it has {data.n_classes} classes of {fewest} or more"
            )
        for spec in specs:
            r = 0 if spec.precise_test else condition.r
            job = ScoreJob(
                source=source,
                network=_network(spec, source, profile, condition.r, seed),
                method=_method(spec, condition, profile),
                setting=TaskSettings(n_way, n_shot, min(15, fewest - n_shot), r),
                seed=seed,
                n_tasks=profile.tasks_for(spec.method),
            )
            cells.append(Cell(spec.name, spec.features, condition, job=job))
    return cells


def _method(spec: RowSpec, condition: Condition, profile: Profile) -> Method:
    method = find_method(spec.method)
    if isinstance(method, Maml):
        return replace(method, steps=profile.maml_steps)
    names = ("n_neighbors", "manifold_weight")
    varied = {name: getattr(condition, name) for name in names}
    varied = {name: value for name, value in varied.items() if value is not None}
    return method.with_settings(**varied) if isinstance(method, Prototypes) else method


def _specs(experiment: str) -> list[RowSpec]:
    if experiment not in EXPERIMENTS:
        raise InputError(
            f"what to reproduce is one of {', '.join(EXPERIMENTS)} or all, not {experiment!r}"
        )
    return list({"noise": NOISE, "parameters": PARAMETERS}.get(experiment, TABLE))


def _conditions(experiment: str, profile: Profile) -> list[Condition]:
    if experiment == "noise":
        return [Condition(2, 10, 5)]
    if experiment == "parameters":
        varied = [(k, None) for k in _K] + [(None, weight) for weight in _LAMBDA]
        return [Condition(r, 10, 10, k, weight) for r in profile.rs for k, weight in varied]
    return [
        Condition(r, n_way, n_shot)
        for r in profile.rs
        for n_way in profile.n_ways
        for n_shot in profile.n_shots
    ]


def _network(
    spec: RowSpec, source: Source, profile: Profile, r: int, seed: int
) -> NetworkJob | None:
    if not spec.network:
        return None
    if spec.network == "untrained":
        return NetworkJob(source, None, seed)
    plan = profile.plan(spec.network, 0 if spec.precise_training else r, seed)
    return NetworkJob(source, plan, seed)
