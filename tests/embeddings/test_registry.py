"""The registry of encoders: names, aliases, other packages, and any object that encodes."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from torch import nn

from fspll import FsPLLClassifier
from fspll._common.errors import InputError, InputTypeError
from fspll.embeddings import (
    ENCODERS,
    CustomEncoder,
    Encoder,
    InputSpec,
    NetworkEncoder,
    build_network,
    encode_cached,
    list_encoders,
    load_embedding,
)


class Brightness:
    """The smallest encoder there can be."""

    def encode(self, samples):
        return np.array([[np.mean(one)] for one in samples])


class Counted(Encoder):
    """One that says all there is to say about itself."""

    name = "counted"
    modality = "vector"
    fingerprint = "v1"
    calls: list[int] = []  # noqa: RUF012

    def encode(self, samples):
        self.calls.append(len(samples))
        return np.asarray(samples) * 2


@pytest.fixture
def registered(monkeypatch):
    """Register an encoder for the length of a test."""
    monkeypatch.setattr(ENCODERS, "_things", dict(ENCODERS._things))
    Counted.calls.clear()
    return ENCODERS.register


def test_names_and_aliases():
    assert {"omniglot-conv4", "efficientnet-lite0", "text"} <= set(ENCODERS)
    assert ENCODERS.find("photos") == ENCODERS.find("EfficientNet_Lite0") == "efficientnet-lite0"
    with pytest.raises(
        InputError,
        match=r"there is no encoder 'omniglot'; did you mean 'omni.* known are omniglot-c",
    ):
        load_embedding("omniglot")


def test_names_can_be_checked_without_torch():
    code = (
        "import sys; from fspll.embeddings import ENCODERS; "
        "assert 'photos' in ENCODERS and 'phtos' not in ENCODERS; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_any_object_with_encode_is_an_encoder():
    source = Brightness()
    encoder = load_embedding(source)
    assert isinstance(encoder, CustomEncoder)
    assert (encoder.name, encoder.modality, encoder.fingerprint) == ("Brightness", None, None)
    clf = FsPLLClassifier(embedding=source)
    images = np.repeat([0, 10, 200, 210], 9).reshape(4, 3, 3)
    clf.fit(images, [{"dark"}, {"dark", "bright"}, {"bright"}, {"dark", "bright"}])
    assert clf.labels_.tolist() == ["dark", "dark", "bright", "bright"]
    assert clf.embedding is source
    source.encode = lambda samples: np.zeros((1, 1))
    with pytest.raises(InputError, match="'Brightness' returned 1 rows for 2 samples"):
        load_embedding(source).encode(images[:2])


def test_a_module_that_encodes_is_asked_to_encode():
    class Own(nn.Module):
        def encode(self, texts):
            return [[len(text)] for text in texts]

    assert load_embedding(Own()).encode(["abc"]).tolist() == [[3.0]]


def test_what_is_no_encoder():
    class Wrong:
        encode = 3

    with pytest.raises(InputTypeError, match=r"an object with a method 'encode', not a Wrong"):
        load_embedding(Wrong())

    class Sound(Brightness):
        modality = "sound"

    with pytest.raises(InputError, match=r"modality .*'Sound' must be one of image, text, vector"):
        load_embedding(Sound())

    class Number(Brightness):
        fingerprint = 3

    with pytest.raises(InputTypeError, match=r"fingerprint .*'Number' must be a text or None"):
        encode_cached(Number(), [np.zeros(2)])


@pytest.mark.parametrize("thing", [Counted, Counted(), lambda device: Counted()])
def test_another_package_registers_a_class_an_instance_or_a_function(registered, thing):
    registered("doubling", thing)
    encoder = load_embedding("Doubling", "cpu")
    assert (encoder.name, encoder.modality) == ("counted", "vector")
    assert encoder.registered_name == "doubling"
    assert encoder.encode([[1.0, 2.0]]).tolist() == [[2.0, 4.0]]


def test_an_encoder_without_a_name_goes_by_the_registered_one(registered):
    registered("brightness", Brightness)
    assert load_embedding("brightness").name == "brightness"
    network = build_network("conv4", width=4, size=16, seed=0)
    registered("tiny", lambda device: NetworkEncoder(network, InputSpec(16, 1), device=device))
    assert load_embedding("tiny").encode(np.zeros((1, 16, 16))).shape == (1, 4)


def test_features_are_kept_under_the_fingerprint(registered):
    registered("doubling", Counted)
    X = list(np.arange(80.0).reshape(40, 2))
    first = encode_cached("doubling", X)
    again = encode_cached("doubling", X)
    np.testing.assert_array_equal(again.features, np.arange(80.0).reshape(40, 2) * 2)
    assert (first.n_cached, again.n_cached) == (0, 40)
    assert Counted.calls == [32, 8]  # a fingerprint promises that samples may be taken in parts


def test_the_list_of_encoders(registered, monkeypatch):
    registered("doubling", Counted)
    broken = EntryPoint("broken", "no_such_package:Nothing", ENCODERS.group)
    monkeypatch.setitem(vars(ENCODERS), "_found", {"broken": broken})
    found = {one.name: one for one in list_encoders()}
    assert found["omniglot-conv4"][1:3] == ("conv4", "gray pictures, as 28x28")
    assert found["doubling"][1:3] == ("Counted", "vectors")
    assert found["broken"].trained_on.startswith("the encoder 'broken' (no_such_package:Nothing) ")
    assert found["efficientnet-lite0"].network == "EfficientNet-Lite0"
    modalities = {name: one.modality for name, one in found.items()}
    assert modalities == {
        "omniglot-conv4": "image",
        "efficientnet-lite0": "image",
        "efficientnet-lite2": "image",
        "text": "text",
        "text-multilingual": "text",
        "doubling": "vector",
        "broken": None,
    }
