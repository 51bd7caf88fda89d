"""The last part of ``fspll demo``: a folder of pictures is labeled, and the next commands."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from fspll.cli.console import call, out
from fspll.cli.label import show_labeling

if TYPE_CHECKING:
    import numpy as np

    from fspll.labeling.result import Labeling

_SHOWN = 8
_OPENERS = {"darwin": "open", "win32": "start"}


def label_example(context: typer.Context, folder: Path, seed: int) -> None:
    """Write the example, label it as ``fspll label`` does, and say what to do next.

    Parameters
    ----------
    context : typer.Context
        Of the command that runs.
    folder : Path
        It holds the network already.
    seed : int
        Of the example.
    """
    from fspll.annotations.answers import Answer, Answers
    from fspll.labeling.example import (
        CLASSES,
        CONFUSED,
        N_CANDIDATES,
        NETWORK,
        PICTURES,
        RESULT,
        TABLE,
        TRUTH,
        write_example,
    )
    from fspll.labeling.folder import LABELS, REPORT, REVIEW
    from fspll.labeling.run import Run

    truth = write_example(folder, seed)
    table, pictures, network, result = (
        folder / name for name in (TABLE, PICTURES, NETWORK, RESULT)
    )
    again = call("label", table, "--images", pictures, "--encoder", network, "--out", result)
    out.print(
        f"{escape(str(pictures))} has {len(truth)} drawings of {len(CLASSES)} more characters, and "
        f"{escape(str(table))} has {N_CANDIDATES} candidate names for each drawing, one of them "
        f"right. The name {CONFUSED[0]} never comes without {CONFUSED[1]}: whoever made the table "
        "could not tell the two apart. This command labels the drawings:\n"
    )
    _print_command(again)
    out.print(
        "\nIt prints how the table was understood, what to expect of the labels, and which "
        "drawings to show to a person first ('sure': the probability that the guess is right; "
        "'gain': how many labels the answer is expected to put right; 'right then': the share of "
        "right labels after it):\n"
    )
    run = Run(table, labeling={"images": pictures, "encoder": str(network), "cache": False})
    read = run.read()
    out.print(read.summary, soft_wrap=True, markup=False)
    found = run.label(read)
    unknown = run.save(found, result, forget_answers=True)
    show_labeling(found, result, unknown, context)

    right, sure = _are_right(found, truth), _are_sure(found)
    out.print(f"\nThe first lines of {escape(str(result / LABELS))}, beside the truth:")
    out.print(_first_lines(found, truth))
    out.print(
        f"[bold]{right.sum()} of {len(right)} labels are right[/], and {right[sure].sum()} of the "
        f"{sure.sum()} that are at least 90% sure; choosing names by chance gives about "
        f"{len(right) / N_CANDIDATES:.0f}. Which drawings are {CONFUSED[0]} and which "
        f"{CONFUSED[1]} was a toss-up. (All this is known only because the demo drew the pictures: "
        f"the truth is in {escape(str(folder / TRUTH))}, which fspll label does not read.)"
    )

    out.print("\n[bold]What next[/]")
    out.print(f"Look at the report, {escape(str(result / REPORT))}:", soft_wrap=True)
    _print_command(_opening(result / REPORT))
    if found.review:
        asked = found.names[found.review[0].index]
        answered = run.label(read, answers=[Answers((Answer(asked, truth[asked]),))])
        out.print(
            f"Answer a question: write {truth[asked]}, the truth, into the column 'answer' of "
            f"{asked} in {escape(str(result / REVIEW))}, and run the command again. Then "
            f"{_are_right(answered, truth).sum()} of {len(right)} labels are right, and "
            f"{_are_sure(answered).sum()} are at least 90% sure:"
        )
        _print_command(again)
    out.print(
        f"Label photos of yours: make a table like {escape(str(table))} (docs/formats.md has other "
        "forms), install what describes photos, once, and name it as the encoder. For drawn "
        "characters and symbols take --encoder omniglot-conv4 instead, which is installed:"
    )
    _print_command(shlex.join([sys.executable, "-m", "pip", "install", "fspll[photos]"]))
    own = ("labels.csv", "--images", "photos", "--encoder", "photos", "--out", "result")
    _print_command(call("label", *own))


def _opening(page: Path) -> str:
    """Return the command that shows a page, or its address where there is no such command."""
    opener = _OPENERS.get(sys.platform, "xdg-open")
    known = sys.platform == "win32" or shutil.which(opener)  # `start` is no program but the shell's
    return shlex.join([opener, str(page)]) if known else page.resolve().as_uri()


def _print_command(words: str) -> None:
    """Print a line to copy, unbroken whatever its length."""
    out.print(f"    {words}", soft_wrap=True, markup=False)


def _are_right(found: Labeling, truth: dict[str, str]) -> np.ndarray:
    """Return which labels are right, of shape (n,)."""
    import numpy as np

    return found.labels == np.array([truth[name] for name in found.names])


def _are_sure(found: Labeling) -> np.ndarray:
    """Return which labels are at least 90% sure, of shape (n,)."""
    return found.confidence >= 0.9


def _first_lines(found: Labeling, truth: dict[str, str]) -> Table:
    table = Table(box=SIMPLE)
    for heading in ("picture", "candidates", "label", "sure", "truth"):
        table.add_column(heading, justify="right" if heading == "sure" else "left")
    for row, name in enumerate(found.names[:_SHOWN]):
        label, true = str(found.labels[row]), truth[name]
        table.add_row(
            name,
            " ".join(map(str, found.candidates.names(row))),
            label,
            f"{found.confidence[row]:.0%}",
            true if true == label else f"[bold]{true}[/]",
        )
    return table
