"""Adapt an encoder and write it to a folder: what ``fspll train --encoder`` does.

It takes seconds once samples are encoded, so that an interrupted run simply starts again; encoded
samples are kept. The checkpoint appears when it is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from fspll._common.errors import DataError
from fspll._common.locks import lock_folder
from fspll._common.progress import Progress
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.encoders.head import AdaptedEncoder
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.stored import save_encoder
from fspll.metalearning.head_tasks import Episode, HeadPlan
from fspll.metalearning.heads import FittedHead, fit_head
from fspll.metalearning.trainer import MODEL, STATE, check_folder


class Adapted(NamedTuple):
    """An adapted encoder, its file, and what its head was chosen by."""

    encoder: NetworkEncoder
    model: Path
    head: FittedHead


def check_target(out: Path, *, restart: bool) -> None:
    """Raise if a folder holds what an adapted encoder would replace."""
    check_folder(out)
    if (out / STATE).exists():
        raise DataError(f"{out} holds the training run of a network; choose another folder")
    if (out / MODEL).exists() and not restart:
        raise DataError(
            f"{out / MODEL} is there and would be replaced; choose another folder, or start over "
            "with restart=True"
        )


def adapt_encoder(
    base: Encoder | None,
    features: Tensor,
    groups: Sequence[Sequence[Episode]],
    plan: HeadPlan,
    out: Path | str,
    *,
    data: str = "",
    restart: bool = False,
    progress: Progress | None = None,
) -> Adapted:
    """Fit a head to earlier tasks and write the adapted encoder to ``out/model.safetensors``.

    Parameters
    ----------
    base : Encoder or None
        What made the features; None where vectors are adapted as they are.
    features : Tensor of shape (n, m)
    groups : sequence of sequences of Episode
        From :func:`~fspll.metalearning.head_tasks.tasks_of_classes` or ``tasks_of_sets``.
    plan : HeadPlan
        How the tasks were drawn, for the file.
    out : path
        The folder.
    data : str
        What was learned from, for the file.
    restart : bool
        Replace an earlier adapted encoder.
    progress : callable, optional
        Called as ``progress(done, total)``.
    """
    out = Path(out)
    check_target(out, restart=restart)
    head = fit_head(features, groups, progress)
    training = {
        "plan": plan.to_dict(),
        "data": data,
        "steps": 0,  # a closed form
        "shrinkage": head.shrinkage,
        "held_out": head.held_out._asdict(),
        "unadapted": head.unadapted._asdict(),
    }
    about = {"training": training}
    if base is None:
        encoder = NetworkEncoder(head.network, None, "features, adapted", metadata=about)
    else:
        encoder = AdaptedEncoder(base, head.network, metadata=about)
    with lock_folder(out):
        save_encoder(out / MODEL, encoder)
    return Adapted(encoder, out / MODEL, head)
