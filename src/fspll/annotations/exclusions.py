"""Labels that a sample does not have: a column that says "not A" leaves all the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fspll._common.errors import DataError
from fspll.annotations.collecting import Opinion, Options
from fspll.annotations.grid import Grid, find_column
from fspll.annotations.splitting import Splitter

EXCLUDED_NAMES = ("excluded", "exclude", "exclusions", "not", "ruled_out")
_NOT = "not "


def find_excluded(grid: Grid, options: Options) -> int | None:
    """Return the place of the column of labels that samples do not have, or None."""
    return find_column(grid.header, options.excluded, EXCLUDED_NAMES, grid.source)


def apply_exclusions(
    grid: Grid, column: int, opinions: Iterable[Opinion], options: Options
) -> Iterator[Opinion]:
    """Yield the opinions without the labels that their rows exclude.

    A row that gives no candidates leaves every label that the file mentions, or that
    ``options.classes`` names, but those that it excludes.
    """
    cells = [_without_not(row[column]) for row in grid.rows]
    where = f"{grid.source}, column {grid.header[column]!r}"
    given = list(opinions)
    labels = {label for one in given for label in one.labels}.union(options.classes or ())
    splitter = Splitter.choose(options.delimiter, cells, where, labels=labels)
    excluded = {
        grid.where[row]: set(options.renamed(splitter.labels(cell, grid.place(row, column))))
        for row, cell in enumerate(cells)
    }
    given = [one._replace(labels=options.renamed(one.labels)) for one in given]
    mentioned = {label for one in given for label in one.labels}.union(*excluded.values())
    every = sorted(options.classes or mentioned)
    for one in given:
        without = excluded[one.place]
        if not without:
            yield one
            continue
        left = [label for label in one.labels or every if label not in without]
        if not left:
            raise DataError(f"{grid.source}, {one.place}: every candidate is excluded")
        yield one._replace(labels=left)


def _without_not(cell: object) -> object:
    """Return a cell without the word "not" before its labels."""
    if isinstance(cell, str) and cell.casefold().startswith(_NOT):
        return cell[len(_NOT) :]
    return cell
