"""Checkpoint files: exact round trips, and one sentence for every way a file can be wrong."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from fspll._common.errors import CheckpointError, DataError, InputTypeError
from fspll.embeddings import (
    InputSpec,
    build_network,
    load_checkpoint,
    read_metadata,
    save_checkpoint,
)
from fspll.embeddings.checkpoints import network_from_tensors, network_to_tensors

SPEC = InputSpec(size=16, channels=1, polarity="bright-ink")
TRAINING = {"regime": "FsPLL+", "n_way": 30, "learning_rate": 0.001, "tasks": [1, 2]}


@pytest.fixture
def network():
    network = build_network("conv4", width=4, size=16, seed=0)
    network(torch.rand(5, 1, 16, 16, generator=torch.Generator().manual_seed(0)))
    return network  # its batch norms have seen something


@pytest.fixture
def path(tmp_path, network):
    save_checkpoint(tmp_path / "a.safetensors", network, input_spec=SPEC, training=TRAINING)
    return tmp_path / "a.safetensors"


def rewrite(path, *, tensors=None, header=None, **metadata):
    """Write the file again with some of its tensors, header entries or metadata replaced."""
    with safe_open(path, "pt") as file:
        contents = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        old = file.metadata()
    old["metadata"] = json.dumps(json.loads(old["metadata"]) | metadata)
    contents = {k: v for k, v in (contents | (tensors or {})).items() if v is not None}
    save_file(contents, path, metadata=old | (header or {}))


@pytest.mark.parametrize(
    ("architecture", "settings", "shape"),
    [
        ("conv4", {"width": 4, "size": 16}, (1, 16, 16)),
        ("resnet12", {"in_channels": 3, "widths": [2, 3, 4, 5]}, (3, 16, 16)),
    ],
)
def test_round_trip_is_exact(tmp_path, architecture, settings, shape):
    network = build_network(architecture, seed=1, **settings)
    images = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0))
    network(images)
    path = tmp_path / "folder" / "model.safetensors"
    spec = InputSpec(16, shape[0])
    save_checkpoint(path, network, input_spec=spec, training=TRAINING)

    state = torch.random.get_rng_state()
    found = load_checkpoint(path)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert found.input_spec == spec
    assert found.metadata["training"] == TRAINING
    assert found.metadata["architecture"] == architecture
    assert type(found.network) is type(network)
    assert not found.network.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(found.network.state_dict()[name], tensor), name
    assert torch.equal(found.network(images), network.eval()(images))
    assert all(parameter.requires_grad for parameter in found.network.parameters())


def test_a_loaded_network_trains_on(path):
    network = load_checkpoint(path).network.train()
    before = network.blocks[0][0].weight.clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(torch.rand(3, 1, 16, 16)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(network.blocks[0][0].weight, before)


def test_extra_tensors_and_absent_spec(tmp_path, network):
    shared = torch.arange(6.0).reshape(2, 3)
    extra = {"step": torch.tensor(7), "moment": shared.T, "again": shared}
    save_checkpoint(tmp_path / "a", network, input_spec=None, extra=extra)
    found = load_checkpoint(tmp_path / "a")
    assert found.input_spec is None
    assert sorted(found.extra) == ["again", "moment", "step"]
    assert all(torch.equal(found.extra[name], tensor) for name, tensor in extra.items())


def test_tensors_survive_inside_another_file(tmp_path, network):
    tensors, metadata = network_to_tensors(network, SPEC, TRAINING)
    prefixed = {f"embedding.{name}": tensor for name, tensor in tensors.items()}
    save_file(prefixed, tmp_path / "other", metadata={"embedding": json.dumps(metadata)})
    with safe_open(tmp_path / "other", "pt") as file:
        inside = {n.removeprefix("embedding."): file.get_tensor(n) for n in prefixed}
        metadata = json.loads(file.metadata()["embedding"])
    again, spec = network_from_tensors(inside, metadata)
    images = torch.rand(2, 1, 16, 16)
    assert spec == SPEC
    assert torch.equal(again(images), network.eval()(images))


def test_metadata_alone(path):
    assert read_metadata(path)["settings"] == {"in_channels": 1, "width": 4, "size": 16}


DAMAGES = {
    "empty": (lambda p: p.write_bytes(b""), "is empty"),
    "text": (lambda p: p.write_text("hello, I am a text"), "is not a safetensors file"),
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[:-100]), "is damaged or cut short"),
    "cut in the header": (lambda p: p.write_bytes(p.read_bytes()[:60]), "is damaged or cut short"),
    "too long": (lambda p: p.write_bytes(p.read_bytes() + b"xx"), "is damaged or cut short"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps({"a": 1})), "a pickle or a torch.save file"),
    "torch.save": (lambda p: torch.save({}, p), "a pickle or a torch.save file, which fspll never"),
    "flipped bits": (
        lambda p: p.write_bytes(p.read_bytes()[:-1] + bytes([p.read_bytes()[-1] ^ 1])),
        "is damaged: its weights do not match their checksum",
    ),
    "foreign safetensors": (
        lambda p: save_file({"a": torch.zeros(2)}, p),
        "is a safetensors file, but not an embedding that fspll saved",
    ),
    "newer format": (
        lambda p: rewrite(p, header={"format_version": "99"}),
        r"has format version 99, but this fspll .* reads up to 1; install a newer fspll",
    ),
    "odd version": (
        lambda p: rewrite(p, header={"format_version": "one"}),
        "is damaged: its format version is 'one'",
    ),
    "metadata not JSON": (
        lambda p: rewrite(p, header={"metadata": "{"}),
        "is damaged: its metadata is not JSON",
    ),
    "metadata a list": (
        lambda p: rewrite(p, header={"metadata": "[]"}),
        "is damaged: its metadata is not a JSON object",
    ),
    "metadata without network": (
        lambda p: rewrite(p, header={"metadata": "{}"}),
        "does not say which network it holds",
    ),
    "unknown architecture": (
        lambda p: rewrite(p, architecture="vit"),
        "cannot be built: there is no architecture 'vit'",
    ),
    "other architecture": (
        lambda p: rewrite(p, architecture="resnet12", settings={}),
        "is not a whole resnet12: .* tensors are missing, e.g. blocks",
    ),
    "unknown setting": (
        lambda p: rewrite(p, settings={"depth": 9}),
        "cannot be built: conv4 has no setting 'depth'",
    ),
    "reserved setting": (
        lambda p: rewrite(p, settings={"architecture": "conv4"}),
        "cannot be built: its settings are",
    ),
    "absurd width": (lambda p: rewrite(p, settings={"width": 10**15}), "cannot be built: "),
    "absurder width": (lambda p: rewrite(p, settings={"width": 10**40}), "cannot be built: "),
    "bad input spec": (
        lambda p: rewrite(p, input_spec={"size": 16, "channels": 2, "polarity": None}),
        "cannot be built: channels of an input must be 1 or 3, not 2",
    ),
    "incomplete input spec": (
        lambda p: rewrite(p, input_spec={"size": 16}),
        "cannot be built: an input spec has the fields",
    ),
    "wrong shape": (
        lambda p: rewrite(p, tensors={"network.blocks.0.0.weight": torch.zeros(4, 3, 3, 3)}),
        r"blocks.0.0.weight should be float32 \(4, 1, 3, 3\), but is float32 \(4, 3, 3, 3\)",
    ),
    "wrong type": (
        lambda p: rewrite(p, tensors={"network.blocks.0.1.bias": torch.zeros(4).half()}),
        r"blocks.0.1.bias should be float32 \(4,\), but is float16 \(4,\)",
    ),
    "NaN": (
        lambda p: rewrite(p, tensors={"network.blocks.0.1.bias": torch.full((4,), torch.nan)}),
        "blocks.0.1.bias holds NaN or infinite weights",
    ),
    "tensor missing": (
        lambda p: rewrite(p, tensors={"network.blocks.0.1.bias": None}),
        "is not a whole conv4: 1 tensor is missing, e.g. blocks.0.1.bias",
    ),
    "tensor too many": (
        lambda p: rewrite(p, tensors={"network.head": torch.zeros(1)}),
        "is not a whole conv4: 1 tensor is foreign, e.g. head",
    ),
    "gone": (lambda p: p.unlink(), "there is no model file"),
    "folder": (lambda p: (p.unlink(), p.mkdir()), "is a folder, not a model file"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(path, damage):
    do, message = DAMAGES[damage]
    do(path)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_failed_write_keeps_the_old_file(path, network, monkeypatch):
    def fail(contents, target, metadata):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    old = path.read_bytes()
    monkeypatch.setattr("fspll._common.tensorfiles.save_file", fail)
    with pytest.raises(DataError, match="No space left on device"):
        save_checkpoint(path, network, input_spec=SPEC)
    assert path.read_bytes() == old
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_cannot_be_saved(tmp_path, network):
    with pytest.raises(InputTypeError, match="a Linear cannot be saved"):
        save_checkpoint(tmp_path / "a", nn.Linear(2, 2), input_spec=SPEC)
    with pytest.raises(InputTypeError, match="training settings cannot be written as JSON"):
        save_checkpoint(tmp_path / "a", network, input_spec=SPEC, training={"x": object()})
    assert not list(tmp_path.iterdir())
