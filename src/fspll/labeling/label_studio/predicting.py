"""Suggestions for a running Label Studio: what its ML-backend protocol asks for."""

from __future__ import annotations

import hashlib
from typing import Any

from fspll._common.errors import InputError
from fspll.labeling.label_studio.config import Control, read_config
from fspll.labeling.label_studio.matching import SampleIndex
from fspll.labeling.result import Labeling


def model_version(result: Labeling) -> str:
    """Return a name that changes with the labels.

    Label Studio asks for predictions anew where it has none of this version.
    """
    said = ";".join(
        f"{label}:{confidence:.3f}"
        for label, confidence in zip(result.labels.tolist(), result.confidence, strict=True)
    )
    return f"fspll {hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def predict(result: Labeling, row: int | None, control: Control, version: str) -> dict[str, Any]:
    """Return the prediction for a sample; one without a result where there is none."""
    found = [] if row is None else control.result(result.labels[row])
    score = min(max(float(result.confidence[row]), 0.0), 1.0) if found else 0.0
    return {"model_version": version, "score": score, "result": found}


def setup(result: Labeling, request: Any) -> dict[str, Any]:
    """Answer ``POST /setup``: the version, if the project has labels of the result.

    Parameters
    ----------
    result : Labeling
    request : dict
        The body. Only ``schema`` is read; ``access_token`` is nothing to us.
    """
    schema = request.get("schema") if isinstance(request, dict) else None
    read_config(schema, result.classes.tolist())
    return {"model_version": model_version(result)}


def predict_tasks(
    result: Labeling, tasks: Any, config: Any, index: SampleIndex | None = None
) -> dict[str, Any]:
    """Answer ``POST /predict``: one prediction per task, in their order.

    Parameters
    ----------
    result : Labeling
    tasks : list of dict
        ``tasks`` of the body.
    config : str
        ``label_config`` of the body.
    index : SampleIndex, optional
        Of this result; made anew by default.

    Returns
    -------
    dict
        ``results`` has a prediction per task. That of a task without a sample, or whose label the
        project does not have, has no result.

    Raises
    ------
    InputError
        When these are no tasks, or the project does not fit the result.
    """
    if not isinstance(tasks, list):
        raise InputError("a request for predictions has a list of tasks in 'tasks'")
    control = read_config(config, result.classes.tolist())
    index = SampleIndex(result) if index is None else index
    version = model_version(result)
    rows = [index.find(task, control.key) for task in tasks]
    results = [predict(result, row, control, version) for row in rows]
    return {"results": results, "model_version": version}
