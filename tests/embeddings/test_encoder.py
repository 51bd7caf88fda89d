"""Encoders: the same features whatever the batch, for whatever makes features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from fspll._common.devices import choose_device
from fspll._common.errors import CheckpointError, InputError, InputTypeError
from fspll.embeddings import (
    ENCODERS,
    Conv4,
    Encoder,
    InputSpec,
    NetworkEncoder,
    build_network,
    load_embedding,
    save_checkpoint,
)
from fspll.embeddings.registry import packaged_networks

SPEC = InputSpec(16, 1, "bright-ink")


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (11, 16, 16), dtype=np.uint8)


@pytest.fixture
def network(images):
    network = build_network("conv4", width=8, size=16, seed=0)
    for _ in range(20):  # until the running statistics are those of the images
        network(torch.from_numpy(images)[:, None] / 255)
    return network


def test_batch_size_changes_nothing(network, images):
    encoder = NetworkEncoder(network, SPEC, device="cpu")
    whole = encoder.encode(images)
    assert whole.shape == (11, 8)
    assert whole.dtype == np.float32
    assert np.ptp(whole) > 0.1
    for batch_size in (1, 3, 11):
        np.testing.assert_allclose(encoder.encode(images, batch_size), whole, atol=1e-6)
    assert np.array_equal(encoder.encode(images), whole)
    assert np.array_equal(encoder.encode(list(images)), whole)


def test_the_network_is_left_as_it_was(network, images):
    network.train()
    network.blocks[1].eval()  # frozen by its owner
    flags = [module.training for module in network.modules()]
    statistics = network.blocks[0][1].running_mean.clone()
    state = torch.random.get_rng_state()
    NetworkEncoder(network, SPEC, device="cpu").encode(images)
    assert [module.training for module in network.modules()] == flags
    assert torch.equal(network.blocks[0][1].running_mean, statistics)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.is_grad_enabled()


def test_the_flags_come_back_after_an_error_too(network):
    network.train()
    X = np.zeros((11, 16, 16))
    X[9] = np.nan
    with pytest.raises(InputError, match="picture 9 holds NaN"):
        NetworkEncoder(network, SPEC, device="cpu").encode(X, batch_size=4)
    assert network.training


def test_progress_counts_samples(network, images):
    seen = []
    NetworkEncoder(network, SPEC, device="cpu").encode(
        images, 4, progress=lambda *now: seen.append(now)
    )
    assert seen == [(4, 11), (8, 11), (11, 11)]


def test_polarity_is_passed_on(network, images):
    encoder = NetworkEncoder(network, SPEC, device="cpu")
    stated = encoder.encode(images, polarity="dark-ink")
    inverted = encoder.encode(255 - images, polarity="bright-ink")
    np.testing.assert_allclose(stated, inverted, atol=1e-5)


def test_a_checkpoint_gives_the_same_features(tmp_path, network, images):
    path = tmp_path / "letters.safetensors"
    save_checkpoint(path, network, input_spec=SPEC, training={"regime": "PN"})
    expected = NetworkEncoder(network, SPEC, device="cpu").encode(images)
    for spec in (path, str(path)):
        encoder = load_embedding(spec, device="cpu")
        assert isinstance(encoder, Encoder)
        assert encoder.name == "letters"
        assert encoder.metadata["training"] == {"regime": "PN"}
        assert np.array_equal(encoder.encode(images), expected)


def test_packaged_models_go_by_name(tmp_path, network, images, monkeypatch):
    assert packaged_networks(tmp_path) == {}
    save_checkpoint(tmp_path / "b.safetensors", network, input_spec=SPEC)
    save_checkpoint(tmp_path / "a.safetensors", network, input_spec=SPEC)
    monkeypatch.setattr(ENCODERS, "_things", packaged_networks(tmp_path))
    assert ENCODERS.names() == ["a", "b"]
    assert load_embedding("b", device="cpu").encode(images).shape == (11, 8)
    with pytest.raises(InputError, match=r"no encoder 'c'; known are a, b; the path of a"):
        load_embedding("c")


def test_missing_files_are_told_from_unknown_names(tmp_path):
    for spec in (tmp_path / "x", str(tmp_path / "x"), "x.safetensors"):
        with pytest.raises(CheckpointError, match=r"there is no model file .*x"):
            load_embedding(spec)


def test_a_module_takes_features_and_pictures(images):
    linear = nn.Linear(3, 2)
    X = np.random.default_rng(0).normal(size=(5, 3)) * 10
    expected = linear(torch.from_numpy(X).float()).detach().numpy()
    for same in (X, X.tolist(), torch.from_numpy(X), sparse.csr_matrix(X), list(X)):
        encoder = load_embedding(linear, device="cpu")
        np.testing.assert_allclose(encoder.encode(same, 2), expected, rtol=1e-5)

    flat = nn.Sequential(nn.Flatten(), nn.Linear(256, 2))
    expected = flat(torch.from_numpy(images).float()[:, None] / 255).detach().numpy()
    for same in (images, images[..., None], list(images), torch.from_numpy(images), images / 255):
        found = load_embedding(flat, device="cpu").encode(same)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_module_keeps_the_users_own_normalization():
    X = torch.randn(3, 2, 4, 5) * 9  # a layout and a range of its own
    assert np.array_equal(load_embedding(nn.Flatten(), "cpu").encode(X), X.flatten(1).numpy())


def test_a_module_with_a_spec_resizes(images):
    encoder = load_embedding(nn.Flatten(), "cpu", input_spec=InputSpec(4, 3))
    assert encoder.encode(images).shape == (11, 48)


def test_a_module_of_double_precision():
    found = load_embedding(nn.Linear(3, 2).double(), "cpu").encode(np.zeros((4, 3)))
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("network", "X", "message"),
    [
        (nn.Identity(), np.zeros((2, 8, 8)), r"'Identity' must return .* not float32 of shape"),
        (nn.Linear(3, 2), np.zeros((2, 4)), r"'Linear' cannot take samples of shape \(4,\): mat1"),
        (nn.Identity(), [[1.0, np.inf], [0.0, 0.0]], "sample 0 holds NaN or infinite values"),
        (nn.Identity(), [[1.0], [0.0, 0.0]], r"rows of X differ in length: \[1, 2\]"),
        (nn.Identity(), torch.zeros(0, 3), r"at least one sample and two axes, not \(0, 3\)"),
        (
            nn.Flatten(),
            [np.zeros((8, 8)), np.zeros((8, 9))],
            r"differ in shape \(\(1, 8, 8\), \(1, 8, 9\)\); resize them, or save the network",
        ),
        (nn.ReflectionPad2d(-1), np.zeros((2, 1, 8, 8)), "must return"),
    ],
)
def test_what_a_module_cannot_do(network, X, message):
    with pytest.raises(InputError, match=message):
        load_embedding(network, device="cpu").encode(X)


def test_a_module_must_return_a_tensor():
    with pytest.raises(InputTypeError, match="'LSTM' must return a tensor, not a tuple"):
        load_embedding(nn.LSTM(3, 2), "cpu").encode(torch.zeros(2, 4, 3))


def test_a_module_that_overflows_names_the_sample():
    X = np.zeros((5, 1))
    X[3] = -1
    with np.errstate(all="ignore"), pytest.raises(InputError, match="features for sample 3"):
        load_embedding(_Log1p(), "cpu").encode(X, batch_size=2)


class _Log1p(nn.Module):
    def forward(self, x):
        return x.log1p()


def test_a_function_gets_all_samples_as_they_are():
    texts = ["a", "bbb"]
    encoder = load_embedding(lambda X: [[len(text), 1] for text in X])
    assert encoder.name == "<lambda>"
    assert isinstance(encoder, Encoder)
    found = encoder.encode(texts)
    assert found.dtype == np.float32
    assert np.array_equal(found, [[1, 1], [3, 1]])
    for kind in (np.array, torch.tensor, sparse.csr_matrix):
        again = load_embedding(lambda X, kind=kind: kind([[len(text), 1] for text in X]))
        assert np.array_equal(again.encode(texts), found)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros(2), r"'<lambda>' must return a numeric array .* not float64 of shape \(2,\)"),
        (np.zeros((3, 4)), "'<lambda>' returned 3 rows for 2 samples"),
        (np.zeros((2, 0)), r"'<lambda>' returned no features"),
        (np.array([[0.0], [np.nan]]), "NaN or infinite features for sample 1"),
        ([[1], [1, 2]], "'<lambda>' returned no array"),
        ([["a"], ["b"]], "must return a numeric array"),
    ],
)
def test_what_a_function_may_not_return(result, message):
    with pytest.raises(InputError, match=message):
        load_embedding(lambda X: result).encode(["x", "y"])


def test_an_embedding_stays_itself(network):
    encoder = NetworkEncoder(network, SPEC)
    assert load_embedding(encoder) is encoder


def test_what_is_no_embedding():
    with pytest.raises(InputTypeError, match="embedding is the class Conv4; pass an instance"):
        load_embedding(Conv4)
    with pytest.raises(InputTypeError, match=r"must be a name, a path, .* not a int"):
        load_embedding(3)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, None])
def test_bad_batch_sizes(network, images, batch_size):
    with pytest.raises(InputError, match="batch_size of encode must be a whole number"):
        NetworkEncoder(network, SPEC).encode(images, batch_size)


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device() == torch.device("cpu") == choose_device(torch.device("cpu"))
    for absent in ("cuda", "cuda:1", "mps"):
        with pytest.raises(InputError, match=rf"device='{absent}' was asked for.*device='cpu'"):
            choose_device(absent)
    for wrong in ("gpu", "meta", 3.5, None):
        with pytest.raises(InputError, match="device must be 'auto', 'cpu', 'cuda'"):
            choose_device(wrong)

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device() == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(InputError, match="device='cuda:2' was asked for"):
        choose_device("cuda:2")
