"""The bars of long work: training with its loss, and grids with the piece just finished."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from fspll.cli.console import progress_bar, work_bar

if TYPE_CHECKING:
    from fspll.metalearning.trainer import Report


class TrainingBar:
    """A context manager whose :meth:`observe` is an observer of the trainer."""

    def __init__(self, total_steps: int, description: str = "training") -> None:
        self.progress = progress_bar()
        self.description = description
        self.total_steps = total_steps

    def __enter__(self) -> TrainingBar:
        self.progress.start()
        self.bar = self.progress.add_task(self.description, total=self.total_steps)
        return self

    def observe(self, report: Report) -> None:
        """Show a step."""
        self.progress.update(
            self.bar,
            completed=report.step,
            description=f"{self.description}: loss {report.loss:.3f}, query accuracy "
            f"{report.query_accuracy:.3f}",
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()


class GridBar:
    """A context manager whose :meth:`show` is the progress of a grid of experiments."""

    def __init__(self, name: str) -> None:
        self.name, self.progress = name, work_bar()

    def __enter__(self) -> GridBar:
        self.progress.start()
        self.bar = self.progress.add_task(self.name, total=None)
        return self

    def show(self, doing: str, done: float, total: float) -> None:
        """Show what was just finished and how much of the work is done."""
        self.progress.update(
            self.bar, description=f"{self.name}: {doing}", completed=done, total=total
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()
