"""Byte-order marks, Windows text, mixed encodings: right results or the row that is wrong."""

from __future__ import annotations

import pytest

from fspll._common.errors import DataError, InputError
from fspll.annotations import read_annotations, read_answers

TABLE = "file,label\nä.png,café|Ærø\nb.png,日本\n"
WESTERN = "file,label\nä.png,café|Ærø\nb.png,naïve\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_are_understood(make, encoding):
    found = read_annotations(make("l.csv", TABLE, encoding))
    assert found.names == ("ä.png", "b.png")
    assert found.classes == ("café", "Ærø", "日本")


def test_utf_16_of_either_order(make):
    big = b"\xfe\xff" + TABLE.encode("utf-16-be")
    assert read_annotations(make("l.csv", big)).names == ("ä.png", "b.png")
    bare = make("m.csv", TABLE, "utf-16-le")
    with pytest.raises(DataError, match=r"m\.csv, row \d.*: "):
        read_annotations(bare)
    assert read_annotations(bare, encoding="utf-16-le").names == ("ä.png", "b.png")


def test_plain_ascii_in_utf_16_without_a_mark_is_hinted_at(make):
    with pytest.raises(DataError, match=r"row 1: there is a NUL byte.*give encoding='utf-16-le'"):
        read_annotations(make("l.csv", "file,label\na,b\n", "utf-16-le"))


def test_windows_text_needs_to_be_named(make):
    path = make("l.csv", WESTERN, "cp1252")
    with pytest.raises(DataError, match=r'l\.csv, row 2, column \'file\': byte 0xE4 .*"cp1252"'):
        read_annotations(path)
    assert read_annotations(path, encoding="cp1252").classes == ("café", "naïve", "Ærø")
    assert read_annotations(path, encoding="latin-1").names == ("ä.png", "b.png")


def test_the_encoding_holds_for_files_beside_the_labels_too(make):
    """Unless they are UTF-8."""
    labels = make("l.csv", WESTERN, "cp1252")
    for other in ("cp1252", "utf-8"):
        names = make("r.csv", "from,to\ncafé,thé\n", other)
        vectors = make("v.csv", "file,x\nä.png,1.5\nb.png,2\n", other)
        found = read_annotations(labels, encoding="cp1252", rename=names, features=vectors)
        assert found.classes == ("naïve", "thé", "Ærø")
        assert found.features.tolist() == [[1.5], [2.0]]
    with pytest.raises(DataError, match=r"v\.csv, row 2, column 'file': byte 0xE4 is not UTF-8"):
        read_annotations(
            make("u.csv", WESTERN), features=make("v.csv", "file,x\nä.png,1\n", "cp1252")
        )


def test_mixed_encodings_name_the_row_as_a_spreadsheet_counts(make):
    start = 'file,note,label\r\nä.png,"two\r\nlines",café\r\n\r\n'.encode()
    path = make("l.csv", start + "b.png,ok,naïve\r\n".encode("cp1252"))
    with pytest.raises(DataError, match="row 4, column 'label': byte 0xEF is not UTF-8"):
        read_annotations(path)


def test_a_bad_byte_in_the_header(make):
    with pytest.raises(DataError, match="row 1: byte 0xE9"):
        read_annotations(make("l.csv", b"fil\xe9,label\na,b\n"))


def test_encodings_that_do_not_fit(make):
    with pytest.raises(DataError, match=r"row 2, column 'label': byte 0x81 .*encoding='cp1252'"):
        read_annotations(make("l.csv", b"file,label\na,\x81\n"), encoding="cp1252")
    with pytest.raises(InputError, match="encoding='klingon' is not known"):
        read_annotations(make("l.csv", TABLE), encoding="klingon")
    with pytest.raises(InputError, match="encoding='hex' is not known"):
        read_annotations(make("l.csv", TABLE), encoding="hex")
    with pytest.raises(DataError, match="begins like utf-16 but is damaged"):
        read_annotations(make("l.csv", "file,label\na,b\n".encode("utf-16")[:-1]))


def test_a_mark_does_no_harm_where_the_encoding_is_given(make):
    path = make("l.csv", TABLE, "utf-8-sig")
    assert read_annotations(path, encoding="utf-8").files == ("ä.png", "b.png")


def test_json_too(make):
    records = '[{"file": "ä.png", "label": "café"}]'
    for encoding in ("utf-8-sig", "utf-16"):
        for name in ("l.json", "l.txt"):
            found = read_annotations(make(name, records, encoding))
            assert (found.names, found.classes) == (("ä.png",), ("café",))
    with pytest.raises(DataError, match=r"l\.json, line 2: byte 0xE4"):
        read_annotations(make("l.json", b'[{"file":\n"\xe4"}]'))


def test_answers_too(make):
    assert read_answers(make("a.csv", "sample,answer\nä,é\n", "utf-16")) == {"ä": "é"}
