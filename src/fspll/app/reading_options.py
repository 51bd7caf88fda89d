"""What a person chose on the page *New*, checked, completed, and as options of a run.

Files are named by what they are called in the upload: no option is a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fspll._common.errors import InputError
from fspll.annotations.grid import plain_name
from fspll.annotations.outline import Outline, read_outline
from fspll.app.fields import field
from fspll.app.uploaded_run import UploadedRun
from fspll.app.uploads import Upload

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
_TEXT_NAMES = ("text", "texts", "sentence", "comment", "message", "content")
# Options that go to the reader as they are; other texts; and those that are true or false.
_AS_GIVEN = ("sample", "annotator", "file", "delimiter", "combine", "sheet", "excluded", "encoding")
_OTHERS = ("table", "samples", "text", "features", "features_columns", "rename", "unlabeled")
_TEXTS = (*_AS_GIVEN, *_OTHERS, "encoder")
_FLAGS = ("merge_similar", "skip_bad", "standardize", "excel", "marks")


def check_options(given: Mapping[str, Any]) -> None:
    """Refuse options that the page does not have, and values of another kind."""
    unknown = sorted(set(given) - {*_TEXTS, *_FLAGS, "candidates"})
    if unknown:
        raise InputError(f"there is no option {unknown[0]!r:.60}")
    for name, value in given.items():
        if name in _FLAGS and not isinstance(value, bool | None):
            raise InputError(f"{field(name)} is true or false, not {value!r:.40}")
        if name in _TEXTS and not isinstance(value, str | None):
            raise InputError(f"{field(name)} is a text, not {value!r:.40}")
    if not isinstance(given.get("candidates"), list | None):
        value = f"{given['candidates']!r:.40}"
        raise InputError(f"{field('candidates')} is a list of texts, not {value}")
    if given.get("encoding") not in (None, *ENCODINGS):
        raise InputError(f"{field('encoding')} is one of {', '.join(ENCODINGS)}")


def find_table(upload: Upload, given: Mapping[str, Any]) -> Path | None:
    """Return the file of labels: that which was chosen, or the first that may be one."""
    if given.get("table") is not None:
        return upload.path(given["table"])
    tables = [name for name in upload.files if not name.lower().endswith((".npy", ".npz"))]
    name = next(iter(tables or [one for one in upload.files if one.lower().endswith(".npz")]), None)
    return None if name is None else upload.path(name)


def open_outline(table: Path, given: Mapping[str, Any]) -> Outline:
    """Return the columns of a table, as it is to be opened."""
    return read_outline(table, encoding=given.get("encoding"), sheet=given.get("sheet"))


def complete(upload: Upload, given: Mapping[str, Any], outline: Outline) -> dict[str, Any]:
    """Return what was chosen, with the kind of the samples and where they are filled in."""
    kind = given.get("samples")
    if kind not in (None, *KINDS):
        raise InputError(f"samples are pictures, texts or vectors, not {kind!r:.40}")
    text, features = given.get("text"), given.get("features")
    arrays = [name for name in upload.files if name.lower().endswith((".npy", ".npz"))]
    table = find_table(upload, given)
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
    table = find_table(upload, given)
    assert table is not None
    kind = given["samples"]
    reading = {name: given.get(name) for name in (*_AS_GIVEN, "marks")}
    reading["candidates"] = given.get("candidates") or None
    if given.get("rename") is not None:
        reading["rename"] = upload.path(given["rename"])
    if kind == "texts":
        reading["text"] = given["text"]
        if given["text"] is None:
            raise InputError(f"choose the column of the texts: {field('text')}")
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
