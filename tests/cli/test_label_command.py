"""``fspll label`` as a person runs it: a folder and a table in, four files out."""

from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from fspll.annotations import read_annotations, read_answers
from fspll.candidates import corrupt
from fspll.datasets import load_glyphs
from fspll.labeling import load_model

NAMES = np.repeat(["alpha", "beta", "gamma", "delta"], 6)
READ = (
    "labels.csv: 24 samples, 4 labels (alpha, beta, delta, gamma), labels from 'candidates', "
    "separator '|', pictures from 'file'\n"
)


@pytest.fixture(scope="module")
def glyphs():
    drawn = load_glyphs(12, 6, split="test")
    return drawn.images[np.concatenate([np.flatnonzero(drawn.labels == c) for c in range(4)])]


@pytest.fixture(autouse=True)
def pages(monkeypatch):
    """Note the pages that are asked for, and write something small in their place."""
    asked = []

    def write(result, path):
        asked.append((result, result.pictures))
        path.write_text("<html></html>", encoding="utf-8")

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("fspll.labeling.saving.write_report", write)
    return asked


@pytest.fixture
def images(tmp_path, glyphs):
    folder = tmp_path / "images"
    folder.mkdir()
    for row, picture in enumerate(glyphs):
        Image.fromarray(picture).save(folder / f"{row:02}.png")
    return folder


@pytest.fixture
def table(tmp_path):
    """Write a table, with a byte-order mark as spreadsheets do; return its path."""

    def table(sets, name="labels.csv", files=None):
        lines = ["file,candidates"]
        files = files or [f"{row:02}.png" for row in range(len(sets))]
        lines += [f"{file},{'|'.join(s)}" for file, s in zip(files, sets, strict=True)]
        path = tmp_path / name
        path.write_bytes(b"\xef\xbb\xbf" + ("\r\n".join(lines) + "\r\n").encode())
        return path

    return table


def sets_of(seed=0):
    made = corrupt(NAMES, p=1, r=1, rng=np.random.default_rng(seed))
    return [made.names(row) for row in range(len(made))]


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_pictures_to_labels_model_and_review(run, tmp_path, images, table, pages):
    out = tmp_path / "out"
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4")
    code, output, complaints = run(*given, "--out", out)
    assert (code, complaints) == (0, "")
    assert output.startswith(READ)
    assert "24 samples, 4 classes, 24 of 24 pictures read" in output
    assert "of the labels to be right" in output
    assert f"report.html are in {out}" in output
    found = rows(out / "labels.csv")
    assert [row["sample"] for row in found] == [f"{row:02}.png" for row in range(24)]
    assert np.mean([row["label"] for row in found] == NAMES) > 0.95
    ((result, pictures),) = pages
    assert pictures[3] == images / "03.png"
    assert result.understood == READ.strip()
    assert load_model(out).predict([images / "00.png"]).tolist() == ["alpha"]
    # Once more into the same folder, and with other settings.
    assert run(*given, "--out", out, "--rectifier", "fspll", "--no-cache")[0] == 0
    assert "mean score" in run(*given, "--out", out, "--rectifier", "none")[1]


def test_answers_are_used_and_kept(run, tmp_path, images, table):
    sets = [["alpha", "beta"] if name in ("alpha", "beta") else [name] for name in NAMES]
    out = tmp_path / "out"
    given = ("label", table(sets), "--images", images, "--encoder", "omniglot-conv4", "--out", out)
    _, output, _ = run(*given)
    assert "alpha and beta always come together" in output
    assert f"Fill in the column 'answer' of {out / 'review.csv'}" in output
    review = rows(out / "review.csv")
    truth = {f"{row:02}.png": name for row, name in enumerate(NAMES)}
    assert float(review[0]["expected_gain"]) > 3
    with (out / "review.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, review[0])
        writer.writeheader()
        writer.writerows([{**review[0], "answer": truth[review[0]["sample"]]}, *review[1:]])
    code, output, complaints = run(*given, "--answers", out / "review.csv")
    assert (code, complaints) == (0, "")
    assert "1 answered by a person" in output
    assert [row["label"] for row in rows(out / "labels.csv")] == NAMES.tolist()
    assert read_answers(out / "answers.csv") == {review[0]["sample"]: truth[review[0]["sample"]]}
    # The list was replaced; the answers were not lost with it.
    _, output, complaints = run(*given)
    assert "1 answered by a person" in output
    assert f"1 answer of {out / 'answers.csv'} is used as well" in complaints


def test_an_answer_outside_the_candidates_is_noted(run, tmp_path, images, table):
    answers = tmp_path / "answers.csv"
    answers.write_text("sample,answer\n00.png,omega\n")
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4")
    code, _, complaints = run(*given, "--out", tmp_path / "out", "--answers", answers)
    assert code == 0
    assert "note: 1 answer not among the candidates (taken all the same): 00.png" in complaints
    assert rows(tmp_path / "out" / "labels.csv")[0]["label"] == "omega"


def test_damaged_pictures_are_named_or_skipped(run, tmp_path, images, table):
    (images / "05.png").write_bytes((images / "05.png").read_bytes()[:70])
    (images / "07.png").write_text("no picture")
    (images / "09.png").unlink()
    out = tmp_path / "out"
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4")
    code, output, complaints = run(*given, "--out", out)
    assert (code, output) == (2, READ)
    assert complaints.startswith("error: 3 of 24 samples cannot be read: ")
    for row in (7, 9, 11):
        assert f"(labels.csv, row {row})" in complaints
    assert not out.exists()
    code, output, complaints = run(*given, "--out", out, "--skip-bad")
    assert code == 0
    assert "21 samples, 4 classes, 21 of 24 pictures read" in output
    assert "note: 3 samples that cannot be read were left out" in complaints
    assert len(rows(out / "labels.csv")) == 21


def test_the_same_name_in_two_folders(run, tmp_path, images, table):
    (images / "a").mkdir()
    (images / "b").mkdir()
    for row in range(24):
        (images / f"{row:02}.png").rename(images / "ab"[row % 2] / f"{row // 2}.png")
    files = [f"{'ab'[row % 2]}/{row // 2}.png" for row in range(24)]
    given = ("--images", images, "--encoder", "omniglot-conv4", "--out", tmp_path / "out")
    assert run("label", table(sets_of(), files=files), *given)[0] == 0
    code, _, complaints = run(
        "label", table(sets_of()[:12], "b.csv", [f"{row}.png" for row in range(12)]), *given
    )
    assert code == 2
    assert "0.png (b.csv, row 2) may be any of a/0.png, b/0.png in" in complaints


def test_one_class_only(run, tmp_path, images, table):
    given = ("--images", images, "--encoder", "omniglot-conv4", "--out", tmp_path / "out")
    code, output, complaints = run("label", table([["cat"]] * 24), *given)
    assert code == 0
    assert "note: there is only one label, cat: nothing was decided, and the model" in complaints
    assert (
        "24 samples, 1 class, 24 of 24 pictures read\nexpect 100.0% of the labels to be right"
        in output
    )
    assert {row["label"] for row in rows(tmp_path / "out" / "labels.csv")} == {"cat"}


def test_the_same_candidates_everywhere(run, tmp_path, table):
    np.save(tmp_path / "X.npy", np.arange(6.0)[:, None])
    given = ("--features", tmp_path / "X.npy", "--out", tmp_path / "out")
    code, _, complaints = run("label", table([["cat", "dog"]] * 6), *given)
    assert code == 0
    assert "note: all samples have the same candidates (cat, dog): only answers can tell" in (
        complaints
    )


def test_empty_cells_are_left_out_used_or_an_error_with_a_place(run, tmp_path, images, table):
    out = tmp_path / "out"
    given = ("--images", images, "--encoder", "omniglot-conv4", "--out", out)
    path = table([["a"], [], ["b"]])
    code, output, _ = run("label", path, *given)
    assert code == 0
    assert "1 sample without candidates left out\n2 samples, 2 classes" in output
    assert [row["sample"] for row in rows(out / "labels.csv")] == ["00.png", "02.png"]
    assert run("label", path, *given, "--unlabeled", "use")[0] == 0
    assert [row["candidates"] for row in rows(out / "labels.csv")] == ["a", "a|b", "b"]
    code, _, complaints = run("label", path, *given, "--unlabeled", "error")
    assert code == 2
    assert complaints.startswith("error: labels.csv, row 3: there are no candidates (this is so")
    assert "leave such samples out with --unlabeled 'skip'" in complaints


def test_a_spreadsheet_with_vectors_and_marks(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["read", "me"])
    sheet = book.create_sheet("Labels")
    sheet.append(["name", "x", "y", "cat", "dog"])
    for row in range(12):
        sheet.append([f"s{row}", row % 2, row / 100, 1 - row % 2, 1 if row % 2 or row == 4 else 0])
    book.save(tmp_path / "labels.xlsx")
    given = ("label", tmp_path / "labels.xlsx", "--out", tmp_path / "out")
    code, _, complaints = run(*given, "--features-columns", "x:y")
    assert code == 2
    assert "labels.xlsx, sheet 'Sheet' has a header but no rows below it" in complaints
    code, output, _ = run(*given, "--features-columns", "x:y", "--sheet", "Labels")
    assert code == 0
    assert output.startswith(
        "labels.xlsx, sheet 'Labels': 12 samples, 2 labels (cat, dog), 2 columns of marks, 'cat' "
        "to 'dog', 2 features, 'x' to 'y', samples from 'name', not read: sheet 'Sheet'\n"
    )
    assert [row["label"] for row in rows(tmp_path / "out" / "labels.csv")] == ["cat", "dog"] * 6


def test_vectors(run, tmp_path, table, glyphs):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4, 5)) * 5, 6, axis=0) + rng.normal(size=(24, 5)) * 0.2
    np.save(tmp_path / "X.npy", X * [1, 1, 1, 1, 1e6])
    given = ("label", table(sets_of()), "--features", tmp_path / "X.npy")
    code, _, complaints = run(*given, "--out", tmp_path / "one")
    assert code == 0
    assert "--standardize" in complaints
    code, _, complaints = run(*given, "--out", tmp_path / "two", "--standardize")
    assert (code, complaints) == (0, "")
    assert [row["label"] for row in rows(tmp_path / "two" / "labels.csv")] == NAMES.tolist()


def test_names_that_a_spreadsheet_would_run(run, tmp_path):
    np.save(tmp_path / "X.npy", np.array([[0.0], [0.1], [5.0], [5.1]]))
    path = tmp_path / "labels.csv"
    path.write_text("sample;candidates\n=cmd();=1+1|b\n@a;=1+1\n+b;b\n-c;b|=1+1\n")
    given = ("label", path, "--features", tmp_path / "X.npy", "--out", tmp_path / "out")
    assert run(*given)[0] == 0
    for cell in (cell for row in rows(tmp_path / "out" / "labels.csv") for cell in row.values()):
        assert not cell.startswith(("=", "+", "@", "-c")), cell
    again = read_annotations(tmp_path / "out" / "labels.csv", candidates="label")
    assert again.names == ("=cmd()", "@a", "+b", "-c")
    assert again.classes == ("=1+1", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--images", "."], "say what turns the samples into features"),
        (["--images", ".", "--features", "x.npy"], "give one of --images, --features, --features-"),
        (["--text", "words"], "'words'"),
        (["--encoder", "features"], "needs vectors"),
        (["--images", "nowhere", "--encoder", "omniglot-conv4"], "is not a folder of pictures"),
        (["--images", ".", "--encoder", "nothing"], "there is no encoder 'nothing'"),
        (["--images", ".", "--rectifier", "magic", "--encoder", "omniglot-conv4"], ""),
    ],
)
def test_what_is_refused(run, tmp_path, table, options, message):
    code, output, complaints = run("label", table(sets_of()), "--out", tmp_path / "out", *options)
    assert code == 2
    assert output in ("", READ)
    assert complaints.startswith("error: ")
    assert message in complaints
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_left_alone(run, tmp_path, images, table):
    path = table(sets_of())
    given = ("label", path, "--images", images, "--encoder", "omniglot-conv4", "--out", tmp_path)
    before = path.read_bytes()
    code, _, complaints = run(*given)
    assert code == 2
    assert "holds other things than results of fspll label" in complaints
    code, _, complaints = run(*given, "--overwrite")
    assert code == 2
    assert "would replace" in complaints
    assert path.read_bytes() == before
    for name in ("review.csv", "answers.csv", "sure.csv"):
        path.rename(tmp_path / name)
        path = tmp_path / name
        code, _, complaints = run("label", path, *given[2:], "--overwrite")
        assert code == 2
        assert f"{path} is one of the files that results in {tmp_path} would replace" in complaints
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rectifier", "evidense"], "there is no rectifier 'evidense'; did you mean 'evidence'?"),
        (["--device", "gpu"], "device"),
        (["--answers"], "samples that do not exist: '99.png'"),
    ],
)
def test_nothing_is_encoded_before_options_are_checked(
    run, tmp_path, images, table, monkeypatch, options, message
):
    def encode(*_, **__):
        raise AssertionError("samples were encoded")

    monkeypatch.setattr("fspll.labeling.samples.encode_cached", encode)
    if options == ["--answers"]:
        (tmp_path / "answers.csv").write_text("sample,answer\n99.png,alpha\n")
        options = ["--answers", tmp_path / "answers.csv"]
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4")
    code, output, complaints = run(*given, "--out", tmp_path / "out", *options)
    assert code == 2
    assert output in ("", READ)
    assert message in complaints
    assert not (tmp_path / "out").exists()


def test_a_method_for_people_and_its_model(run, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(30) % 2
    np.save(tmp_path / "X.npy", truth[:, None] * 4.0 + rng.normal(size=(30, 3)))
    lines = ["sample,annotator,label"]
    for row, right in enumerate(truth):
        lines += [f"s{row},Ann,{'xy'[right]}", f"s{row},Ben,{'xy'[right ^ (row % 5 == 0)]}"]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(lines))
    out = tmp_path / "out"
    given = [labels, "--features", tmp_path / "X.npy", "--out", out]
    code, shown, _ = run("label", *given, "--method", "crowdlab")
    assert code == 0
    assert "mean score of the labels" in shown
    assert "2 annotators; agreement with the outcome 80% to 100%" in shown
    assert "review.csv, annotators.csv, model.fspll" in shown
    _, new, _ = run("predict", out, "--features", tmp_path / "X.npy")
    found = [line.split("\t")[1] for line in new.splitlines() if line.startswith("row ")]
    assert found == ["xy"[one] for one in truth]


def test_the_check_and_labels_outside_the_sets(run, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 4
    X = 5 * rng.normal(size=(4, 5))[truth] + rng.normal(size=(200, 5))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "noise.npy", rng.normal(size=(200, 5)))
    names = np.array(["alpha", "beta", "gamma", "delta"])
    lines = ["sample,candidates"]
    for row, right in enumerate(truth):
        others = rng.permutation([label for label in range(4) if label != right])
        first = right if row % 10 else others[1]  # every tenth set lacks its truth
        lines.append(f"s{row},{names[first]}|{names[others[0]]}")
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(lines))
    given = ["label", labels, "--out", tmp_path / "out", "--features"]
    code, shown, complaints = run(*given, tmp_path / "X.npy")
    assert (code, complaints) == (0, "")
    assert "Check without true labels: of 200 held-out samples" in shown
    assert "of the candidate sets seem to lack their true label); " in shown
    assert "outside the candidate sets" not in shown
    _, shown, _ = run(*given, tmp_path / "X.npy", "--outside")
    found = rows(tmp_path / "out" / "labels.csv")
    outside = [place for place, row in enumerate(found) if row["outside"] == "yes"]
    assert outside
    assert all(place % 10 == 0 for place in outside)
    assert all(found[place]["label"] == names[truth[place]] for place in outside)
    assert "outside the candidate sets" in shown
    code, _, complaints = run(*given, tmp_path / "noise.npy")
    assert code == 0
    assert complaints == (
        "warning: These features do not separate your labels: are these the right features?"
    )


def test_an_audit_and_a_sure_subset(run, tmp_path, images, table):
    out = tmp_path / "out"
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4", "--out")
    given = (*given, out)
    code, shown, complaints = run(*given, "--audit", "10", "--sure", "0.99")
    assert (code, complaints) == (0, "")
    assert "audit.csv has 10 labels to check, drawn at random" in shown
    sure = rows(out / "sure.csv")
    assert f"{len(sure)} labels of 24 are together at least 0.99 sure: sure.csv" in shown
    assert len(sure) > 12
    drawn = rows(out / "audit.csv")
    assert list(drawn[0]) == ["sample", "label", "answer", "file", "content_hash"]
    assert drawn[0]["file"] == str(images / drawn[0]["sample"])
    # As a person fills it in, from the top; two of the labels are found wrong.
    truth = {f"{row:02}.png": name for row, name in enumerate(NAMES)}
    for place, row in enumerate(drawn[:8]):
        row["answer"] = "omega" if place < 2 else truth[row["sample"]]
    with (out / "audit.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, drawn[0])
        writer.writeheader()
        writer.writerows(drawn)
    code, shown, complaints = run(*given)
    assert code == 0
    assert "8 answered by a person" in shown
    assert "of the labels to be right (by the audit)" in shown
    assert (
        "Audit: of 8 labels drawn at random 6 were right, 75% (95% interval 41% to 93%)." in shown
    )
    assert "audit.csv has 2 labels to check" in shown
    found = {row["sample"]: row for row in rows(out / "labels.csv")}
    assert found[drawn[0]["sample"]]["label"] == "omega"
    assert not (out / "sure.csv").exists()
    kept = rows(out / "audit.csv")
    assert [row["answer"] for row in kept] == [row["answer"] for row in drawn]
    # From a file elsewhere, and with more labels drawn.
    (out / "audit.csv").rename(tmp_path / "mine.csv")
    more = (*given, "--audit-answers", tmp_path / "mine.csv", "--audit", "12")
    assert "Audit: of 8 labels" in run(*more)[1]
    assert len(rows(out / "audit.csv")) == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sure", "2"], "sure is a share above 0 and up to 1"),
        (["--audit", "0"], "--audit must be"),
        (["--outside", "--method", "PL-KNN"], "--outside does not go with --method 'PL-KNN'"),
    ],
)
def test_options_for_trust_that_are_refused(run, tmp_path, images, table, options, message):
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4")
    code, _, complaints = run(*given, "--out", tmp_path / "out", *options)
    assert code == 2
    assert message in complaints


# -------------------------------------------------------------------- comfort


@pytest.fixture
def browser(monkeypatch):
    """Note what a browser is asked to show; ``starts`` says whether there is one."""
    asked = SimpleNamespace(pages=[], starts=True)

    def show(page):
        asked.pages.append(page)
        return asked.starts

    monkeypatch.setattr("webbrowser.open", show)
    return asked


def test_open_shows_the_report(run, tmp_path, images, table, browser):
    given = ("label", table(sets_of()), "--images", images, "--encoder", "omniglot-conv4")
    out = tmp_path / "ré sult"
    assert run(*given, "--out", out)[0] == 0
    assert browser.pages == []
    assert run(*given, "--out", out, "--open")[0] == 0
    assert browser.pages == [(out / "report.html").as_uri()]
    browser.starts = False
    code, _, complaints = run(*given, "--out", out, "--open")
    assert code == 0
    assert complaints == f"note: no browser could be started; open {out / 'report.html'} yourself"
