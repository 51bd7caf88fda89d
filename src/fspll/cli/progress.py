"""The bars of long work: training with its loss, and grids with the piece just finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import Progress

from fspll.cli.console import progress_bar

if TYPE_CHECKING:
    from fspll.metalearning.log import Report


class _Bar:
    """A context manager that shows one line of progress."""

    def __init__(self, progress: Progress, description: str, total: float | None) -> None:
        self.progress, self.description, self.total = progress, description, total

    def __enter__(self) -> Self:
        self.progress.start()
        self.bar = self.progress.add_task(self.description, total=self.total)
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()


class TrainingBar(_Bar):
    """A context manager whose :meth:`observe` is an observer of the trainer."""

    def __init__(self, total_steps: int, description: str = "training") -> None:
        super().__init__(progress_bar(), description, total_steps)

    def observe(self, report: Report) -> None:
        """Show a step."""
        self.progress.update(
            self.bar,
            completed=report.step,
            description=f"{self.description}: loss {report.loss:.3f}, query accuracy "
            f"{report.query_accuracy:.3f}",
        )


class GridBar(_Bar):
    """A context manager whose :meth:`show` is the progress of a grid of experiments."""

    def __init__(self, name: str) -> None:
        super().__init__(progress_bar(percent=True), name, None)

    def show(self, doing: str, done: float, total: float) -> None:
        """Show what was just finished and how much of the work is done."""
        self.progress.update(
            self.bar, description=f"{self.description}: {doing}", completed=done, total=total
        )
