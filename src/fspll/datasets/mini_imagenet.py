"""miniImageNet and whatever has its layout: photos and one CSV file a split.

Vinyals et al., "Matching networks for one shot learning", 2016, in the split of Ravi and
Larochelle, 2017: 64 classes for training, 16 for validation, 20 for test, 600 photos each. The
files cannot be distributed; a folder with ``images/`` or ``images.zip`` and ``train.csv``,
``val.csv``, ``test.csv`` with the columns ``filename`` and ``label`` is what is read.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from fspll._common.errors import DataError, InputError
from fspll._common.files import data_dir
from fspll.datasets.archives import Source, open_source
from fspll.datasets.cache import CacheEntry, Decoded, Progress, read_picture
from fspll.datasets.images import ImageSet

PARTS = ("train", "val", "test")
# Which parts make up a split; neighbors on disk, so that every split is one slice.
SPLITS = {"train": slice(0, 1), "val": slice(1, 2), "test": slice(2, 3), "meta-train": slice(0, 2)}


@dataclass(frozen=True)
class Row:
    """One line of a CSV file; ``where`` names it as a spreadsheet would, the header being row 1."""

    filename: str
    label: str
    where: str


def load_mini_imagenet(
    split: Literal["train", "val", "test", "meta-train"] = "train",
    *,
    root: Path | str | None = None,
    size: int = 84,
    progress: Progress | None = None,
) -> ImageSet:
    """Load a split of miniImageNet as a memory-mapped view, never a copy.

    The first load decodes the photos of all splits into one cache file (1.3 GB for the full set):
    the short side is scaled to ``size`` and the long side cropped in the center.

    Parameters
    ----------
    split : {"train", "val", "test", "meta-train"}
        ``"meta-train"`` is train and val together, 80 classes.
    root : path, optional
        Folder with the CSV files and ``images.zip`` or ``images/``; by default ``mini_imagenet``
        in the data folder.
    size : int
        Height and width of the loaded images.
    progress : callable, optional
        Called as ``progress(done, total)`` while decoding; without one a bar is shown on a
        terminal.

    Returns
    -------
    ImageSet
        ``images`` of shape (n, size, size, 3), read-only, in blocks of one class; named after the
        folder, so that a stand-in keeps its own name.
    """
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(map(repr, SPLITS))}, not {split!r}")
    if size < 1:
        raise InputError(f"size must be at least 1, not {size}")
    folder = data_dir() / "mini_imagenet" if root is None else Path(root).expanduser()
    pictures, tables = _find_files(folder)
    entry = CacheEntry.of(f"mini_imagenet-{size}", [pictures, *tables], size=size)
    decoded = entry.load()
    if decoded is None:
        decoded = _decode(entry, pictures, tables, size, progress)
    parts = decoded.about["parts"]
    before, wanted = parts[: SPLITS[split].start], parts[SPLITS[split]]
    first_class = sum(len(part["classes"]) for part in before)
    start = sum(len(part["labels"]) for part in before)
    labels = np.concatenate([np.array(part["labels"], dtype=np.int64) for part in wanted])
    return ImageSet(
        name=f"{folder.resolve().name}/{split}",
        images=decoded.images[start : start + len(labels)],
        labels=labels - first_class,
        class_names=tuple(name for part in wanted for name in part["classes"]),
    )


def _find_files(folder: Path) -> tuple[Path, list[Path]]:
    """Return the zip or folder of photos, and the three CSV files."""
    pictures = next((p for p in (folder / "images.zip", folder / "images") if p.exists()), None)
    tables = [folder / f"{part}.csv" for part in PARTS]
    missing = [path.name for path in tables if not path.is_file()]
    if pictures is None:
        missing.insert(0, "images.zip (or a folder images)")
    if pictures is None or missing:
        raise DataError(
            f"miniImageNet was not found: {', '.join(missing)} missing in {folder}; put the "
            "photos and train.csv, val.csv, test.csv there, pass another root, or set FSPLL_DATA "
            "to the folder that holds mini_imagenet/"
        )
    return pictures, tables


def _decode(
    entry: CacheEntry, pictures: Path, tables: list[Path], size: int, progress: Progress | None
) -> Decoded:
    parts = [read_table(table) for table in tables]
    check_disjoint(parts)
    with open_source(pictures) as source:
        # A zip may hold the photos under images/, and some copies have a folder a class.
        by_name = {PurePosixPath(name).name: name for name in source.names}
        by_name.update((name, name) for name in source.names)
        readers = []
        about: list[dict[str, list]] = []
        first_class = 0
        for rows in parts:
            classes = sorted({row.label for row in rows})
            number = {name: first_class + i for i, name in enumerate(classes)}
            rows = sorted(rows, key=lambda row: row.label)  # stable: photos keep their order
            for row in rows:
                if row.filename not in by_name:
                    raise DataError(f"{row.where}: {row.filename!r} is not in {pictures}")
                readers.append(partial(_read, source, by_name[row.filename], row.where, size))
            about.append({"classes": classes, "labels": [number[row.label] for row in rows]})
            first_class += len(classes)
        return entry.build(readers, (size, size, 3), {"parts": about}, progress=progress)


def _read(source: Source, name: str, where: str, size: int) -> np.ndarray:
    try:
        data = source.read(name)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return read_picture(data, f"{where}: {name!r} in {source.path}", size=size, channels=3)


def read_table(path: Path) -> list[Row]:
    """Read the rows of a split."""
    rows: list[Row] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            for column in ("filename", "label"):
                if column not in header:
                    raise DataError(
                        f"{path} has no column {column!r}; its first row is {','.join(header)!r} "
                        "and 'filename,label' was expected"
                    )
            columns = header.index("filename"), header.index("label")
            for cells in reader:
                if not cells:
                    continue
                where = f"{path}, row {reader.line_num}, column"
                values = [cells[i].strip() if i < len(cells) else "" for i in columns]
                for column, value in zip(("filename", "label"), values, strict=True):
                    if not value:
                        raise DataError(f"{where} {column!r}: the cell is empty")
                rows.append(Row(values[0], values[1], f"{where} 'filename'"))
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a CSV file: {error}") from error
    if not rows:
        raise DataError(f"{path} lists no image")
    return rows


def check_disjoint(parts: list[list[Row]]) -> None:
    """Refuse a class in two splits and a photo listed twice: both leak test data."""
    photos: dict[str, Row] = {}
    home: dict[str, tuple[int, Row]] = {}
    for index, rows in enumerate(parts):
        for row in rows:
            part, first = home.setdefault(row.label, (index, row))
            if part != index:
                here, there = (r.where.replace("'filename'", "'label'") for r in (row, first))
                raise DataError(
                    f"{here}: class {row.label!r} is in two splits; it is also in {there}"
                )
            if row.filename in photos:
                raise DataError(
                    f"{row.where}: {row.filename!r} is listed twice, first in "
                    f"{photos[row.filename].where}"
                )
            photos[row.filename] = row
