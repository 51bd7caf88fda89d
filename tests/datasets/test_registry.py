"""The registry of data sets: names, what each says of itself, and loading by name."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import InputError
from fspll._common.files import data_dir
from fspll.datasets import DATASETS, DataSet, ImageSet, load_glyphs, load_images
from fspll.datasets.glyphs import GLYPHS
from fspll.datasets.registry import may_share_classes


def see(name, folder, thorough=True):
    return DATASETS.get(name).state(folder, thorough=thorough)


def test_every_entry_says_what_it_is():
    assert list(DATASETS) == ["glyphs", "omniglot", "mini-imagenet", "lost", "MSRCv2"]
    for name in DATASETS:
        dataset = DATASETS.get(name)
        assert dataset.name == name
        assert all((dataset.title, dataset.what, dataset.origin, dataset.license, dataset.advice))
        assert "\n" not in dataset.what
    kinds = [DATASETS.get(name).kind for name in DATASETS]
    assert kinds == ["characters", "characters", "photos", "vectors", "vectors"]


def test_only_omniglot_is_downloadable_and_over_https():
    urls = [file.url for name in DATASETS for file in DATASETS.get(name).downloads]
    assert len(urls) == 2
    for url in urls:
        assert url.startswith("https://raw.githubusercontent.com/brendenlake/omniglot/")
    archives = DATASETS.get("omniglot").downloads
    assert sum(a.n_characters for a in archives) == 1623
    assert sum(a.n_alphabets for a in archives) == 50


def test_names_are_forgiving_and_mistakes_are_explained():
    assert DATASETS.get("msrcV2").name == "MSRCv2"
    assert DATASETS.get("mini_imagenet") is DATASETS.get("Mini-ImageNet")
    with pytest.raises(InputError, match=r"no data set 'omniglott'; did you mean 'omniglot'\?"):
        DATASETS.get("omniglott")
    with pytest.raises(InputError, match="known are glyphs, omniglot, mini-imagenet, lost, MSRCv2"):
        DATASETS.get("xyz")


def test_built_in_and_absent():
    assert see("glyphs", None).sound
    state = see("omniglot", None)
    assert (state.word, state.folder) == ("absent", data_dir() / "omniglot")
    assert state.detail == f"fetch it into {state.folder} with: fspll data get omniglot"
    assert see("mini-imagenet", None).folder == data_dir() / "mini_imagenet"


def test_half_of_omniglot_is_not_sound(tmp_path):
    (tmp_path / "images_background.zip").write_bytes(b"")
    state = see("omniglot", tmp_path)
    assert state.word == "damaged"
    assert state.detail.startswith("images_evaluation.zip or images_evaluation not found in")


# -------------------------------------------------------------------- loading by name


def test_splits_are_those_of_the_loaders(monkeypatch, tmp_path):
    from fspll.datasets import mini_imagenet, omniglot
    from fspll.datasets.glyphs import drawing

    images = ImageSet("none", np.zeros((0, 8, 8), np.uint8), np.zeros(0, np.int64), ())
    asked = []
    for module, name in (
        (drawing, "load_glyphs"),
        (omniglot, "load_omniglot"),
        (mini_imagenet, "load_mini_imagenet"),
    ):

        def note(*arguments, name=name, **options):
            asked.append((name, arguments, options))
            return images

        monkeypatch.setattr(module, name, note)
    for name in ("glyphs", "omniglot", "mini-imagenet", "mini_imagenet"):
        for split in ("train", "test"):
            load_images(name, split, root=tmp_path)
    load_images("mini-imagenet", "test", size=32)
    mini = [
        ("load_mini_imagenet", ("meta-train",), {"root": tmp_path, "size": 84}),
        ("load_mini_imagenet", ("test",), {"root": tmp_path, "size": 84}),
    ]
    assert asked == [
        ("load_glyphs", (1000,), {"split": "train", "size": 28}),
        ("load_glyphs", (500,), {"split": "test", "size": 28}),
        ("load_omniglot", ("train",), {"root": tmp_path, "size": 28}),
        ("load_omniglot", ("test",), {"root": tmp_path, "size": 28}),
        *mini,
        *mini,
        ("load_mini_imagenet", ("test",), {"root": None, "size": 32}),
    ]


def test_a_folder_by_its_path(tmp_path):
    for name in "abcde":
        (tmp_path / "pets" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "pets" / name / "1.png")
    pets = {split: load_images(str(tmp_path / "pets"), split) for split in ("train", "test", "all")}
    assert pets["train"].images.shape == (3, 84, 84, 3)
    chosen = {split: set(data.class_names) for split, data in pets.items()}
    assert chosen["train"] | chosen["test"] == chosen["all"] == set("abcde")
    assert not chosen["train"] & chosen["test"]


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("cifar", "train", r"no data set 'cifar'; known are glyphs.*; nor is it a folder of imag"),
        ("lost", "train", r"lost holds feature vectors, one candidate set each, where images of"),
        ("glyphs", "all", r"glyphs has classes to train on and others to test on; all of them at"),
        ("glyphs", "val", r"split must be one of train, test, not 'val'"),
    ],
)
def test_what_cannot_be_loaded(name, split, message):
    with pytest.raises(InputError, match=message):
        load_images(name, split)


def test_partial_label_sets_are_loaded_whole(real_data):
    folder = real_data("pll/lost.mat").parent
    lost = DATASETS.get("lost").load(root=folder)
    assert repr(lost) == "PartialLabelSet('lost': 1122 samples, 108 features, 16 classes)"
    with pytest.raises(InputError, match=r"lost has no classes to meta-train .* not 'test'"):
        DATASETS.get("lost").load("test", root=folder)


def test_one_class_and_one_registration_add_a_data_set(monkeypatch):
    class Dots(DataSet):
        name = title = "dots"
        what = "nothing but dots"
        origin = "a test"
        license = "none"
        kind = "characters"

        def load(self, split="train", *, root=None, size=None):
            return load_glyphs(4, 2, split=split, size=size or 9)

    monkeypatch.setattr(DATASETS, "_things", dict(DATASETS._things))
    DATASETS.register("dots", Dots())
    assert DATASETS.names()[-1] == "dots"
    assert load_images("dots", "test").images.shape == (8, 9, 9)
    assert DATASETS.get("dots").state().detail == "nothing to fetch"
    assert DATASETS.get("dots").describe(load_images("dots", "test")) == "dots"


def test_another_package_adds_a_data_set_through_its_entry_point(tmp_path):
    (tmp_path / "dots.py").write_text(
        "from fspll.datasets import DataSet, load_glyphs\n"
        "class Dots(DataSet):\n"
        "    name = title = 'dots'\n"
        "    what, origin, license, kind = 'nothing but dots', 'a test', 'none', 'characters'\n"
        "    def load(self, split='train', *, root=None, size=None):\n"
        "        return load_glyphs(4, 2, split=split, size=size or 9)\n"
        "DOTS = Dots()\n"
    )
    about = tmp_path / "dots-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dots\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[fspll.datasets]\nbroken = dots:LINES\ndots = dots:DOTS\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from fspll.cli.main import app; "
        "from fspll.datasets import load_images; print(load_images('Dots', 'test')); "
        "app(['data', 'list'], standalone_mode=False)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    first, *_, last = shown.stdout.splitlines()
    assert first == "ImageSet('glyphs/test': 8 images of 9x9, 4 classes)"
    assert last == "dots\tnothing but dots\t-\tbuilt in: nothing to fetch"
    assert shown.stderr.startswith("note: the data set 'broken' (dots:LINES) cannot be imported:")


def test_what_is_registered_is_an_instance_or_a_class(monkeypatch):
    monkeypatch.setattr(DATASETS, "_things", dict(DATASETS._things))
    DATASETS.register("again", type(GLYPHS))
    assert DATASETS.get("again").name == "glyphs"
    DATASETS.register("loader", load_glyphs)
    with pytest.raises(InputError, match="data set 'loader' is of type function, not a DataSet"):
        DATASETS.get("loader")


def test_what_loads_no_images_is_named(monkeypatch):
    monkeypatch.setattr(GLYPHS, "load", lambda split, **_: "pictures", raising=False)
    with pytest.raises(InputError, match="the data set 'glyphs' loads str, not images"):
        load_images("glyphs", "train")


@pytest.mark.parametrize(
    ("trained_on", "tested_on", "shared"),
    [
        ("omniglot/train", "omniglot/test", False),
        ("mini_imagenet/meta-train", "mini_imagenet/test", False),
        ("glyphs/test", "glyphs/test", True),
        ("pets", "pets/test", True),
        ("pets/train", "pets", True),
        ("pets", "cars", False),
        ("", "pets", False),
    ],
)
def test_which_names_may_share_classes(trained_on, tested_on, shared):
    assert may_share_classes(trained_on, tested_on) is shared
