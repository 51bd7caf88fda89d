"""``fspll app``: the local web page."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from fspll._common.errors import MissingPackageError
from fspll.cli.console import err, out, with_option_names


def app(
    context: typer.Context,
    result: Path | None = typer.Argument(None, help="The folder of a result of fspll label."),
    port: int = typer.Option(0, min=0, max=65535, help="The port; 0 takes a free one."),
    host: str = typer.Option(
        "127.0.0.1", help="The address to listen on. Any other lets other machines in."
    ),
    label_studio: bool = typer.Option(
        False, "--label-studio", help="Also be an ML backend for a running Label Studio."
    ),
    open_page: bool = typer.Option(True, "--open/--no-open", help="Open the page in a browser."),
) -> None:
    """Review labels in the browser, look at all samples, label new data, try the method."""
    try:
        from fspll.app.running import serve
    except ImportError as error:
        if error.name and error.name.partition(".")[0] in ("starlette", "uvicorn"):
            raise MissingPackageError(error.name, "app", "fspll app") from None
        raise

    def announce(address: str, studio: str, note: str) -> None:
        if note:
            err.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
        out.print(f"fspll is at {escape(address)}", soft_wrap=True)
        if studio:
            out.print(f"Label Studio finds it at {escape(studio)}", soft_wrap=True)
        out.print(
            "Everything stays on this machine. Ctrl-C stops: answers in a folder of results are "
            "kept, data sets that were uploaded are deleted.",
            soft_wrap=True,
        )

    commands: Any = context.find_root().command
    serve(
        result,
        host=host,
        port=port,
        open_page=open_page,
        label_studio=label_studio,
        # A report is worded for the command, whichever of the two writes it.
        speak=partial(with_option_names, command=commands.commands["label"]),
        announce=announce,
    )
