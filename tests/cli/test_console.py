"""What the command line makes of the library's words."""

from __future__ import annotations

import pytest
import typer

from fspll.cli.console import with_option_names


@pytest.fixture
def command():
    """Return a command with options as typer makes them."""

    def label(
        file: str,
        encoding: str = "",
        skip_bad: bool = typer.Option(False, "--skip-bad"),
        picture: str = typer.Option("", "--file"),
    ):
        """Do nothing."""

    app = typer.Typer()
    app.command()(label)
    return typer.main.get_command(app)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("give encoding='utf-16-le'", "give --encoding 'utf-16-le'"),
        ('give encoding="x y", then', 'give --encoding "x y", then'),
        ("name it (encoding=...)", "name it (--encoding ...)"),
        ("leave them out with skip_bad=True", "leave them out with --skip-bad"),
        ("say where: file=COLUMN", "say where: --file COLUMN"),
        ("the library's own: classes=...", "the library's own: classes=..."),
        ("encoding = 3 is too many", "--encoding 3 is too many"),
        ("picture=True", "--file"),
        ("skip_bad + encoding = 9", "skip_bad + encoding = 9"),
        ("no_encoding='x'", "no_encoding='x'"),
        ("encoding must be text, not 3", "--encoding must be text, not 3"),
        ("classes must be text", "classes must be text"),
        ("an encoding must be known", "an encoding must be known"),
    ],
)
def test_arguments_are_named_as_options(command, message, expected):
    assert with_option_names(message, command) == expected


def test_a_group_has_the_options_of_its_commands(command):
    app = typer.Typer()
    app.command("one")(lambda root="": None)
    app.command("two")(lambda: None)
    assert with_option_names("see root='x'", typer.main.get_command(app)) == "see --root 'x'"


def test_messages_of_the_library_reach_a_person_with_options(run, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(b"file,candidates\na.png,caf\xe9\n")
    code, _, complaints = run("label", path, "--out", tmp_path / "out")
    assert code == 2
    assert 'Latin-1 text, give --encoding "cp1252"; if' in complaints
    path.write_text("file,what\na.png,cat\n")
    code, _, complaints = run("diagnose", path)
    assert (code, complaints.endswith("say which with --candidates ...")) == (2, True)
