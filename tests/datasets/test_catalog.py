"""What the catalog says of data sets that are built in, absent and incomplete."""

from __future__ import annotations

import pytest

from fspll._common.errors import InputError
from fspll._common.files import data_dir
from fspll.datasets.catalog import CATALOG, find_dataset, look_up


def see(name, folder, thorough=True):
    return look_up(find_dataset(name), folder, thorough=thorough)


def test_every_entry_says_what_it_is():
    assert list(CATALOG) == ["glyphs", "omniglot", "mini_imagenet", "lost", "MSRCv2"]
    for dataset in CATALOG.values():
        assert all((dataset.what, dataset.origin, dataset.license, dataset.advice))
        assert "\n" not in dataset.what


def test_only_omniglot_is_downloadable_and_over_https():
    urls = [a.url for dataset in CATALOG.values() for a in dataset.archives]
    assert len(urls) == 2
    for url in urls:
        assert url.startswith("https://raw.githubusercontent.com/brendenlake/omniglot/")
    archives = CATALOG["omniglot"].archives
    assert sum(a.n_characters for a in archives) == 1623
    assert sum(a.n_alphabets for a in archives) == 50


def test_names_are_forgiving_and_mistakes_are_explained():
    assert find_dataset("msrcV2").name == "MSRCv2"
    with pytest.raises(InputError, match=r"called 'omniglott'; did you mean 'omniglot'\?"):
        find_dataset("omniglott")
    with pytest.raises(InputError, match="known are glyphs, omniglot, mini_imagenet, lost, MSRCv2"):
        find_dataset("xyz")


def test_built_in_and_absent():
    assert see("glyphs", None).sound
    state = see("omniglot", None)
    assert (state.word, state.folder) == ("absent", data_dir() / "omniglot")
    assert state.detail == f"fetch it into {state.folder} with: fspll data get omniglot"


def test_half_of_omniglot_is_not_sound(tmp_path):
    (tmp_path / "images_background.zip").write_bytes(b"")
    state = see("omniglot", tmp_path)
    assert state.word == "damaged"
    assert state.detail.startswith("images_evaluation.zip or images_evaluation not found in")
