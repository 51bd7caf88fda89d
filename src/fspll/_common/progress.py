"""A bar for long work, where somebody is there to see it: in a terminal or a notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fspll._common.errors import InputTypeError
from fspll._common.words import visible

Progress = Callable[[int, int], None]


@contextmanager
def show_progress(title: str, progress: Progress | bool | None = True) -> Iterator[Progress | None]:
    """Yield what is to be called with (done, total) during some work.

    Parameters
    ----------
    title : str
        What is being done.
    progress : callable or bool, default=True
        True: a bar on standard error if that is a terminal, or in the cell of a notebook; it
        appears with the first call and is gone in the end. False or None: nothing. A callable is
        yielded as it is.
    """
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif progress is not True:
        raise InputTypeError(
            f"progress must be True, False or a function of (done, total), not {progress!r:.60}"
        )
    elif _in_notebook():
        with _notebook_bar(title) as report:
            yield report
    else:
        with _terminal_bar(visible(title)) as report:
            yield report


def _in_notebook() -> bool:
    """Tell whether Python runs as the kernel of a notebook."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _terminal_bar(title: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )

    def report(done: int, total: int) -> None:
        if not bar.tasks:
            bar.start()
            bar.add_task(title, total=total)
        bar.update(bar.task_ids[0], completed=done)

    try:
        yield report
    finally:
        if bar.tasks:
            bar.stop()


@contextmanager
def _notebook_bar(title: str) -> Iterator[Progress]:
    """Show HTML's own bar: those of other packages take widgets that may not be installed."""
    from IPython.display import HTML, display

    handle: Any = None

    def report(done: int, total: int) -> None:
        nonlocal handle
        page = HTML(
            f'{html.escape(title)} <progress value="{done}" max="{total}"></progress> '
            f"{done:,} of {total:,}"
        )
        if handle is None:
            handle = display(page, display_id=True)
        else:
            handle.update(page)

    try:
        yield report
    finally:
        if handle is not None:
            handle.update(HTML(""))
