"""A fitted classifier in one file: prototypes, candidates, and the network that embeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from fspll._version import __version__
from fspll.candidates import Candidates
from fspll.embeddings import Encoder, network_from_tensors, network_to_tensors
from fspll.errors import CheckpointError, FsPLLError, InputTypeError
from fspll.tensorfiles import FileFormat

if TYPE_CHECKING:
    from fspll.classifier import FsPLLClassifier

FORMAT = FileFormat("fspll-classifier", version=1, noun="a classifier")
_PARAMETERS = ("rectifier", "n_neighbors", "manifold_weight", "n_iterations", "metric", "device")
_NETWORK = "embedding."


def save(classifier: FsPLLClassifier, path: Path | str) -> None:
    """Write a fitted classifier to ``path``."""
    matrix = classifier.candidates_.matrix
    tensors = {
        "prototypes": torch.from_numpy(classifier.prototypes_),
        "has_prototype": torch.from_numpy(classifier.has_prototype_),
        "confidence": torch.from_numpy(classifier.confidence_),
        "candidates.indptr": torch.from_numpy(matrix.indptr.astype(np.int64)),
        "candidates.indices": torch.from_numpy(matrix.indices.astype(np.int64)),
    }
    metadata: dict[str, Any] = {
        "package_version": __version__,
        "parameters": {name: getattr(classifier, name) for name in _PARAMETERS},
        "classes": classifier.classes_.tolist(),
        "classes_dtype": classifier.classes_.dtype.str,
        "n_neighbors": classifier.n_neighbors_,
        "embedding": None,
    }
    if classifier.embedding is not None:
        encoder = classifier._encoder()
        metadata["embedding"] = {"name": encoder.name, "network": None}
        if isinstance(encoder, Encoder):
            network, described = _take_apart(encoder)
            tensors |= {_NETWORK + name: tensor for name, tensor in network.items()}
            metadata["embedding"]["network"] = described
    FORMAT.write(path, tensors, metadata)


def _take_apart(encoder: Encoder) -> tuple[dict[str, torch.Tensor], dict[str, Any] | None]:
    try:
        return network_to_tensors(
            encoder.network, encoder.input_spec, encoder.metadata.get("training")
        )
    except InputTypeError:  # a network of the user's own: like a function, it is passed again
        return {}, None


def load(kind: type[FsPLLClassifier], path: Path | str, embedding: Any = None) -> FsPLLClassifier:
    """Read a classifier of class ``kind`` from ``path``."""
    tensors, metadata = FORMAT.read(path)
    try:
        stored = metadata["embedding"]
        if embedding is None and stored is not None:
            embedding = _put_together(tensors, stored, str(path))
        classifier = kind(embedding=embedding, **metadata["parameters"])
        classes = np.array(metadata["classes"], dtype=metadata["classes_dtype"])
        indices = tensors["candidates.indices"].numpy()
        matrix = sparse.csr_array(
            (np.ones(len(indices), dtype=bool), indices, tensors["candidates.indptr"].numpy()),
            shape=(len(tensors["confidence"]), len(classes)),
        )
        classifier.candidates_ = Candidates(matrix, classes)
        classifier.n_neighbors_ = metadata["n_neighbors"]
        classifier.prototypes_ = tensors["prototypes"].numpy()
        classifier.has_prototype_ = tensors["has_prototype"].numpy()
        classifier.confidence_ = tensors["confidence"].numpy()
        if classifier.confidence_.shape != matrix.shape or (
            len(classifier.prototypes_) != len(classes)
        ):
            raise CheckpointError(f"{path} is damaged: its tensors do not fit together")
    except FsPLLError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: it lacks {error}") from error
    classifier.classes_ = classes
    classifier.labels_ = classes[classifier.confidence_.argmax(axis=1)]
    if embedding is None:
        classifier.n_features_in_ = classifier.prototypes_.shape[1]
    return classifier


def _put_together(tensors: dict[str, torch.Tensor], stored: dict[str, Any], source: str) -> Encoder:
    if stored["network"] is None:
        raise CheckpointError(
            f"{source} was saved with an embedding of your own ({stored['name']}), which a file "
            f"cannot hold; pass it again: FsPLLClassifier.load({source!r}, embedding=...)"
        )
    own = {n.removeprefix(_NETWORK): t for n, t in tensors.items() if n.startswith(_NETWORK)}
    network, input_spec = network_from_tensors(own, stored["network"], source=source)
    return Encoder(network, input_spec, stored["name"], metadata=stored["network"])
