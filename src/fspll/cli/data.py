"""``fspll data``: list, fetch and verify the data sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from fspll._common.errors import DataError, InputError
from fspll.cli.console import echo, err, note, out

# The commands import the data sets when they run: ``fspll --help`` should not wait for them.
if TYPE_CHECKING:
    from fspll.datasets.base import DataSet, State
    from fspll.datasets.download import Progress as Report

app = typer.Typer(help="List, fetch and verify the data sets.", no_args_is_help=True)

_COLORS = {"built in": "green", "present": "green", "absent": "yellow", "damaged": "red"}


@app.command("list")
def list_datasets(context: typer.Context) -> None:
    """Show the known data sets, where they live and whether they are there."""
    rows = [(dataset, dataset.state()) for dataset in _all_datasets(context)]
    if not out.is_terminal:
        # One line per data set, tabs between: what grep and cut can work with.
        for dataset, state in rows:
            echo(dataset.name, dataset.what, _where(state), _full(state))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("what", ratio=3)
    table.add_column("where", ratio=3, overflow="fold")
    table.add_column("state", ratio=4, overflow="fold")
    for dataset, state in rows:
        table.add_row(
            f"[bold]{dataset.name}[/]",
            f"{dataset.what}\n[dim]{dataset.origin}; {dataset.license}[/]",
            Text(_where(state)),
            Text(_full(state), style=_COLORS[state.word]),
        )
    out.print(table)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A data set of: fspll data list.")],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            help="A folder or file to copy (may be given twice), or the address of a folder; "
            "without it, the data set's public address.",
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--to", help="Put it in this folder, not in the data folder.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Fetch it even if it is there and sound.")
    ] = False,
) -> None:
    """Fetch a data set, verify it and put it in its place; a broken download goes on next time."""
    from fspll.datasets.fetch import get_dataset
    from fspll.datasets.registry import DATASETS

    urls = [one for one in source or () if "://" in one]
    if urls and len(source or ()) > 1:
        raise InputError(f"--from {urls[0]} is an address; give it alone, it is for all files")
    known = DATASETS.get(name)
    with _byte_bars() as progress:
        fetched = get_dataset(
            name, urls[0] if urls else source or None, folder, force=force, progress=progress
        )
    if fetched.folder is None:
        echo(f"{known.name}: {fetched.summary}")
    else:
        verb = "put in" if fetched.written else "already in"
        echo(f"{known.name}: {verb} {fetched.folder} ({fetched.summary})")


@app.command("check")
def check(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="A data set of: fspll data list; all if not given.")
    ] = None,
) -> None:
    """Read every byte of the data sets that are there; exit with 2 if one is not sound."""
    from fspll.datasets.registry import DATASETS

    chosen = _all_datasets(context) if name is None else [DATASETS.get(name)]
    damaged = []
    for dataset in chosen:
        with err.status(f"reading {dataset.name}"):
            state = dataset.state(thorough=True)
        # Asked for by name, an absent set is an error; in a survey of all it is just absent.
        if name is not None and state.word == "absent":
            raise DataError(f"{dataset.name} is absent: {state.detail}")
        if state.word == "damaged":
            damaged.append(dataset.name)
        echo(f"{dataset.name}: {'sound' if state.sound else state.word}; {state.detail}")
    if damaged:
        verb = "is" if len(damaged) == 1 else "are"
        raise DataError(f"{' and '.join(damaged)} {verb} damaged; see the lines above")


def _all_datasets(context: typer.Context) -> list[DataSet]:
    """Return every data set; what another package registers wrongly only costs a note."""
    from fspll.datasets.registry import DATASETS

    found = []
    for name in DATASETS:
        try:
            found.append(DATASETS.get(name))
        except InputError as error:
            note(str(error), context)
    return found


@contextmanager
def _byte_bars() -> Iterator[Report]:
    """Yield a report function that draws one bar per file, with the time left, on a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    tasks: dict[str, TaskID] = {}

    def report(file: str, done: int, total: int | None) -> None:
        if file not in tasks:
            tasks[file] = bar.add_task(file, total=total)
        bar.update(tasks[file], completed=done, total=total)

    with bar:
        yield report


def _where(state: State) -> str:
    return "-" if state.folder is None else str(state.folder)


def _full(state: State) -> str:
    return f"{state.word}: {state.detail}"
