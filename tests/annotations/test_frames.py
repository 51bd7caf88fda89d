"""Tables of other libraries: pandas, parquet, feather, rows of Hugging Face data."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fspll import diagnose, label
from fspll._common.errors import DataError, InputTypeError, MissingPackageError
from fspll.annotations import read_annotations

pandas = pytest.importorskip("pandas")
EXPECTED = {"a.png": {"cat": 1, "lynx": 1}, "b.png": {"dog": 1}}
COLUMNS = {"file": ["a.png", "b.png"], "candidates": ["cat|lynx", "dog"]}
LISTS = {"file": ["a.png", "b.png"], "candidates": [["cat", "lynx"], ["dog"]]}


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame(COLUMNS),
        pandas.DataFrame(LISTS),
        pandas.DataFrame(COLUMNS, index=[7, 3]),
        pandas.DataFrame(COLUMNS).astype("category"),
        pandas.DataFrame(COLUMNS).set_index("file"),
        pandas.DataFrame({"candidates": [{"cat", "lynx"}, ("dog",)]}, index=["a.png", "b.png"]),
        pandas.Series(["cat|lynx", "dog"], index=["a.png", "b.png"]),
        pandas.Series([np.array(["cat", "lynx"]), ["dog"]], index=["a.png", "b.png"], name="y"),
        pandas.DataFrame({"cat": [1, 0], "dog": [0, 1], "lynx": [1, 0]}, index=["a.png", "b.png"]),
        pandas.DataFrame(
            {"cat": [True, False], "dog": [False, True], "lynx": [True, False]},
            index=pandas.Index(["a.png", "b.png"], name="image"),
        ),
        pandas.DataFrame({**COLUMNS, "when": pandas.NaT, "note": [np.nan, pandas.NA]}),
    ],
)
def test_data_frames(votes_of, frame):
    found = read_annotations(frame)
    assert votes_of(found) == EXPECTED
    assert found.files == ("a.png", "b.png")
    assert found.summary.startswith("the data frame: 2 samples, 3 labels (cat, dog, lynx), ")


def test_rows_of_a_frame_are_counted_from_0(votes_of):
    frame = pandas.DataFrame({"label": [2, 1, np.nan], "words": ["one", "two", "three"]})
    found = read_annotations(frame, text="words")
    assert votes_of(found) == {"row 0": {"2": 1}, "row 1": {"1": 1}}  # not 2.0
    assert found.origins == ("the data frame, row 0", "the data frame, row 1")
    assert found.texts == ("one", "two")
    assert found.summary.endswith("1 sample without candidates left out")


def test_an_index_of_two_levels_names_sample_and_annotator(votes_of):
    index = pandas.MultiIndex.from_tuples(
        [("a", "Ann"), ("a", "Ben"), ("b", "Ann")], names=["sample", "annotator"]
    )
    found = read_annotations(pandas.DataFrame({"label": ["cat", "dog", "dog"]}, index=index))
    assert votes_of(found) == {"a": {"cat": 1, "dog": 1}, "b": {"dog": 1}}
    assert found.judgments.names == ("Ann", "Ben")


def test_what_is_no_table():
    with pytest.raises(InputTypeError, match="the path of a file or folder, or a data frame, not"):
        read_annotations([{"cat"}])
    with pytest.raises(DataError, match="the data frame has no rows"):
        read_annotations(pandas.DataFrame({"label": []}))
    with pytest.raises(DataError, match="the data frame has no column of candidates"):
        read_annotations(pandas.DataFrame({"a": ["u", "v"], "b": [1.5, 2.5]}))


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_files_of_arrow(tmp_path, votes_of, kind, monkeypatch):
    pytest.importorskip("pyarrow")
    for number, columns in enumerate((COLUMNS, LISTS)):
        path = tmp_path / f"{number}.{kind}"
        getattr(pandas.DataFrame(columns), f"to_{kind}")(path)
        assert votes_of(read_annotations(path)) == EXPECTED
        path.rename(tmp_path / "labels")
        assert votes_of(read_annotations(tmp_path / "labels")) == EXPECTED  # by its first letters
    if kind == "parquet":
        path = tmp_path / "index.parquet"
        pandas.DataFrame(COLUMNS).set_index("file").rename_axis(None).to_parquet(path)
        assert votes_of(read_annotations(path)) == EXPECTED
    damaged = tmp_path / f"damaged.{kind}"
    damaged.write_bytes(b"PAR1 nothing else")
    with pytest.raises(DataError, match=rf"damaged\.{kind} cannot be read as {kind}: "):
        read_annotations(damaged)
    with pytest.raises(DataError, match="does not exist"):
        read_annotations(tmp_path / f"none.{kind}")
    monkeypatch.setenv("FSPLL_MAX_BYTES", "10")
    with pytest.raises(DataError, match="bytes, more than the 10 that are allowed; set FSPLL_MAX"):
        read_annotations(damaged)


def test_an_absent_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingPackageError, match=r"reading l\.parquet needs the package 'pyarrow'.*fspll\[tables"
    ):
        read_annotations(tmp_path / "l.parquet")


def test_rows_of_hugging_face_data(votes_of):
    """What ``datasets.Dataset`` offers is all that is used, so a stand-in will do."""

    class Named:
        names = ("cat", "dog", "lynx")

    class Sequence:
        feature = Named()

    class Rows:
        column_names = ("file", "label")

        def __init__(self, labels, kind):
            self.columns = {"file": ["a.png", "b.png"], "label": labels}
            self.features = {"file": object(), "label": kind}

        def __getitem__(self, name):
            return self.columns[name]

    assert votes_of(read_annotations(Rows([[0, 2], [1]], Sequence()))) == EXPECTED
    assert votes_of(read_annotations(Rows([0, 1], Named()))) == {
        "a.png": {"cat": 1},
        "b.png": {"dog": 1},
    }


def test_label_and_diagnose_take_frames_and_the_result_is_one():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    frame = pandas.DataFrame({"candidates": ["a|b", "a", "b", "b|a"], "f": X[:, 0]})
    found = label(read_annotations(frame, features_columns="f"))
    assert found.labels.tolist() == ["a", "a", "b", "b"]
    made = found.to_frame()
    assert made.columns.tolist() == [
        *["sample", "label", "confidence", "runner_up", "margin", "candidates", "outside"]
    ]
    assert made["label"].tolist() == ["a", "a", "b", "b"]
    assert made["candidates"].tolist() == [["a", "b"], ["a"], ["b"], ["a", "b"]]
    assert made["confidence"].tolist() == found.confidence.tolist()
    texts = pandas.Series(["a|b", "a", "b", "b|a"])
    clusters = [0, 0, 1, 1]
    for y in (frame[["candidates"]], texts, read_annotations(frame)):
        assert diagnose(y, clusters).ceiling == 1.0
    mask = pandas.DataFrame({"a": [1, 1, 0, 1], "b": [1, 0, 1, 1]})
    assert diagnose(mask, clusters).classes.tolist() == ["a", "b"]
    with pytest.raises(DataError, match="row 1: there are no candidates"):
        diagnose(pandas.Series(["a|b", None, "b", "a"]), clusters)


def test_to_frame_says_what_is_absent(monkeypatch):
    found = label(([[0.0], [5.0]], [{"a"}, {"b"}]))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"to_frame\(\) needs the package 'pandas'"):
        found.to_frame()


def test_a_frame_can_be_labeled_at_once(tmp_path):
    from PIL import Image

    files = []
    for row in range(6):
        files.append(str(tmp_path / f"{row}.png"))
        Image.new("L", (16, 16), 255 * (row % 2)).save(files[-1])
    frame = pandas.DataFrame({"file": files, "candidates": ["a", "b", "a|b", "b|a", "a", "b"]})
    found = label(frame, encoder=lambda paths: np.array([[int(p.stem) % 2] for p in paths]))
    assert found.labels.tolist() == ["a", "b"] * 3
    assert found.understood.startswith("the data frame: 6 samples, 2 labels (a, b), ")
    assert found.to_frame()["file"].tolist() == files
