"""Tasks with predictions, for Label Studio's importer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fspll._common.errors import InputError
from fspll._common.files import check_no_input, write_beside
from fspll.annotations.addresses import is_remote
from fspll.labeling.label_studio.config import LABEL, SAMPLE, Control, write_config
from fspll.labeling.label_studio.predicting import model_version, predict
from fspll.labeling.result import Labeling

ROOT = "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT"


def tasks_with_predictions(
    result: Labeling, address: Callable[[int], str] | None = None
) -> list[dict[str, Any]]:
    """Return a task per sample, with the label as a prediction; the least sure come first.

    The questions of the review list lead, in its order; then the other samples follow, the least
    sure first, and at last those that a person has answered. Label Studio shows tasks in the order
    of the file.

    Parameters
    ----------
    result : Labeling
    address : callable, optional
        From a row to where a browser finds the picture. By default that is the address from which
        the picture came, or else one of Label Studio's local storage; see
        :func:`local_storage`.

    Returns
    -------
    list of dict
        ``data`` has the picture, the text or nothing else, the ``sample``'s name and its
        ``candidates``.
    """
    show = _shown(result)
    control = Control(LABEL, show, show, {str(one): str(one) for one in result.classes.tolist()})
    version = model_version(result)
    address = address or _usual_address(result)
    tasks = []
    for row in order_by_doubt(result):
        data = {SAMPLE: result.names[row]}
        if show == "image":
            data["image"] = address(row)
        elif show == "text" and result.texts is not None:
            data["text"] = result.texts[row]
        data["candidates"] = ", ".join(map(str, result.candidates.names(row)))
        tasks.append({"data": data, "predictions": [predict(result, row, control, version)]})
    return tasks


def order_by_doubt(result: Labeling) -> list[int]:
    """Return the rows: those of the review list, the others by confidence, then the answered."""
    asked = dict.fromkeys(question.index for question in result.review)
    answered = result.answered if result.answered.size else [False] * len(result)
    others = sorted(
        (row for row in range(len(result)) if row not in asked),
        key=lambda row: (bool(answered[row]), float(result.confidence[row])),
    )
    return [*asked, *others]


def labeling_config(result: Labeling) -> str:
    """Return the configuration of a project for these tasks."""
    return write_config(result.classes.tolist(), _shown(result))


def local_storage(result: Labeling) -> tuple[Path, Path] | None:
    """Return what Label Studio needs to show the pictures of this machine.

    Returns
    -------
    root : Path
        What ``LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT`` must be: what it is here, if the pictures
        are below that, or the folder above theirs.
    folder : Path
        The folder to add to the project as local storage, below it. None instead of both where no
        picture is of this machine only.
    """
    local = [
        _absolute(path).parent
        for row, path in enumerate(result.pictures or ())
        if not (result.files and is_remote(result.files[row]))
    ]
    if not local:
        return None
    try:
        folder = Path(os.path.commonpath(local))
    except ValueError:  # on several drives
        raise InputError(
            "the pictures are on several drives, of which Label Studio can serve only one"
        ) from None
    root = _absolute(Path(os.environ.get(ROOT) or folder.parent))
    return root if root in folder.parents else folder.parent, folder


def write_tasks(result: Labeling, path: Path) -> Path:
    """Write the tasks as JSON, and the configuration beside them with the ending ``.xml``.

    Returns
    -------
    Path
        That of the configuration.
    """
    config = path.with_suffix(".xml")
    text = json.dumps(tasks_with_predictions(result), ensure_ascii=False, indent=1)
    contents = {path: text, config: labeling_config(result) + "\n"}
    for target, content in contents.items():
        with write_beside(target) as beside:
            beside.write_text(content, encoding="utf-8")
    return config


def check_target(path: Path, inputs: list[Path]) -> None:
    """Raise if :func:`write_tasks` would not write JSON, or would replace what is read."""
    if path.suffix.lower() != ".json":
        raise InputError(f"Label Studio takes tasks as JSON; let the name of {path} end in .json")
    for target in (path, path.with_suffix(".xml")):
        check_no_input(target, inputs)


def _shown(result: Labeling) -> str:
    seen = result.files is not None and all(map(is_remote, result.files))
    if result.pictures is not None or seen:
        return "image"
    return SAMPLE if result.texts is None else "text"


def _usual_address(result: Labeling) -> Callable[[int], str]:
    storage = local_storage(result)

    def address(row: int) -> str:
        if result.files is not None and is_remote(result.files[row]):
            return result.files[row]
        assert result.pictures is not None
        assert storage is not None
        path = _absolute(result.pictures[row]).relative_to(storage[0])
        return f"/data/local-files/?d={quote(path.as_posix())}"

    return address


def _absolute(path: Path) -> Path:
    """Return the whole path, without following links, of which Label Studio knows nothing."""
    return Path(os.path.normpath(path.absolute()))
