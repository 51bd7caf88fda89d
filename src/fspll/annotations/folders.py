"""A folder with one sub-folder per class, with an extra table of what else a picture might be."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fspll._common.errors import DataError
from fspll._common.pictures import has_picture_suffix
from fspll._common.words import printable
from fspll.annotations.collecting import Opinion, Options, collect
from fspll.annotations.grid import ALTERNATIVE_NAMES, SAMPLE_NAMES, find_column, list_columns
from fspll.annotations.samples import Annotations
from fspll.annotations.splitting import Splitter
from fspll.annotations.tables import read_table

TABLES = ("alternatives.csv", "alternatives.tsv")


def read_folder(root: Path, options: Options, alternatives: Path | None = None) -> Annotations:
    """Read a folder that has one sub-folder of pictures per class.

    Parameters
    ----------
    root : Path
        The pictures of class ``cat`` lie in ``root/cat``; a class may lie deeper, as in
        ``root/Greek/alpha``, and is then called ``Greek/alpha``.
    options : Options
        The columns of the table (``sample`` or ``file``, ``candidates``), its delimiter and
        encoding, and ``classes``.
    alternatives : Path, optional
        A table with the columns ``file`` and ``alternatives``; by default ``alternatives.csv`` in
        the folder, if there is one. A file is named by its path in the folder, or by its name alone
        if no other has it. The name of its folder is a candidate in any case.
    """
    if not root.is_dir():
        state = "is a file" if root.exists() else "does not exist"
        raise DataError(f"{root} {state}; expected a folder with one sub-folder per class")
    pictures = sorted(_pictures(root))
    if not pictures:
        raise DataError(
            f"{root} has no pictures in sub-folders; expected a file of labels, or a folder with "
            "one sub-folder per class"
        )
    if alternatives is None:
        alternatives = next((root / name for name in TABLES if (root / name).is_file()), None)
    extra: dict[str, list[str]] = {}
    understood = ["one folder per class"]
    if alternatives is not None:
        extra, splitter = _read_alternatives(alternatives, root, pictures, options)
        understood += [f"alternatives from {alternatives.name}", str(splitter)]
    opinions = (
        Opinion(
            name=printable(picture),
            labels=dict.fromkeys([_class_of(picture), *extra.get(picture, [])]),
            place=printable(picture),
            file=picture,
        )
        for picture in pictures
    )
    name = printable(root.name or str(root))
    return collect(name, opinions, options, understood=tuple(understood))


def _pictures(root: Path) -> Iterator[str]:
    """Yield the pictures' paths in the folder; hidden files and those of other kinds are left."""
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for name in files:
            if name.startswith(".") or not has_picture_suffix(name):
                continue
            if Path(folder) == root:
                raise DataError(
                    f"the picture {name!r} lies directly in {root}; every picture has to be in a "
                    "sub-folder that is named after its class"
                )
            yield (Path(folder) / name).relative_to(root).as_posix()


def _class_of(picture: str) -> str:
    return printable(PurePosixPath(picture).parent.as_posix())


def _read_alternatives(
    path: Path, root: Path, pictures: list[str], options: Options
) -> tuple[dict[str, list[str]], Splitter]:
    """Return what else each picture might be, by its path in the folder, and how it was split."""
    grid = read_table(path, encoding=options.encoding)
    wanted = options.candidates[0] if options.candidates else None
    column = find_column(grid.header, wanted, ALTERNATIVE_NAMES, grid.source)
    file = find_column(grid.header, options.file or options.sample, SAMPLE_NAMES, grid.source)
    if column is None or file is None:
        raise DataError(
            f"{path.name} needs the columns 'file' and 'alternatives'; {list_columns(grid.header)}"
        )
    cells = [row[column] for row in grid.rows]
    where = f"{path.name}, column {grid.header[column]!r}"
    classes = set(map(_class_of, pictures))
    splitter = Splitter.choose(options.delimiter, cells, where, labels=classes)
    known = _Pictures(root, pictures)
    found: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    for row, name in enumerate(grid.texts(file, "file name")):
        picture = known.find(name, grid.place(row, file))
        if picture in seen:
            raise DataError(
                f"{path.name}, {seen[picture]} and {grid.where[row]} both name {picture!r}; write "
                "its alternatives in one row"
            )
        seen[picture] = grid.where[row]
        found[picture] = splitter.labels(grid.rows[row][column], grid.place(row, column))
    return found, splitter


class _Pictures:
    """The pictures of a folder, found by their path or by their name alone."""

    def __init__(self, root: Path, pictures: list[str]) -> None:
        self.root = root
        self.paths = set(pictures)
        self.by_name: dict[str, list[str]] = defaultdict(list)
        for picture in pictures:
            self.by_name[PurePosixPath(picture).name].append(picture)

    def find(self, name: str, where: str) -> str:
        path = name.replace("\\", "/").removeprefix("./")
        if path in self.paths:
            return path
        same = self.by_name.get(path, [])
        if not same:
            raise DataError(f"{where}: there is no picture {name!r} in {self.root}")
        if len(same) > 1:
            raise DataError(
                f"{where}: {len(same)} pictures in {self.root} are called {name!r}; write the "
                f"folder too, as in {same[0]!r}"
            )
        return same[0]
