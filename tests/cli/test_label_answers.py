"""``fspll label`` and a person's answers: no run loses one, and none lands on another sample."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest
from PIL import Image

from fspll.annotations import read_answers
from fspll.labeling import read_audit

X = np.random.default_rng(0).normal(size=(6, 2)).round(3)  # nothing to tell two labels apart by


@pytest.fixture(autouse=True)
def page(monkeypatch):
    """Write something small in the place of the report."""
    monkeypatch.setattr(
        "fspll.labeling.saving.write_report", lambda _, path: path.write_text("<html></html>")
    )


@pytest.fixture
def given(tmp_path):
    """Write vectors and a table whose samples have names; return the arguments of the command."""
    return write(tmp_path, X, [f"s{row}" for row in range(6)])


def write(folder, X, names=None):
    np.save(folder / "X.npy", X)
    lines = ["candidates" if names is None else "sample,candidates"]
    lines += ["a|b" if names is None else f"{names[row]},a|b" for row in range(len(X))]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    out = folder / "out"
    return ("label", folder / "table.csv", "--features", folder / "X.npy", "--out", out)


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill_in(path, answers):
    """Write into the column ``answer``, as a person does."""
    found = rows(path)
    for row in found:
        row["answer"] = answers.get(row["sample"], row["answer"])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)


def labels(out):
    return {row["sample"]: (row["label"], row["confidence"]) for row in rows(out / "labels.csv")}


def test_a_filled_in_review_list_is_read_without_being_named(run, tmp_path, given):
    out = tmp_path / "out"
    assert run(*given)[0] == 0
    fill_in(out / "review.csv", {"s0": "b", "s3": "a"})
    code, shown, complaints = run(*given)
    assert code == 0
    assert "2 answered by a person" in shown
    assert complaints == f"note: 2 answers of {out / 'review.csv'} are used as well"
    assert labels(out)["s0"] == ("b", "1.0000")
    assert read_answers(out / "answers.csv") == {"s0": "b", "s3": "a"}


def test_a_review_list_that_was_filled_in_during_the_run_is_kept(run, tmp_path, given, monkeypatch):
    from fspll.labeling import pipeline

    out = tmp_path / "out"
    assert run(*given)[0] == 0
    prepare = pipeline.prepare

    def meanwhile(*arguments, **options):
        fill_in(out / "review.csv", {"s0": "b"})
        return prepare(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "prepare", meanwhile)
        code, _, complaints = run(*given)
    assert code == 0
    assert f"1 new answer came into {out} meanwhile; run the command again" in complaints
    assert "1 answered by a person" in run(*given)[1]


def test_answers_for_pictures_that_cannot_be_read_now_are_kept(run, tmp_path):
    rng = np.random.default_rng(0)
    for row in range(6):
        drawn = rng.integers(0, 256, (28, 28), dtype=np.uint8)
        Image.fromarray(drawn).save(tmp_path / f"{row}.png")
    table = tmp_path / "table.csv"
    table.write_text("file,candidates\n" + "".join(f"{row}.png,a|b\n" for row in range(6)))
    out = tmp_path / "out"
    given = ("label", table, "--images", tmp_path, "--encoder", "omniglot-conv4", "--out", out)
    assert run(*given, "--audit", "2")[0] == 0
    asked = rows(out / "audit.csv")[0]["sample"]
    fill_in(out / "audit.csv", {asked: "b"})
    others = [f"{row}.png" for row in range(6) if f"{row}.png" != asked][:2]
    fill_in(out / "review.csv", dict.fromkeys(others, "b"))
    assert "3 answered by a person" in run(*given)[1]
    whole = {name: (tmp_path / name).read_bytes() for name in (asked, *others)}
    (tmp_path / asked).write_bytes(whole[asked][:60])
    (tmp_path / others[0]).write_bytes(whole[others[0]][:60])
    (tmp_path / others[1]).unlink()
    for _ in range(2):
        code, shown, complaints = run(*given, "--skip-bad")
        assert code == 0
        assert "answered by a person" not in shown
        assert "2 answers not used, as the sample is not here now" in complaints
        assert "1 audited label not used, as the sample is not here now" in complaints
        assert "is used as well" not in complaints
        assert "are used as well" not in complaints
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    code, shown, complaints = run(*given)
    assert code == 0
    assert "3 answered by a person" in shown
    assert f"2 answers of {out / 'answers.csv'} are used as well" in complaints
    assert "not used" not in complaints
    assert read_audit(out / "audit.csv").given == {asked: "b"}


def as_spreadsheets_save(path, separator, encoding):
    text = path.read_text(encoding="utf-8").replace(",", separator).replace("\n", "\r\n")
    path.write_bytes(text.encode(encoding))


@pytest.mark.parametrize(
    ("separator", "encoding"), [(",", "utf-8-sig"), (";", "utf-8-sig"), ("\t", "utf-16")]
)
def test_files_that_a_spreadsheet_saved_again_are_recognized(
    run, tmp_path, given, separator, encoding
):
    out = tmp_path / "out"
    assert run(*given, "--audit", "2")[0] == 0
    fill_in(out / "review.csv", {"s0": "b"})
    assert run(*given)[0] == 0
    fill_in(out / "review.csv", {"s3": "a"})
    for name in ("labels.csv", "review.csv", "answers.csv", "audit.csv"):
        as_spreadsheets_save(out / name, separator, encoding)
    code, shown, _ = run(*given)
    assert code == 0
    assert "2 answered by a person" in shown
    assert read_answers(out / "answers.csv") == {"s0": "b", "s3": "a"}


def test_answers_in_the_encoding_of_windows(run, tmp_path, given):
    out = tmp_path / "out"
    assert run(*given)[0] == 0
    fill_in(out / "review.csv", {"s0": "Bär"})
    as_spreadsheets_save(out / "review.csv", ";", "cp1252")
    code, _, complaints = run(*given)
    assert code == 2
    assert 'give --encoding "cp1252"' in complaints
    assert "may hold a person's answers, so it is not replaced" in complaints
    assert "--forget-answers" in complaints
    assert run(*given, "--encoding", "cp1252")[0] == 0
    assert read_answers(out / "answers.csv") == {"s0": "Bär"}
    # Kept in UTF-8 now, which the option does not spoil.
    assert run(*given, "--encoding", "cp1252")[0] == 0
    assert labels(out)["s0"] == ("Bär", "1.0000")


def test_only_forget_answers_throws_them_away(run, tmp_path, given):
    out = tmp_path / "out"
    assert run(*given, "--audit", "2")[0] == 0
    fill_in(out / "review.csv", {"s0": "b"})
    asked = rows(out / "audit.csv")[0]["sample"]
    fill_in(out / "audit.csv", {asked: "b"})
    assert run(*given)[0] == 0
    for name in ("labels.csv", "model.fspll"):  # no result any more, only its answers
        (out / name).unlink()
    (out / "notes.txt").write_text("mine")
    assert run(*given)[0] == 2
    code, shown, _ = run(*given, "--overwrite")
    assert code == 0
    assert f"{len({'s0', asked})} answered by a person" in shown
    code, shown, complaints = run(*given, "--forget-answers")
    assert code == 0
    assert "answer" not in complaints.replace("only answers can tell", "")
    assert "answered by a person" not in shown
    assert not (out / "answers.csv").exists()
    assert not (out / "audit.csv").exists()
    assert "answered by a person" not in run(*given)[1]


def test_answers_stay_with_rows_that_move(run, tmp_path):
    given = write(tmp_path, X)
    out = tmp_path / "out"
    assert run(*given)[0] == 0
    fill_in(out / "review.csv", {"row 2": "b", "row 5": "a"})
    assert run(*given)[0] == 0
    write(tmp_path, np.concatenate([[[0.3, 1.2]], X[1:]]))  # one more row, and one less
    code, shown, complaints = run(*given)
    assert code == 0
    assert "1 answered by a person" in shown
    assert labels(out)["row 5"] == ("a", "1.0000")
    assert labels(out)["row 2"][1] != "1.0000"
    assert "1 answer not used, as the sample is not here now" in complaints
    write(tmp_path, np.concatenate([[[0.3, 1.2]], X]))
    code, shown, complaints = run(*given)
    assert "2 answered by a person" in shown
    assert "'row 5' is 'row 6' now, 'row 2' is 'row 3' now" in complaints
    assert labels(out)["row 3"] == ("b", "1.0000")
    assert labels(out)["row 6"] == ("a", "1.0000")


def test_a_first_run_that_was_killed_does_not_block_its_folder(run, tmp_path, given, gone):
    """Whatever was written before the kill; the model comes before the table of labels."""
    out = tmp_path / "out"
    assert run(*given, "--audit", "2", "--answers", answers_file(tmp_path))[0] == 0
    written = ["audit.csv", "answers.csv", "model.fspll", "labels.csv", "review.csv"]
    kept = {name: (out / name).read_bytes() for name in written}
    for count in range(len(written)):
        for path in out.iterdir():
            path.unlink()
        for name in written[:count]:
            (out / name).write_bytes(kept[name])
        (out / f".{written[count]}.{gone}.part").write_bytes(kept[written[count]][:10])
        (out / ".fspll.lock").touch()
        code, shown, _ = run(*given)
        assert code == 0, written[:count]
        assert ("1 answered by a person" in shown) == (count > 1)
        assert not [path.name for path in out.iterdir() if path.name.startswith(".")]


def answers_file(folder):
    (folder / "mine.csv").write_text("sample,answer\ns0,b\n")
    return folder / "mine.csv"


def test_two_runs_in_one_folder(run, tmp_path, given, monkeypatch):
    """The second says so and stops; the first is not disturbed."""
    from fspll._common.locks import lock_folder

    out = tmp_path / "out"
    reader, writer = os.pipe()
    ended, end = os.pipe()
    child = os.fork() if hasattr(os, "fork") else pytest.skip("needs fork")
    if child == 0:
        with lock_folder(out):
            os.write(writer, b"held")
            os.read(ended, 1)
        os._exit(0)
    assert os.read(reader, 4) == b"held"
    try:
        code, shown, complaints = run(*given)
        assert code == 2
        assert "expect" not in shown
        assert f"error: {out} is in use: another fspll process writes into it" in complaints
    finally:
        os.write(end, b"x")
        os.waitpid(child, 0)
    assert run(*given)[0] == 0


def test_a_review_list_without_questions_can_be_given_again(run, tmp_path):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "table.csv").write_text("candidates\n" + "a\n" * 3 + "b\n" * 3)
    out = tmp_path / "out"
    given = ("label", tmp_path / "table.csv", "--features", tmp_path / "X.npy", "--out", out)
    assert run(*given)[0] == 0
    assert rows(out / "review.csv") == []
    assert run(*given, "--answers", out / "review.csv")[0] == 0


def test_discarded_samples_are_left_out_until_the_discard_is_taken_back(run, tmp_path, given):
    out = tmp_path / "out"
    answers = tmp_path / "mine.csv"
    answers.write_text(
        "sample,answer,time,answered_by,discarded\n"
        "s0,b,2026-01-02T03:04:05Z,Ada,\n"
        "s3,,2026-01-02T03:05:00Z,Ada,yes\n"
    )
    code, shown, complaints = run(*given, "--answers", answers)
    assert code == 0
    assert "5 samples" in shown
    assert "1 answered by a person" in shown
    assert "1 sample that a person discarded was left out: 's3'" in complaints
    assert "s3" not in labels(out)
    kept = {row["sample"]: row for row in rows(out / "answers.csv")}
    assert kept["s0"]["time"] == "2026-01-02T03:04:05Z"
    assert kept["s0"]["answered_by"] == "Ada"
    assert (kept["s3"]["answer"], kept["s3"]["discarded"]) == ("", "yes")
    # The folder remembers both, however often the command runs.
    assert "5 samples" in run(*given)[1]
    assert {row["sample"] for row in rows(out / "answers.csv")} == {"s0", "s3"}
    with_discard = (out / "answers.csv").read_text()
    (out / "answers.csv").write_text(with_discard.replace(",yes", ","))
    assert "6 samples" in run(*given)[1]


def test_an_answer_for_a_discarded_sample_is_refused(run, tmp_path, given):
    answers = tmp_path / "mine.csv"
    answers.write_text("sample,answer,discarded\ns0,b,yes\n")
    code, _, complaints = run(*given, "--answers", answers)
    assert code == 2
    assert "the sample is discarded, yet has the answer 'b'; keep one of the two" in complaints


def test_all_samples_discarded(run, tmp_path, given):
    answers = tmp_path / "mine.csv"
    answers.write_text("sample,answer,discarded\n" + "".join(f"s{i},,yes\n" for i in range(6)))
    code, _, complaints = run(*given, "--answers", answers)
    assert code == 2
    assert "all samples are discarded; take some of the discards back" in complaints
