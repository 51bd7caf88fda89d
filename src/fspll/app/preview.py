"""How an upload is understood, before anything is learned: for a person to look at and correct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError, FsPLLError, InputError
from fspll._common.words import beginning, counted, listed
from fspll.annotations.outline import list_sheets
from fspll.annotations.samples import Annotations
from fspll.annotations.variants import similar_note
from fspll.app.encoder_choice import list_choices, usual_encoder
from fspll.app.fields import field, for_page
from fspll.app.reading_options import (
    KINDS,
    check_options,
    complete,
    find_table,
    make_run,
    open_outline,
)
from fspll.app.uploaded_run import UploadedRun
from fspll.app.uploads import Upload
from fspll.diagnosis.sets import describe_sets
from fspll.labeling.samples import find_pictures

_SAMPLES, _LABELS, _WORDS, _NAMES = 12, 12, 300, 5


def look(upload: Upload, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the files of an upload are understood, with what a page offers to correct it.

    What is wrong with them is a sentence in ``problem``: the page goes on.

    Parameters
    ----------
    upload : Upload
    given : mapping
        What the person chose, by the names of :data:`fspll.app.fields.FIELDS`, with ``table`` and
        ``samples`` ("pictures", "texts" or "vectors"); what is missing or None is found.
    """
    found: dict[str, Any] = {
        "files": [{"name": name, "bytes": size} for name, size in upload.files.items()],
        "pictures": upload.n_pictures,
        "left_out": upload.left_out,
        "encoders": list_choices(),
        "problem": "",
    }
    check_options(given)
    table = find_table(upload, given)
    if table is None:
        return found
    found |= {"table": table.name, "columns": [], "rows": [], "choices": [], "sheets": []}
    try:
        found["sheets"] = list_sheets(table)
        outline = open_outline(table, given)
        found |= vars(outline)
        given = complete(upload, given, outline)
        found |= {name: given[name] for name in ("samples", "text", "features")}
        data = make_run(upload, given).read()
        found |= _understood(upload, data)
        found |= _samples(upload, data, given["samples"])
        found["encoder"] = given.get("encoder") or usual_encoder(given["samples"], upload.shown)
    except FsPLLError as error:
        found["problem"] = for_page(str(error), upload.folder)
    return found


def prepare_run(
    upload: Upload, given: Mapping[str, Any], speak: Callable[[str], str] = str
) -> UploadedRun:
    """Return the run that a person asks for, or refuse it while it can be corrected.

    Parameters
    ----------
    upload, given
        As of :func:`look`.
    speak : callable
        As of :class:`fspll.labeling.run.Run`.
    """
    check_options(given)
    table = find_table(upload, given)
    if table is None:
        raise InputError("there is no table of candidates yet; add one")
    with upload.lock:
        given = complete(upload, given, open_outline(table, given))
        data, kind = make_run(upload, given).read(), given["samples"]
        found = _samples(upload, data, kind)
        encoder = given.get("encoder") or usual_encoder(kind, upload.shown)
        known = {one["name"]: one for one in list_choices()}
        if encoder not in known or known[encoder]["modality"] not in (KINDS[kind], None):
            raise InputError(f"{encoder!r:.60} is no encoder of {kind}")
        if known[encoder]["missing"]:
            raise InputError(known[encoder]["missing"])
        if found["missing"] and not given.get("skip_bad"):
            raise InputError(
                f"{counted(found['missing'], 'picture')} of {len(data):,} cannot be found: "
                f"{listed(found['missing_names'], _NAMES)}; add them, or leave them out with "
                f"{field('skip_bad')}"
            )
        return replace(make_run(upload, {**given, "encoder": encoder}), speak=speak)


def _understood(upload: Upload, data: Annotations) -> dict[str, Any]:
    alike = similar_note(data)
    return {
        "summary": for_page(data.summary, upload.folder),
        "notes": [for_page(alike, upload.folder)] if alike else [],
        "n_samples": len(data),
        "n_classes": len(data.classes),
        "diagnosis": describe_sets(data),
        "first": [_sample(data, row) for row in range(min(_SAMPLES, len(data)))],
    }


def _sample(data: Annotations, row: int) -> dict[str, Any]:
    """Return what the page shows of a sample."""
    start, stop = data.votes.indptr[row : row + 2]
    both = zip(data.votes.indices[start:stop], data.votes.data[start:stop], strict=True)
    labels = [{"label": data.classes[column], "votes": int(count)} for column, count in both]
    return {
        "name": data.names[row],
        "origin": data.origins[row],
        "text": None if data.texts is None else beginning(data.texts[row], _WORDS),
        "candidates": labels[:_LABELS],
        "more": max(0, len(labels) - _LABELS),
    }


def _samples(upload: Upload, data: Annotations, kind: str | None) -> dict[str, Any]:
    """Return which pictures are there, and remember those that the page shows."""
    if kind is None:
        raise InputError(
            "say what the samples are: add their pictures, or choose the column of their texts or "
            "where their vectors are"
        )
    if kind == "vectors" and data.features is None:
        raise InputError(
            f"there are no vectors; choose {field('features')} or {field('features_columns')}"
        )
    if kind != "pictures":
        upload.shown = []
        return {"missing": 0, "missing_names": []}
    paths, missing = find_pictures(data, upload.pictures)
    if len(missing) == len(paths):
        named = data.files if data.files is not None else data.names
        raise DataError(
            f"none of the pictures that the table names can be found among the "
            f"{counted(upload.n_pictures, 'uploaded picture')}: {listed(named, _NAMES)}"
        )
    shown: list[Path | None] = [None if row in missing else path for row, path in enumerate(paths)]
    upload.shown = shown[:_SAMPLES]
    unused = upload.n_pictures - len({path for path in shown if path is not None})
    names = [data.names[row] for row in missing]
    return {"missing": len(missing), "missing_names": names[: 2 * _NAMES], "unused": unused}
