"""Write a fitted classifier as one ONNX file, and refuse to leave one that disagrees.

Shapes: n samples, l classes.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fspll._common.errors import FsPLLError, InputError, MissingPackageError
from fspll._common.files import write_beside
from fspll._common.progress import Progress
from fspll._common.version import __version__
from fspll.classifier import FsPLLClassifier
from fspll.export.checking import draw_samples, largest_difference
from fspll.export.encoding import Encoding, GraphInput, encoding_of, vectors
from fspll.export.heads import Head
from fspll.labeling.baseline_model import BaselineModel

TOLERANCE = 1e-4
OPSET = 18
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    path : Path
    n_bytes : int
    inputs : list of GraphInput
        What the graph takes.
    before : str
        What has to be done to samples before.
    n_labels : int
        l.
    n_checked : int
        Samples on which the file was compared with the library.
    difference : float
        The largest difference of a probability on them.
    """

    path: Path
    n_bytes: int
    inputs: list[GraphInput]
    before: str
    n_labels: int
    n_checked: int
    difference: float


def export_onnx(
    classifier: FsPLLClassifier | BaselineModel,
    path: Path | str,
    samples: Any = None,
    *,
    progress: Progress | None = None,
) -> Exported:
    """Write a fitted classifier to an ONNX file and compare the two on samples.

    Parameters
    ----------
    classifier : FsPLLClassifier or BaselineModel
        Such as :func:`fspll.labeling.load_model` returns.
    path : path
        Where to write. The file is left only if every probability differs by 1e-4 at most.
    samples : sequence of samples, optional
        What to compare on, as ``predict`` takes them; by default some that are drawn.
    progress : callable, optional
        Called as ``progress(done, total)`` while samples are compared.

    Raises
    ------
    InputError
        When the classifier cannot be exported, or the graph gives something else.
    MissingPackageError
        When the extra ``onnx`` is not installed.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingPackageError(package, "onnx", "exporting")
    if samples is not None and len(samples) == 0:
        raise InputError("there are no samples to compare the exported model on")
    path = Path(path)
    encoding = _encoding(classifier)
    model = _trace(nn.ModuleList([encoding.network, Head(classifier)]), encoding)
    _describe(model, _metadata(classifier, encoding))
    if samples is None:
        samples = draw_samples(classifier, encoding)
    with write_beside(path) as beside:
        beside.write_bytes(model.SerializeToString())
        n_checked, difference = largest_difference(beside, classifier, encoding, samples, progress)
        if not difference <= TOLERANCE:
            raise InputError(
                f"the exported model differs by {difference:.2g} from this one on "
                f"{n_checked} samples, more than {TOLERANCE:g}; nothing was written"
            )
    return Exported(
        path=path,
        n_bytes=path.stat().st_size,
        inputs=encoding.inputs,
        before=encoding.before,
        n_labels=len(classifier.classes_),
        n_checked=n_checked,
        difference=difference,
    )


def _encoding(classifier: FsPLLClassifier | BaselineModel) -> Encoding:
    if classifier.embedding is not None:
        return encoding_of(classifier.load_encoder())
    if isinstance(classifier, BaselineModel):
        return vectors(classifier.n_features, torch.float64, {})
    prototypes = classifier.model_.prototypes
    names = getattr(classifier, "feature_names_in_", None)
    about = {} if names is None else {"feature_names": names.tolist()}
    return vectors(prototypes.shape[-1], prototypes.dtype, about)


# -------------------------------------------------------------------- the graph


class _Graph(nn.Module):
    """From the inputs to probabilities (n, l) and the column of the most probable label (n,)."""

    def __init__(self, parts: nn.ModuleList) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        network, head = self.parts
        probabilities = head(network(*inputs))
        return probabilities, probabilities.argmax(dim=-1)


def _trace(parts: nn.ModuleList, encoding: Encoding) -> Any:
    """Return the graph as an ONNX model, with sizes that are named as the inputs name them."""
    inputs = encoding.inputs
    sizes: dict[str, Any] = {}  # one symbol for each name
    for one in inputs:
        sizes |= {name: torch.export.Dim.DYNAMIC for name in one.shape if isinstance(name, str)}
    shapes = tuple(
        {axis: sizes[size] for axis, size in enumerate(one.shape) if isinstance(size, str)}
        for one in inputs
    )
    with _quiet():
        try:
            program = torch.export.export(
                _Graph(parts).eval(),
                tuple(one.example() for one in inputs),
                dynamic_shapes={"inputs": shapes},
                strict=False,
            )
            table = torch.export.default_decompositions()
            table[torch.ops.aten.cdist.default] = _distances
            exported = torch.onnx.export(
                program.run_decompositions(table),
                (),
                input_names=[one.name for one in inputs],
                output_names=["probabilities", "label"],
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
        except FsPLLError:
            raise
        except Exception as error:  # torch has many words for what it cannot trace
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise InputError(f"torch cannot trace this model into a graph: {reason}") from error
    assert exported is not None
    model = exported.model_proto
    _name_sizes(model, inputs)
    # The tracer notes which lines of which files an operation comes from.
    for thing in (*model.graph.node, *model.graph.value_info, *model.graph.input, model.graph):
        del thing.metadata_props[:]
        thing.doc_string = ""
    return model


def _distances(a: Tensor, b: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    """Euclidean distances, which ONNX has no operator for, from products in double precision."""
    center = b.double().mean(dim=-2, keepdim=True)
    x, y = a.double() - center, b.double() - center
    norms = x.square().sum(dim=-1).unsqueeze(-1) + y.square().sum(dim=-1).unsqueeze(-2)
    return (norms - 2 * x @ y.transpose(-1, -2)).clamp_min(0).sqrt().to(a.dtype)


def _name_sizes(model: Any, inputs: list[GraphInput]) -> None:
    """Call the sizes that a caller chooses by our names instead of the tracer's."""
    names = {}
    for given, one in zip(model.graph.input, inputs, strict=True):
        for size, dimension in zip(one.shape, given.type.tensor_type.shape.dim, strict=True):
            if isinstance(size, str):
                names[dimension.dim_param] = size
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in names:
                dimension.dim_param = names[dimension.dim_param]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the tracer's remarks about itself from users."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


# -------------------------------------------------------------------- metadata


def _metadata(classifier: FsPLLClassifier | BaselineModel, encoding: Encoding) -> dict[str, str]:
    """Return what a program needs to know that has nothing but the file."""
    if isinstance(classifier, BaselineModel):
        method, calibrated, reject = classifier.name, False, None
    else:
        rectifier = classifier.rectifier_
        method, calibrated, reject = rectifier.name, rectifier.calibrated, classifier.reject
    encoder = None if classifier.embedding is None else classifier.load_encoder().name
    inputs = [
        {
            "name": one.name,
            "type": str(one.dtype).removeprefix("torch."),
            "shape": one.shape,
            "values": one.values,
        }
        for one in encoding.inputs
    ]
    about = {
        "labels": classifier.classes_.tolist(),
        "inputs": inputs,
        "before": encoding.before,
        "encoder": encoder,
        "method": method,
        "calibrated": calibrated,
        "reject": reject,
        "fspll": __version__,
        **encoding.about,
    }
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in about.items()
    }


def _describe(model: Any, metadata: dict[str, str]) -> None:
    import onnx

    model.producer_name, model.producer_version = "fspll", __version__
    del model.metadata_props[:]
    onnx.helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
