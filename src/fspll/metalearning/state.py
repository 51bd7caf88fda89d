"""The state of a training run in one file, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fspll._common.errors import CheckpointError, InputError
from fspll._common.tensorfiles import FileFormat, as_json, digest
from fspll.datasets.base import ImageSet
from fspll.metalearning.plan import TrainingPlan

FORMAT = FileFormat("fspll-training", version=1, noun="a training state")
_DATA = re.compile(r"ImageSet\('(.*)': (.*)\)")  # the repr that names the data of a run


@dataclass
class Progress:
    """How far a run has come.

    Attributes
    ----------
    step : int
        Optimizer steps done.
    best_figure, best_epoch : float, int
        The best score on held-out classes and its epoch; -1 before there is one.
    best : dict of str to Tensor
        The network of the best epoch; empty without held-out classes.
    """

    step: int = 0
    best_figure: float = -1.0
    best_epoch: int = -1
    best: dict[str, Tensor] | None = None

    def keep_if_better(self, score: float, epoch: int, network: nn.Module) -> None:
        """Remember the network when its score beats the best so far."""
        if score > self.best_figure:
            self.best_figure, self.best_epoch = score, epoch
            self.best = {name: t.detach().clone() for name, t in network.state_dict().items()}


def save_state(
    path: Path,
    plan: TrainingPlan,
    data: ImageSet,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
) -> None:
    """Write everything that a resumed run needs; tasks follow from the seed and the step."""
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    for index, parameter in enumerate(_parameters(optimizer)):
        for name, value in optimizer.state[parameter].items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{name}"] = value
    tensors |= {f"best.{name}": tensor for name, tensor in (progress.best or {}).items()}
    metadata = {
        "plan": plan.to_dict(),
        "data": repr(data),
        "step": progress.step,
        "best_figure": progress.best_figure,
        "best_epoch": progress.best_epoch,
    }
    FORMAT.write(path, tensors, metadata | {"sha256": _check_sum(tensors, metadata)})


def load_state(
    path: Path,
    plan: TrainingPlan,
    data: ImageSet,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> Progress:
    """Put a saved state into a new network and optimizer of the same plan.

    Raises
    ------
    CheckpointError
        When the file is damaged or belongs to another plan, whose message names the setting, or to
        another data set.
    """
    tensors, metadata = FORMAT.read(path)
    expected = metadata.pop("sha256", None)  # states of earlier versions have none
    if expected not in (None, _check_sum(tensors, metadata)):
        raise CheckpointError(
            f"{path} is damaged: its contents do not match their checksum; choose another folder, "
            f"or start over with restart=True"
        )
    _check_plan(path, plan, data, metadata)
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "optimizer": {}, "best": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = tensor
    try:
        # Values are copied into the tensors of the new network, which keep their memory layout: the
        # resumed run then takes the same kernels and ends at the same bits.
        network.load_state_dict(parts["network"])
        parameters = _parameters(optimizer)
        for name, value in parts["optimizer"].items():
            index, _, entry = name.partition(".")
            parameter = parameters[int(index)]
            if value.shape == parameter.shape:
                value = torch.zeros_like(parameter).copy_(value)
            optimizer.state[parameter][entry] = value
        return Progress(
            step=int(metadata["step"]),
            best_figure=float(metadata["best_figure"]),
            best_epoch=int(metadata["best_epoch"]),
            best=parts["best"] or None,
        )
    except (KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {str(error).splitlines()[0]}") from error


def _check_sum(tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> str:
    """Return a checksum of all that a state holds: a damaged one would end in another network."""
    text = json.dumps(as_json(metadata), sort_keys=True)
    return hashlib.sha256((digest(tensors) + text).encode()).hexdigest()


def _check_plan(path: Path, plan: TrainingPlan, data: ImageSet, metadata: dict[str, Any]) -> None:
    wanted, found = plan.to_dict(), metadata.get("plan")
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is damaged: it does not say which plan it belongs to")
    try:
        found = TrainingPlan.from_dict(found).to_dict()  # settings that are newer than the file
    except (InputError, TypeError) as error:
        raise CheckpointError(f"{path} belongs to a plan that cannot be used: {error}") from error
    advice = "choose another folder, or start over with restart=True"
    for name, value in wanted.items():
        if found.get(name) != value:
            # A value that a command line writes in another way is named with its option.
            again = f"{name} = " if isinstance(value, bool | list) else ""
            raise CheckpointError(
                f"{path} belongs to a run with {name} = {found.get(name)!r}, not {again}{value!r}; "
                f"{advice}"
            )
    trained_on = metadata.get("data", repr(data))
    if trained_on != repr(data):
        found, given = (_DATA.sub(r"\1 (\2)", str(text)) for text in (trained_on, repr(data)))
        raise CheckpointError(f"{path} belongs to a run on {found}, not on {given}; {advice}")


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
