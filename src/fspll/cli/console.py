"""The two consoles of the command line, its progress bars, and the names of its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from fspll._common.words import visible


class _Console(Console):
    """A console that shows escape sequences of files and names instead of obeying them."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a string into what is laid out, at the width that it will have."""
        return super().render_str(visible(text, keep="\n"), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the pieces that make up what is shown; those that move the cursor are rich's."""
        for piece in super().render(renderable, options):
            text = piece.text if piece.control else visible(piece.text, keep="\n")
            yield Segment(text, piece.style, piece.control)


out = _Console(highlight=False)
err = _Console(stderr=True, highlight=False)

# A sum such as "n_shot + n_query = 20" is no argument.
_VALUE = r"""True\b|'[^']*'|"[^"]*"|\.\.\.|[A-Z]+\b|[0-9.]+\b"""
_ARGUMENT = re.compile(rf"(?<!\+ )\b(\w+) ?= ?({_VALUE})|^(\w+)(?= must be )")


def with_option_names(message: str, command: Any) -> str:
    """Name the options of a command where a message names arguments of the library.

    ``encoding='utf-16'`` becomes ``--encoding 'utf-16'``, ``n_way = 30`` becomes ``--n-way 30`` and
    ``restart=True`` becomes ``--restart``, and so does a name that a message begins with, as in
    ``device must be 'cpu'``, if the command has such an option: one of that name, or one whose
    Python parameter has it. A group of commands has the options of all of them.

    Parameters
    ----------
    message : str
        Of an error or a note.
    command : click.Command
    """
    commands = [command, *getattr(command, "commands", {}).values()]
    options: dict[str, str] = {}
    for parameter in (parameter for one in commands for parameter in one.params):
        for option in parameter.opts:
            if option.startswith("--"):
                options.setdefault(parameter.name, option)
                options[option.removeprefix("--").replace("-", "_")] = option

    def named(match: re.Match[str]) -> str:
        option = options.get(match[1] or match[3])
        if option is None:
            return match[0]
        return option if match[2] in ("True", None) else f"{option} {match[2]}"

    return _ARGUMENT.sub(named, message)


def echo(*cells: object) -> None:
    """Print one line with tabs between cells, for programs as well as people.

    Whatever a cell holds, it stays one cell of one line.
    """
    typer.echo("\t".join("" if cell is None else visible(str(cell)) for cell in cells))


def progress_bar(*, percent: bool = False) -> Progress:
    """Return a progress display with a count and the time left, on standard error.

    Standard error keeps ``fspll ... > file`` clean; nothing is shown when it is not a terminal.

    Parameters
    ----------
    percent : bool
        Show a percentage instead of the count, for work of uneven pieces.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn() if percent else MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
