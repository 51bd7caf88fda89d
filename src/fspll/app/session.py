"""One result under review: its samples, the queue of questions, and the answers.

Everything is called from several threads: requests come from the server's, and a thread of the
session's own fits the model again after answers. Requests never wait for a fit: an answered sample
counts as certain at once, and what the answer says of other samples follows.

Shapes: n samples.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fspll._common.errors import DataError, FsPLLError, InputError
from fspll._common.locks import lock_folder
from fspll._common.words import counted, percent
from fspll.annotations.answers import Answer, Answers
from fspll.annotations.samples import Annotations
from fspll.app.fitting import Encoded
from fspll.app.store import AUDIT_QUEUE, REVIEW_QUEUE, AnswerStore, Event, Key
from fspll.app.view import SETTLED, View, view_of_files, view_of_labeling
from fspll.candidates.sets import Candidates
from fspll.labeling.answering import find_samples
from fspll.labeling.audit import Audit
from fspll.labeling.folder import LABELS
from fspll.labeling.run import Run, gather_answers, gather_audit

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling

READING, LABELING, READY, FAILED, CLOSED = "reading", "labeling", "ready", "failed", "closed"
_LATER = 5  # the priority of fits, lower than that of requests
MOST_CLASSES = 2000  # that a page offers as other labels
AT_MOST = 200  # questions of a queue that a page gets at once


class Session:
    """A folder of results, held by this process while it is open.

    Parameters
    ----------
    folder : Path
        With a result, or one that is still to be made.
    run : Run, optional
        How to make it; by default as the folder's record says.
    """

    def __init__(self, folder: Path, run: Run | None = None) -> None:
        self.folder = folder
        self.run = Run.of_folder(folder) if run is None else run
        self.state, self.message = READING, ""
        self.done: tuple[int, int] | None = None  # samples encoded, of how many
        self.version = 0  # counts what a page shows: answers and fits
        self.saved_version = -1  # at which the files of the folder were written
        self.annotations: Annotations
        self.candidates: Candidates
        self.numbers: dict[str, int] = {}  # of the samples, by name
        self.keys: list[Key] = []  # of the samples: name, and content as far as it is known
        self.pictures: list[Path] | None = None
        self.texts: tuple[str, ...] | None = None
        self.view: View
        self.store: AnswerStore
        self._encoded: Encoded | None = None
        self._lock = threading.RLock()  # of everything above
        self._wake = threading.Condition(self._lock)
        self._fit_wanted = False
        self._updating = False
        self._save_wanted: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"fit {folder.name}")

    # ---------------------------------------------------------------- the thread

    def start(self) -> None:
        """Begin to read, in a thread of its own."""
        self._thread.start()

    def close(self) -> None:
        """Let the folder go."""
        with self._wake:
            self.state = CLOSED
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _work(self) -> None:
        if sys.platform == "linux":  # where threads have priorities: requests come first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LATER)
        with ExitStack() as stack:
            try:
                stack.enter_context(lock_folder(self.folder))
                self._open()
                while self._wait():
                    self._update()
            except FsPLLError as error:
                self._fail(str(error))
            except Exception as error:  # a bug: say so on the page, too
                self._fail(f"{type(error).__name__}: {error}")
                raise

    def _fail(self, message: str) -> None:
        with self._lock:
            self.state, self.message = FAILED, message
            self.version += 1

    def _open(self) -> None:
        """Read the labels and the files of the result, then fit the model once."""
        annotations = self.run.read()
        if not (self.folder / LABELS).exists():
            self._label_first(annotations)
        store = AnswerStore(
            self.folder,
            encoding=self.run.reading.get("encoding"),
            excel=bool(self.run.saving.get("excel")),
        )
        view = view_of_files(self.folder, annotations)
        pictures = self._find_pictures(annotations)
        with self._lock:
            self.annotations, self.store, self.view = annotations, store, view
            self.candidates = annotations.candidates
            self.numbers = {name: row for row, name in enumerate(annotations.names)}
            self.pictures = pictures
            self.texts = annotations.texts if pictures is None else None
            self.keys = self._known_keys()
            self.state = READY
            self.version += 1
            self._fit_wanted = True

    def _label_first(self, annotations: Annotations) -> None:
        """Make the result that there is none of yet."""
        with self._lock:
            self.state = LABELING
        result = self.run.label(annotations, progress=self._encoded_so_far)
        self.run.save(result, self.folder)

    def _encoded_so_far(self, done: int, total: int) -> None:
        self.done = (done, total)

    def _find_pictures(self, annotations: Annotations) -> list[Path] | None:
        from fspll.labeling.samples import FEATURES, find_pictures

        images, encoder = self.run.labeling.get("images"), self.run.labeling.get("encoder")
        vectors = annotations.features is not None and images is None
        texts = annotations.texts is not None and images is None
        if encoder == FEATURES or vectors or texts:
            return None
        return find_pictures(annotations, images)[0]

    def _known_keys(self) -> list[Key]:
        """Return names and contents; contents are those of answers given before, until a fit."""
        known = {one.sample: one.content for one in self.store.answers.records}
        if self.store.audit is not None:
            known |= dict(self.store.audit.keys)
        return [(name, known.get(name, "")) for name in self.annotations.names]

    def _wait(self) -> bool:
        with self._wake:
            while not (self._fit_wanted or self._save_wanted is not None or self.state == CLOSED):
                self._wake.wait()
            return self.state != CLOSED

    def _update(self) -> None:
        with self._lock:
            saving, self._save_wanted = self._save_wanted, None
            self._fit_wanted = False
            self._updating = True
            answers, audit = self.store.answers, self.store.audit
        try:
            if saving is not None:
                self._save(saving)
            elif self._encoded is None:
                self._first_fit(answers)
            else:
                self._fit(self._encoded, answers, audit)
            self.message = ""
        except FsPLLError as error:
            self.message = str(error)  # the page goes on with what it has
        finally:
            with self._lock:
                self._updating = False
                self.version += 1

    def _first_fit(self, answers: Answers) -> None:
        """Encode everything, discarded samples too, and fit."""
        kept = tuple(one for one in answers.records if not one.discarded)
        audit = self.store.audit
        result = self.run.label(
            self.annotations,
            answers=[replace(answers, records=kept)],
            audited=audit,
            progress=self._encoded_so_far,
        )
        contents = dict(zip(result.names, result.contents, strict=True))
        with self._lock:
            self._follow(contents)
            self._encoded = Encoded.of(self.annotations, result, self.pictures)
            self.view = view_of_labeling(result, self.annotations)
            if len(kept) < len(answers.records):
                self._fit_wanted = True

    def _follow(self, contents: Mapping[str, str]) -> None:
        """Let answers go with their samples, now that the contents of these are known."""
        self.keys = [(name, contents.get(name, content)) for name, content in self.keys]
        here = [name for name, _ in self.keys]
        held = [content for _, content in self.keys]
        records = self.store.answers.records
        found = find_samples([(one.sample, one.content) for one in records], here, held)
        content_of = dict(self.keys)
        self.store.follow(
            {
                (one.sample, one.content): (name, content_of[name])
                for one, name in zip(records, found, strict=True)
                if name is not None and (one.sample, one.content) != (name, content_of[name])
            }
        )

    def _fit(self, encoded: Encoded, answers: Answers, audit: Audit | None) -> None:
        """Fit again to what is encoded already."""
        view = view_of_labeling(encoded.fit(self.run, answers, audit), self.annotations)
        with self._lock:
            features = self.view.features  # of discarded samples, too
            self.view = view if features is None else replace(view, features=features)

    def _save(self, options: dict[str, Any]) -> None:
        """Make the files of the folder anew, exactly as the command would."""
        encoding = self.run.reading.get("encoding")
        before = self.version
        answers = gather_answers([], self.folder, encoding)
        audited = gather_audit(None, self.folder, encoding)
        result = self.run.label(
            self.annotations,
            answers=answers,
            audited=audited,
            audit=options.get("audit"),
            progress=self._encoded_so_far,
        )
        self.run.save(result, self.folder)
        with self._lock:
            self.store.read_audit_again()
            self.saved_version = before
            self._fit_wanted = True

    # ---------------------------------------------------------------- what pages ask

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Hold the session while a request reads or changes it."""
        with self._lock:
            if self.state == FAILED:
                raise DataError(self.message)
            if self.state != READY:
                raise InputError("the result is still being read; try again in a moment")
            yield

    def labeling(self) -> Labeling | None:
        """Return the latest fit; None where there is none yet."""
        with self._lock:
            if self.state == FAILED:
                raise DataError(self.message)
            return self.view.labeling if self.state == READY else None

    def status(self) -> dict[str, Any]:
        """Return how far the session is, and the figures of the progress line."""
        with self._lock:
            found: dict[str, Any] = {
                "state": self.state,
                "message": self.message,
                "done": self.done,
                "version": self.version,
                "updating": self._updating or self._fit_wanted or self._save_wanted is not None,
                "saving": self._save_wanted is not None,
                "saved": self.saved_version,
            }
            if self.state == READY:
                found |= {
                    "progress": self.progress(),
                    "summary": self.annotations.summary,
                    "classes": list(self.annotations.classes[:MOST_CLASSES]),
                }
            return found

    def progress(self) -> dict[str, Any]:
        """Return what the progress line says."""
        with self.ready():
            confidence = self.confidence()
            answers = self.store.answers.records
            mine = [one for one in answers if one.sample in self.numbers]
            answered = sum(not one.discarded for one in mine)
            left_out = len(mine) - answered
            audit = self.store.audit
            known = confidence[~np.isnan(confidence)]
            expected = float(known.mean()) if len(known) else float("nan")
            line = f"{answered:,} answered"
            line += f", {left_out:,} discarded" if left_out else ""
            if self.view.calibrated and len(known):
                line += f", {percent(expected)} expected right"
            return {
                "samples": len(self.annotations),
                "answered": answered,
                "discarded": left_out,
                "expected": None if np.isnan(expected) else expected,
                "line": line,
                "audit": None
                if audit is None
                else {"drawn": len(audit), "answered": audit.n_answers},
            }

    def confidence(self) -> np.ndarray:
        """Return how sure every label is, answered ones being certain; NaN for left-out ones."""
        confidence = self.view.confidence.copy()
        for number, one in self.current().items():
            confidence[number] = np.nan if one.discarded else 1.0
        return confidence

    def current(self) -> dict[int, Answer]:
        """Return what a person said, by sample; an audit's answers count, too."""
        number = self.numbers
        found = {
            number[one.sample]: one for one in self.store.answers.records if one.sample in number
        }
        if self.store.audit is not None:
            for name, given in self.store.audit.given.items():
                if name in number:
                    found[number[name]] = Answer(name, given)
        return found

    def queue(self, name: str) -> list[int]:
        """Return the samples to ask about, in order: first the questions, then other doubts."""
        with self.ready():
            if name == AUDIT_QUEUE:
                return self._audit_queue()
            answered = self.current()
            asked = [one.sample for one in self.view.questions if one.sample not in answered]
            if len(asked) < AT_MOST:
                confidence = self.confidence()
                order = np.argsort(np.where(np.isnan(confidence), 2.0, confidence), kind="stable")
                doubtful = order[confidence[order] < SETTLED].tolist()
                there = set(asked)
                asked += [one for one in doubtful if one not in there and one not in answered]
            return asked[:AT_MOST]

    def _audit_queue(self) -> list[int]:
        audit = self.store.audit
        if audit is None:
            return []
        number = self.numbers
        both = zip(audit.samples, audit.answers, strict=True)
        return [number[name] for name, given in both if given is None and name in number]

    # ---------------------------------------------------------------- what a person says

    def answer(self, sample: int, label: str, *, who: str = "", queue: str = REVIEW_QUEUE) -> Event:
        """Keep an answer, and fit again when there is time."""
        with self.ready():
            return self._said(self.store.answer(self.key(sample), label, who=who, queue=queue))

    def discard(self, sample: int, *, who: str = "") -> Event:
        """Leave a sample out."""
        with self.ready():
            others = len(self.annotations) - self.progress()["discarded"]
            if others <= 2:
                raise InputError("two samples at least must stay")
            return self._said(self.store.discard(self.key(sample), who=who))

    def withdraw(self, sample: int, *, queue: str = REVIEW_QUEUE) -> Event:
        """Take back whatever was said of a sample."""
        with self.ready():
            return self._said(self.store.withdraw(self.key(sample), queue))

    def undo(self, event: int) -> Event:
        """Take back what was said, or what was taken back."""
        with self.ready():
            return self._said(self.store.undo(event))

    def save(self, **options: Any) -> None:
        """Ask for the files of the folder to be written anew, with ``audit`` labels drawn."""
        with self._wake:
            self._save_wanted = options
            self._wake.notify_all()

    def key(self, sample: int) -> Key:
        """Return what a sample is called in files."""
        if not 0 <= sample < len(self.keys):
            raise InputError(
                f"there is no sample {sample}; there are {counted(len(self.keys), 'sample')}"
            )
        return self.keys[sample]

    def _said(self, event: Event) -> Event:
        self.version += 1
        self._fit_wanted = True
        self._wake.notify_all()
        return event
