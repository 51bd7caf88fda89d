"""CSV and TSV files as they come: separators, quotes, columns, and what is wrong with them."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fspll._common.errors import DataError, InputError, InputTypeError
from fspll.annotations import read_annotations

EXPECTED = {"a.png": {"cat": 1, "lynx": 1}, "b.png": {"dog": 1}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", "file,candidates\na.png,cat|lynx\nb.png,dog\n"),
        ("l.csv", "file,candidates\r\na.png,cat;lynx\r\nb.png,dog"),
        ("l.csv", "file;candidates\ra.png;cat,lynx\rb.png;dog\r"),
        ("l.csv", 'file,candidates\na.png,"cat,lynx"\nb.png,dog\n'),
        ("l.csv", "file\tcandidates\na.png\tcat,lynx\nb.png\tdog\n"),
        ("l.tsv", "file\tcandidates\na.png\tlynx, cat ,cat\nb.png\t dog \n"),
        ("l.TSV", 'FILE\tCandidate Labels\n"a.png"\t"cat|lynx|"\nb.png\tdog\n'),
        ("l.csv", "sep=;\nfile;label\na.png;cat|lynx\nb.png;dog\n"),
        ("l.csv", "\n,,\nnr, image ,LABELS\n\n1, a.png ,cat|lynx\n,,\n2,b.png,dog\n\n"),
        ("l.csv", 'file,note,label\na.png,"two\nlines, ""quoted""",cat|lynx\nb.png,,dog\n'),
        ("l.csv", 'file,labels\na.png, "cat,lynx"\nb.png,dog\n'),
        ("l.csv", 'file,candidates\na.png,"cat\nlynx"\nb.png,dog\n'),
        ("l.csv", "file,label\na.png,\"['cat', 'lynx']\"\nb.png,['dog']\n"),
        ("l.csv", 'file,choice\na.png,"{""choices"":[""cat"",""lynx""]}"\nb.png,dog\n'),
        ("labels", "file,label\na.png,cat|lynx\nb.png,dog\n"),
    ],
)
def test_one_row_a_sample(make, votes_of, name, content):
    assert votes_of(read_annotations(make(name, content))) == EXPECTED


CAKES = {"a": {"Gâteau, crème": 2, "Tarte": 1}, "b": {"Tarte": 2}}


@pytest.mark.parametrize(
    ("content", "understood"),
    [
        (
            "file,label_1,label_2,label_3\n"
            'a,"Gâteau, crème","Gâteau, crème",Tarte\nb,Tarte,,Tarte\n',
            "3 label columns ('label_1', 'label_2', 'label_3'), one label per cell, "
            "'Gâteau, crème' is one label, pictures from 'file'",
        ),
        (
            "id;rater;label\na;1;Gâteau, crème\na;2;Gâteau, crème\na;3;Tarte\n"
            "b;1;Tarte\nb;2;Tarte\n",
            "labels from 'label', one label per cell, annotators from 'rater', "
            "'Gâteau, crème' is one label, samples from 'id', fields separated by ';'",
        ),
    ],
)
def test_one_label_per_cell_is_not_split(make, votes_of, content, understood):
    found = read_annotations(make("l.csv", content))
    assert votes_of(found) == CAKES
    assert found.summary == f"l.csv: 2 samples, 2 labels (Gâteau, crème, Tarte), {understood}"
    assert repr(found) == f"Annotations({found.summary})"


def test_several_labels_per_cell_of_an_annotator(make, votes_of):
    path = make("l.csv", 'id,rater,labels\na,1,"cat, lynx"\na,2,cat\nb,1,dog\n')
    assert votes_of(read_annotations(path)) == {"a": {"cat": 2, "lynx": 1}, "b": {"dog": 1}}
    path = make("l.csv", 'id,rater,label\na,1,"cat, lynx"\na,2,cat\na,3,lynx\nb,1,dog\n')
    with pytest.raises(DataError, match="'cat, lynx' may be one label or several"):
        read_annotations(path)


def test_places_names_and_files(make):
    found = read_annotations(make("l.csv", "id,image,label\n1,a.png,cat\n\n2,x/a.png,dog\n"))
    assert found.names == found.files == ("a.png", "x/a.png")
    assert found.origins == ("l.csv, row 2", "l.csv, row 4")
    assert found.texts is None
    assert found.features is None


def test_columns_that_are_named(make, votes_of):
    path = make("l.csv", "id,image,label,mine,words\n1,a.png,cat,x|y,one\n2,b.png,dog,z,two\n")
    found = read_annotations(path, candidates="MINE", sample="id", text="words")
    assert votes_of(found) == {"1": {"x": 1, "y": 1}, "2": {"z": 1}}
    assert found.files == ("a.png", "b.png")
    assert found.texts == ("one", "two")
    found = read_annotations(path, file="words")
    assert found.names == found.files == ("one", "two")


def test_names_are_files_only_if_all_look_like_pictures(make):
    assert read_annotations(make("a.csv", "sample,label\nx.JPG,a\ny.png,b\n")).files == (
        "x.JPG",
        "y.png",
    )
    assert read_annotations(make("b.csv", "sample,label\nx.jpg,a\ny,b\n")).files is None


def test_rows_without_names_are_called_by_their_number(make):
    found = read_annotations(make("l.csv", "text,label\nhello,a\nworld,b\n"), text="text")
    assert found.names == ("row 2", "row 3")
    assert found.texts == ("hello", "world")


def test_one_class_is_read(make, votes_of):
    path = make("l.csv", "file,label\na,cat\nb,cat\n")
    assert votes_of(read_annotations(path)) == {"a": {"cat": 1}, "b": {"cat": 1}}


def test_blanks_are_trimmed_but_separate_nothing(make):
    path = make("l.csv", "file,label\n a ,\u00a0snow leopard | cat \n")
    found = read_annotations(path)
    assert found.names == ("a",)
    assert found.classes == ("cat", "snow leopard")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "l.csv is empty"),
        (" \n\n", "l.csv is empty"),
        ("file,label\n", "l.csv has a header but no rows below it"),
        ("file,label\n,\n\n", "l.csv has a header but no rows below it"),
        ("file,label\na,\"[['x']]\"\n", "row 2, column 'label': .* is not a label"),
        ("file,label\na,cat\n,dog\n", "row 3, column 'file': there is no (file )?name"),
        ("file,label\na,cat\nb\n", "l.csv, row 3 has 1 field where the header has 2"),
        ("file,label\na,cat,dog\n", "l.csv, row 2 has 3 fields where the header has 2; .*quotes"),
        ('file,label\n\na,"cat\nb,dog\n', "l.csv, row 3: a double quote is opened and never"),
        ('file,label\na,"cat"dog\n', "l.csv, row 2: "),
        ("file,label\na,c\0at\n", "l.csv, row 2, column 'label': there is a NUL byte"),
        ("a.png,cat|dog\nb.png,cat\n", "no column of candidates .* 'a.png', 'cat|dog'; say which"),
        ("file,label,label\na,b,c\n", "l.csv has 2 columns called 'label'"),
        ("file,annotator,label\na,,c\n", "row 2, column 'annotator': there is no annotator"),
        ("file,label\na,x/y\n", "'x/y' may be one label or several; give delimiter='/'"),
    ],
)
def test_what_is_wrong_is_named(make, content, message):
    with pytest.raises(DataError, match=message):
        read_annotations(make("l.csv", content))


def test_missing_columns_list_those_that_exist(make):
    path = make("l.csv", "file,label,note\na,b,c\n")
    for argument in ("candidates", "sample", "annotator", "text", "file"):
        with pytest.raises(
            DataError, match="no column 'nix'; its columns are 'file', 'label', 'note'"
        ):
            read_annotations(path, **{argument: "nix"})
    many = ",".join(f"c{i}" for i in range(30))
    with pytest.raises(DataError, match="'c19' and 10 more"):
        read_annotations(make("m.csv", f"{many}\n{many}\n"))


def test_an_empty_text_is_refused(make):
    path = make("l.csv", "label,words\na,one\nb,\n")
    with pytest.raises(DataError, match="row 3, column 'words': there is no text"):
        read_annotations(path, text="words")


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv does not exist"):
        read_annotations(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="does not exist"):
        read_annotations(tmp_path / "nothing")
    with pytest.raises(DataError, match="is a folder, not a file"):
        read_annotations(tmp_path, format="csv")
    with pytest.raises(DataError, match="has no pictures in sub-folders"):
        read_annotations(tmp_path)


def test_spreadsheets_of_other_formats_are_told_to_be_saved(make):
    for name in ("l.xls", "l.ods", "l.numbers"):
        with pytest.raises(DataError, match=r"save it as \.xlsx or as CSV"):
            read_annotations(make(name, b"PK\x03\x04rest"))
    with pytest.raises(DataError, match="a spreadsheet in its own format, not a text file"):
        read_annotations(make("l.csv", b"PK\x03\x04rest"))


def test_arguments_that_mean_nothing(make):
    path = make("l.csv", "file,label\na,b\n")
    with pytest.raises(InputError, match="combine must be 'union' or 'majority', not 'all'"):
        read_annotations(path, combine="all")
    with pytest.raises(InputError, match=r"format must be one of csv, tsv, .*not 'xml'"):
        read_annotations(path, format="xml")
    with pytest.raises(InputTypeError, match="sample must be text, not int"):
        read_annotations(path, sample=3)
    with pytest.raises(InputTypeError, match="classes must be a list of texts"):
        read_annotations(path, classes="cat")
    with pytest.raises(InputError, match="alternatives belong to a folder"):
        read_annotations(path, alternatives="x.csv")


def test_format_decides_against_the_ending(make, votes_of):
    path = make("l.json", "file\tlabel\na.png\tcat|lynx\nb.png\tdog\n")
    assert votes_of(read_annotations(path, format="tsv")) == EXPECTED


def test_a_field_longer_than_the_usual_limit(make):
    limit = csv.field_size_limit()
    words = "word " * 100_000
    path = make("l.csv", f'label,words\na,"{words}"\n')
    assert read_annotations(path, text="words").texts == (words.strip(),)
    assert csv.field_size_limit() == limit
    with pytest.raises(DataError, match="row 3 has 1 field"):
        read_annotations(make("m.csv", f"label,words\na,{words}\nb\n"))
    assert csv.field_size_limit() == limit


def test_classes_are_checked_with_a_hint(make):
    path = make("l.csv", "file,label\na,cat|lynx\nb,dgo\n")
    with pytest.raises(DataError, match=r"row 3: the label 'dgo' .* did you mean 'dog'\?"):
        read_annotations(path, classes=["cat", "dog", "lynx"])
    found = read_annotations(path, classes=["cat", "dgo", "lynx", "yak"])
    assert found.classes == ("cat", "dgo", "lynx")  # those that occur


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), separator=st.sampled_from(",;\t")
)
def test_whatever_the_csv_module_writes_is_read(tmp_path_factory, rows, separator):
    """Rows keep their spreadsheet number, whatever is in the fields."""
    path = tmp_path_factory.mktemp("t") / "l.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL)
        writer.writerow(["label", "words"])
        writer.writerows([["x", f"{a}.{b}"] for a, b in rows])
    found = read_annotations(path, text="words")
    assert found.names == tuple(f"row {i}" for i in range(2, len(rows) + 2))
    guards = ("'=", "'+", "'-", "'@", "'\t", "'\r", "''")
    for text, (a, b) in zip(found.texts, rows, strict=True):
        if not f"{a}.{b}".strip().startswith(guards):
            assert text == f"{a}.{b}".strip()
