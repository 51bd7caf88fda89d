"""A person's answers."""

from __future__ import annotations

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_answers, write_table


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "sample,answer\na.png,cat\nb.png,\nc.png, dog \n"),
        ("a.csv", "file;label\na.png;cat\na.png;cat\nc.png;dog\n"),
        ("a.tsv", "rank\tsample\tlabel\tanswer\n1\ta.png\tx\tcat\n2\tc.png\ty\tdog\n3\t\tz\t\n"),
    ],
)
def test_answers(make, name, content):
    assert read_answers(make(name, content)) == {"a.png": "cat", "c.png": "dog"}


def test_an_answer_is_one_label_whatever_is_in_it(make):
    assert read_answers(make("a.csv", "sample,answer\na,cat|dog\n")) == {"a": "cat|dog"}


def test_nothing_answered_yet(make):
    assert read_answers(make("a.csv", "sample,answer\na,\nb,\n")) == {}


def test_guarded_names_come_back(tmp_path):
    write_table(tmp_path / "a.csv", ["sample", "answer"], [["=a", "-b"], ["'+c", "d"]])
    assert read_answers(tmp_path / "a.csv") == {"=a": "-b", "'+c": "d"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sample,answer\na,x\nb,y\na,z\n", "row 2 and row 4 answer 'x' and 'z' for .* 'a'"),
        ("sample,answer\n,x\n", "row 2, column 'sample': there is no name of a sample"),
        ("sample,reply\na,x\n", "needs the columns 'sample' and 'answer'; its columns are"),
        ("answer\nx\n", "needs the columns 'sample' and 'answer'"),
        ("sample,answer\n", "has a header but no rows"),
    ],
)
def test_what_is_wrong_is_named(make, content, message):
    with pytest.raises(DataError, match=message):
        read_answers(make("a.csv", content))


def test_no_file(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_answers(tmp_path / "a.csv")
