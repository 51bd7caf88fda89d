"""What the command line makes of the library's words."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fspll.cli.console import echo, out, with_option_names


@pytest.fixture
def command():
    """Return a command with options as typer makes them."""

    def label(
        file: str,
        encoding: str = "",
        skip_bad: bool = typer.Option(False, "--skip-bad"),
        picture: str = typer.Option("", "--file"),
        marks: bool = False,
        encoder: str = "",
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
        ("skip_bad + encoding = 9 is no value", "--skip-bad + --encoding = 9 is no value"),
        ("skip_bad + other = 9", "--skip-bad + other = 9"),
        ("give marks=True or marks=False", "give --marks or --no-marks"),
        ("encoding = [1, 2], not [3]", "--encoding 1,2, not [3]"),
        ("it needs skip_bad for that", "it needs --skip-bad for that"),
        ("encoding is a share, not 3", "encoding is a share, not 3"),
        ("encoding is a share above 0", "--encoding is a share above 0"),
        ("give embedding=..., not class_balance", "give --encoder ..., not class_balance"),
        # What comes from files and users stays as it is.
        ("'encoding=3' and \"skip_bad\" of it's", "'encoding=3' and \"skip_bad\" of it's"),
        ("a person's skip_bad=True", "a person's --skip-bad"),
        ("/data/skip_bad/skip_bad.csv is empty", "/data/skip_bad/skip_bad.csv is empty"),
        ("file=1.csv does not exist", "file=1.csv does not exist"),
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


# -------------------------------------------------------------------- what a terminal must not obey

NASTY = "cat\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
SHOWN = r"cat\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


@pytest.fixture
def terminal():
    """Return what a console with colors writes."""

    def terminal(*shown, **options):
        written = io.StringIO()
        console = type(out)(file=written, force_terminal=True, width=100, highlight=False)
        console.print(*shown, **options)
        return written.getvalue()

    return terminal


def test_escape_sequences_are_shown_and_not_obeyed(terminal):
    assert terminal(f"[bold]{escape(NASTY)}[/]\nsecond") == f"\x1b[1m{SHOWN}\x1b[0m\nsecond\n"
    assert terminal(NASTY, markup=False, soft_wrap=True) == f"{SHOWN}\n"
    without_bell = SHOWN.replace(r"\x07", "")  # which rich leaves out itself
    assert terminal(Text(NASTY)) == f"{without_bell}\n"
    table = Table("name", "label", box=None, title=NASTY)
    table.add_row(escape(NASTY), Text(NASTY))
    shown = terminal(table)
    assert shown.count(SHOWN) == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[0-9;]*m", "", shown))


def test_bytes_of_a_name_that_is_no_text_are_shown(terminal):
    assert terminal("caf\udce9.png", soft_wrap=True) == "caf\\udce9.png\n"


def test_a_cell_stays_one_cell_of_one_line(capsys):
    echo("a\tb\nc", None, NASTY, 0.5)
    assert capsys.readouterr().out == f"a\\tb\\nc\t\t{SHOWN}\t0.5\n"


def test_names_from_files_reach_the_terminal_harmless(run, tmp_path, monkeypatch):
    """Labels and samples of a table, in the output, the notes and the errors of commands."""
    monkeypatch.setattr("fspll.labeling.saving.write_report", lambda *_: None)
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(4, 2)))
    table = tmp_path / "t.csv"
    lines = [f"s{NASTY}{row},{NASTY}|b" for row in range(4)]
    table.write_text("\n".join(["sample,candidates", *lines]), encoding="utf-8")
    answers = tmp_path / "a.csv"
    answers.write_text(f"sample,answer\ns{NASTY}0,new{NASTY}\n", encoding="utf-8")
    given = (table, "--features", tmp_path / "X.npy")
    out = tmp_path / f"out{NASTY.replace('/', '')}"
    code, shown, complaints = run("label", *given, "--out", out, "--answers", answers)
    assert code == 0
    printed = [shown, complaints]
    printed += run("diagnose", *given)[1:]
    printed += run("predict", out, "--features", tmp_path / "X.npy")[1:]
    printed += run("label", tmp_path / f"{NASTY}.csv", *given[1:], "--out", out)[1:]
    for text in printed:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text), text
    assert sum(SHOWN in text for text in printed) >= 5
