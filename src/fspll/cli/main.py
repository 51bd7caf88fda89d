"""The ``fspll`` command: collects the commands and turns deliberate errors into one sentence."""

from __future__ import annotations

import io
import sys
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from fspll._common.errors import FsPLLError
from fspll._common.version import __version__
from fspll._common.words import printable
from fspll.cli import app as app_command
from fspll.cli import (
    cache,
    data,
    demo,
    diagnose,
    evaluate,
    export,
    label,
    models,
    predict,
    reproduce,
    train,
)
from fspll.cli.console import err, with_option_names


class _Commands(TyperGroup):
    """The commands; deliberate errors and Ctrl-C end here with one sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FsPLLError as error:
            sentence = with_option_names(str(error), self.commands[ctx.invoked_subcommand])
            # One line, whatever a file name or a library's own message may hold.
            sentence = printable(" ".join(sentence.split()))
            err.print(f"[bold red]error:[/] {escape(sentence)}", soft_wrap=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            err.print("stopped; what was finished is kept")
            raise typer.Exit(130) from None


app = typer.Typer(
    name="fspll",
    cls=_Commands,
    help="Learn from a handful of samples whose labels are ambiguous.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("label")(label.label)
app.command("predict")(predict.predict)
app.command("export")(export.export)
app.command("diagnose")(diagnose.diagnose)
app.command("cache")(cache.cache)
app.command("app")(app_command.app)
app.command("models")(models.models)
app.command("reproduce")(reproduce.reproduce)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    verbose: bool = typer.Option(
        False,
        "--verbose",
        help="With --version: also versions of other packages, the platform, threads and extras, "
        "for a report of a bug.",
    ),
) -> None:
    """Learn from a handful of samples whose labels are ambiguous."""
    if version:
        _print_version(verbose)
        raise typer.Exit
    if verbose:
        context.fail("--verbose belongs to --version.")
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def _print_version(verbose: bool) -> None:
    if not verbose:
        typer.echo(f"fspll {__version__}")
        return
    from fspll._common.environment import describe_environment

    for name, said in describe_environment():
        typer.echo(f"{name}: {printable(said)}")


def main() -> None:
    """Run the command line; exit 2 with one sentence on bad input, 130 on Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a file's name need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="fspll")  # also when run as `python -m fspll`


if __name__ == "__main__":
    main()
