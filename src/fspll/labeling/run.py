"""What one run of labeling was asked for: recorded in its folder, so that it can go on from there.

The command ``fspll label`` and the review page make the same calls through it, so that the same
answers give the same files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fspll._common.errors import DataError
from fspll._common.files import write_beside
from fspll._common.progress import Progress
from fspll.annotations.answers import Answers, read_answers
from fspll.annotations.samples import Annotations
from fspll.annotations.tables import read_in_either
from fspll.labeling.audit import Audit, read_audit
from fspll.labeling.folder import NAMES, RUN, kept_answers, kept_audit

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling

_FORMAT = 1
_PARTS = ("reading", "labeling", "saving")
# Options whose value is a path. That of "encoder" is one where it is the file of a checkpoint.
_PATHS = {"features", "alternatives", "rename", "images", "pictures_below"}


@dataclass(frozen=True)
class Run:
    """What is read, how it is labeled, and what is saved.

    Attributes
    ----------
    file : Path
        The labels.
    reading : mapping
        Options of :func:`fspll.annotations.read_annotations`.
    labeling : mapping
        Options of :func:`fspll.labeling.label`, without answers and audit.
    saving : mapping
        Options of :func:`fspll.labeling.saving.save`: ``sure``, ``excel``, ``pictures_below``.
    speak : callable
        Words the notes of a report for whoever started the run; not recorded.

    Examples
    --------
    >>> Run(Path("labels.csv"), {"delimiter": "|"}).reading
    {'delimiter': '|'}
    """

    file: Path
    reading: Mapping[str, Any] = field(default_factory=dict)
    labeling: Mapping[str, Any] = field(default_factory=dict)
    saving: Mapping[str, Any] = field(default_factory=dict)
    speak: Callable[[str], str] = field(default=str, compare=False)

    def read(self) -> Annotations:
        """Read the labels."""
        from fspll.annotations.reading import read_annotations

        return read_annotations(self.file, **self.reading)

    def label(
        self,
        annotations: Annotations,
        *,
        answers: Sequence[Answers] = (),
        audited: Audit | None = None,
        audit: int | None = None,
        progress: Progress | bool | None = True,
        scheduler: str | None = None,
    ) -> Labeling:
        """Label what was read, with the answers of a person.

        Where samples are encoded is not recorded: it does not change the result.
        """
        from fspll.labeling.pipeline import label

        return label(
            annotations,
            answers=answers,
            audited=audited,
            audit=audit,
            progress=progress,
            scheduler=scheduler,
            **self.labeling,
        )

    def save(self, result: Labeling, folder: Path, **options: Any) -> int:
        """Write the result and this record of it; see :func:`fspll.labeling.saving.save`."""
        from fspll.labeling.saving import save

        encoding = self.reading.get("encoding")
        notes = [self.speak(one) for one in result.notes]
        result = replace(result, notes=notes, understood=self.speak(result.understood))
        return save(result, folder, run=self, encoding=encoding, **{**self.saving, **options})

    # ---------------------------------------------------------------- the record

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the result, with absolute paths."""
        record: dict[str, Any] = {"format": _FORMAT, "file": str(self.file.absolute())}
        for part in _PARTS:
            options = getattr(self, part)
            record[part] = {name: _written(name, options[name]) for name in sorted(options)}
        with write_beside(folder / RUN) as beside:
            text = json.dumps(record, indent=1, ensure_ascii=False)
            beside.write_bytes((text + "\n").encode("utf-8", errors="surrogateescape"))

    @classmethod
    def of_folder(cls, folder: Path, speak: Callable[[str], str] = str) -> Run:
        """Read the record of a result."""
        path = folder / RUN
        try:
            record = json.loads(path.read_bytes().decode("utf-8", errors="surrogateescape"))
        except FileNotFoundError:
            raise DataError(
                f"{folder} does not say how it was made (there is no {RUN}); run fspll label into "
                "it once more"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path} cannot be read: {error}") from None
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise DataError(f"{path} is not the record of a run, or one of another version")
        parts = [record[part] for part in _PARTS if isinstance(record.get(part), dict)]
        if not isinstance(record.get("file"), str) or len(parts) < len(_PARTS):
            raise DataError(f"{path} is damaged: it lacks the file or the options of the run")
        reading, labeling, saving = (
            {name: _read(name, one) for name, one in part.items()} for part in parts
        )
        return cls(Path(record["file"]), reading, labeling, saving, speak)


def _written(name: str, value: Any) -> Any:
    if isinstance(value, Path) or (name in _PATHS and isinstance(value, str)):
        return str(Path(value).absolute())
    if name == "encoder" and isinstance(value, str) and _is_checkpoint(value):
        return str(Path(value).absolute())
    return value


def _is_checkpoint(encoder: str) -> bool:
    """Return whether this is a file: a name comes first, also beside a folder that has it."""
    from fspll.embeddings.registry import ENCODERS
    from fspll.labeling.samples import FEATURES

    return encoder != FEATURES and ENCODERS.find(encoder) is None and Path(encoder).is_file()


def _read(name: str, value: Any) -> Any:
    return Path(value) if name in _PATHS and isinstance(value, str) else value


# -------------------------------------------------------------------- a person's answers


def gather_answers(
    paths: Sequence[Path], folder: Path, encoding: str | None, *, forget: bool = False
) -> list[Answers]:
    """Read answers; those in the folder of the results count as well, unless to be forgotten."""
    found = [] if forget else kept_answers(folder, encoding=encoding, given=paths)
    for path in paths:
        # The folder's own review list may have no questions left when the command is run again.
        own = path.name in NAMES and path.parent.resolve() == folder.resolve()
        read = read_in_either(partial(read_answers, path, kept=own), encoding)
        found.append(replace(read, kept=False))  # named by the user, who need not be told of it
    return found


def gather_audit(
    path: Path | None, folder: Path, encoding: str | None, *, forget: bool = False
) -> Audit | None:
    """Read the audit of a file, or else that of an earlier result in the folder."""
    if path is not None:
        return read_in_either(partial(read_audit, path), encoding)
    return None if forget else kept_audit(folder, encoding=encoding)
