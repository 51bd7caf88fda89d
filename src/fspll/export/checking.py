"""Whether a graph gives what the library gives, on samples of a user or on drawn ones.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fspll._common.progress import Progress
from fspll.classifier import FsPLLClassifier
from fspll.datasets.glyphs.drawing import load_glyphs
from fspll.embeddings.pictures import collect_pictures, read_pictures
from fspll.export.encoding import Encoding
from fspll.labeling.baseline_model import BaselineModel

_AT_ONCE = 32
_N_DRAWN = 24


class _Batch(NamedTuple):
    feed: dict[str, np.ndarray]  # for the graph
    samples: Any  # the same for the library
    n: int


def largest_difference(
    path: Path,
    classifier: FsPLLClassifier | BaselineModel,
    encoding: Encoding,
    samples: Any,
    progress: Progress | None = None,
) -> tuple[int, float]:
    """Return how many samples were compared, and the largest difference of any probability.

    It is infinite where the graph gives no number, or a label that is not its most probable one.
    """
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    done, largest = 0, 0.0
    for batch in _batches(classifier, encoding, samples):
        found, label = session.run(["probabilities", "label"], batch.feed)
        expected = classifier.predict_proba(batch.samples)
        difference = float(np.abs(found - expected).max())
        if not np.isfinite(difference) or not np.array_equal(label, found.argmax(axis=1)):
            difference = float("inf")
        done, largest = done + batch.n, max(largest, difference)
        if progress is not None:
            progress(done, len(samples))
    return done, largest


def read_pixels(picture: Any, index: int = 0) -> np.ndarray:
    """Return one picture as 8-bit RGB of shape (H, W, 3): what a graph takes."""
    (found,) = read_pictures(collect_pictures([picture]), index)
    rgb = np.broadcast_to(found, (3, *found.shape[1:]))
    return np.rint(rgb * 255).astype(np.uint8).transpose(1, 2, 0)


def _batches(
    classifier: FsPLLClassifier | BaselineModel, encoding: Encoding, samples: Any
) -> Iterator[_Batch]:
    kind = encoding.inputs[0].name
    if kind == "pixels":
        waiting: list[np.ndarray] = []
        for index, picture in enumerate(samples):
            pixels = read_pixels(picture, index)
            if waiting and (pixels.shape != waiting[0].shape or len(waiting) == _AT_ONCE):
                yield _of_arrays("pixels", np.stack(waiting))
                waiting = []
            waiting.append(pixels)
        yield _of_arrays("pixels", np.stack(waiting))
        return
    for start in range(0, len(samples), _AT_ONCE):
        part = samples[start : start + _AT_ONCE]
        if kind == "features":
            dtype = str(encoding.inputs[0].dtype).removeprefix("torch.")
            yield _of_arrays("features", np.asarray(part, dtype=dtype))
        else:
            yield _Batch(_tokens(part, encoding.about["tokenizer"]), part, len(part))


def _of_arrays(name: str, array: np.ndarray) -> _Batch:
    return _Batch({name: array}, array, len(array))


def _tokens(texts: list[str], tokenizer: str) -> dict[str, np.ndarray]:
    """Cut texts as somebody does who has the file alone."""
    from tokenizers import Tokenizer

    found = Tokenizer.from_str(tokenizer).encode_batch(list(texts))
    tokens, mask = ([getattr(one, part) for one in found] for part in ("ids", "attention_mask"))
    return {"tokens": np.array(tokens), "mask": np.array(mask)}


# -------------------------------------------------------------------- samples to draw


def draw_samples(classifier: FsPLLClassifier | BaselineModel, encoding: Encoding) -> Any:
    """Draw samples of the kind that a graph takes, always the same ones."""
    random = np.random.default_rng(0)
    kind = encoding.inputs[0].name
    if kind == "pixels":
        return _drawings() if encoding.about["polarity"] else _color_fields(random)
    if kind == "tokens":
        names = [str(name) for name in classifier.classes_]
        return [
            " and ".join(random.choice(names, 1 + number % 7)) + "." for number in range(_N_DRAWN)
        ]
    return _vectors(classifier, random, int(encoding.inputs[0].shape[1]))


def _drawings() -> list[np.ndarray]:
    """Characters in bright and in dark ink, of three sizes."""
    found = []
    for size in (28, 64, 105):
        drawn = load_glyphs(_N_DRAWN // 6, 2, size=size).images
        found += [*drawn[::2], *(255 - drawn[1::2])]
    return found


def _color_fields(random: np.random.Generator) -> list[np.ndarray]:
    """Smooth colors with some noise, of several shapes."""
    found = []
    for number in range(_N_DRAWN):
        height, width = ((64, 64), (224, 224), (150, 100), (90, 260))[number * 4 // _N_DRAWN]
        x, y = np.linspace(0, 1, width), np.linspace(0, 1, height)[:, None]
        waves = random.normal(size=(3, 3)) * 6
        planes = [np.sin(a * x + b * y + c) for a, b, c in waves]
        field = 0.5 + 0.4 * np.stack(planes, axis=2) + 0.05 * random.normal(size=(height, width, 3))
        found.append((255 * field.clip(0, 1)).astype(np.uint8))
    return found


def _vectors(
    classifier: FsPLLClassifier | BaselineModel, random: np.random.Generator, n_features: int
) -> np.ndarray:
    """Mixtures of two classes, near them and farther away, before anything is scaled."""
    if isinstance(classifier, BaselineModel):
        estimator = classifier.estimator
        points = estimator.mean_ + estimator.scale_ * random.normal(size=(_N_DRAWN, n_features))
    else:
        points = classifier.prototypes_[classifier.has_prototype_].astype(float)
    a, b = (points[random.integers(len(points), size=_N_DRAWN)] for _ in range(2))
    share = random.uniform(-0.2, 1.2, size=(_N_DRAWN, 1))
    mixed = share * a + (1 - share) * b
    mixed += 0.3 * np.abs(points).mean() * random.normal(size=mixed.shape)
    if classifier.embedding is not None:
        network: Any = classifier.load_encoder().network  # type: ignore[attr-defined]
        if hasattr(network, "scale") and isinstance(network.mean, torch.Tensor):
            mixed = mixed * network.scale.numpy() + network.mean.numpy()
    return mixed
