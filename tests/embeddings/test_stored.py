"""Encoders in model files: by tensors, by a registered name, or not at all."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

from fspll import FsPLLClassifier
from fspll._common.errors import CheckpointError
from fspll.embeddings import (
    ENCODERS,
    CustomEncoder,
    Encoder,
    InputSpec,
    NetworkEncoder,
    build_network,
    describe_encoder,
    load_embedding,
    restore_encoder,
    standardizer,
)

SPEC = InputSpec(16, 1, "bright-ink")


class Doubling(Encoder):
    modality = "vector"

    def encode(self, samples):
        return np.asarray(samples, dtype=float) * 2


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(ENCODERS, "_things", dict(ENCODERS._things))
    return ENCODERS.register


def there_and_back(encoder):
    tensors, description = describe_encoder(encoder)
    description = json.loads(json.dumps(description))
    return restore_encoder(tensors, description, "cpu", "m.fspll"), tensors, description


def test_a_network_is_kept_by_its_tensors():
    network = build_network("conv4", width=4, size=16, seed=0)
    encoder = NetworkEncoder(network, SPEC, "mine", metadata={"training": {"steps": 3}})
    again, tensors, description = there_and_back(encoder)
    assert set(tensors) == set(network.state_dict())
    assert (description["name"], description["installed"]) == ("mine", False)
    assert (again.name, again.input_spec, again.device) == ("mine", SPEC, torch.device("cpu"))
    assert again.metadata["training"] == {"steps": 3}
    X = np.random.default_rng(0).integers(0, 255, (3, 16, 16), dtype=np.uint8)
    np.testing.assert_array_equal(again.encode(X), encoder.encode(X))


def test_a_packaged_network_does_not_depend_on_the_package():
    _, tensors, description = there_and_back(load_embedding("omniglot-conv4"))
    assert tensors
    assert description["installed"] is False


def test_vectors_come_back_with_their_modality():
    again, *_ = there_and_back(standardizer(np.array([[1.0, 5.0], [3.0, 5.0]])))
    assert again.modality == "vector"
    assert again.encode([[5.0, 5.0]]).tolist() == [[3.0, 0.0]]


def test_a_registered_encoder_is_kept_by_its_name(registered):
    registered("doubling", Doubling)
    again, tensors, description = there_and_back(load_embedding("doubling"))
    assert (tensors, description) == (
        {},
        {"name": "doubling", "network": None, "installed": True},
    )
    assert again.encode([[1.0]]).tolist() == [[2.0]]


def test_a_registered_subclass_is_more_than_its_tensors(registered):
    class Inverted(NetworkEncoder):
        def encode(self, X, *arguments, **options):
            return -super().encode(X, *arguments, **options)

    network = build_network("conv4", width=4, size=16, seed=0)
    registered("inverted", lambda device: Inverted(network, SPEC, device=device))
    again, tensors, _ = there_and_back(load_embedding("inverted", "cpu"))
    assert isinstance(again, Inverted)
    assert tensors == {}


@pytest.mark.parametrize("own", [lambda X: X, nn.Flatten(), Doubling()])
def test_an_encoder_of_ones_own_is_passed_again(own):
    tensors, description = describe_encoder(load_embedding(own))
    assert tensors == {}
    with pytest.raises(CheckpointError) as caught:
        restore_encoder(tensors, description, "cpu", "m.fspll")
    name = load_embedding(own).name
    assert str(caught.value) == (
        f"m.fspll was saved with an embedding of your own ({name}), which a file cannot hold; "
        "give it again (embedding=...)"
    )


def test_a_function_with_a_registered_name_is_not_mistaken_for_it():
    def text(samples):
        return np.zeros((len(samples), 384))

    _, description = describe_encoder(CustomEncoder(text))
    with pytest.raises(CheckpointError, match=r"of your own \(text\)"):
        restore_encoder({}, description, "cpu", "m.fspll")


@pytest.mark.parametrize("name", ["colorsys:rgb_to_hsv", "colorsys", "/tmp/x.safetensors", "no"])
def test_a_file_imports_nothing_that_is_not_registered(name):
    sys.modules.pop("colorsys", None)
    with pytest.raises(CheckpointError, match=f"needs the encoder '{name}', which is not reg"):
        restore_encoder({}, {"name": name, "network": None, "installed": True}, "cpu", "m.fspll")
    assert "colorsys" not in sys.modules


def test_a_registered_package_that_is_broken(registered):
    registered("broken", lambda: load_embedding("omniglot"))
    with pytest.raises(CheckpointError, match=r"m\.fspll needs the encoder 'broken': there is"):
        restore_encoder(
            {}, {"name": "broken", "network": None, "installed": True}, "cpu", "m.fspll"
        )


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({}, "m.fspll is damaged: it lacks 'name'"),
        ({"name": "x"}, "m.fspll is damaged: it lacks 'network'"),
        ({"name": 3, "network": None}, "m.fspll is damaged: the name of its embedding is no text"),
        ({"name": "x", "network": 3}, "m.fspll does not say which network it holds"),
    ],
)
def test_damaged_descriptions(description, message):
    with pytest.raises(CheckpointError, match=message):
        restore_encoder({}, description, "cpu", "m.fspll")


def test_a_device_of_another_machine_is_replaced():
    tensors, description = describe_encoder(load_embedding("omniglot-conv4"))
    assert restore_encoder(tensors, description, "cuda:77", "m.fspll").device.type != "meta"


def test_through_a_classifier(registered, tmp_path):
    registered("doubling", Doubling)
    clf = FsPLLClassifier(embedding="doubling").fit([[0.0], [0.1], [1.0]], [{"a"}, {"a"}, {"b"}])
    clf.save(tmp_path / "m.fspll")
    again = FsPLLClassifier.load(tmp_path / "m.fspll")
    np.testing.assert_array_equal(again.predict_proba([[0.4]]), clf.predict_proba([[0.4]]))
