"""The bar that training shows: loss, query accuracy and the time left."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from fspll.cli.console import progress_bar

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
