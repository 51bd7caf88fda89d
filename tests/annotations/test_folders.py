"""One folder per class, with a table of alternatives."""

from __future__ import annotations

import os

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations

PICTURES = ("cat/a.png", "cat/b.JPG", "dog/a.png", "Greek/alpha/1.png")


@pytest.fixture
def pets(make, tmp_path):
    for name in (*PICTURES, "cat/notes.txt", ".git/x.png", "cat/.hidden.png"):
        make(f"pets/{name}", "")
    return tmp_path / "pets"


def test_folders_alone_are_ordinary_labels(pets, votes_of):
    found = read_annotations(pets)
    assert votes_of(found) == {
        "Greek/alpha/1.png": {"Greek/alpha": 1},
        "cat/a.png": {"cat": 1},
        "cat/b.JPG": {"cat": 1},
        "dog/a.png": {"dog": 1},
    }
    assert found.files == found.names
    assert found.origins[1] == "pets, cat/a.png"


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("pets/alternatives.csv", "file,alternatives\ncat/a.png,lynx|cat|yak\nb.JPG,fox\n1.png,\n"),
        ("pets/alternatives.tsv", "file\talternatives\n./cat\\a.png\tlynx,yak\nb.JPG\tfox\n"),
        ("other.csv", "name;label\ncat/a.png;lynx,yak\ncat/b.JPG;fox\n"),
    ],
)
def test_the_folder_is_a_candidate_too(pets, make, votes_of, name, table):
    path = make(name, table)
    found = read_annotations(pets, alternatives=None if "pets" in name else path)
    assert votes_of(found) == {
        "Greek/alpha/1.png": {"Greek/alpha": 1},
        "cat/a.png": {"cat": 1, "lynx": 1, "yak": 1},
        "cat/b.JPG": {"cat": 1, "fox": 1},
        "dog/a.png": {"dog": 1},
    }


def test_names_of_folders_tell_what_a_comma_means(make, tmp_path):
    """In one table the alternatives are two classes, in the other one class with a comma."""
    for folder in ("cat", "dog", "tench, Tinca tinca"):
        for number in range(5):
            make(f"pets/{folder}/{folder[0]}{number}.png", "")
    others = [f"c{number}.png,fox{number}" for number in range(1, 5)]
    others += [f"d{number}.png,yak{number}" for number in range(5)]
    for cell, expected in (
        ("dog, lynx", ["cat", "dog", "lynx"]),
        ("tench, Tinca tinca", ["cat", "tench, Tinca tinca"]),
    ):
        rows = ["file,alternatives", f'c0.png,"{cell}"', *others]
        make("pets/alternatives.csv", "\n".join(rows))
        assert read_annotations(tmp_path / "pets").candidates.names(0) == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("file,alternatives\nz.png,x\n", "row 2, column 'file': there is no picture 'z.png'"),
        ("file,alternatives\na.png,x\n", "row 2, .*2 pictures .* called 'a.png'; .*'cat/a.png'"),
        ("file,alternatives\nb.JPG,x\ncat/b.JPG,y\n", "row 2 and row 3 both name 'cat/b.JPG'"),
        ("file,what\nb.JPG,x\n", "needs the columns 'file' and 'alternatives'; its columns are"),
        ("file,alternatives\n,x\n", "row 2, column 'file': there is no file name"),
    ],
)
def test_what_is_wrong_is_named(pets, make, table, message):
    make("pets/alternatives.csv", table)
    with pytest.raises(DataError, match=message):
        read_annotations(pets)


def test_a_table_that_does_not_exist(pets, tmp_path):
    with pytest.raises(DataError, match=r"nix\.csv does not exist"):
        read_annotations(pets, alternatives=tmp_path / "nix.csv")


def test_a_picture_outside_the_classes(pets, make):
    make("pets/stray.png", "")
    with pytest.raises(DataError, match=r"'stray.png' lies directly in .*pets"):
        read_annotations(pets)


def test_files_and_nothing_in_place_of_a_folder(make, tmp_path):
    with pytest.raises(DataError, match="is a file; expected a folder"):
        read_annotations(make("x.csv", "a"), format="folder")
    with pytest.raises(DataError, match="does not exist; expected a folder"):
        read_annotations(tmp_path / "nix", format="folder")


def test_unknown_classes_are_refused(pets):
    with pytest.raises(DataError, match="the label 'dog' is not one of the 2 classes"):
        read_annotations(pets, classes=["cat", "Greek/alpha"])


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_circle_of_links_ends(pets):
    (pets / "cat" / "round").symlink_to(pets, target_is_directory=True)
    assert len(read_annotations(pets)) == 4
