"""How a grid of cells says what samples may be: one row or one column per annotator, or neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fspll._common.errors import DataError
from fspll._common.words import counted, listed
from fspll.annotations.collecting import Opinion, Options, collect
from fspll.annotations.exclusions import apply_exclusions, find_excluded
from fspll.annotations.grid import (
    CANDIDATE_NAMES,
    Described,
    Grid,
    describe,
    find_annotator,
    find_column,
    list_columns,
    plain_name,
)
from fspll.annotations.marks import find_marks, is_mark, label_names, only_digits
from fspll.annotations.samples import Annotations
from fspll.annotations.splitting import Splitter, may_be_several
from fspll.annotations.vectors import choose_columns, vectors_of
from fspll.annotations.writing import to_plain_text

# Columns whose names say that a cell may hold several labels.
_PLURAL = {name for name in CANDIDATE_NAMES if name.endswith("s")} | {"candidate"}
_STEMS = "annotator|rater|coder|candidate|label|choice|class|category|vote"
# What several columns have in common that are a person's answer each. The other stems rather number
# the candidates of one sample.
_PEOPLE_STEMS = ("annotator", "rater", "coder", "label", "vote")
_NUMBERED = re.compile(rf"({_STEMS})(_?[0-9]+|_[a-z])")
_COLUMNS_SHOWN = 5
_MOST_OTHERS = 200  # columns that no one asked for, up to which they come along to labels.csv
_LABELS_SHOWN = 3


@dataclass(frozen=True)
class _Layout:
    """Where the labels of a grid are, and who gave them.

    Attributes
    ----------
    columns : list of int
        The columns of labels.
    who : list of str, optional
        The annotator of each row.
    people : list of str, optional
        The annotator of each column.
    one_each : bool
        Whether a cell holds one label.
    several : bool
        Whether the column is meant for several labels.
    marked : list of str, optional
        The label that each column stands for, where the columns hold marks.
    """

    columns: list[int]
    who: list[str] | None
    people: list[str] | None
    one_each: bool
    several: bool
    marked: list[str] | None = None


def read_grid(grid: Grid, options: Options) -> Annotations:
    """Read the candidates of every row: one row or column per sample and annotator."""
    described = describe(grid, options)
    annotator = find_annotator(grid, options, described)
    excluded = find_excluded(grid, options)
    vectors = choose_columns(grid, options.features_columns or ())
    taken = {*described.columns, annotator, excluded, *vectors}
    columns, marked = _candidate_columns(grid, options, taken)
    layout = _find_layout(grid, options, columns, marked, described, annotator)
    if marked:
        opinions, said = _marked_opinions(grid, described, layout), [_say_marks(grid, columns)]
    else:
        splitter = _choose_splitter(grid, options, layout)
        opinions = _opinions(grid, described, splitter, layout)
        said = [*_say_columns(grid, columns), str(splitter)]
    if excluded is not None:
        opinions = apply_exclusions(grid, excluded, opinions, options)
        said.append(f"exclusions from {grid.header[excluded]!r}")
    if annotator is not None:
        said.append(f"annotators from {grid.header[annotator]!r}")
    found = collect(grid.source, opinions, options, repeats=annotator is not None)
    if vectors:
        found = replace(found, features=vectors_of(grid, vectors, described.names, found.names))
        said.append(_say_vectors(grid, vectors))
    if options.delimiter is None and not marked:
        said += _say_whole(found)
    understood = (*said, *found.understood, *described.understood, *grid.understood)
    sample, _, text = described.columns
    used = {sample, text, annotator, excluded, *vectors, *columns}
    others = [at for at, title in enumerate(grid.header) if title and at not in used]
    if len(others) > _MOST_OTHERS:  # JSON objects may have keys of their own, each with few cells
        return replace(found, understood=(*understood, f"{len(others):,} other columns left out"))
    return replace(
        found, understood=understood, columns=_other_columns(grid, described.names, others)
    )


def _other_columns(
    grid: Grid, names: list[str], others: list[int]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return other columns, one cell per sample, in the samples' order."""
    found = []
    for column in others:
        cells: dict[str, str] = {}
        for name, row in zip(names, grid.rows, strict=True):
            text = to_plain_text(row[column])
            if cells.setdefault(name, text) != text:
                break  # it is about the rows, such as the time of a judgment, not the samples
        else:
            found.append((grid.header[column], tuple(cells.values())))
    return tuple(found)


def _choose_splitter(grid: Grid, options: Options, layout: _Layout) -> Splitter:
    cells = (row[column] for row in grid.rows for column in layout.columns)
    where = f"{grid.source}, column {' and '.join(_names(grid, layout.columns))}"
    if layout.one_each:
        return Splitter.one_label(options.delimiter, cells, where)
    return Splitter.choose(
        options.delimiter, cells, where, several=layout.several, labels=options.classes or ()
    )


def _find_layout(
    grid: Grid,
    options: Options,
    columns: list[int],
    marked: bool,
    described: Described,
    annotator: int | None,
) -> _Layout:
    who = None if annotator is None else grid.texts(annotator, "annotator")
    plural = len(columns) == 1 and plain_name(grid.header[columns[0]]) in _PLURAL
    people = None if marked or who else _people_of_columns(grid, options, columns, described)
    return _Layout(
        columns,
        who,
        people,
        one_each=len(columns) > 1 or (described.repeated and not plural),
        several=plural or options.candidates is not None,
        marked=label_names([grid.header[column] for column in columns]) if marked else None,
    )


def find_numbered(header: Sequence[str]) -> list[int]:
    """Return the places of columns such as ``label_1, label_2``, if there are two or more."""
    families: dict[str, list[int]] = {}
    for place, name in enumerate(header):
        found = _NUMBERED.fullmatch(plain_name(name))
        if found:
            families.setdefault(found[1], []).append(place)
    return next((places for places in families.values() if len(places) > 1), [])


def _stem(grid: Grid, columns: list[int]) -> str:
    """Return what numbered columns have in common: "label" of ``label_1, label_2``."""
    found = _NUMBERED.fullmatch(plain_name(grid.header[columns[0]]))
    return found[1] if found else ""


def _people_of_columns(
    grid: Grid, options: Options, columns: list[int], described: Described
) -> list[str] | None:
    """Return the annotator that each column of labels stands for, or None where it is not known."""
    if len(columns) < 2 or described.repeated:
        return None  # in the rows of a sample that is named twice, others may have answered
    if options.candidates is None and _stem(grid, columns) not in _PEOPLE_STEMS:
        return None
    names = [grid.header[column] for column in columns]
    return names if len(set(names)) == len(names) else None


def _candidate_columns(
    grid: Grid, options: Options, taken: set[int | None]
) -> tuple[list[int], bool]:
    """Return the columns of labels, and whether they hold marks."""
    if options.candidates is not None:
        found = [find_column(grid.header, name, (), grid.source) for name in options.candidates]
        columns = [place for place in found if place is not None]
        return columns, _hold_marks(grid, options, columns)
    single = find_column(grid.header, None, CANDIDATE_NAMES, grid.source)
    if single is not None and not options.marks:
        return [single], False
    columns = find_numbered(grid.header)
    if columns and not options.marks:
        return columns, _hold_marks(grid, options, columns)
    free = [column for column in range(len(grid.header)) if column not in taken]
    columns = [] if options.marks is False else find_marks(grid, free)
    if len(columns) > 1:
        return columns, True
    if find_excluded(grid, options) is not None:
        return [], False
    raise DataError(
        f"{grid.source} has no column of candidates that its name shows (such as "
        f"'candidates' or 'label'), nor several columns of marks; {list_columns(grid.header)}; say "
        f"which with candidates=...{grid.hint}"
    )


def _hold_marks(grid: Grid, options: Options, columns: list[int]) -> bool:
    """Tell whether columns that a person or their names chose hold marks instead of labels."""
    if options.marks is not None or len(columns) < 2:
        return bool(options.marks)
    named_people = options.candidates is None and _stem(grid, columns) in _PEOPLE_STEMS
    if named_people or len(find_marks(grid, columns)) < len(columns):
        return False
    if only_digits(grid, columns):
        raise DataError(
            f"{grid.source}, {counted(len(columns), 'column')} such as "
            f"{grid.header[columns[0]]!r} hold only 0 and 1; give marks=True if 1 marks a label "
            "that a sample may have, or marks=False if 0 and 1 are labels"
        )
    return True


def _opinions(
    grid: Grid, described: Described, splitter: Splitter, layout: _Layout
) -> Iterator[Opinion]:
    """Yield the labels of each row; several columns are one annotator each, unless named."""
    who, people = layout.who, layout.people
    for row, cells in enumerate(grid.rows):
        anything = False
        for place, column in enumerate(layout.columns):
            labels = splitter.labels(cells[column], grid.place(row, column))
            if labels:
                anything = True
                annotator = who[row] if who is not None else people[place] if people else None
                yield described.opinion(row, labels, grid.where[row], annotator)
        if not anything:
            yield described.opinion(row, [], grid.where[row], None)


def _marked_opinions(grid: Grid, described: Described, layout: _Layout) -> Iterator[Opinion]:
    """Yield the marked labels of each row."""
    for row, cells in enumerate(grid.rows):
        labels = [
            label
            for column, label in zip(layout.columns, layout.marked or (), strict=True)
            if is_mark(cells[column], grid.place(row, column))
        ]
        annotator = layout.who[row] if layout.who else None
        yield described.opinion(row, labels, grid.where[row], annotator)


# -------------------------------------------------------------------- what was understood


def _names(grid: Grid, columns: list[int]) -> list[str]:
    return [repr(grid.header[column]) for column in columns]


def _say_columns(grid: Grid, columns: list[int]) -> list[str]:
    names = listed(_names(grid, columns), _COLUMNS_SHOWN)
    if len(columns) < 2:
        return [f"labels from {names}"] if columns else []
    return [f"{counted(len(columns), 'label column')} ({names})"]


def _say_marks(grid: Grid, columns: list[int]) -> str:
    return f"{len(columns)} columns of marks, {_from_to(grid, columns)}"


def _say_vectors(grid: Grid, columns: list[int]) -> str:
    if len(columns) == 1:
        return f"vectors from {grid.header[columns[0]]!r}"
    return f"{len(columns)} features, {_from_to(grid, columns)}"


def _from_to(grid: Grid, columns: list[int]) -> str:
    return f"{grid.header[columns[0]]!r} to {grid.header[columns[-1]]!r}"


def _say_whole(found: Annotations) -> list[str]:
    """Name labels that someone might have meant as several."""
    whole = [repr(label) for label in found.classes if may_be_several(label)]
    if not whole:
        return []
    are = "is one label" if len(whole) == 1 else "are one label each"
    return [f"{listed(whole, _LABELS_SHOWN)} {are}"]
