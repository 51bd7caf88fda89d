"""The ``fspll`` command: collects the commands and turns deliberate errors into one sentence."""

from __future__ import annotations

import sys

import typer
from rich.markup import escape

from fspll._version import __version__
from fspll.cli import data, demo
from fspll.cli.console import err
from fspll.errors import FsPLLError

app = typer.Typer(
    name="fspll",
    help="Learn from a handful of samples whose labels are ambiguous.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.command("demo")(demo.demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fspll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        help="Print the version and stop.",
        callback=_print_version,
        is_eager=True,
    ),
) -> None:
    """Learn from a handful of samples whose labels are ambiguous."""


def main() -> None:
    """Run the command line; exit 2 with one sentence on bad input, 130 on Ctrl-C."""
    try:
        app()
    except FsPLLError as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("stopped; what was finished is kept")
        sys.exit(130)


if __name__ == "__main__":
    main()
