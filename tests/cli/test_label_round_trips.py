"""Tables that go to a spreadsheet and come back: accents, answers, texts and the user's columns."""

from __future__ import annotations

import codecs
import csv
import io
import sys

import numpy as np
import pytest

from fspll.annotations import read_annotations, read_answers
from fspll.embeddings.registry import load_embedding
from fspll.labeling import label

LABELS = ("Gâteau, crème", "Ours brun", "Épée")
TEXTS = [f"Façade n° {n}, « déjà vu »" for n in range(8)]


class Numbers:
    """Encodes texts by the number in them."""

    name, modality = "numbers", "text"

    def encode(self, texts):
        return np.array([[float(text.split()[2].strip(","))] for text in texts])


@pytest.fixture(autouse=True)
def page(monkeypatch):
    """Write something small in the place of the report."""
    monkeypatch.setattr(
        "fspll.labeling.saving.write_report", lambda _, path: path.write_text("<html></html>")
    )
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def given(tmp_path):
    """Write vectors and a table with accents; return a function that makes the command."""
    np.save(tmp_path / "X.npy", np.zeros((8, 2)))

    def given(encoding, *options, n=8):
        np.save(tmp_path / "X.npy", np.arange(2.0 * n).reshape(n, 2))
        lines = ["sample;candidates;Prix;=note"]
        lines += [f"pièce {i};{LABELS[0]}|{LABELS[1]};{i},50 €;@{i}" for i in range(n)]
        path = tmp_path / "étiquettes.csv"
        path.write_bytes("\r\n".join(lines).encode(encoding))
        features = ("--features", tmp_path / "X.npy")
        return ("label", path, *features, "--out", tmp_path / "out", *options)

    return given


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_excel_finds_a_mark_and_no_formula(run, tmp_path, given):
    out = tmp_path / "out"
    options = ("--encoding", "cp1252", "--audit", "2", "--sure", "0.2")
    assert run(*given("cp1252", *options))[0] == 0
    tables = ("labels.csv", "review.csv", "audit.csv", "sure.csv")
    assert not any((out / name).read_bytes().startswith(codecs.BOM_UTF8) for name in tables)
    assert run(*given("cp1252", *options, "--excel"))[0] == 0
    for name in tables:
        content = (out / name).read_bytes()
        assert content.startswith(codecs.BOM_UTF8)
        assert content.count(codecs.BOM_UTF8) == 1
        assert "pièce " in content.decode("utf-8")
        cells = csv.reader(io.StringIO(content.decode("utf-8-sig")))
        assert not any(cell.startswith(("=", "+", "@")) for line in cells for cell in line)


def test_the_users_own_columns_stay(run, tmp_path, given):
    assert run(*given("cp1252", "--encoding", "cp1252"))[0] == 0
    found = rows(tmp_path / "out" / "labels.csv")
    assert list(found[0])[6:] == ["outside", "Prix", "'=note"]
    assert [row["Prix"] for row in found] == [f"{i},50 €" for i in range(8)]
    assert [row["'=note"] for row in found] == [f"'@{i}" for i in range(8)]


def test_answers_come_back_from_excel_in_cp1252(run, tmp_path, given):
    out = tmp_path / "out"
    command = given("cp1252", "--encoding", "cp1252", "--excel")
    assert run(*command)[0] == 0
    asked = rows(out / "review.csv")
    asked[0]["answer"], asked[1]["answer"] = LABELS[0], LABELS[1]
    with (out / "review.csv").open("w", encoding="cp1252", newline="") as file:
        writer = csv.DictWriter(file, asked[0], delimiter=";")
        writer.writeheader()
        writer.writerows(asked)
    code, output, _ = run(*command)
    assert code == 0
    assert "2 answered by a person" in output
    answers = {asked[0]["sample"]: LABELS[0], asked[1]["sample"]: LABELS[1]}
    assert read_answers(out / "answers.csv") == answers
    labels = {row["sample"]: row["label"] for row in rows(out / "labels.csv")}
    assert {name: labels[name] for name in answers} == answers


def test_answers_come_back_as_a_workbook(run, tmp_path, given):
    openpyxl = pytest.importorskip("openpyxl")
    command = given("utf-8", "--excel")
    assert run(*command)[0] == 0
    with (tmp_path / "out" / "review.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file))
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append(line)
    book.active.cell(2, lines[0].index("answer") + 1).value = LABELS[1]
    book.save(tmp_path / "review.xlsx")
    code, output, _ = run(*command, "--answers", tmp_path / "review.xlsx")
    assert code == 0
    assert "1 answered by a person" in output
    assert read_answers(tmp_path / "out" / "answers.csv") == {lines[1][0]: LABELS[1]}


def test_rows_that_are_added_later_keep_answers_and_folder(run, tmp_path, given):
    out = tmp_path / "out"
    assert run(*given("utf-8"))[0] == 0
    asked = rows(out / "review.csv")
    asked[0]["answer"] = LABELS[1]
    with (out / "review.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, asked[0])
        writer.writeheader()
        writer.writerows(asked)
    code, output, _ = run(*given("utf-8", n=11))
    assert code == 0
    assert "11 samples, 2 classes, 1 answered by a person" in output
    found = {row["sample"]: row for row in rows(out / "labels.csv")}
    assert len(found) == 11
    assert found[asked[0]["sample"]]["label"] == LABELS[1]
    assert found["pièce 10"]["Prix"] == "10,50 €"


def test_labels_as_a_spreadsheet(run, tmp_path, given):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "labels.xlsx"
    assert run(*given("utf-8", "--xlsx", path))[0] == 0
    header, *lines = openpyxl.load_workbook(path)["labels"].iter_rows()
    written = rows(tmp_path / "out" / "labels.csv")
    assert [cell.value for cell in header] == list(written[0])
    assert header[-1].value == "'=note"
    for line, row in zip(lines, written, strict=True):
        values = [cell.value for cell in line]
        assert values[2] == float(row["confidence"])
        assert [values[0], values[1], values[7]] == [row["sample"], row["label"], row["Prix"]]
        assert {cell.data_type for cell in line} <= {"s", "n"}  # no formula
    assert read_annotations(path).names == tuple(row["sample"] for row in written)


def test_a_spreadsheet_holds_what_xml_cannot(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    data = ([[0.0], [1.0]], [["=1+1", "a\x01b"], ["a\x01b"]])
    label(data).to_xlsx(tmp_path / "t.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert sheet["B3"].value == "a\ufffdb"
    assert {sheet["B2"].value, sheet["D2"].value} == {"'=1+1", "a\ufffdb"}


def test_a_spreadsheet_never_replaces_the_table(run, tmp_path, given):
    command = given("utf-8")
    code, _, complaints = run(*command, "--xlsx", command[1])
    assert code == 2
    assert "is read here, and would be overwritten; write to another file" in complaints
    assert not (tmp_path / "out").exists()


def test_without_openpyxl_it_says_so_before_the_work(run, tmp_path, given, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    code, _, complaints = run(*given("utf-8", "--xlsx", tmp_path / "t.xlsx"))
    assert code == 2
    assert "--xlsx" in complaints
    assert "pip install 'fspll[tables]'" in complaints
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------- texts


@pytest.fixture
def texts(tmp_path):
    """A table of texts without names."""
    path = tmp_path / "tickets.csv"
    lines = ["message,labels,text,text"]
    lines += [f'"{text}",{"a" if i == 0 else "a|b"},mine {i},{i}' for i, text in enumerate(TEXTS)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_annotations(path, text="message")


def test_texts_are_in_labels_and_review(tmp_path, texts):
    found = label(texts, encoder=Numbers(), audit=2)
    found.save(tmp_path / "out")
    written = rows(tmp_path / "out" / "labels.csv")
    assert [row["text"] for row in written] == TEXTS
    assert [row["text (input)"] for row in written] == [f"mine {i}" for i in range(8)]
    assert [row["text (input 2)"] for row in written] == [str(i) for i in range(8)]
    asked = rows(tmp_path / "out" / "review.csv")
    assert list(asked[0])[-3:] == ["reason", "text", "content_hash"]
    text_of = dict(zip(found.names, TEXTS, strict=True))
    assert [row["text"] for row in asked] == [text_of[row["sample"]] for row in asked]
    found.save(tmp_path / "out")  # goes on in the folder of such a result


def test_a_text_that_no_file_can_hold_is_written_as_far_as_it_can(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(
        '[{"message": "n ° 1 \\u0000", "labels": ["a"], "tags": ["x", 1]},'
        ' {"message": "n ° 2 \\ud800", "labels": ["a", "b"]}]'
    )
    label(read_annotations(path, text="message"), encoder=Numbers()).save(tmp_path / "out")
    written = rows(tmp_path / "out" / "labels.csv")
    assert [row["text"] for row in written] == ["n ° 1 \ufffd", "n ° 2 \ufffd"]
    assert [row["tags"] for row in written] == ['["x", 1]', ""]


def test_the_terminal_shows_the_words_of_a_text(run, tmp_path, texts, monkeypatch):
    monkeypatch.setattr(
        "fspll.labeling.samples.load_embedding", lambda _, device: load_embedding(Numbers(), device)
    )
    given = ("label", tmp_path / texts.source, "--text", "message", "--out", tmp_path / "out")
    code, output, _ = run(*given)
    assert code == 0
    asked = rows(tmp_path / "out" / "review.csv")[0]
    assert f"  {asked['sample']}: {asked['text']}  " in output


def test_a_frame_has_the_same_columns(texts):
    pytest.importorskip("pandas")
    frame = label(texts, encoder=Numbers()).to_frame()
    assert list(frame)[6:] == ["outside", "text", "text (input)", "text (input 2)"]
    assert frame["text"].tolist() == TEXTS


def test_columns_about_rows_are_not_about_samples(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(
        "sample,annotator,label,time,place,\n"
        "x,Ann,a,9:00,Rome,1\ny,Ann,b,9:01,Oslo,2\nx,Ben,b,9:05,Rome,3\nz,Ben,,9:07,Bern,4\n"
    )
    read = read_annotations(path)
    assert read.columns == (("place", ("Rome", "Oslo")),)
