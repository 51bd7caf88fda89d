"""miniImageNet and whatever has its layout: photos and one CSV file per split.

Vinyals et al., "Matching networks for one shot learning", 2016, in the split of Ravi and
Larochelle, 2017: 64 classes for training, 16 for validation, 20 for test, 600 photos each. The
files cannot be distributed; a folder with ``images/`` or ``images.zip`` and ``train.csv``,
``val.csv``, ``test.csv`` with the columns ``filename`` and ``label`` is what is read.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from fspll._common.arguments import check_choice, check_count
from fspll._common.errors import DataError
from fspll._common.reading import check_plain_file
from fspll._common.words import counted
from fspll.datasets.archives import Source, open_source
from fspll.datasets.base import DataSet, ImageSet
from fspll.datasets.cache import CacheEntry, Decoded, Progress, read_picture

N_CLASSES = {"train": 64, "val": 16, "test": 20}
# Which parts make up a split; neighbors on disk, so that every split is one slice.
SPLITS = {"train": slice(0, 1), "val": slice(1, 2), "test": slice(2, 3), "meta-train": slice(0, 2)}


class MiniImageNet(DataSet):
    """Photos in miniImageNet's layout; train and val together are for meta-training."""

    name = "mini-imagenet"
    title = "miniImageNet"
    what = "photos of 100 classes of ImageNet, in the usual split of 64, 16 and 20"
    origin = "Vinyals et al. (2016); split of Ravi and Larochelle (2017)"
    license = "ImageNet's terms of access"
    kind = "photos"
    advice = (
        "not downloadable because of ImageNet's license; place images/ or images.zip, "
        "train.csv, val.csv and test.csv in {folder}"
    )
    folder = "mini_imagenet"
    files = ("images.zip|images", *(f"{part}.csv" for part in N_CLASSES))

    def load(
        self, split: str = "train", *, root: Path | str | None = None, size: int | None = None
    ) -> ImageSet:
        """Load the 80 classes for meta-training or the 20 for meta-test."""
        part = "meta-train" if split == "train" else split
        return load_mini_imagenet(part, root=root, size=84 if size is None else size)

    def inspect(self, files: Mapping[str, Path], thorough: bool) -> str:
        """Verify the tables and that every photo is there; return how many there are."""
        parts = [read_table(files[f"{part}.csv"]) for part in N_CLASSES]
        check_disjoint(parts)
        for rows, (part, expected) in zip(parts, N_CLASSES.items(), strict=True):
            n_classes = len({row.label for row in rows})
            if n_classes != expected:
                raise DataError(
                    f"{files[f'{part}.csv']} has {n_classes} classes where {expected} were expected"
                )
        names = [row.filename for rows in parts for row in rows]
        pictures = files["images.zip"] if "images.zip" in files else files["images"]
        _check_photos(pictures, names, thorough=thorough)
        return f"{len(names)} photos of {sum(N_CLASSES.values())} classes"

    def describe(self, data: ImageSet) -> str:
        """Return the name for tables; a stand-in is never called miniImageNet."""
        name, size = data.name.split("/")[0], data.images.shape[1]
        if name.replace("-", "_").lower() in ("mini_imagenet", "miniimagenet"):
            return f"miniImageNet at {size}x{size}"
        return f"{name}: photos in miniImageNet's layout at {size}x{size} (not miniImageNet)"


MINI_IMAGENET = MiniImageNet()


@dataclass(frozen=True)
class Row:
    """One line of a CSV file; ``where`` names it as a spreadsheet would, the header being row 1."""

    filename: str
    label: str
    where: str


def load_mini_imagenet(
    split: str = "train",
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

    Examples
    --------
    One photo per split in miniImageNet's layout:

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = Path(folder) / "pets"
    ...     (root / "images").mkdir(parents=True)
    ...     for split, animal in (("train", "cat"), ("val", "cow"), ("test", "dog")):
    ...         with (root / f"{split}.csv").open("w") as table:
    ...             print("filename,label", f"{animal}.png,{animal}", sep=chr(10), file=table)
    ...         Image.new("RGB", (120, 90)).save(root / "images" / f"{animal}.png")
    ...     load_mini_imagenet("meta-train", root=root, size=32)
    ImageSet('pets/meta-train': 2 images of 32x32x3, 2 classes)
    """
    check_choice("split", split, SPLITS)
    check_count("size", size, 1)
    pictures, *tables = MINI_IMAGENET.require_files(root)
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
        name=f"{MINI_IMAGENET.path(root).resolve().name}/{split}",
        images=decoded.images[start : start + len(labels)],
        labels=labels - first_class,
        class_names=tuple(name for part in wanted for name in part["classes"]),
    )


def _decode(
    entry: CacheEntry, pictures: Path, tables: list[Path], size: int, progress: Progress | None
) -> Decoded:
    parts = [read_table(table) for table in tables]
    check_disjoint(parts)
    with open_source(pictures) as source:
        by_name = _by_name(source)
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


def _by_name(source: Source) -> dict[str, str]:
    """Return where each photo is, by the names that a table may give it."""
    # A zip may hold the photos under images/, and some copies have one folder per class.
    return {PurePosixPath(name).name: name for name in source.names} | {
        name: name for name in source.names
    }


def _read(source: Source, name: str, where: str, size: int) -> np.ndarray:
    try:
        data = source.read(name)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return read_picture(data, f"{where}: {name!r} in {source.path}", size=size, channels=3)


def read_table(path: Path) -> list[Row]:
    """Read the rows of a split."""
    rows: list[Row] = []
    check_plain_file(path)
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
    first_seen: dict[str, tuple[int, Row]] = {}
    for index, rows in enumerate(parts):
        for row in rows:
            part, first = first_seen.setdefault(row.label, (index, row))
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


def _check_photos(pictures: Path, names: list[str], *, thorough: bool) -> None:
    """Refuse when a photo that the tables name is missing or (``thorough``) cannot be read."""
    with open_source(pictures) as source:
        stored = _by_name(source)
        missing = [name for name in names if name not in stored]
        if missing:
            raise DataError(
                f"{len(missing)} of {counted(len(names), 'photo')} "
                f"{'is' if len(missing) == 1 else 'are'} missing in {pictures}; "
                f"the first is '{missing[0]}'"
            )
        for name in names if thorough else ():
            if not source.read(stored[name]):
                raise DataError(f"the photo '{name}' in {pictures} is empty")
