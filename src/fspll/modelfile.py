"""A fitted classifier in one file: prototypes, candidates, and the network that embeds.

Shapes: n training samples, l classes, m features. A file is not trusted: what does not fit together
is refused with one sentence that names the file. The confidence and the naming of many samples are
sparse, and kept as three tensors each: ``confidence.data``, ``.indices`` and ``.indptr``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll._common.arguments import is_integer
from fspll._common.devices import choose_device
from fspll._common.errors import (
    CheckpointError,
    FsPLLError,
    InputError,
    InputTypeError,
    MissingPackageError,
)
from fspll._common.tensorfiles import FileFormat
from fspll._common.version import __version__
from fspll.candidates import Candidates
from fspll.candidates.labels import as_classes
from fspll.embeddings import (
    PHOTOS,
    Embedding,
    Encoder,
    PhotoEncoder,
    describe_network,
    load_embedding,
    network_from_tensors,
    network_to_tensors,
)
from fspll.rectifiers.sparse import best_labels

if TYPE_CHECKING:
    from fspll.classifier import FsPLLClassifier

FORMAT = FileFormat("fspll-classifier", version=2, noun="a classifier")
_DENSE_FORMAT = replace(FORMAT, version=1)  # which older readers know
_PARAMETERS = (
    "rectifier",
    "n_neighbors",
    "n_iterations",
    "class_balance",
    "reject",
    "manifold_weight",
    "metric",
)
_NETWORK = "embedding."
_FLOATS = (torch.float32, torch.float64)
_SLACK = 1e-3  # by which the confidence of a sample may miss one: rounding of float32


# -------------------------------------------------------------------- writing


def save(classifier: FsPLLClassifier, path: Path | str) -> None:
    """Write a fitted classifier to ``path``."""
    tensors = {
        "prototypes": torch.from_numpy(classifier.prototypes_.copy()),
        "has_prototype": torch.from_numpy(classifier.has_prototype_.copy()),
        **_places_to_tensors("candidates", classifier.candidates_.matrix),
        **_matrix_to_tensors("confidence", classifier.confidence_),
    }
    if classifier.rectifier == "evidence":
        tensors |= {
            "spread": torch.tensor(classifier.spread_, dtype=torch.float64),
            "believed": torch.from_numpy(classifier.believed_.copy()),
            **_matrix_to_tensors("naming", classifier.naming_),
        }
    classes = classifier.classes_
    names = getattr(classifier, "feature_names_in_", None)
    metadata: dict[str, Any] = {
        "package_version": __version__,
        "parameters": {name: _plain(getattr(classifier, name)) for name in _PARAMETERS}
        | {"device": str(classifier.device)},
        "classes": classes.tolist(),
        # Without its width for text: the names themselves say how long they are.
        "classes_dtype": "U" if classes.dtype.kind == "U" else classes.dtype.str,
        "classes_were_given": classifier.classes is not None,
        "n_neighbors": classifier.n_neighbors_,
        "feature_names": None if names is None else names.tolist(),
        "embedding": None,
    }
    if classifier.embedding is not None:
        encoder = classifier._encoder()
        metadata["embedding"] = {"name": encoder.name, "network": None}
        # Its weights are in a package, so the name will do.
        if isinstance(encoder, PhotoEncoder) and encoder.name == PHOTOS:
            metadata["embedding"]["installed"] = True
        if isinstance(encoder, Encoder) and _can_be_saved(encoder):
            network, described = network_to_tensors(
                encoder.network, encoder.input_spec, encoder.metadata.get("training")
            )
            tensors |= {_NETWORK + name: tensor for name, tensor in network.items()}
            metadata["embedding"]["network"] = described
    dense = not sparse.issparse(classifier.confidence_)
    (_DENSE_FORMAT if dense else FORMAT).write(path, tensors, metadata)


def _matrix_to_tensors(name: str, matrix: np.ndarray | sparse.csr_array) -> dict[str, Tensor]:
    if isinstance(matrix, np.ndarray):
        return {name: torch.from_numpy(matrix.copy())}
    return {f"{name}.data": torch.from_numpy(matrix.data.copy())} | _places_to_tensors(name, matrix)


def _places_to_tensors(name: str, matrix: sparse.csr_array) -> dict[str, Tensor]:
    return {
        f"{name}.indptr": torch.from_numpy(matrix.indptr.astype(np.int64)),
        f"{name}.indices": torch.from_numpy(matrix.indices.astype(np.int64)),
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _can_be_saved(encoder: Encoder) -> bool:
    try:
        describe_network(encoder.network)
    except InputTypeError:  # a network of the user's own: like a function, it is passed again
        return False
    return True


# -------------------------------------------------------------------- reading


def load(kind: type[FsPLLClassifier], path: Path | str, embedding: Any = None) -> FsPLLClassifier:
    """Read a classifier of class ``kind`` from ``path``."""
    tensors, metadata = FORMAT.read(path)
    try:
        return _restore(kind, tensors, metadata, embedding, str(path))
    except (CheckpointError, MissingPackageError):
        raise
    except KeyError as error:
        raise CheckpointError(f"{path} is damaged: it lacks {error}") from error
    except (FsPLLError, TypeError, ValueError, ArithmeticError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} is damaged: {reason}") from error


def _restore(
    kind: type[FsPLLClassifier],
    tensors: dict[str, Tensor],
    metadata: dict[str, Any],
    embedding: Any,
    source: str,
) -> FsPLLClassifier:
    parameters = _object(metadata, "parameters")
    device = parameters.pop("device")
    unknown = sorted(set(parameters) - set(_PARAMETERS))
    _require(not unknown, f"it has an unknown parameter {unknown[:1]}")
    _require(isinstance(device, str), "its device is no name")
    stored = _object(metadata, "embedding") if metadata["embedding"] is not None else None
    if embedding is None and stored is not None:
        embedding = _put_together(tensors, stored, device, source)
    classifier = kind(embedding=embedding, device=device, **parameters)

    classes = _read_classes(metadata["classes"], metadata["classes_dtype"])
    if metadata["classes_were_given"]:
        classifier.classes = classes.tolist()
    candidates = _read_candidates(tensors, classes)
    classifier._settings(candidates, len(candidates))  # refuses parameters that `fit` would refuse
    classifier.n_neighbors_ = metadata["n_neighbors"]
    _require(
        is_integer(classifier.n_neighbors_) and classifier.n_neighbors_ >= 0,
        "its number of neighbors is no count",
    )
    classifier.candidates_ = candidates
    classifier.classes_ = classes
    if _is_sparse(tensors):
        classifier.confidence_ = _read_sparse_confidence(tensors, candidates)
        classifier.labels_ = classes[best_labels(classifier.confidence_)]
    else:
        classifier.confidence_ = _read_confidence(tensors, candidates)
        classifier.labels_ = classes[classifier.confidence_.argmax(axis=1)]
    classifier.prototypes_, classifier.has_prototype_ = _read_prototypes(tensors, candidates)
    if classifier.rectifier == "evidence":
        _restore_class_model(classifier, tensors)
    if isinstance(embedding, Encoder):
        width = getattr(embedding.network, "n_features", classifier.prototypes_.shape[1])
        _require(
            width == classifier.prototypes_.shape[1],
            f"its network gives {width} features, but its prototypes have "
            f"{classifier.prototypes_.shape[1]}",
        )
    if stored is None and embedding is None:
        classifier.n_features_in_ = classifier.prototypes_.shape[1]
        _restore_feature_names(classifier, metadata["feature_names"])
    return classifier


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise InputError(complaint)


def _object(metadata: dict[str, Any], name: str) -> dict[str, Any]:
    value = metadata[name]
    _require(isinstance(value, dict), f"its {name} is no JSON object")
    return dict(value)


def _put_together(
    tensors: dict[str, Tensor], stored: dict[str, Any], device: str, source: str
) -> Embedding:
    name, described = stored["name"], stored["network"]
    _require(isinstance(name, str), "the name of its embedding is no text")
    try:
        target = choose_device(device)
    except InputError:  # saved on another machine
        target = choose_device("auto")
    if stored.get("installed") is True:
        _require(name == PHOTOS, f"no package is known for its embedding {name!r}")
        return load_embedding(name, target)
    if described is None:
        raise CheckpointError(
            f"{source} was saved with an embedding of your own ({name}), which a file cannot "
            f"hold; pass it again: FsPLLClassifier.load({source!r}, embedding=...)"
        )
    own = {n.removeprefix(_NETWORK): t for n, t in tensors.items() if n.startswith(_NETWORK)}
    network, input_spec = network_from_tensors(own, described, source=source)
    return Encoder(network, input_spec, name, device=target, metadata=described)


def _read_classes(names: Any, dtype: Any) -> np.ndarray:
    _require(isinstance(names, list), "its classes are no list")
    _require(isinstance(dtype, str), "the type of its classes is no name")
    checked = as_classes(names)
    # A width of the file's own choosing could fill the memory.
    _require(dtype == "U" or np.dtype(dtype).kind in "biufO", f"its classes have type {dtype!r}")
    classes = np.array(names, dtype=dtype)
    _require(
        classes.tolist() == names and (dtype == "U") == (checked.dtype.kind == "U"),
        f"its classes are not of type {dtype!r}",
    )
    return classes


def _is_sparse(tensors: dict[str, Tensor]) -> bool:
    """Tell whether the samples were many: a confidence of neither kind counts as a dense one."""
    return "confidence" not in tensors and any(name.startswith("confidence.") for name in tensors)


def _read_candidates(tensors: dict[str, Tensor], classes: np.ndarray) -> Candidates:
    indptr = tensors["candidates.indptr"]
    n = indptr.numel() - 1 if _is_sparse(tensors) else len(tensors["confidence"])
    flags = torch.ones(tensors["candidates.indices"].numel(), dtype=torch.bool)
    complaint = "its candidate sets do not fit its classes and samples"
    matrix = _read_sparse(tensors, "candidates", flags, (n, len(classes)), complaint)
    _require(bool(matrix.has_canonical_format), "its candidate sets are not in order")
    return Candidates(matrix, classes)


def _read_sparse(
    tensors: dict[str, Tensor], name: str, data: Tensor, shape: tuple[int, int], complaint: str
) -> sparse.csr_array:
    """Put a sparse matrix together whose every index is inside its shape."""
    indptr, indices = tensors[f"{name}.indptr"], tensors[f"{name}.indices"]
    _require(
        indptr.dtype == indices.dtype == torch.int64
        and shape[0] >= 0
        and indptr.shape == (shape[0] + 1,)
        and indices.ndim == 1
        and data.shape == indices.shape
        and int(indptr[0]) == 0
        and int(indptr[-1]) == len(indices)
        and bool((indptr.diff() >= 0).all())
        and bool(((indices >= 0) & (indices < shape[1])).all()),
        complaint,
    )
    return sparse.csr_array((data.numpy(), indices.numpy(), indptr.numpy()), shape=shape)


def _read_confidence(tensors: dict[str, Tensor], candidates: Candidates) -> np.ndarray:
    tensor = tensors["confidence"]
    _require(
        tensor.dtype in _FLOATS and tensor.shape == candidates.matrix.shape,
        f"its confidence is {tensor.dtype} of shape {tuple(tensor.shape)}, but there are "
        f"{candidates.matrix.shape} samples and classes",
    )
    confidence = tensor.numpy()
    mask = candidates.mask
    fits = ((confidence >= 0) & (confidence < 1 + _SLACK)).all() and (confidence[~mask] == 0).all()
    fits = fits and np.abs(confidence.sum(axis=1) - 1).max() < _SLACK
    _require(bool(fits), "its confidence is no share of each sample among its candidates")
    return confidence


def _read_sparse_confidence(tensors: dict[str, Tensor], candidates: Candidates) -> sparse.csr_array:
    """Read what :func:`_read_confidence` does where one number is kept for each candidate."""
    data, matrix = tensors["confidence.data"], candidates.matrix
    _require(data.dtype in _FLOATS, f"its confidence is {data.dtype}")
    complaint = "its confidence does not fit its candidate sets"
    confidence = _read_sparse(tensors, "confidence", data, matrix.shape, complaint)
    _require(
        np.array_equal(confidence.indptr, matrix.indptr)
        and np.array_equal(confidence.indices, matrix.indices),
        complaint,
    )
    _require(
        _is_share(confidence), "its confidence is no share of each sample among its candidates"
    )
    return confidence


def _is_share(matrix: sparse.csr_array) -> bool:
    """Tell whether no value is below zero, above one or NaN, and every row sums to one."""
    inside = (matrix.data >= 0) & (matrix.data < 1 + _SLACK)
    return bool(inside.all() and (np.abs(matrix.sum(axis=1) - 1) < _SLACK).all())


def _read_prototypes(
    tensors: dict[str, Tensor], candidates: Candidates
) -> tuple[np.ndarray, np.ndarray]:
    prototypes, present = tensors["prototypes"], tensors["has_prototype"]
    n_classes = candidates.n_classes
    _require(
        prototypes.dtype in _FLOATS
        and prototypes.ndim == 2
        and len(prototypes) == n_classes
        and prototypes.shape[1] > 0,
        f"its prototypes are {prototypes.dtype} of shape {tuple(prototypes.shape)}, but there are "
        f"{n_classes} classes",
    )
    _require(bool(prototypes.isfinite().all()), "its prototypes hold NaN or infinity")
    occurs = np.bincount(candidates.matrix.indices, minlength=n_classes) > 0
    _require(
        present.dtype == torch.bool and np.array_equal(present.numpy(), occurs),
        "its candidate sets and prototypes are of different classes",
    )
    return prototypes.numpy(), present.numpy()


def _restore_class_model(classifier: FsPLLClassifier, tensors: dict[str, Tensor]) -> None:
    spread, believed = tensors["spread"], tensors["believed"]
    n_classes = len(classifier.classes_)
    _require(
        spread.dtype in _FLOATS and spread.shape == () and 0 < float(spread) < float("inf"),
        "its spread is no positive number",
    )
    _require(
        believed.dtype == torch.bool and believed.shape == (n_classes,) and bool(believed.any()),
        "its believed classes are no choice of its classes",
    )
    classifier.spread_ = float(spread)
    classifier.naming_ = _read_naming(tensors, n_classes)
    classifier.believed_ = believed.numpy()


def _read_naming(tensors: dict[str, Tensor], n_classes: int) -> np.ndarray | sparse.csr_array:
    complaint = "its naming is no share of each group among the classes"
    shape = (n_classes, n_classes)
    if _is_sparse(tensors):
        data = tensors["naming.data"]
        _require(data.dtype in _FLOATS, complaint)
        matrix = _read_sparse(tensors, "naming", data, shape, complaint)
        _require(bool(matrix.has_canonical_format) and _is_share(matrix), complaint)
        return matrix
    naming = tensors["naming"]
    _require(
        naming.dtype in _FLOATS
        and naming.shape == shape
        and bool((naming >= 0).all())
        and bool(((naming.sum(dim=-1) - 1).abs() < _SLACK).all()),
        complaint,
    )
    return naming.numpy()


def _restore_feature_names(classifier: FsPLLClassifier, names: Any) -> None:
    if names is None:
        return
    _require(
        isinstance(names, list)
        and len(names) == classifier.n_features_in_
        and all(isinstance(name, str) for name in names),
        "the names of its features do not fit",
    )
    classifier.feature_names_in_ = np.array(names, dtype=object)
