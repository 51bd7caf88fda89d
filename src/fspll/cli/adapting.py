"""``fspll train --encoder``: adapt a frozen encoder to earlier tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from fspll._common.errors import InputError
from fspll.cli.console import note, out

if TYPE_CHECKING:
    import torch

    from fspll.embeddings.encoders.base import Encoder
    from fspll.metalearning.head_tasks import Episode, HeadPlan

# Options of `fspll train` that a head has as well, besides those that only a head has.
_SHARED = {
    *("folder", "dataset", "root", "regime", "r", "p", "n_way", "n_shot", "n_tasks", "seed"),
    *("device", "restart"),
}
HEAD_ONLY = ("encoder", "candidates", "images", "text", "features", "features_columns")


def check_options(context: typer.Context, encoder: str | None) -> dict[str, Any]:
    """Return the options that were given, by name; refuse those that are of no use."""
    given = {
        name: value
        for name, value in context.params.items()
        if (source := context.get_parameter_source(name)) is not None
        and source.name not in ("DEFAULT", "DEFAULT_MAP")
    }
    for name in given:
        option = f"--{name.replace('_', '-')}"
        if encoder is None and name in HEAD_ONLY:
            raise InputError(f"{option} is for adapting an encoder; name it with --encoder")
        if encoder is not None and name not in (*_SHARED, *HEAD_ONLY):
            raise InputError(
                f"{option} does not go with --encoder: its head is computed in one step, not "
                "trained in many"
            )
    return given


class Loaded(NamedTuple):
    """What a head is fitted to: features of an encoder, tasks on them, and where they are from."""

    encoder: Encoder | None
    features: torch.Tensor
    groups: list[list[Episode]]
    name: str
    plan: HeadPlan  # as it suits the data


@dataclass(frozen=True)
class Earlier:
    """The earlier data: a data set or folder of images by class, or a file of candidate sets.

    A folder that ``fspll label`` wrote stands for its table of labels.
    """

    dataset: str
    root: Path | None = None
    candidates: tuple[str, ...] = ()
    images: Path | None = None
    text: str | None = None
    features: Path | None = None
    features_columns: str | None = None

    def load(
        self, encoder: str, plan: HeadPlan, device: str, context: typer.Context, *, exact: bool
    ) -> Loaded:
        """Encode the data and draw tasks; ``exact`` ones have ``n_shot`` samples per class."""
        from fspll.labeling.folder import LABELS, is_result

        path = Path(self.dataset).expanduser()
        if is_result(path):  # as other commands take the folder for what is in it
            path = path / LABELS
        if path.is_file():
            return self._load_table(path, encoder, plan, device)
        for name in ("candidates", "images", "text", "features", "features_columns"):
            if getattr(self, name) not in (None, ()):
                raise InputError(
                    f"--{name.replace('_', '-')} is for a file of labels, but --dataset "
                    f"{self.dataset} is not a file"
                )
        return self._load_classes(encoder, plan, device, context, exact)

    def _load_classes(
        self, encoder: str, plan: HeadPlan, device: str, context: typer.Context, exact: bool
    ) -> Loaded:
        import numpy as np

        from fspll._common.progress import show_progress
        from fspll._common.words import counted
        from fspll.datasets.registry import load_images
        from fspll.embeddings.features import embed_images
        from fspll.embeddings.registry import load_embedding
        from fspll.metalearning.head_tasks import check_classes, suited_to, tasks_of_classes

        if encoder == "features":
            raise InputError("--encoder features needs a file of labels with vectors as --dataset")
        base = load_embedding(encoder, device)
        data = load_images(self.dataset, "train", root=self.root)
        if data.note:
            note(f"learning from {data.note}", context)
        families = data.class_families()
        if not exact:
            usable, suited = suited_to(data.labels, plan)
            if suited.n_shot < plan.n_shot:
                note(f"tasks take {suited.n_shot} samples per class, not {plan.n_shot}", context)
            if not usable.all():
                fewer = counted(len(np.unique(data.labels[~usable])), "class", "classes")
                note(f"left out: {fewer} with fewer than {suited.n_shot} samples", context)
                data = replace(data, images=data.images[usable], labels=data.labels[usable])
            plan = suited
        check_classes(data.labels, plan, data.class_names, families)
        with show_progress("encoding") as progress:
            features = embed_images(base, data, progress)
        groups = tasks_of_classes(features, data.labels, plan, data.class_names, families)
        return Loaded(base, features, groups, data.name, plan)

    def _load_table(self, path: Path, encoder: str, plan: HeadPlan, device: str) -> Loaded:
        import torch

        from fspll._common.progress import show_progress
        from fspll.annotations.reading import read_annotations
        from fspll.labeling.samples import locate, prepare
        from fspll.metalearning.head_tasks import tasks_of_sets

        if plan.precise:
            raise InputError(
                "--regime precise reads true labels, but a file holds candidate sets; leave it out"
            )
        read = read_annotations(
            path,
            candidates=self.candidates or None,
            text=self.text,
            features=self.features,
            features_columns=self.features_columns,
        )
        out.print(read.summary, soft_wrap=True, markup=False)
        found = locate(read, encoder, self.images, standardize=False, device=device)
        with show_progress("encoding") as progress:
            made = prepare(read, found, skip_bad=False, cache=True, progress=progress)
        features = torch.from_numpy(made.features).float()
        groups = tasks_of_sets(features, read.candidates, plan)
        return Loaded(made.encoder, features, groups, path.name, plan)


def adapt(
    context: typer.Context,
    given: dict[str, Any],
    earlier: Earlier,
    encoder: str,
    folder: Path,
    r: tuple[int, ...],
    *,
    device: str,
    restart: bool,
) -> None:
    """Fit the head, and say what it was chosen by and how to use it."""
    from fspll._common.devices import choose_device
    from fspll._common.progress import show_progress
    from fspll.metalearning import REGIMES
    from fspll.metalearning.adapting import adapt_encoder, check_target
    from fspll.metalearning.head_tasks import HeadPlan

    names = ("p", "n_way", "n_shot", "n_tasks", "seed")
    settings = {name: given[name] for name in names if name in given}
    if "regime" in given:
        REGIMES.get(given["regime"])
        settings["regime"] = REGIMES.find(given["regime"])
    plan = HeadPlan(r=r, **settings)
    check_target(folder, restart=restart)
    choose_device(device)
    found = earlier.load(encoder, plan, device, context, exact="n_shot" in given)
    with show_progress("adapting") as progress:
        adapted = adapt_encoder(
            found.encoder,
            found.features,
            found.groups,
            found.plan,
            folder,
            data=found.name,
            restart=restart,
            progress=progress,
        )
    head = adapted.head
    before, after = (f"{one.inside:.1%}" for one in (head.unadapted, head.held_out))
    sentence = (
        f"on held-out classes, the likeliest class of a sample that was left out is among its "
        f"candidates in {after} of cases (with the encoder as it is: {before})"
    )
    if head.changes_nothing:
        sentence = "no head was better on held-out classes than the encoder as it is"
    out.print(sentence, soft_wrap=True)
    out.print(f"adapted encoder: {adapted.model}", soft_wrap=True, markup=False)
