"""A person's answers on the disk: acknowledged only once they are there.

``answers.csv`` holds the answers that count, one row per sample; ``answers.log`` everything that
was ever said, one JSON object per line, among it answers that were taken back or given again in
another window. An audit has its own file, ``audit.csv``, and the same log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from fspll._common.errors import DataError, InputError
from fspll.annotations.answers import Answer, Answers, answer_table, read_contents
from fspll.annotations.grid import SAMPLE_NAMES, find_column
from fspll.annotations.tables import read_table
from fspll.annotations.writing import is_plain_text, write_table
from fspll.labeling.audit import Audit
from fspll.labeling.folder import ANSWERS, AUDIT, LOG, REVIEW, kept_answers, kept_audit

LONGEST_LABEL = 200  # characters
REVIEW_QUEUE, AUDIT_QUEUE = "review", "audit"
_LAST = 1 << 16  # bytes at the end of the log in which its last line is looked for

Key = tuple[str, str]  # a sample's name and the hash of its content


@dataclass(frozen=True)
class Event:
    """Something that a person said.

    Attributes
    ----------
    number : int
        Its line in the log, from 1.
    queue : {"review", "audit"}
    key : (str, str)
        The sample.
    given, before : Answer or None
        What counts since, and what counted before; None for no answer.
    """

    number: int
    queue: str
    key: Key
    given: Answer | None
    before: Answer | None


class AnswerStore:
    """The answers in the folder of a result, which this process holds (see ``lock_folder``).

    Parameters
    ----------
    folder : Path
    encoding : str, optional
        Of files that are not UTF-8.
    excel : bool
        Write byte-order marks, as the result has them.
    now : callable
        Returns the time.
    """

    def __init__(
        self,
        folder: Path,
        *,
        encoding: str | None = None,
        excel: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.folder, self._excel, self._now = folder, excel, now
        self._answers: dict[Key, Answer] = {}
        kept = kept_answers(folder, encoding=encoding)
        for source in kept:
            self._answers |= {(one.sample, one.content): one for one in source.records}
        self._encoding = encoding
        self._audit = kept_audit(folder, encoding=encoding)
        self._events: dict[int, Event] = {}
        self._number = _last_number(folder / LOG)
        if any(Path(one.source).name == REVIEW for one in kept):
            # From now on answers.csv has them; an answer taken back there must not come again.
            self._write_answers()
            fill_in(folder / REVIEW, dict.fromkeys(self._answers), encoding, excel=excel)

    @property
    def answers(self) -> Answers:
        """All answers that count, but for those of the audit."""
        return Answers(tuple(self._answers.values()), str(self.folder / ANSWERS), kept=True)

    @property
    def audit(self) -> Audit | None:
        """The labels that were drawn for an audit, with their answers."""
        return self._audit

    def read_audit_again(self) -> None:
        """Read an audit that was drawn since."""
        self._audit = kept_audit(self.folder, encoding=self._encoding)

    def get(self, key: Key, queue: str = REVIEW_QUEUE) -> Answer | None:
        """Return what counts for a sample."""
        if queue == REVIEW_QUEUE:
            return self._answers.get(key)
        given = None if self._audit is None else self._audit.given.get(key[0])
        return None if given is None else Answer(key[0], given, key[1])

    # ---------------------------------------------------------------- saying something

    def answer(self, key: Key, label: str, *, who: str = "", queue: str = REVIEW_QUEUE) -> Event:
        """Keep the label that a person gave to a sample."""
        label, who = _checked(label, "a label"), _checked(who, "a name", may_be_empty=True)
        return self._put(queue, key, Answer(key[0], label, key[1], self._time(), who))

    def discard(self, key: Key, *, who: str = "") -> Event:
        """Keep that a sample is to be left out."""
        who = _checked(who, "a name", may_be_empty=True)
        given = Answer(key[0], None, key[1], self._time(), who, discarded=True)
        return self._put(REVIEW_QUEUE, key, given)

    def withdraw(self, key: Key, queue: str = REVIEW_QUEUE) -> Event:
        """Take back whatever counts for a sample."""
        return self._put(queue, key, None)

    def undo(self, number: int) -> Event:
        """Make what counted before an event of this process count again."""
        event = self._events.get(number)
        if event is None:
            raise InputError("there is nothing to undo")
        if self.get(event.key, event.queue) != _comparable(event):
            raise InputError(
                f"{event.key[0]!r} was answered again since, in another window; that answer stays"
            )
        return self._put(event.queue, event.key, event.before, undone=number)

    def follow(self, moved: Mapping[Key, Key]) -> None:
        """Let answers go with their samples, which have other names or contents now."""
        if not moved:
            return
        self._answers = {
            moved.get(key, key): _moved(one, moved) for key, one in self._answers.items()
        }
        self._events = {
            number: replace(
                event,
                key=moved.get(event.key, event.key),
                given=None if event.given is None else _moved(event.given, moved),
                before=None if event.before is None else _moved(event.before, moved),
            )
            for number, event in self._events.items()
        }
        self._write_answers()

    # ---------------------------------------------------------------- on the disk

    def _put(self, queue: str, key: Key, given: Answer | None, undone: int | None = None) -> Event:
        if queue == AUDIT_QUEUE and (self._audit is None or key not in self._audit.keys):
            raise InputError(f"{key[0]!r} is not part of the audit")
        event = Event(self._number + 1, queue, key, given, self.get(key, queue))
        self._append(event, undone)
        self._number = event.number
        if queue == AUDIT_QUEUE:
            self._write_audit(key, given)
        else:
            before = self._answers.copy()
            self._answers.pop(key, None)
            if given is not None:
                self._answers[key] = given
            try:
                self._write_answers()
            except DataError:  # a full disk: what counts is what the file says
                self._answers = before
                raise
        self._events[event.number] = event
        return event

    def _write_answers(self) -> None:
        write_table(self.folder / ANSWERS, *answer_table(self._answers.values()), excel=self._excel)

    def _write_audit(self, key: Key, given: Answer | None) -> None:
        assert self._audit is not None
        label = None if given is None else given.label
        path = self.folder / AUDIT
        fill_in(path, {key: label}, self._encoding, excel=self._excel)
        place = self._audit.keys.index(key)
        answers = list(self._audit.answers)
        answers[place] = label
        self._audit = replace(self._audit, answers=tuple(answers))

    def _append(self, event: Event, undone: int | None) -> None:
        said = event.given
        line = {
            "number": event.number,
            "time": self._time() if said is None or not said.time else said.time,
            "queue": event.queue,
            "sample": event.key[0],
            "content": event.key[1],
            "answer": None if said is None else said.label,
            "discarded": said is not None and said.discarded,
            "who": "" if said is None else said.who,
            "undone": undone,
        }
        path = self.folder / LOG
        try:
            with path.open("ab") as file:
                file.write((json.dumps(line) + "\n").encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror or error}") from error

    def _time(self) -> str:
        return self._now().isoformat(timespec="seconds").replace("+00:00", "Z")


def _moved(one: Answer, moved: Mapping[Key, Key]) -> Answer:
    sample, content = moved.get((one.sample, one.content), (one.sample, one.content))
    return replace(one, sample=sample, content=content)


def _comparable(event: Event) -> Answer | None:
    """Return an answer as :meth:`AnswerStore.get` would: an audit knows no time and no author."""
    given = event.given
    if given is None or event.queue == REVIEW_QUEUE:
        return given
    return Answer(given.sample, given.label, given.content)


def _checked(text: object, what: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(text, str):
        raise InputError(f"{what} is a text, not {text!r:.60}")
    text = text.strip()
    if not text and not may_be_empty:
        raise InputError(f"{what} is needed")
    if len(text) > LONGEST_LABEL:
        raise InputError(f"{what} has at most {LONGEST_LABEL} characters, not {len(text)}")
    if not is_plain_text(text):
        raise InputError(f"{what} holds a character that no text file can hold")
    return text


def _last_number(path: Path) -> int:
    """Return the number of the last whole line of a log, and end a line that a kill cut short."""
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LAST))
            end = file.read()
            if end and not end.endswith(b"\n"):
                file.write(b"\n")
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    for line in reversed(end.splitlines()):
        try:
            number = json.loads(line)["number"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(number, int):
            return number
    return 0


def fill_in(
    path: Path, answers: Mapping[Key, str | None], encoding: str | None, *, excel: bool = False
) -> None:
    """Write answers into the column ``answer`` of a table of ours; everything else stays.

    Parameters
    ----------
    path : Path
        ``review.csv`` or ``audit.csv``.
    answers : mapping of (sample, content) to label or None
        None empties the cell.
    encoding : str or None
        Of a file that is not UTF-8.
    excel : bool
        Write a byte-order mark.
    """
    try:
        grid = read_table(path, may_be_empty=True)
    except DataError:
        if encoding is None:
            raise
        grid = read_table(path, encoding=encoding, may_be_empty=True)
    sample = find_column(grid.header, None, SAMPLE_NAMES, grid.source)
    answer = find_column(grid.header, None, ("answer",), grid.source)
    if sample is None or answer is None:
        raise DataError(f"{path} needs the columns 'sample' and 'answer'")
    rows = [list(row) for row in grid.rows]
    for row, content in zip(rows, read_contents(grid), strict=True):
        key = (str(row[sample]), content)
        if key in answers:
            row[answer] = answers[key] or ""
    write_table(path, grid.header, rows, excel=excel)
