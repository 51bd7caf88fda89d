"""Answers on the disk: what counts, what was ever said, and taking it back."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime

import pytest

from fspll._common.errors import DataError, InputError
from fspll.annotations import read_answers
from fspll.app.store import AUDIT_QUEUE, AnswerStore
from fspll.labeling import read_audit


@pytest.fixture
def store(result):
    return AnswerStore(result, now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def log(folder):
    return [json.loads(line) for line in (folder / "answers.log").read_text().splitlines()]


def test_an_answer_is_on_the_disk_at_once(result, store):
    event = store.answer(("s00", "h"), " b ", who="Ada")
    assert event.number == 1
    assert rows(result / "answers.csv") == [
        {
            "sample": "s00",
            "answer": "b",
            "content_hash": "h",
            "time": "2026-01-02T03:04:05Z",
            "answered_by": "Ada",
        }
    ]
    assert AnswerStore(result).answers == {"s00": "b"}


def test_the_last_answer_counts_and_the_log_has_both(result, store):
    """As two windows give them."""
    store.answer(("s00", ""), "a", who="Ada")
    store.answer(("s00", ""), "b", who="Ben")
    assert read_answers(result / "answers.csv") == {"s00": "b"}
    assert [(one["answer"], one["who"]) for one in log(result)] == [("a", "Ada"), ("b", "Ben")]


def test_undo_restores_what_counted_before(result, store):
    first = store.answer(("s00", ""), "a")
    second = store.answer(("s00", ""), "b")
    with pytest.raises(InputError, match="'s00' was answered again since, in another window"):
        store.undo(first.number)
    store.undo(second.number)
    assert store.answers == {"s00": "a"}
    store.undo(first.number)
    assert store.answers == {}
    assert rows(result / "answers.csv") == []
    assert [one["undone"] for one in log(result)] == [None, None, 2, 1]
    with pytest.raises(InputError, match="there is nothing to undo"):
        store.undo(99)


def test_discarding_and_taking_it_back(result, store):
    event = store.discard(("s03", ""), who="Ada")
    assert rows(result / "answers.csv")[0]["discarded"] == "yes"
    assert store.answers == {}
    assert len(store.answers.records) == 1
    store.undo(event.number)
    assert rows(result / "answers.csv") == []


def test_the_audit_has_its_own_file(result, store):
    drawn = read_audit(result / "audit.csv")
    before = rows(result / "audit.csv")
    event = store.answer(drawn.keys[1], "b", queue=AUDIT_QUEUE)
    after = rows(result / "audit.csv")
    assert [row.pop("answer") for row in after] == ["", "b", "", ""]
    assert after == [{k: v for k, v in row.items() if k != "answer"} for row in before]
    assert not (result / "answers.csv").exists()
    assert store.audit.given == {drawn.samples[1]: "b"}
    store.undo(event.number)
    assert store.audit.given == {}
    with pytest.raises(InputError, match="'nobody' is not part of the audit"):
        store.answer(("nobody", ""), "b", queue=AUDIT_QUEUE)


def test_a_filled_in_review_list_is_taken_over_once(result):
    """Otherwise an answer taken back on the page would come again from the list."""
    found = rows(result / "review.csv")
    found[0]["answer"] = "c"
    with (result / "review.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)
    store = AnswerStore(result)
    name = found[0]["sample"]
    assert store.answers == {name: "c"}
    assert {row["answer"] for row in rows(result / "review.csv")} == {""}
    store.withdraw((name, found[0]["content_hash"]))
    assert AnswerStore(result).answers == {}


def test_a_log_that_a_kill_cut_short_goes_on(result, store):
    store.answer(("s00", ""), "a")
    with (result / "answers.log").open("ab") as file:
        file.write(b'{"number": 2, "answ')
    again = AnswerStore(result)
    assert again.answer(("s01", ""), "b").number == 2
    lines = (result / "answers.log").read_bytes().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[2])["sample"] == "s01"


def test_a_full_disk_changes_nothing(result, store, monkeypatch):
    store.answer(("s00", ""), "a")

    def full(*_, **__):
        raise DataError("cannot write answers.csv: No space left on device")

    monkeypatch.setattr("fspll.app.store.write_table", full)
    with pytest.raises(DataError, match="No space left"):
        store.answer(("s00", ""), "b")
    assert store.answers == {"s00": "a"}


def test_text_that_would_be_a_formula(result, store):
    store.answer(("s00", ""), "=1+1", who="@me")
    assert "'=1+1" in (result / "answers.csv").read_text()
    assert AnswerStore(result).answers == {"s00": "=1+1"}
