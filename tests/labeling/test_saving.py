"""The folder of results: what is in it, what it may replace, and what comes back."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations, read_answers
from fspll.labeling import label, load_model


@pytest.fixture
def found(annotate):
    sets = [["=1+1", "b|c"], ["=1+1"], ["b|c"], ["b|c", "=1+1"], ["@x", "b|c"]]
    names = ("=cmd()", "-a", "ü.png", "d", "e")
    X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    return label(annotate(sets, names=names, features=X))


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_what_is_written(found, tmp_path):
    out = tmp_path / "new" / "out"
    found.save(out)
    assert "5 samples got one label each" in (out / "report.html").read_text(encoding="utf-8")
    names = sorted(path.name for path in out.iterdir())
    assert names == ["labels.csv", "model.fspll", "report.html", "review.csv"]
    header, *body = rows(out / "labels.csv")
    names = ["sample", "label", "confidence", "runner_up", "margin", "candidates", "outside"]
    assert header == names
    assert len(body) == 5
    assert rows(out / "review.csv")[0][:2] == ["sample", "answer"]
    assert load_model(out).predict([[0.05], [5.0]]).tolist() == ["=1+1", "b|c"]
    again = read_annotations(out / "labels.csv", candidates="candidates")
    assert again.names == found.names
    assert again.classes == tuple(found.classes.tolist())
    assert (again.votes.toarray() > 0).tolist() == found.candidates.mask.tolist()


def test_the_report_can_be_left_out(found, tmp_path):
    found.save(tmp_path, report=False)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["labels.csv", "model.fspll", "review.csv"]


def test_no_cell_is_a_formula(found, tmp_path):
    found.save(tmp_path)
    for name in ("labels.csv", "review.csv"):
        for row in rows(tmp_path / name)[1:]:
            for cell in row:
                risky = cell[:1] in tuple("=+-@\t\r")
                assert not risky or cell.lstrip("+-")[:1].isdigit(), cell


def test_an_earlier_result_is_replaced_and_answers_are_kept(found, annotate, tmp_path):
    found.save(tmp_path)
    (tmp_path / "mine.txt").write_text("notes")
    data = annotate([["a", "b"], ["a"], ["b"]], features=np.array([[0.0], [0.1], [5.0]]))
    label(data, answers={"s0": "b"}).save(tmp_path)
    assert read_answers(tmp_path / "answers.csv") == {"s0": "b"}
    assert rows(tmp_path / "labels.csv")[1][:2] == ["s0", "b"]
    assert (tmp_path / "mine.txt").read_text() == "notes"


def test_results_of_versions_without_the_column_outside_are_replaced_too(found, tmp_path):
    found.save(tmp_path)
    lines = rows(tmp_path / "labels.csv")
    (tmp_path / "labels.csv").write_text("\n".join(",".join(line[:-1]) for line in lines))
    found.save(tmp_path)
    assert rows(tmp_path / "labels.csv") == lines


def test_other_things_are_not_written_over(found, tmp_path):
    (tmp_path / "labels.csv").write_text("file,candidates\na.png,cat\n")
    with pytest.raises(DataError, match="holds other things than results of fspll label"):
        found.save(tmp_path)
    assert (tmp_path / "labels.csv").read_text() == "file,candidates\na.png,cat\n"
    assert len(list(tmp_path.iterdir())) == 1
    found.save(tmp_path, overwrite=True)
    assert len(rows(tmp_path / "labels.csv")) == 6
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file; name a folder"):
        found.save(tmp_path / "file")


def test_a_function_of_ones_own_is_passed_again(annotate, tmp_path):
    def length(texts):
        return [[len(text)] for text in texts]

    data = annotate([["a"], ["a", "b"], ["b"]], texts=("x", "xx", "yyyyy"))
    label(data, encoder=length).save(tmp_path)
    assert load_model(tmp_path, encoder=length).predict(["xxxxxx"]).tolist() == ["b"]
    with pytest.raises(ValueError, match="with an embedding of your own"):
        load_model(tmp_path)


class Lengths:
    """Not an encoder of this package: all it has is a method ``encode``."""

    def encode(self, texts):
        return np.array([[float(len(text))] for text in texts])


def test_any_object_that_encodes_is_an_encoder(annotate, tmp_path):
    data = annotate([["a"], ["a", "b"], ["b"]], texts=("x", "xx", "yyyyy"))
    found = label(data, encoder=Lengths())
    assert found.encoder == "Lengths"
    assert found.labels.tolist() == ["a", "a", "b"]
    found.save(tmp_path)
    assert load_model(tmp_path, encoder=Lengths()).predict(["xxxxxx"]).tolist() == ["b"]
