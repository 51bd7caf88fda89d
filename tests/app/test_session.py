"""A result under review: the queue, answers and fits, and the files in the end."""

from __future__ import annotations

import numpy as np
import pytest

from fspll._common.errors import DataError, InputError
from fspll._common.locks import lock_folder
from fspll.annotations import read_answers
from fspll.app.session import FAILED, Session
from fspll.app.view import view_of_files
from fspll.labeling.run import Run, gather_answers, gather_audit

from .conftest import wait_for


def test_the_view_of_the_files_is_that_of_the_model(result, open_session):
    session = open_session(result)
    from_files = view_of_files(result, session.annotations)
    assert session.view.labeling is not None
    assert from_files.labels == session.view.labels
    np.testing.assert_allclose(from_files.confidence, session.view.confidence, atol=5e-5)
    assert [one.sample for one in from_files.questions] == [
        one.sample for one in session.view.questions
    ]
    for one, other in zip(from_files.probabilities, session.view.probabilities, strict=True):
        for label, chance in one.items():
            assert chance == pytest.approx(other[label], abs=2e-4)


def test_an_answer_counts_at_once_and_is_fitted_soon(result, open_session, settled):
    session = open_session(result)
    (first, *_), before = session.queue("review"), session.progress()
    label = session.view.labels[first]
    session.answer(first, label, who="Ada")
    assert first not in session.queue("review")
    now = session.progress()
    assert now["answered"] == before["answered"] + 1
    assert now["expected"] > before["expected"]
    assert now["line"].startswith("1 answered, ")
    settled(session)
    assert session.view.confidence[first] == 1.0
    assert read_answers(result / "answers.csv") == {f"s{first:02}": label}
    # Answers carry the content of their samples, although the files did not say it at first.
    assert read_answers(result / "answers.csv").records[0].content.startswith("sha256-")


def test_an_answer_given_before_the_model_is_there(result, settled):
    session = Session(result)
    try:
        with pytest.raises(InputError, match="still being read"):
            session.answer(0, "a")
        session.start()
        wait_for(lambda: session.status()["state"] == "ready")
        event = session.answer(0, "b")
        settled(session)
        (one,) = session.store.answers.records
        assert one.content.startswith("sha256-")
        session.undo(event.number)
        assert session.store.answers == {}
    finally:
        session.close()


def test_discarded_samples_leave_and_come_back(result, open_session, settled):
    session = open_session(result)
    event = session.discard(3)
    assert session.progress()["line"].startswith("0 answered, 1 discarded")
    settled(session)
    assert np.isnan(session.view.confidence[3])
    session.undo(event.number)
    settled(session)
    assert not np.isnan(session.view.confidence[3])
    assert session.progress()["discarded"] == 0


def test_the_audit_queue_is_the_drawn_order(result, open_session):
    session = open_session(result)
    drawn = session.store.audit
    assert [session.keys[one][0] for one in session.queue("audit")] == list(drawn.samples)
    session.answer(session.queue("audit")[0], "a", queue="audit")
    assert session.progress()["audit"] == {"drawn": 4, "answered": 1}
    assert [session.keys[one][0] for one in session.queue("audit")] == list(drawn.samples[1:])


def test_saving_gives_the_files_of_the_command(result, open_session, settled, tmp_path):
    session = open_session(result)
    session.answer(2, "b", who="Ada")
    session.discard(7)
    session.answer(session.queue("audit")[0], "a", queue="audit")
    settled(session)
    session.save()
    settled(session)
    run = Run.of_folder(result)
    answers, audited = gather_answers([], result, None), gather_audit(None, result, None)
    again = run.label(run.read(), answers=answers, audited=audited, progress=False)
    run.save(again, tmp_path / "again")
    for name in ("labels.csv", "review.csv", "answers.csv", "audit.csv", "model.fspll"):
        assert (result / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
    assert session.status()["saved"] >= 0


def test_a_result_is_made_where_there_is_none(tmp_path, table, open_session):
    session = open_session(tmp_path / "new", table())
    assert (tmp_path / "new" / "labels.csv").exists()
    assert session.progress()["samples"] == 30


def test_a_folder_in_use_is_said(result):
    session = Session(result)
    with lock_folder(result):
        session.start()
        wait_for(lambda: session.status()["state"] == FAILED)
    assert "is in use: another fspll process writes into it" in session.status()["message"]
    with pytest.raises(DataError, match="in use"):
        session.queue("review")
    session.close()


def test_a_table_that_is_gone_is_said(result, tmp_path):
    (tmp_path / "labels.csv").unlink()
    session = Session(result)
    session.start()
    wait_for(lambda: session.status()["state"] == FAILED)
    assert "labels.csv" in session.status()["message"]
    session.close()


def test_closing_lets_the_folder_go(result, open_session):
    session = open_session(result)
    with pytest.raises(DataError, match="in use"), lock_folder(result):
        pass
    session.close()
    with lock_folder(result):
        pass


def test_nearest_settled_samples(result, open_session):
    session = open_session(result)
    X = session.view.features
    settled = np.zeros(len(X), dtype=bool)
    settled[5:25] = True
    near = session.view.neighbors(7, settled, 3)
    apart = [(float(((X[one] - X[7]) ** 2).sum()), one) for one in range(5, 25) if one != 7]
    assert near == [one for _, one in sorted(apart)[:3]]
