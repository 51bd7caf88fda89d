"""The paper's experiments as data: which rows under which conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fspll._common.errors import InputError
from fspll.embeddings.registry import list_encoders
from fspll.experiments.methods import Maml, Method, Prototypes, find_method
from fspll.experiments.reproduce.jobs import (
    EmbeddingJob,
    HeadJob,
    NetworkJob,
    ScoreJob,
    Source,
)
from fspll.experiments.reproduce.profiles import Profile
from fspll.experiments.reproduce.results import (
    CEILING,
    DEFAULT,
    DEFAULT_PLUS,
    MAML_TOTAL,
    MANY_SHOT,
    PHOTO_FEATURES,
    Cell,
    Condition,
)
from fspll.metalearning.head_tasks import HeadPlan
from fspll.rectifiers.registry import DEFAULT as DEFAULT_RECTIFIER
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
        The regime that its network was meta-trained under; "untrained"; "encoder" or "head", for
        the profile's frozen encoder as it is or adapted; or "" for none.
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
_OURS = (
    RowSpec(MAML_TOTAL, "MAML", "maml-total"),
    RowSpec(DEFAULT, DEFAULT_RECTIFIER, "leave-one-out"),
    RowSpec(DEFAULT_PLUS, DEFAULT_RECTIFIER, "precise", precise_training=True),
    RowSpec(CEILING, "ceiling"),
)

TABLE = (*_PLAIN, *_PLUS, *_OURS)
ON_PHOTO_FEATURES = tuple(
    RowSpec(name, method, network, features)
    for network, features in zip(("encoder", "head"), PHOTO_FEATURES, strict=True)
    for name, method in (
        (DEFAULT, DEFAULT_RECTIFIER),
        ("FsPLL", "FsPLL"),
        *((name, name) for name in MANY_SHOT),
    )
)
NOISE = (
    *(row for row in TABLE if row.name in ("PN", "FsPLL", "PN+", "FsPLL+")),
    RowSpec("PN++", "PN", "precise", precise_training=True, precise_test=True),
    RowSpec("FsPLL++", "FsPLL", "precise", precise_training=True, precise_test=True),
)
# FsPLL+ is not in the paper's figure: k and lambda need features that tell something to matter.
PARAMETERS = tuple(row for row in TABLE if row.name in ("FsPLL", "FsPLL+"))


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
    specs, conditions = _specs(experiment, profile, source), _conditions(experiment, profile)
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
            method = _method(spec, condition, profile)
            most = profile.maml_samples
            if method.adapts_network and most and n_way * n_shot > most:
                continue
            job = ScoreJob(
                source=source,
                network=_network(spec, source, profile, condition, seed),
                method=method,
                setting=TaskSettings(n_way, n_shot, min(15, fewest - n_shot), r),
                seed=seed,
                n_tasks=profile.tasks_for(n_shot=n_shot, adapts=method.adapts_network),
            )
            cells.append(Cell(spec.name, spec.features, condition, job=job))
    return cells


def _method(spec: RowSpec, condition: Condition, profile: Profile) -> Method:
    method = find_method(spec.method)
    if isinstance(method, Maml):
        steps, factor = profile.adaptation(spec.network, condition.n_way)
        return replace(method, steps=steps, rate_factor=factor)
    names = ("n_neighbors", "manifold_weight")
    varied = {name: getattr(condition, name) for name in names}
    varied = {name: value for name, value in varied.items() if value is not None}
    return method.with_settings(**varied) if isinstance(method, Prototypes) else method


def missing_encoder(experiment: str, profile: Profile, source: Source) -> str:
    """Return why rows on the features of a frozen encoder are left out; "" where they are not."""
    asked = experiment == "mini-imagenet" and source.dataset.kind == "photos"
    if not asked or not profile.photo_encoder:
        return ""
    about = next(one for one in list_encoders() if one.name == profile.photo_encoder)
    return "" if about.missing is None else str(about.missing)


def _specs(experiment: str, profile: Profile, source: Source) -> list[RowSpec]:
    if experiment not in EXPERIMENTS:
        raise InputError(
            f"what to reproduce is one of {', '.join(EXPERIMENTS)} or all, not {experiment!r}"
        )
    specs = list({"noise": NOISE, "parameters": PARAMETERS}.get(experiment, TABLE))
    photos = experiment == "mini-imagenet" and source.dataset.kind == "photos"
    if photos and profile.photo_encoder and not missing_encoder(experiment, profile, source):
        specs += ON_PHOTO_FEATURES
    return specs


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
    spec: RowSpec, source: Source, profile: Profile, condition: Condition, seed: int
) -> EmbeddingJob | None:
    if not spec.network:
        return None
    if spec.network == "untrained":
        return NetworkJob(source, None, seed)
    if spec.network == "encoder":
        return HeadJob(source, profile.photo_encoder)
    if spec.network == "head":
        return HeadJob(source, profile.photo_encoder, HeadPlan(r=(condition.r,), seed=seed))
    r = 0 if spec.precise_training else condition.r
    plan = profile.plan(spec.network, r, seed, n_way=condition.n_way)
    return NetworkJob(source, plan, seed)
