"""Folders and zips read alike; hostile and damaged zips refused."""

from __future__ import annotations

import os
import stat
import zipfile

import pytest

from fspll._common.errors import DataError
from fspll.datasets.archives import ZipSource, open_source

FILES = {"a/1.png": b"first", "a/2.png": b"second", "b/1.png": b"x" * 1000}


def write_zip(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def folder(tmp_path):
    for name, data in FILES.items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_bytes(data)
    return tmp_path / "set"


def test_folder_and_zip_hold_the_same(folder, tmp_path):
    zipped = write_zip(tmp_path / "set.zip", dict(reversed(FILES.items())))
    with open_source(folder) as left, open_source(zipped) as right:
        assert left.names == right.names == tuple(sorted(FILES))
        for name, data in FILES.items():
            assert left.read(name) == right.read(name) == data


def test_hidden_files_and_macos_leftovers_are_left_out(folder, tmp_path):
    (folder / "a" / ".DS_Store").write_bytes(b"")
    zipped = write_zip(tmp_path / "set.zip", FILES | {"__MACOSX/a/._1.png": b"", "a/.x": b""})
    with open_source(folder) as left, open_source(zipped) as right:
        assert left.names == right.names == tuple(sorted(FILES))


def test_linked_class_folders_are_followed_but_loops_are_not(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "9.png").write_bytes(b"nine")
    try:
        (folder / "c").symlink_to(tmp_path / "elsewhere")
        (folder / "a" / "up").symlink_to(folder)
    except OSError:
        pytest.skip("this system does not let users make links")
    with open_source(folder) as source:
        assert source.names == (*sorted(FILES), "c/9.png")
        assert source.read("c/9.png") == b"nine"


def test_broken_link_is_named(folder):
    try:
        (folder / "a" / "gone.png").symlink_to(folder / "nowhere")
    except OSError:
        pytest.skip("this system does not let users make links")
    with pytest.raises(DataError, match=r"cannot read .*gone\.png: No such file"):
        open_source(folder)


@pytest.mark.parametrize("name", ["/etc/x.png", "../x.png", "a/../../x.png", "C:/x.png", "..\\x"])
def test_paths_outside_are_refused(tmp_path, name):
    path = write_zip(tmp_path / "bad.zip", {"fine.png": b"", name: b"x"})
    with pytest.raises(DataError, match=r"bad\.zip is refused: member .* points outside of it"):
        open_source(path)


def test_links_are_refused(tmp_path):
    link = zipfile.ZipInfo("a/link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match=r"member 'a/link\.png' is a link"):
        open_source(tmp_path / "bad.zip")


def test_encrypted_members_are_refused(tmp_path):
    path = write_zip(tmp_path / "bad.zip", {"a.png": b"x"})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # general purpose flag of the central directory
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"member 'a\.png' is encrypted"):
        open_source(path)


def test_sizes_are_bounded(tmp_path):
    path = write_zip(tmp_path / "big.zip", FILES, zipfile.ZIP_DEFLATED)
    with pytest.raises(DataError, match=r"'b/1\.png' has 1,000 bytes; at most 999 are read"):
        ZipSource(path, max_member=999)
    with pytest.raises(DataError, match=r"unpacks to more than 1,010 bytes"):
        ZipSource(path, max_total=1010)
    ZipSource(path, max_member=1000, max_total=1011).close()


def test_a_member_that_lies_about_its_size_is_not_inflated(tmp_path):
    path = write_zip(tmp_path / "bomb.zip", {"a.png": b"\0" * 5_000_000}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 24  # uncompressed size in the central directory
    data[at : at + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    with open_source(path) as source, pytest.raises(DataError, match=r"'a\.png' of .* is damaged"):
        source.read("a.png")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("a.png", b"1")
        archive.writestr("a.png", b"2")
    with pytest.raises(DataError, match=r"two members called 'a\.png'"):
        open_source(tmp_path / "bad.zip")


def test_truncated_zip(tmp_path):
    path = write_zip(tmp_path / "cut.zip", FILES)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"cut\.zip is not a whole zip file"):
        open_source(path)


def test_a_damaged_member_is_named(tmp_path):
    path = write_zip(tmp_path / "set.zip", FILES)
    path.write_bytes(path.read_bytes().replace(b"second", b"sEcond"))
    message = r"member 'a/2\.png' of .*set\.zip is damaged: Bad CRC"
    with open_source(path) as source, pytest.raises(DataError, match=message):
        source.read("a/2.png")


def test_missing_things_are_named(folder, tmp_path):
    with pytest.raises(DataError, match=r"nothing\.zip does not exist"):
        open_source(tmp_path / "nothing.zip")
    with open_source(folder) as source, pytest.raises(DataError, match=r"gone\.png does not exist"):
        source.read("gone.png")
    with (
        open_source(write_zip(tmp_path / "set.zip", FILES)) as source,
        pytest.raises(DataError, match=r"set\.zip has no member 'gone\.png'"),
    ):
        source.read("gone.png")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs enforced permissions")
def test_a_folder_that_may_not_be_read_is_an_error(folder):
    (folder / "a").chmod(0)
    try:
        with pytest.raises(DataError, match=r"cannot read .*a: Permission denied"):
            open_source(folder)
    finally:
        (folder / "a").chmod(0o700)


def test_a_list_of_members_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    zipped = write_zip(tmp_path / "set.zip", {f"{i:04}.png": b"x" * 5000 for i in range(40)})
    monkeypatch.setattr("fspll.datasets.archives.MAX_DIRECTORY_BYTES", 3000)
    with ZipSource(zipped) as source:  # 40 x (46 + 8) bytes; members may be larger than that
        assert source.read("0039.png") == b"x" * 5000
    monkeypatch.setattr("fspll.datasets.archives.MAX_DIRECTORY_BYTES", 1000)
    with pytest.raises(DataError, match="its list of members has 2,160 bytes; at most 1,000 are"):
        ZipSource(zipped)
