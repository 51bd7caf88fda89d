"""What a training run reports after every step, smoothed for people, and the log of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from fspll._common.arguments import is_integer, is_number
from fspll._common.errors import DataError
from fspll._common.files import write_beside

_SMOOTHING = 0.9  # of the loss and accuracy that people see


class Report(NamedTuple):
    """What an observer receives after every step; loss and accuracy are running means."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    query_accuracy: float
    learning_rate: float
    held_out: float | None = None  # score on the held-out classes, at the end of an epoch


class Smooth:
    """Running means of loss and accuracy, so that the progress bar does not flicker.

    Parameters
    ----------
    last : Report, optional
        Where to go on: a resumed run then reports the means of an uninterrupted one.
    """

    def __init__(self, last: Report | None = None) -> None:
        self.means = None if last is None else (last.loss, last.query_accuracy)

    def add(self, loss: float, accuracy: float) -> tuple[float, float]:
        """Return the means with one more step."""
        old_loss, old_accuracy = self.means or (loss, accuracy)
        self.means = (
            _SMOOTHING * old_loss + (1 - _SMOOTHING) * loss,
            _SMOOTHING * old_accuracy + (1 - _SMOOTHING) * accuracy,
        )
        return self.means


class Log:
    """One JSON line per step; a resumed run drops the lines after its state.

    Attributes
    ----------
    last : Report or None
        The report of the step that the state belongs to, when the log has it.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        self.waiting: list[str] = []
        self.last: Report | None = None
        kept = []
        for line, report in _read(path):
            if report.step <= step:
                kept.append(line)
            if report.step == step:
                self.last = report
        with write_beside(path) as beside:
            beside.write_text("".join(line + "\n" for line in kept))

    def add(self, report: Report) -> None:
        """Keep a report until the next :meth:`flush`."""
        self.waiting.append(json.dumps(report._asdict()))

    def flush(self) -> None:
        """Write the reports kept since the last time."""
        try:
            with self.path.open("a") as file:
                file.writelines(line + "\n" for line in self.waiting)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from error
        self.waiting.clear()


def _read(path: Path) -> list[tuple[str, Report]]:
    """Return the lines of a log with what they report, but those that a kill cut short."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    parsed = [(line, report) for line in lines if (report := _parse(line)) is not None]
    if len(lines) > 1 and not parsed:
        raise DataError(f"{path} is not the log of a training run; choose another folder")
    return parsed


def _parse(line: str) -> Report | None:
    try:
        report = Report(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    usable = is_integer(report.step) and is_number(report.loss) and is_number(report.query_accuracy)
    return report if usable else None
