"""How an upload is understood, before anything is learned: for a person to look at and correct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError, FsPLLError, InputError
from fspll._common.words import beginning, counted, listed
from fspll.annotations.grid import plain_name
from fspll.annotations.outline import Outline, list_sheets, read_outline
from fspll.annotations.samples import Annotations
from fspll.annotations.variants import similar_note
from fspll.app.encoder_choice import list_choices, usual_encoder
from fspll.app.fields import for_page
from fspll.app.uploaded_run import UploadedRun
from fspll.app.uploads import Upload
from fspll.diagnosis.sets import describe_sets
from fspll.labeling.samples import find_pictures

KINDS = {"pictures": "image", "texts": "text", "vectors": "vector"}
# Each of them decodes a file in one pass; not every codec of Python does.
ENCODINGS = (
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "latin-1",
    "mac-roman",
    "shift-jis",
    "euc-kr",
    "gb18030",
    "big5",
)
_SAMPLES, _LABELS, _WORDS, _NAMES = 12, 12, 300, 5
_TEXT_NAMES = ("text", "texts", "sentence", "comment", "message", "content")
_TEXT_OPTIONS = ("sample", "annotator", "file", "delimiter", "combine", "sheet", "excluded")
_FLAGS = ("merge_similar", "skip_bad", "standardize", "excel")
_OTHERS = ("table", "samples", "candidates", "text", "features", "features_columns", "marks")
_KNOWN = {*_TEXT_OPTIONS, *_FLAGS, *_OTHERS, "encoding", "unlabeled", "rename", "encoder"}


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
    _check(given)
    table = _table(upload, given)
    if table is None:
        return found
    found |= {"table": table.name, "columns": [], "rows": [], "choices": [], "sheets": []}
    try:
        found["sheets"] = list_sheets(table)
        outline = _read_outline(table, given)
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
    _check(given)
    table = _table(upload, given)
    if table is None:
        raise InputError("there is no table of candidates yet; add one")
    with upload.lock:
        given = complete(upload, given, _read_outline(table, given))
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
                "skip_bad=True"
            )
        return replace(make_run(upload, {**given, "encoder": encoder}), speak=speak)


def complete(upload: Upload, given: Mapping[str, Any], outline: Outline) -> dict[str, Any]:
    """Return what was chosen, with the kind of the samples and where they are filled in."""
    kind = given.get("samples")
    if kind not in (None, *KINDS):
        raise InputError(f"samples are pictures, texts or vectors, not {kind!r:.40}")
    text, features = given.get("text"), given.get("features")
    arrays = [name for name in upload.files if name.lower().endswith((".npy", ".npz"))]
    table = _table(upload, given)
    others = [name for name in arrays if table is None or name != table.name]
    holds_vectors = table is not None and table.suffix.lower() in (".npz", ".mat")
    named = [name for name in outline.columns if plain_name(name) in _TEXT_NAMES]
    if kind is None and upload.n_pictures:
        kind = "pictures"
    elif kind is None and (features or given.get("features_columns") or others or holds_vectors):
        kind = "vectors"
    elif kind is None and (text or named):
        kind = "texts"
    if kind == "texts" and text is None:
        text = named[0] if named else None
    in_table = given.get("features_columns") or holds_vectors
    if kind == "vectors" and features is None and others and not in_table:
        features = others[0]
    return {**given, "samples": kind, "text": text, "features": features}


def make_run(upload: Upload, given: Mapping[str, Any]) -> UploadedRun:
    """Return a run on the upload's own files, with options that were checked and completed."""
    table = _table(upload, given)
    assert table is not None
    kind = given["samples"]
    reading = {name: given.get(name) for name in (*_TEXT_OPTIONS, "marks")}
    reading["candidates"] = given.get("candidates") or None
    reading["encoding"] = given.get("encoding")
    if given.get("rename") is not None:
        reading["rename"] = upload.path(given["rename"])
    if kind == "texts":
        reading["text"] = given["text"]
        if given["text"] is None:
            raise InputError("choose the column of the texts: text=...")
    elif kind == "vectors":
        features = given["features"]
        reading["features"] = None if features is None else upload.path(features)
        reading["features_columns"] = given.get("features_columns")
    labeling: dict[str, Any] = {"skip_bad": bool(given.get("skip_bad"))}
    if kind == "pictures":
        labeling["images"] = upload.pictures
    if kind == "vectors":
        labeling["standardize"] = bool(given.get("standardize"))
    if given.get("encoder") is not None:
        labeling["encoder"] = given["encoder"]
    return UploadedRun(
        table,
        {name: value for name, value in reading.items() if value is not None}
        | {"unlabeled": given.get("unlabeled") or "skip"}
        | {"merge_similar": bool(given.get("merge_similar"))},
        labeling,
        {"excel": bool(given.get("excel")), "pictures_below": upload.folder},
        folder=upload.folder,
        closed=upload.closed,
    )


def _check(given: Mapping[str, Any]) -> None:
    unknown = sorted(set(given) - _KNOWN)
    if unknown:
        raise InputError(f"there is no option {unknown[0]!r:.60}")
    for name in _FLAGS:
        if not isinstance(given.get(name, False), bool | None):
            raise InputError(f"{name}=... is true or false, not {given[name]!r:.40}")
    if not isinstance(given.get("marks"), bool | None):
        raise InputError(f"marks=... is true or false, not {given['marks']!r:.40}")
    for name in ("table", "encoding", "sheet", "text", "features", "rename", "encoder", "samples"):
        if not isinstance(given.get(name), str | None):
            raise InputError(f"{name}=... is a text, not {given[name]!r:.40}")
    if given.get("encoding") not in (None, *ENCODINGS):
        raise InputError(f"encoding=... is one of {', '.join(ENCODINGS)}")


def _read_outline(table: Path, given: Mapping[str, Any]) -> Outline:
    return read_outline(table, encoding=given.get("encoding"), sheet=given.get("sheet"))


def _table(upload: Upload, given: Mapping[str, Any]) -> Path | None:
    """Return the file of labels: that which was chosen, or the first that may be one."""
    if given.get("table") is not None:
        return upload.path(given["table"])
    tables = [name for name in upload.files if not name.lower().endswith((".npy", ".npz"))]
    name = next(iter(tables or [one for one in upload.files if one.lower().endswith(".npz")]), None)
    return None if name is None else upload.path(name)


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
        raise InputError("there are no vectors; choose features=FILE or features_columns=COLUMNS")
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
