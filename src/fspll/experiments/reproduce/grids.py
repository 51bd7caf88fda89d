"""The paper's experiments as data: which rows in which settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fspll._common.errors import InputError
from fspll.experiments.reproduce.jobs import NetworkJob, ScoreJob, Source
from fspll.experiments.reproduce.outcomes import Place
from fspll.experiments.reproduce.profiles import Profile
from fspll.experiments.reproduce.rows import NOISE, PARAMETERS, TABLE, RowSpec
from fspll.tasks import TaskSettings

EXPERIMENTS = ("omniglot", "mini-imagenet", "noise", "parameters")
PHOTOS = ("mini-imagenet", "parameters")

_K = (1, 2, 3, 5, 7, 9, 12, 15, 20, 30)  # k of Eq. (3); the paper's choice is K2 - 1 = 9
_LAMBDA = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Asked:
    """A cell that a grid asks for, and the job that fills it."""

    row: RowSpec
    place: Place
    job: ScoreJob
    n_tasks: int


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
) -> list[Asked]:
    """Return every cell of an experiment.

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
    specs, places = _specs(experiment), _places(experiment, profile)
    if rows is not None:
        unknown = set(rows) - {spec.name for spec in specs}
        if unknown:
            known = ", ".join(dict.fromkeys(spec.name for spec in specs))
            raise InputError(f"{experiment} has no row {min(unknown)!r}; its rows are {known}")
        specs = [spec for spec in specs if spec.name in rows]
    if experiment in ("omniglot", "mini-imagenet"):
        for name, wanted in (("r", rs), ("n_way", n_ways), ("n_shot", n_shots)):
            places = [p for p in places if wanted is None or getattr(p, name) in wanted]
    if not places:
        raise InputError("nothing of the grid is left: no setting has the r, N2 and K2 asked for")
    data = source.load("test")
    fewest = int(data.samples_per_class.min())
    asked = []
    for place in places:
        if place.n_way > data.n_classes or place.n_shot >= fewest:
            raise InputError(
                f"{place.n_way}-way {place.n_shot}-shot tasks cannot be drawn from {data.name}: "
                f"it has {data.n_classes} classes of {fewest} or more"
            )
        n_query = min(15, fewest - place.n_shot)
        for spec in specs:
            r = 0 if spec.precise_test else place.r
            job = ScoreJob(
                source=source,
                network=_network(spec, source, profile, place.r, seed),
                method=spec.method,
                setting=TaskSettings(place.n_way, place.n_shot, n_query, r),
                seed=seed,
                n_neighbors=place.n_neighbors,
                manifold_weight=place.manifold_weight,
                maml_steps=profile.maml_steps if spec.method == "MAML" else 0,
            )
            asked.append(Asked(spec, place, job, profile.tasks_for(spec.method)))
    return asked


def _specs(experiment: str) -> list[RowSpec]:
    if experiment not in EXPERIMENTS:
        raise InputError(
            f"what to reproduce is one of {', '.join(EXPERIMENTS)} or all, not {experiment!r}"
        )
    return list({"noise": NOISE, "parameters": PARAMETERS}.get(experiment, TABLE))


def _places(experiment: str, profile: Profile) -> list[Place]:
    if experiment == "noise":
        return [Place(2, 10, 5)]
    if experiment == "parameters":
        varied = [(k, None) for k in _K] + [(None, weight) for weight in _LAMBDA]
        return [Place(r, 10, 10, k, weight) for r in profile.rs for k, weight in varied]
    return [
        Place(r, n_way, n_shot)
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
