"""Files from a browser: their names, their sizes, zips made to do harm, and who makes room."""

from __future__ import annotations

import io
import os
import stat
import threading
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra 'app' is not installed")

from fspll._common.errors import DataError, FsPLLError, InputError
from fspll.app import open_uploads, uploads
from fspll.app.file_names import file_name, inside
from fspll.app.open_uploads import Uploads
from fspll.app.requests import UnknownError
from fspll.app.uploads import Upload
from fspll.app.workspaces import Workspaces


@pytest.fixture
def upload():
    made = Upload()
    yield made
    made.close()


def send(upload, name, content=b"x", piece=1 << 16):
    with upload.receive(name) as incoming:
        for start in range(0, len(content), piece):
            incoming.write(content[start : start + piece])
        incoming.keep()


def zipped(members, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def everything(upload):
    """Return the files below the upload's folder."""
    found = (one for one in upload.folder.rglob("*") if not one.is_dir())
    return sorted(one.relative_to(upload.folder).as_posix() for one in found)


# -------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("a.png", "a.png"),
        ("../../x.png", "x.png"),
        ("/etc/x.png", "x.png"),
        ("C:\\Users\\me\\x.png", "x.png"),
        ("\\\\host\\share\\x.png", "x.png"),
        ("..\\..\\x.png", "x.png"),
        ("a/b/../c.png/", "c.png"),
        (" blank .png ", "blank .png"),
        ("Bildschirmfoto um 3.45.12\u202fPM.png", "Bildschirmfoto um 3.45.12\u202fPM.png"),
        ("größe 😀.png", "größe 😀.png"),
        ("<img src=x onerror=alert(1)>.png", "<img src=x onerror=alert(1)>.png"),
        ("%2e%2e%2fx.png", "%2e%2e%2fx.png"),
    ],
)
def test_only_the_last_part_of_a_name_counts(upload, given, name):
    assert file_name(given) == name
    send(upload, given)
    assert everything(upload) == [f"pictures/{name}"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "it is empty, or that of a hidden file"),
        ("..", "it is empty"),
        ("a/..", "it is empty"),
        ("/", "it is empty"),
        (".bashrc", "hidden file"),
        ("x/.1.part", "hidden file"),
        ("a\0.png", "holds a character that cannot be shown"),
        ("a\n.png", "holds a character that cannot be shown"),
        ("a\u202egnp.exe.png", "holds a character that cannot be shown"),
        ("a\udcff.png", "holds a character that cannot be shown"),
        ("n" * 296 + ".png", "it is longer than 200 bytes"),
        ("é" * 99 + ".png", "it is longer than 200 bytes"),
        ("x.exe", "'x.exe' is not taken: send pictures, a table"),
        ("pictures", "'pictures' is not taken"),
        ("x.png.html", "is not taken"),
    ],
)
def test_other_names_are_refused(upload, given, reason):
    with pytest.raises(InputError, match=reason):
        send(upload, given)
    assert everything(upload) == []


def test_names_of_devices_are_refused_on_windows(monkeypatch):
    for name in ("con.png", "LPT1", "a.png:stream", "a?.png"):
        assert file_name(name) == name
        monkeypatch.setattr("os.name", "nt")
        with pytest.raises(InputError, match="Windows cannot have a file of that name"):
            file_name(name)
        monkeypatch.undo()
    monkeypatch.setattr("os.name", "nt")
    assert file_name("console.png") == "console.png"


@pytest.mark.parametrize(
    "name", ["/a/b.png", "../b.png", "x/../../b.png", "c:\\b.png", "//h/b.png"]
)
def test_a_table_names_no_folder_outside(name):
    assert inside(name) == "b.png"
    assert inside("x/b.png") == "x/b.png"
    assert inside("12:30.png") == "12:30.png"
    assert inside("https://host/b.png") == "https://host/b.png"  # for Label Studio; not opened here
    assert inside("https://host/../b.png") == "b.png"


def test_nothing_is_overwritten(upload):
    send(upload, "a.png", b"first")
    send(upload, "l.csv", b"first")
    for name in ("a.png", "x/a.png", "l.csv"):
        with pytest.raises(InputError, match="already; remove that one first"):
            send(upload, name, b"second")
    with pytest.raises(InputError, match=r"'a\.png' already"):
        send(upload, "z.zip", zipped({"b.png": b"new", "a.png": b"second"}))
    assert everything(upload) == ["l.csv", "pictures/a.png"]
    assert (upload.pictures / "a.png").read_bytes() == b"first"
    upload.remove("l.csv")
    send(upload, "l.csv", b"second")
    assert (upload.folder / "l.csv").read_bytes() == b"second"


# -------------------------------------------------------------------- sizes


def test_too_large_files_are_refused_and_leave_nothing(upload, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_PICTURE_BYTES", 100)
    monkeypatch.setattr(uploads, "MOST_TABLE_BYTES", 200)
    monkeypatch.setattr(uploads, "MOST_BYTES", 250)
    for name, most in (("a.png", 100), ("a.csv", 200), ("a.zip", 250)):
        with pytest.raises(InputError, match=f"'{name}' has more than the {most} bytes"):
            send(upload, name, b"x" * (most + 1), piece=10)
    assert everything(upload) == []
    for number in range(2):
        send(upload, f"{number}.png", b"x" * 100)
    with pytest.raises(InputError, match="an upload has at most 250 bytes, unpacked"):
        send(upload, "2.png", b"x" * 60, piece=10)
    send(upload, "2.png", b"x" * 50)  # what was refused does not count
    upload.remove(None)
    assert everything(upload) == []
    send(upload, "a.csv", b"x" * 200)


def test_too_many_files_are_refused(upload, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_FILES", 3)
    send(upload, "a.csv")
    send(upload, "b.png")
    with pytest.raises(InputError, match="an upload has at most 3 files"):
        send(upload, "two.zip", zipped({"c.png": b"", "d.png": b""}))
    assert everything(upload) == ["a.csv", "pictures/b.png"]
    send(upload, "c.png")
    with pytest.raises(InputError, match="an upload has at most 3 files"):
        send(upload, "d.png")


def test_an_interrupted_file_leaves_nothing(upload):
    with upload.receive("a.png") as incoming:
        incoming.write(b"half")
    assert everything(upload) == []
    send(upload, "a.png")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(upload):
    with upload.receive("a.png") as incoming:
        incoming._file.close()
        incoming._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
        with pytest.raises(DataError, match="the file cannot be kept: No space left on device"):
            incoming.write(b"x")
    assert everything(upload) == []


# -------------------------------------------------------------------- zips


def test_pictures_of_a_zip_keep_their_folders(upload):
    members = {
        "set/cats/1.png": b"c",
        "set/dogs/1.png": b"d",
        "set/labels.csv": b"t",
        "set/X.npy": b"v",
        "set/notes.md": b"",
        "__MACOSX/set/cats/._1.png": b"",
        "set/.DS_Store": b"",
    }
    send(upload, "set.zip", zipped(members))
    assert everything(upload) == [
        "X.npy",
        "labels.csv",
        "pictures/set/cats/1.png",
        "pictures/set/dogs/1.png",
    ]
    assert upload.files == {"labels.csv": 1, "X.npy": 1}
    assert (upload.n_pictures, upload.left_out) == (2, 1)


def link(name):
    about = zipfile.ZipInfo(name)
    about.external_attr = (stat.S_IFLNK | 0o777) << 16
    return about


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"a.png": b"", "../b.png": b""}, "'z.zip' is refused|member '../b.png' points outside"),
        ({"/etc/b.png": b""}, "member '/etc/b.png' points outside"),
        ({"C:/b.png": b""}, "member 'C:/b.png' points outside"),
        ({link("b.png"): b"/etc/passwd"}, "member 'b.png' is a link"),
        ({"a\n.png": b""}, "holds a character that cannot be shown"),
        ({"n" * 300 + ".png": b""}, "longer than 200 bytes"),
        ({"x/" * 20 + "a.png": b""}, "more than 16 folders in one another"),
        ({"a.txt/b.png": b"", "a.txt": b"", "c/a.txt": b""}, r"'a\.txt' already"),
        ({"a.png": b"", "a.png/b.png": b""}, "cannot be kept: "),
        ({"a.exe": b""}, "holds neither pictures nor tables"),
        ({}, "holds neither pictures nor tables"),
    ],
)
def test_zips_that_are_refused_leave_nothing(upload, members, sentence):
    with pytest.raises(InputError, match=sentence) as raised:
        send(upload, "z.zip", zipped(members))
    assert str(upload.folder) not in str(raised.value)
    assert everything(upload) == []


def test_a_bomb_is_refused_before_it_is_unpacked(upload, monkeypatch):
    bomb = zipped({"a.png": b"\0" * (65 << 20)})
    assert len(bomb) < 100_000
    with pytest.raises(InputError, match="has 68,157,440 bytes; at most 67,108,864 are read"):
        send(upload, "bomb.zip", bomb)
    monkeypatch.setattr(uploads, "MOST_BYTES", 1 << 20)
    many = zipped({f"{n}.png": b"\0" * (1 << 17) for n in range(9)})
    with pytest.raises(
        InputError, match=r"many\.zip is refused: it unpacks to more than 1,048,576"
    ):
        send(upload, "many.zip", many)
    send(upload, "one.zip", zipped({"a.png": b"\0" * (1 << 19)}))
    with pytest.raises(InputError, match="an upload has at most 1,048,576 bytes, unpacked"):
        send(upload, "two.zip", zipped({"b.png": b"\0" * (1 << 19), "c.png": b"\0"}))
    assert everything(upload) == ["pictures/a.png"]
    send(upload, "three.zip", zipped({"b.png": b"\0" * (1 << 19)}))


def test_a_spreadsheet_that_unpacks_to_too_much_is_refused(upload, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_TABLE_BYTES", 1 << 20)
    bomb = zipped({"xl/worksheets/sheet1.xml": b" " * (1 << 21)})
    for name in ("l.xlsx", "X.npz", "l.txt"):  # whatever it is called
        with pytest.raises(InputError, match="has 2,097,152 bytes; at most 1,048,576 are read"):
            send(upload, name, bomb)
        with pytest.raises(InputError, match="has 2,097,152 bytes; at most 1,048,576 are read"):
            send(upload, "z.zip", zipped({"a.png": b"x", name: bomb}))
        with pytest.raises(InputError, match=f"^{name} is refused"):
            send(upload, "z.zip", zipped({"folder/" + name: bomb}))
    assert everything(upload) == []
    send(upload, "l.xlsx", zipped({"xl/worksheets/sheet1.xml": b" " * (1 << 19)}))


def test_a_member_that_lies_about_its_size(upload):
    data = bytearray(zipped({"a.png": b"\0" * 100_000}))
    for at in (data.index(b"PK\x03\x04") + 22, data.index(b"PK\x01\x02") + 24):
        data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(InputError, match=r"member 'a\.png' of z\.zip is damaged"):
        send(upload, "z.zip", bytes(data))
    assert everything(upload) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"no zip", zipped({"a.png": b"x" * 99})[:-30]],
    ids=["empty", "text", "cut short"],
)
def test_what_is_no_zip(upload, content):
    with pytest.raises(InputError, match=r"z\.zip is not a whole zip file"):
        send(upload, "z.zip", content)
    assert everything(upload) == []


def test_a_damaged_zip_leaves_none_of_its_members(upload):
    data = bytearray(zipped({"a.png": b"first", "b.png": bytes(range(256)) * 40}))
    at = data.index(b"b.png") + 40
    data[at : at + 8] = b"\xff" * 8
    with pytest.raises(InputError, match=r"member 'b\.png' of z\.zip is damaged"):
        send(upload, "z.zip", bytes(data))
    assert everything(upload) == []
    assert (upload.n_pictures, upload.files) == (0, {})


# -------------------------------------------------------------------- many uploads


def test_folders_are_private_and_of_their_own():
    one, other = Upload(), Upload()
    assert one.folder != other.folder
    if os.name == "posix":
        assert stat.S_IMODE(one.folder.stat().st_mode) == 0o700
    send(one, "a.csv")
    assert other.files == {}
    with pytest.raises(InputError, match=r"there is no uploaded file 'a\.csv'"):
        other.path("a.csv")
    one.close()
    assert not one.folder.exists()
    assert other.folder.exists()
    other.close()


def test_a_deleted_upload_is_not_made_again():
    upload = Upload()
    with upload.receive("a.zip") as incoming:
        incoming.write(zipped({"x/a.png": b"x"}))
        upload.close()
        with pytest.raises(FsPLLError, match="this upload was deleted"):
            incoming.keep()
    assert not upload.folder.exists()


def test_the_oldest_idle_one_without_answers_makes_room(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    found = Uploads(Workspaces(), most=3)
    first, second, third = (found.start() for _ in range(3))
    with pytest.raises(InputError, match="3 uploaded data sets are open here already; delete one"):
        found.start()
    now[0] += 1
    found.get(first.key)  # used again: the second is the oldest
    now[0] += open_uploads.IDLE
    fourth = found.start()
    with pytest.raises(UnknownError, match="there is no such upload here"):
        found.get(second.key)
    assert not second.folder.exists()
    (third.folder / "result").mkdir()
    (third.folder / "result" / "answers.log").write_text("{}\n")  # answers: never without asking
    now[0] += open_uploads.IDLE + 1
    found.get(first.key)
    found.get(fourth.key)
    with pytest.raises(InputError, match="delete one of them first"):
        found.start()
    found.close(third.key)
    found.start()
    found.close_all()
    assert not any(one.folder.exists() for one in (first, third, fourth))


def test_files_may_come_at_once(upload):
    def work(start):
        for number in range(start, 60, 3):
            send(upload, f"{number}.png", b"x" * 1000)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert upload.n_pictures == len(everything(upload)) == 60
