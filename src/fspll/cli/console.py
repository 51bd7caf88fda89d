"""The two consoles of the command line, its progress bars, and the names of its options."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
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

if TYPE_CHECKING:
    from fspll.metalearning.step_tasks import OneProcess


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

# How messages of the library name an argument: with a value, in a sum such as "n_shot + n_query =
# 20", by a name that is no word ("held_out"), or as the first word. Whatever else is in quotes
# comes from a file or a user and stays as it is.
_VALUE = r"""True\b|False\b|'[^']*'|"[^"]*"|\[[^\]]*\]|\.\.\.|[A-Z]+\b|[0-9.]*[0-9]\b(?!\.?\w)"""
_VERBS = "must be|is a share|is of no use|counts extra|belong to|needs held_out"
_ARGUMENT = re.compile(
    rf"(?<![\w/.+-])(?<!\+ )(?P<name>\w+) ?= ?(?P<value>{_VALUE})"
    r"""|(?<!\w)'[^']*'(?!\w)|(?<!\w)"[^"]*"(?!\w)"""
    r"|(?<![\w/.-])(?P<term>\w+(?= \+ \w+ = )|(?<=\+ )\w+(?= = )|[a-z]+(?:_[a-z]+)+(?![\w/.=-]))"
    rf"|^(?P<first>\w+)(?= (?:{_VERBS}) )"
)
# What commands call otherwise than the library does.
_OTHER_NAMES = {"embedding": "encoder", "class_balance": "balanced"}


def with_option_names(message: str, command: Any) -> str:
    """Name the options of a command where a message names arguments of the library.

    ``encoding='utf-16'`` becomes ``--encoding 'utf-16'``, ``n_way = 30`` becomes ``--n-way 30``,
    ``restart=True`` becomes ``--restart`` and ``marks=False`` becomes ``--no-marks``; so do a name
    with an underscore, as in ``needs n_shot of 2``, and one that a message begins with, as in
    ``device must be 'cpu'``. The command must have such an option: one of that name, or one whose
    Python parameter has it. A group of commands has the options of all of them.

    Parameters
    ----------
    message : str
        Of an error or a note.
    command : click.Command
    """
    options = _options_of(command)

    def named(match: re.Match[str]) -> str:
        argument, value = match["name"] or match["term"] or match["first"], match["value"]
        option = options.get((argument, value == "False"))
        if option is None:
            return match[0]
        if value in ("True", "False", None):
            return option
        return f"{option} {value.strip('[]').replace(', ', ',') if value[0] == '[' else value}"

    return _ARGUMENT.sub(named, message)


def _options_of(command: Any) -> dict[tuple[str | None, bool], str]:
    """Return the options of a command by the names of arguments, and whether they say no."""
    commands = [command, *getattr(command, "commands", {}).values()]
    options: dict[tuple[str | None, bool], str] = {}
    for parameter in (parameter for one in commands for parameter in one.params):
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("--"):
                says_no = option in parameter.secondary_opts
                options.setdefault((parameter.name, says_no), option)
                name = option.removeprefix("--no-" if says_no else "--").replace("-", "_")
                options[name, says_no] = option
    for name, other in _OTHER_NAMES.items():
        for says_no in (True, False):
            if (other, says_no) in options:
                options.setdefault((name, says_no), options[other, says_no])
    return options


def note(message: str, context: typer.Context, word: str = "note") -> None:
    """Print what a person should know besides the results, with options for arguments."""
    shown = escape(with_option_names(message, context.command))
    err.print(f"[yellow]{word}:[/] {shown}", soft_wrap=True)


@contextmanager
def one_voice(ranks: OneProcess) -> Iterator[None]:
    """Let one of several processes print: rank 0, and of those that fail the first."""
    out.quiet = err.quiet = not ranks.leads
    try:
        yield
    except BaseException:  # what is printed about it comes after this
        err.quiet = not ranks.ends_first()
        raise
    out.quiet = err.quiet = False


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


def call(*words: str | Path) -> str:
    """Return a command of this program as a shell takes it, however the program was started."""
    started = Path(sys.argv[0])
    found = shutil.which(started.name)
    if started.name == "__main__.py":
        program = [sys.executable, "-m", "fspll"]
    elif found and started.exists() and Path(found).samefile(started):
        program = [started.name]
    else:  # such as .venv/bin/fspll, which make calls
        program = [str(started)]
    return shlex.join([*program, *map(str, words)])
