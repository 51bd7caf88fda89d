"""Audits: a fair draw, its figure and interval, and what it does to the confidences."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy import sparse

from fspll._common.errors import DataError, InputError
from fspll.annotations.samples import Annotations
from fspll.candidates import Judgments
from fspll.labeling import Audit, draw_audit, label, read_audit
from fspll.labeling.audit import PRIOR, Recalibration, draw
from fspll.labeling.wording import audit_sentence, condition

pytestmark = pytest.mark.usefixtures("one_thread")


def answer_all(audit, truth_of):
    return audit.answered({name: truth_of[name] for name in audit.samples})


@pytest.fixture(scope="module")
def crowd():
    """Two people who often make the same mistake: (annotations, truth by sample)."""
    rng = np.random.default_rng(3)
    truth = np.arange(300) % 3
    X = 4 * rng.normal(size=(3, 6))[truth] + rng.normal(size=(300, 6))
    # Where a picture misleads, it misleads both, and it looks like what they take it for.
    fooled = rng.random(300) < 0.12
    looks = np.where(fooled, (truth + 1) % 3, truth)
    X[fooled] = X[[int(np.flatnonzero((truth == c) & ~fooled)[0]) for c in looks[fooled]]]
    said = np.stack([looks, np.where(rng.random(300) < 0.2, (looks + 1) % 3, looks)], axis=1)
    classes = ("ant", "bee", "cow")
    votes = np.eye(3)[said].sum(axis=1)
    names = tuple(f"s{row}" for row in range(300))
    judgments = Judgments(
        np.repeat(np.arange(300), 2), np.tile([0, 1], 300), said.ravel(), ("Ann", "Ben")
    )
    data = Annotations(
        names, classes, sparse.csr_array(votes), names, features=X, judgments=judgments
    )
    return data, {name: classes[c] for name, c in zip(names, truth, strict=True)}


# -------------------------------------------------------------------- the draw


def test_every_label_has_the_same_chance():
    confidence = np.random.default_rng(0).random(50)
    count = np.zeros(50)
    for seed in range(4000):
        drawn = draw(confidence, 7, seed)
        assert len(set(drawn.tolist())) == 7
        count[drawn] += 1
    expected = 4000 * 7 / 50
    assert np.abs(count - expected).max() < 5 * (expected * (1 - 7 / 50)) ** 0.5
    # In random order as well, so that the first rows alone are a fair draw.
    first = np.bincount([draw(confidence, 7, seed)[0] for seed in range(4000)], minlength=50)
    assert np.abs(first - 80).max() < 5 * 80**0.5


def test_a_draw_repeats_and_ends_with_the_labels():
    confidence = np.linspace(0, 1, 20)
    assert draw(confidence, 5, 1).tolist() == draw(confidence, 5, 1).tolist()
    assert sorted(draw(confidence, 99).tolist()) == list(range(20))
    with pytest.raises(InputError, match="audit must be"):
        draw(confidence, 0)


def test_the_figure_is_unbiased_and_the_interval_covers_the_truth(stripped, crowd):
    X, truth, mask, _ = stripped
    data, truth_of = crowd
    digits = label((X, mask))
    people = label(data)
    known = {f"row {row}": int(one) for row, one in enumerate(truth)}
    for found, answers in ((digits, known), (people, truth_of)):
        right = np.mean(
            [answers[name] == one for name, one in zip(found.names, found.labels, strict=True)]
        )
        assert 0.8 < right < 0.92
        audits = [answer_all(draw_audit(found, 30, seed=seed), answers) for seed in range(20)]
        assert abs(np.mean([one.share for one in audits]) - right) <= 0.02
        covered = [one.interval[0] <= right <= one.interval[1] for one in audits]
        assert sum(covered) >= 18


def test_answered_samples_are_not_drawn(stripped):
    X, truth, mask, _ = stripped
    X, truth, mask = X[:100], truth[:100], mask[:100]
    answers = {f"row {row}": int(truth[row]) for row in range(60)}
    found = label((X, mask), answers=answers, audit=60)
    assert len(found.audit) == 40
    assert not set(found.audit.samples) & set(answers)
    assert found.audit.n_answers == 0
    assert audit_sentence(found) is None
    every = label((X, mask), answers={f"row {row}": int(truth[row]) for row in range(100)}, audit=9)
    assert every.audit is None


# -------------------------------------------------------------------- the figures


def test_wilson_by_hand():
    audit = Audit(tuple("abcdefghij"), ("x",) * 10, ("x",) * 8 + ("y",) * 2)
    assert (audit.n_right, audit.n_answers, audit.share) == (8, 10, 0.8)
    # Newcombe (1998) gives such intervals to four digits.
    assert audit.interval == pytest.approx((0.4902, 0.9433), abs=1e-4)
    whole = Audit(("a",), ("x",), ("x",))
    assert whole.interval == pytest.approx((0.2065, 1.0), abs=1e-4)
    assert Audit(("a",), ("x",), (None,)).interval == (0.0, 1.0)


def test_the_mean_of_audited_labels_meets_the_target():
    confidence = np.array([0.95, 0.9, 0.8, 0.99, 0.7])
    values = sparse.csr_array(np.stack([confidence, 1 - confidence], axis=1))
    none, top = np.zeros(5, dtype=bool), np.zeros(5, dtype=np.int64)
    for answers, right in ((("x", "y", "y", "x", "x"), 3), (("x",) * 5, 5)):
        audit = Audit(tuple("abcde"), ("x",) * 5, answers)
        found = Recalibration.of(audit, confidence)
        moved = found.apply(values, top, none).toarray()[:, 0]
        assert moved.mean() == pytest.approx((right + PRIOR * confidence.mean()) / (5 + PRIOR))
        assert (np.diff(moved[np.argsort(confidence)]) > 0).all()
    # Claims of certainty can be mended, too.
    sure = Recalibration.of(Audit(("a", "b"), ("x", "x"), ("y", "y")), np.ones(2))
    assert sure == (1.0, PRIOR / (2 + PRIOR))


def test_what_a_label_loses_goes_to_none_of_these():
    values = sparse.csr_array(np.array([[0.6, 0.4, 0.0], [0.9, 0.05, 0.0], [1.0, 0, 0]]))
    top, settled = np.array([0, 0, 0]), np.array([False, False, True])
    less = Recalibration(0.8, 0.6).apply(values, top, settled).toarray()
    np.testing.assert_allclose(less, [[0.45, 0.3, 0], [0.675, 0.0375, 0], [1, 0, 0]])
    more = Recalibration(0.8, 0.9).apply(values, top, settled).toarray()
    np.testing.assert_allclose(more, [[0.8, 0.2, 0], [0.95, 0.025, 0], [1, 0, 0]])


def test_answers_recalibrate_and_settle(crowd):
    data, truth_of = crowd
    before = label(data, audit=30)
    right = np.mean([truth_of[n] == one for n, one in zip(data.names, before.labels, strict=True)])
    assert before.expected_accuracy - right > 0.05  # nobody could see the common mistakes
    audit = answer_all(before.audit, truth_of)
    after = label(data, audited=audit)
    assert after.audit == audit
    rows = [data.names.index(name) for name in audit.samples]
    assert after.labels[rows].tolist() == list(audit.answers)
    assert after.confidence[rows].min() > 0.999
    right = np.mean([truth_of[n] == one for n, one in zip(data.names, after.labels, strict=True)])
    assert abs(after.expected_accuracy - right) < abs(before.expected_accuracy - right)
    open_ones = ~after.answered
    raw = after.classifier.confidence_.max(axis=1)[open_ones].round(9)
    assert (np.diff(after.confidence[open_ones][np.argsort(raw, kind="stable")]) > -1e-6).all()
    assert condition(after) == "(by the audit)"
    count, share = audit.n_right, f"{audit.share:.0%}"
    assert audit_sentence(after).startswith(
        f"Audit: of 30 labels drawn at random {count} were right, {share} (95% interval "
    )


def test_a_draw_goes_on(crowd):
    data, truth_of = crowd
    first = draw_audit(label(data), 10)
    half = first.answered({name: truth_of[name] for name in first.samples[:5]})
    settled = first.samples[7]
    found = label(data, audited=half, audit=12, answers={settled: truth_of[settled]})
    assert found.audit.samples[:9] == tuple(name for name in first.samples if name != settled)
    assert len(found.audit) == 12
    assert found.audit.n_answers == 5
    assert len(set(found.audit.samples)) == 12


# -------------------------------------------------------------------- files


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_file_of_an_audit(annotate, tmp_path):
    X = np.repeat([[0.0, 1.0], [9.0, 3.0]], 15, axis=0)
    X = X + np.random.default_rng(0).normal(size=(30, 2))
    sets = [["=a", "b"] if row % 2 else ["=a"] if row < 15 else ["b"] for row in range(30)]
    texts = tuple(f"text {row}" for row in range(30))
    data = annotate(sets, texts=texts)
    found = label(data, encoder=lambda _: X, audit=6)
    found.save(tmp_path)
    drawn = rows_of(tmp_path / "audit.csv")
    assert list(drawn[0]) == ["sample", "label", "answer", "text", "content_hash"]
    assert [row["sample"] for row in drawn] == list(found.audit.samples)
    assert drawn[0]["text"] == f"text {drawn[0]['sample'][1:]}"
    audit = read_audit(tmp_path / "audit.csv")
    assert audit == found.audit
    audit = audit.answered(dict.fromkeys(audit.samples, "b"))
    other = next(f"s{row}" for row in range(0, 15, 2) if f"s{row}" not in audit.samples)
    label(data, encoder=lambda _: X, audited=audit, answers={other: "=a"}).save(tmp_path)
    assert read_audit(tmp_path / "audit.csv") == audit
    # What was audited is kept there, and other answers in their own file.
    assert [row["sample"] for row in rows_of(tmp_path / "answers.csv")] == [other]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Audit: of 6 labels drawn at random {audit.n_right} were right" in page
    assert "by the audit" in page
    assert "of 6 audited labels are right" in page


def test_files_that_are_no_audit(tmp_path):
    path = tmp_path / "audit.csv"
    path.write_text("sample,answer\na,x\n")
    with pytest.raises(DataError, match="needs the columns 'sample', 'label' and 'answer'"):
        read_audit(path)
    path.write_text("sample,label,answer\na,x,x\na,x,y\n")
    with pytest.raises(DataError, match="names the sample 'a' twice"):
        read_audit(path)
    with pytest.raises(InputError, match="not in the audit: 'b'"):
        Audit(("a",), ("x",), (None,)).answered({"b": "x"})
    with pytest.raises(InputError, match="not 1 and 0 for 1"):
        Audit(("a",), ("x",), ())


# -------------------------------------------------------------------- the sure subset


def test_the_sure_subset_is_the_largest(stripped, tmp_path):
    X, truth, mask, _ = stripped
    found = label((X, mask))
    assert (found.labels == truth).mean() < 0.9
    rows = found.sure(0.99)
    assert 600 < len(rows) < 800
    assert found.confidence[rows].mean() >= 0.99
    rest = np.setdiff1d(np.arange(800), rows)
    assert found.confidence[rest].max() <= found.confidence[rows].min()
    more = np.append(rows, rest[found.confidence[rest].argmax()])
    assert found.confidence[more].mean() < 0.99
    assert (found.labels[rows] == truth[rows]).mean() > 0.975
    found.save(tmp_path, sure=0.99)
    written = rows_of(tmp_path / "sure.csv")
    assert [row["sample"] for row in written] == [found.names[row] for row in rows]
    assert list(written[0]) == ["sample", "label", "confidence"]
    found.save(tmp_path)
    assert not (tmp_path / "sure.csv").exists()


def test_scores_have_no_sure_subset(digits):
    X, _, mask = digits
    found = label((X[:50], mask[:50]), rectifier="fspll")
    with pytest.raises(InputError, match="'fspll' gives scores, not probabilities"):
        found.sure(0.99)
    for level in (0, 1.5, "high"):
        with pytest.raises(InputError, match="sure is a share above 0 and up to 1"):
            found.sure(level)
