"""``fspll cache``: what is kept to save time, and how to clear it."""

from __future__ import annotations

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from fspll.cli.console import out


def cache(
    clear: str | None = typer.Option(
        None, metavar="NAME", help="Remove the files of one: decoded, features, or all."
    ),
) -> None:
    """Show what is kept to save time, where it is and its size; or clear it."""
    from fspll._common.caches import find_caches

    if clear is not None:
        for one in find_caches(clear):
            n_files, n_bytes = one.clear()
            typer.echo(f"{one.name}: {_counted(n_files)} removed, {_size(n_bytes)}")
        return
    rows = [(one.name, one.what, str(one.folder), *one.size()) for one in find_caches("all")]
    if not out.is_terminal:
        # One line per cache, tabs between: what grep and cut can work with.
        for name, what, folder, n_files, n_bytes in rows:
            typer.echo("\t".join((name, what, folder, _counted(n_files), _size(n_bytes))))
        return
    table = Table(box=SIMPLE)
    for heading in ("name", "what", "where"):
        table.add_column(heading, overflow="fold")
    for heading in ("files", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, what, folder, n_files, n_bytes in rows:
        table.add_row(name, what, Text(folder), f"{n_files:,}", _size(n_bytes))
    out.print(table)
    out.print("Everything here can be computed again: fspll cache --clear NAME, or all.")


def _counted(n_files: int) -> str:
    return "1 file" if n_files == 1 else f"{n_files:,} files"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
