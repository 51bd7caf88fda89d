"""Data sets fetched from servers and folders, sound and otherwise."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from functools import partial

import pytest

from fspll._common.errors import DataError, InputError
from fspll.datasets.fetch import get_dataset
from fspll.datasets.omniglot import OMNIGLOT, Archive, check_archive

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Omniglot in small: the same layout and rules, fewer characters.
def small_archive(name, url="unset", md5="unset"):
    return Archive(name=name, url=url, md5=md5, n_alphabets=2, n_characters=4)


SMALL = (small_archive("images_background.zip"), small_archive("images_evaluation.zip"))


def pack(path, top, *, n_characters=2, n_drawings=20, extra=None, picture=PNG):
    with zipfile.ZipFile(path, "w") as packed:
        for alphabet in ("Greek", "Latin"):
            for c in range(1, n_characters + 1):
                for d in range(1, n_drawings + 1):
                    packed.writestr(f"{top}/{alphabet}/character{c:02}/{c:04}_{d:02}.png", picture)
        if extra is not None:
            packed.writestr(extra, "target")
    return path.read_bytes()


def link_member():
    member = zipfile.ZipInfo("images_background/Greek/link")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


def tampered(path):
    body = pack(path, "images_background")
    return body.replace(b"picture", b"Picture", 1)


BAD_ZIPS = {
    "truncated": (lambda p: pack(p, "t")[:-100], "is not a whole zip file"),
    "outside": (lambda p: pack(p, "t", extra="../evil"), r"'\.\./evil' points outside"),
    "link": (lambda p: pack(p, "t", extra=link_member()), "is a link"),
    "tampered": (tampered, r"is damaged: Bad CRC-32"),
    "too few characters": (lambda p: pack(p, "t", n_characters=1), "has 2 characters of 2 alph"),
    "too few drawings": (lambda p: pack(p, "t", n_drawings=19), "19 drawings of Greek/character01"),
    "no pictures": (lambda p: pack(p, "t", picture=b"text"), "is not a PNG picture"),
    "no zip": (lambda p: b"nothing of the kind", "is not a whole zip file"),
}


@pytest.fixture
def small(tmp_path):
    """Return a folder with both zips of the small Omniglot."""
    folder = tmp_path / "source"
    folder.mkdir()
    for archive in SMALL:
        pack(folder / archive.name, archive.name.removesuffix(".zip"))
    return folder


@pytest.fixture
def known(monkeypatch, site):
    """Let the registry know the small Omniglot; its public address is the test server."""

    def know(**md5):
        archives = tuple(
            small_archive(a.name, f"{site.url}/home/{a.name}", md5.get(a.name[7:11], "unset"))
            for a in SMALL
        )
        monkeypatch.setattr(OMNIGLOT, "downloads", archives)

    know()
    return know


def serve(site, folder, under):
    for archive in SMALL:
        site.put(f"/{under}/{archive.name}", (folder / archive.name).read_bytes())


@pytest.mark.parametrize("kind", BAD_ZIPS)
def test_bad_zip_from_a_server_is_refused(site, fetch, tmp_path, kind):
    make, message = BAD_ZIPS[kind]
    site.put("/file", make(tmp_path / "made.zip"))
    (tmp_path / "made.zip").unlink(missing_ok=True)
    (tmp_path / "file").write_bytes(b"old and good")
    with pytest.raises(DataError, match=message) as caught:
        fetch(check=partial(check_archive, archive=SMALL[0]))
    assert ".part" not in str(caught.value)
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old and good"


@pytest.mark.usefixtures("known")
class TestGetDataset:
    def test_public_home_needs_the_known_checksums(self, site, small, known, tmp_path):
        serve(site, small, "home")
        with pytest.raises(DataError, match=r"has the MD5 checksum .* where unset was expected"):
            get_dataset("omniglot", root=tmp_path / "to")
        assert not (tmp_path / "to").exists()
        sums = [hashlib.md5((small / a.name).read_bytes()).hexdigest() for a in SMALL]
        known(back=sums[0], eval=sums[1])
        fetched = get_dataset("omniglot", root=tmp_path / "to")
        assert fetched.summary == "160 drawings of 8 characters, canonical files"
        assert [path.name for path in fetched.written] == [a.name for a in SMALL]

    def test_files_of_another_server_are_accepted_by_content(self, site, small, tmp_path):
        serve(site, small, "mirror")
        fetched = get_dataset("omniglot", f"{site.url}/mirror/", tmp_path / "to")
        assert fetched.summary == "160 drawings of 8 characters, re-packed files"
        assert fetched.folder == tmp_path / "to"
        assert names(tmp_path / "to") == ["images_background.zip", "images_evaluation.zip"]

    def test_address_of_one_file(self, site, tmp_path):
        with pytest.raises(InputError, match="give the address of the folder"):
            get_dataset("omniglot", f"{site.url}/images_background.zip", tmp_path / "to")

    def test_only_what_is_missing_or_damaged_is_downloaded(self, site, small, tmp_path):
        serve(site, small, "mirror")
        get_dataset("omniglot", small, tmp_path / "to")
        (tmp_path / "to" / "images_evaluation.zip").write_bytes(b"damaged")
        fetched = get_dataset("omniglot", f"{site.url}/mirror", tmp_path / "to")
        assert [path.name for path in fetched.written] == ["images_evaluation.zip"]
        assert len(site.asked) == 1
        assert get_dataset("omniglot", root=tmp_path / "to").written == ()
        assert len(site.asked) == 1

    def test_refused_replacement_leaves_the_good_copy(self, site, small, tmp_path):
        get_dataset("omniglot", small, tmp_path / "to")
        before = (tmp_path / "to" / "images_background.zip").read_bytes()
        site.put("/bad/images_background.zip", tampered(tmp_path / "made.zip"))
        (small / "images_background.zip").write_bytes(tampered(tmp_path / "made.zip"))
        for source in (f"{site.url}/bad", small):
            with pytest.raises(DataError, match=r"is damaged: Bad CRC-32"):
                get_dataset("omniglot", source, tmp_path / "to", force=True)
        assert (tmp_path / "to" / "images_background.zip").read_bytes() == before
        assert names(tmp_path / "to") == ["images_background.zip", "images_evaluation.zip"]

    @pytest.mark.parametrize("kind", BAD_ZIPS)
    def test_bad_local_zip_leaves_nothing(self, small, tmp_path, kind):
        make, message = BAD_ZIPS[kind]
        (small / "images_evaluation.zip").write_bytes(make(tmp_path / "made.zip"))
        with pytest.raises(DataError, match=message):
            get_dataset("omniglot", small, tmp_path / "to")
        assert not (tmp_path / "to").exists()

    def test_local_files_one_by_one(self, small, tmp_path):
        background, evaluation = (small / a.name for a in SMALL)
        with pytest.raises(InputError, match=r"has no images_evaluation\.zip or images_ev"):
            get_dataset("omniglot", background, tmp_path / "to")
        (tmp_path / "to").mkdir()
        (tmp_path / "to" / f"{background.name}.part").write_bytes(b"of a broken download")
        get_dataset("omniglot", [background, evaluation], tmp_path / "to")
        assert names(tmp_path / "to") == [background.name, evaluation.name]
        assert (tmp_path / "to" / background.name).read_bytes() == background.read_bytes()

    def test_two_files_for_one_place(self, small, tmp_path):
        """The one in its place would be overwritten by the other."""
        background, evaluation = (small / a.name for a in SMALL)
        other = tmp_path / "other" / background.name
        other.parent.mkdir()
        other.write_bytes(background.read_bytes() + b"more")
        with pytest.raises(InputError, match=r"images_background\.zip are two files for one place"):
            get_dataset("omniglot", [background, evaluation, other], small, force=True)
        assert not background.read_bytes().endswith(b"more")
        get_dataset("omniglot", [background, evaluation, background], tmp_path / "to")

    def test_copy_removes_what_a_killed_copy_left(self, small, tmp_path, gone):
        (tmp_path / "to").mkdir()
        (tmp_path / "to" / f".images_background.zip.{gone}.part").write_bytes(b"half")
        get_dataset("omniglot", small, tmp_path / "to")
        assert names(tmp_path / "to") == ["images_background.zip", "images_evaluation.zip"]

    def test_local_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(InputError, match=r"nowhere does not exist"):
            get_dataset("omniglot", tmp_path / "nowhere", tmp_path / "to")

    def test_local_folder_is_the_target_itself(self, small):
        fetched = get_dataset("omniglot", small, small, force=True)
        assert fetched.summary.startswith("160 drawings")
        assert names(small) == ["images_background.zip", "images_evaluation.zip"]

    def test_what_cannot_be_downloaded_says_where_to_place_it(self, tmp_path):
        with pytest.raises(InputError, match=r"ImageNet's license; place images/ .* in .*/to$"):
            get_dataset("mini_imagenet", root=tmp_path / "to")
        with pytest.raises(InputError, match=r"lost is not downloadable; place lost.mat by hand"):
            get_dataset("lost")
        assert get_dataset("glyphs").folder is None


def test_real_omniglot_is_copied(real_data, tmp_path):
    folder = real_data("omniglot/images_background.zip").parent
    fetched = get_dataset("omniglot", folder, tmp_path / "to")
    assert fetched.summary.startswith("32460 drawings of 1623 characters, ")
    assert len(fetched.written) == 2
