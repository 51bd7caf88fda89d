"""A run on uploaded files: it opens nothing else, whatever the table says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fspll._common.errors import FsPLLError, InputError
from fspll._common.progress import Progress
from fspll.annotations.answers import Answers
from fspll.annotations.samples import Annotations
from fspll.app.fields import for_page, without_folder
from fspll.app.file_names import inside
from fspll.labeling.run import Run

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling


@dataclass(frozen=True)
class UploadedRun(Run):
    """A run whose files came from a browser.

    Errors speak of the fields of the page, and results name files as seen from the upload's folder:
    they are those of ``fspll label`` in a folder with the same files.

    Attributes
    ----------
    folder : Path
        Of the upload.
    closed : threading.Event
        Set when the folder is about to go: nothing may be written then.
    """

    folder: Path = field(kw_only=True)
    closed: threading.Event = field(kw_only=True, default_factory=threading.Event)

    def read(self) -> Annotations:
        """Read the labels; pictures are looked for in the upload alone."""
        with self._for_page():
            found = super().read()
        if "images" not in self.labeling:
            return found
        named = found.names if found.files is None else found.files
        safe = tuple(map(inside, named))
        return found if safe == named else replace(found, files=safe)

    def label(
        self,
        annotations: Annotations,
        *,
        answers: Sequence[Answers] = (),
        progress: Progress | bool | None = True,
        **options: Any,
    ) -> Labeling:
        """Label what was read; stop when the upload is deleted."""
        # Given here, by whoever sees the result: no note has to tell of them.
        given = [replace(one, kept=False) for one in answers]

        def report(done: int, total: int) -> None:
            self._check_open()
            if callable(progress):
                progress(done, total)

        with self._for_page():
            self._check_open()
            found = super().label(annotations, answers=given, progress=report, **options)
        return replace(
            found,
            notes=[without_folder(note, self.folder) for note in found.notes],
            unreadable=[
                replace(
                    one,
                    name=without_folder(one.name, self.folder),
                    reason=without_folder(one.reason, self.folder),
                )
                for one in found.unreadable
            ],
        )

    def save(self, result: Labeling, folder: Path, **options: Any) -> int:
        """Write the result, unless the upload was deleted."""
        self._check_open()
        with self._for_page():
            return super().save(result, folder, **options)

    def _check_open(self) -> None:
        if self.closed.is_set():
            raise InputError("this upload was deleted")

    @contextmanager
    def _for_page(self) -> Iterator[None]:
        try:
            yield
        except FsPLLError as error:
            raise InputError(for_page(str(error), self.folder)) from error
