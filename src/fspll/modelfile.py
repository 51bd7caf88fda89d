"""A fitted classifier in one file: what its rectifier found, candidates, and what embeds samples.

Shapes: n training samples, l classes, m features. A file is not trusted: what does not fit together
is refused with one sentence that names the file, and a file causes no import of anything that is
not registered. The confidence of many samples is sparse, and kept as three tensors:
``confidence.data``, ``.indices`` and ``.indptr``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll._common.arguments import check_probability, is_integer
from fspll._common.errors import (
    CheckpointError,
    FsPLLError,
    InputError,
    MissingPackageError,
)
from fspll._common.stored_arrays import (
    FLOATS,
    SLACK,
    is_share,
    matrix_to_tensors,
    pattern_to_tensors,
    read_sparse,
    require,
)
from fspll._common.tensorfiles import FileFormat
from fspll._common.version import __version__
from fspll.candidates.labels import as_classes
from fspll.candidates.sets import Candidates
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.stored import describe_encoder, restore_encoder
from fspll.rectifiers.base import Fitted, Rectifier, StoredState
from fspll.rectifiers.registry import RECTIFIERS, make_rectifier, restore_rectifier
from fspll.rectifiers.scaling import ScaledModel, restore_scaled

FORMAT = FileFormat("fspll-classifier", version=6, noun="a classifier")
SHORTCUTS = ("n_neighbors", "n_iterations", "class_balance", "manifold_weight", "metric")
_NETWORK = "embedding."


@dataclass(frozen=True, eq=False)
class StoredClassifier:
    """What a model file holds of a classifier.

    Attributes
    ----------
    parameters : dict
        The constructor's arguments but ``embedding`` and ``classes``.
    candidates : Candidates
        The training sets, with their classes.
    classes_were_given : bool
        Whether the classes were an argument of the constructor.
    model : Fitted
        What the rectifier found.
    embedding : object or None
        What turns samples into features.
    feature_names : list of str, optional
        The columns of a data frame that it was fitted with.
    """

    parameters: dict[str, Any]
    candidates: Candidates
    classes_were_given: bool
    model: Fitted
    embedding: Any = None
    feature_names: list[str] | None = None


# -------------------------------------------------------------------- writing


def save(stored: StoredClassifier, path: Path | str) -> None:
    """Write a fitted classifier to ``path``.

    Files get the lowest version that tells all: 1 for few samples, 2 for many, 3 for a rectifier
    with settings of its own, 4 or 5 for a kernel, 6 for features of unusual size.
    """
    state, about = stored.model.state()
    confidence = stored.model.confidence
    dense = isinstance(confidence, Tensor)
    tensors = {
        **state,
        **pattern_to_tensors("candidates", stored.candidates.matrix),
        **matrix_to_tensors("confidence", confidence.numpy() if dense else confidence),
    }
    rectifier = stored.parameters["rectifier"]
    given = isinstance(rectifier, Rectifier)
    parameters = {name: _plain(value) for name, value in stored.parameters.items()}
    if given:
        settings = {name: _plain(value) for name, value in rectifier.settings().items()}
        parameters["rectifier"] = {"name": rectifier.name, "settings": settings}
    classes = stored.candidates.classes
    metadata: dict[str, Any] = {
        "package_version": __version__,
        "parameters": parameters | {"device": str(stored.parameters["device"])},
        "classes": classes.tolist(),
        # Without its width for text: the names themselves say how long they are.
        "classes_dtype": "U" if classes.dtype.kind == "U" else classes.dtype.str,
        "classes_were_given": stored.classes_were_given,
        "n_neighbors": stored.model.n_neighbors,
        "feature_names": stored.feature_names,
        "embedding": None,
    }
    if about:
        metadata["state"] = about
    if isinstance(stored.model, ScaledModel):
        metadata["exponent"] = stored.model.exponent
    if stored.embedding is not None:
        network, metadata["embedding"] = describe_encoder(stored.embedding)
        tensors |= {_NETWORK + name: tensor for name, tensor in network.items()}
    version = max(stored.model.file_version, 3 if given or about else 1 if dense else 2)
    replace(FORMAT, version=version).write(path, tensors, metadata)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# -------------------------------------------------------------------- reading


def load(path: Path | str, embedding: Any = None) -> StoredClassifier:
    """Read a classifier from ``path``; ``embedding`` replaces the stored one."""
    tensors, metadata = FORMAT.read(path)
    try:
        return _restore(tensors, metadata, embedding, str(path))
    except (CheckpointError, MissingPackageError):
        raise
    except KeyError as error:
        raise CheckpointError(f"{path} is damaged: it lacks {error}") from error
    except (FsPLLError, TypeError, ValueError, ArithmeticError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} is damaged: {reason}") from error


def _restore(
    tensors: dict[str, Tensor], metadata: dict[str, Any], embedding: Any, source: str
) -> StoredClassifier:
    parameters = _object(metadata, "parameters")
    unknown = sorted(set(parameters) - {"rectifier", "reject", "device", *SHORTCUTS})
    require(not unknown, f"it has an unknown parameter {unknown[:1]}")
    require(isinstance(parameters["device"], str), "its device is no name")
    check_probability("reject", parameters.get("reject"))
    shortcuts = {name: parameters[name] for name in SHORTCUTS if name in parameters}
    rectifier = _read_rectifier(parameters["rectifier"], shortcuts, source)
    if isinstance(parameters["rectifier"], dict):
        parameters["rectifier"] = rectifier
    stored = _object(metadata, "embedding") if metadata["embedding"] is not None else None
    if embedding is None and stored is not None:
        own = {n.removeprefix(_NETWORK): t for n, t in tensors.items() if n.startswith(_NETWORK)}
        embedding = restore_encoder(own, stored, parameters["device"], source)
    classes = read_classes(metadata["classes"], metadata["classes_dtype"])
    candidates = _read_candidates(tensors, classes)
    n_neighbors = metadata["n_neighbors"]
    require(is_integer(n_neighbors) and n_neighbors >= 0, "its number of neighbors is no count")
    confidence = (
        _read_sparse_confidence(tensors, candidates)
        if _is_sparse(tensors)
        else _read_confidence(tensors, candidates)
    )
    about = _object(metadata, "state") if "state" in metadata else {}
    model = rectifier.restore(StoredState(tensors, about, candidates, confidence))
    model = restore_scaled(replace(model, n_neighbors=n_neighbors), metadata.get("exponent"))
    width = model.prototypes.shape[-1]
    if isinstance(embedding, NetworkEncoder):
        given = getattr(embedding.network, "n_features", width)
        require(
            given == width,
            f"its network gives {given} features, but its prototypes have {width}",
        )
    names = metadata["feature_names"]
    if stored is not None or embedding is not None:
        names = None
    require(
        names is None
        or (
            isinstance(names, list)
            and len(names) == width
            and all(isinstance(name, str) for name in names)
        ),
        "the names of its features do not fit",
    )
    return StoredClassifier(
        parameters=parameters,
        candidates=candidates,
        classes_were_given=bool(metadata["classes_were_given"]),
        model=model,
        embedding=embedding,
        feature_names=names,
    )


def _read_rectifier(spec: Any, shortcuts: dict[str, Any], source: str) -> Rectifier:
    name: Any = spec.get("name") if isinstance(spec, dict) else spec
    require(isinstance(name, str), "its rectifier is no name")
    if name not in RECTIFIERS:
        raise CheckpointError(
            f"{source} needs the rectifier {name!r}, which is not registered here; install the "
            f"package that it comes with"
        )
    try:
        RECTIFIERS.get(name)
    except InputError as error:  # the package that registers it cannot be imported
        raise CheckpointError(f"{source} needs the rectifier {name!r}: {error}") from error
    if isinstance(spec, dict):
        return restore_rectifier(name, spec.get("settings"))
    return make_rectifier(name, shortcuts)


def _object(metadata: dict[str, Any], name: str) -> dict[str, Any]:
    value = metadata[name]
    require(isinstance(value, dict), f"its {name} is no JSON object")
    return dict(value)


def read_classes(names: Any, dtype: Any) -> np.ndarray:
    """Return classes as they were written: a list of names, and their type."""
    require(isinstance(names, list), "its classes are no list")
    require(isinstance(dtype, str), "the type of its classes is no name")
    checked = as_classes(names)
    # A width of the file's own choosing could fill the memory.
    require(dtype == "U" or np.dtype(dtype).kind in "biufO", f"its classes have type {dtype!r}")
    classes = np.array(names, dtype=dtype)
    require(
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
    matrix = read_sparse(tensors, "candidates", flags, (n, len(classes)), complaint)
    require(bool(matrix.has_canonical_format), "its candidate sets are not in order")
    return Candidates(matrix, classes)


def _read_confidence(tensors: dict[str, Tensor], candidates: Candidates) -> np.ndarray:
    tensor = tensors["confidence"]
    require(
        tensor.dtype in FLOATS and tensor.shape == candidates.matrix.shape,
        f"its confidence is {tensor.dtype} of shape {tuple(tensor.shape)}, but there are "
        f"{candidates.matrix.shape} samples and classes",
    )
    confidence = tensor.numpy()
    mask = candidates.mask
    fits = ((confidence >= 0) & (confidence < 1 + SLACK)).all() and (confidence[~mask] == 0).all()
    total = confidence.sum(axis=1)
    fits = fits and (total < 1 + SLACK).all() and (total > 0).all()
    require(bool(fits), "its confidence is no share of each sample among its candidates")
    return confidence


def _read_sparse_confidence(tensors: dict[str, Tensor], candidates: Candidates) -> sparse.csr_array:
    """Read what :func:`_read_confidence` does where one number is kept for each candidate."""
    data, matrix = tensors["confidence.data"], candidates.matrix
    require(data.dtype in FLOATS, f"its confidence is {data.dtype}")
    complaint = "its confidence does not fit its candidate sets"
    confidence = read_sparse(tensors, "confidence", data, matrix.shape, complaint)
    require(
        np.array_equal(confidence.indptr, matrix.indptr)
        and np.array_equal(confidence.indices, matrix.indices),
        complaint,
    )
    require(is_share(confidence), "its confidence is no share of each sample among its candidates")
    return confidence
