"""Where the samples of annotations are, and how they become features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError, InputError
from fspll._common.progress import Progress
from fspll._common.words import listed
from fspll.annotations.addresses import last_part, original_names, path_of, stored_name
from fspll.annotations.samples import Annotations
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.encoders.vectors import standardizer
from fspll.embeddings.features import (
    Unreadable,
    content_key,
    encode_cached,
    unreadable_message,
)
from fspll.embeddings.registry import load_embedding

FEATURES = "features"  # the name of no encoder: vectors as they are
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Located:
    """Samples before anything is encoded.

    Attributes
    ----------
    samples : sequence of n arrays, texts or paths
    keys : list of bytes or None
        The hash of every sample's content; None where there is none.
    encoder : Encoder or None
        What makes features of them; None when they are vectors as they are.
    paths : list of Path or None
        The picture of every sample, where samples are pictures.
    missing : dict of int to str
        Why pictures cannot be found, by row.
    """

    samples: Sequence[Any] | np.ndarray
    keys: list[bytes | None]
    encoder: Encoder | None
    paths: list[Path] | None = None
    missing: dict[int, str] = field(default_factory=dict)

    def take(self, rows: np.ndarray) -> Located:
        """Return some of the samples."""
        chosen = rows.tolist()
        samples = self.samples
        return Located(
            samples[rows] if isinstance(samples, np.ndarray) else [samples[i] for i in chosen],
            [self.keys[i] for i in chosen],
            self.encoder,
            None if self.paths is None else [self.paths[i] for i in chosen],
            {row: self.missing[i] for row, i in enumerate(chosen) if i in self.missing},
        )


@dataclass(frozen=True, eq=False)
class Prepared:
    """Samples that could be read, as features.

    Attributes
    ----------
    features : array of shape (n, m)
    kept : int array of shape (n,)
        Their rows among the annotations.
    encoder : Encoder or None
        What makes such features of new samples; None when these are vectors as they are.
    name : str
        The encoder's, for people.
    pictures : tuple of Path or None
    unreadable : list of Unreadable
    """

    features: np.ndarray
    kept: np.ndarray
    encoder: Encoder | None
    name: str
    pictures: tuple[Path, ...] | None = None
    unreadable: list[Unreadable] | None = None


def locate(
    data: Annotations, encoder: Any, images: Path | str | None, *, standardize: bool, device: str
) -> Located:
    """Find the samples of annotations, for whatever ``encoder`` names, and hash their content."""
    if encoder is None:
        encoder = _usual_encoder(data, images)
    if isinstance(encoder, str) and encoder == FEATURES:
        vectors = _vectors(data)
        keys = [vector_key(row) for row in vectors]
        return Located(vectors, keys, standardizer(vectors) if standardize else None)
    if standardize:
        raise InputError("standardize=True is for encoder='features'; an encoder has its own scale")
    loaded = load_embedding(encoder, device)
    paths = None
    missing: dict[int, str] = {}
    takes_any = loaded.modality is None and data.texts is not None and images is None
    modality = loaded.modality
    if loaded.modality == "text" or takes_any:
        samples: list[Any] = list(_texts(data))
        modality = "text"
    elif data.features is not None and data.files is None and images is None:
        samples = list(data.features)
    else:
        paths, missing = find_pictures(data, images)
        samples = list(paths)
    keys = [content_key(one, modality) for one in samples]
    return Located(samples, keys, loaded, paths, missing)


def prepare(
    data: Annotations,
    found: Located,
    *,
    skip_bad: bool,
    cache: bool,
    progress: Progress | None,
    scheduler: str | None = None,
) -> Prepared:
    """Encode the samples that were located, on the workers of a scheduler if one is named."""
    encoder, samples, missing = found.encoder, found.samples, found.missing
    if isinstance(samples, np.ndarray):  # vectors as they are, or standardized
        kept = np.arange(len(data))
        if encoder is None:
            return Prepared(samples, kept, None, FEATURES, unreadable=[])
        return Prepared(encoder.encode(samples), kept, encoder, "standardized features", None, [])
    assert encoder is not None
    readable = [row for row in range(len(samples)) if row not in missing]
    names = [_called(data, row, found.paths) for row in range(len(samples))]
    bad = [Unreadable(row, names[row], reason) for row, reason in missing.items()]
    if not readable:
        raise DataError(unreadable_message(bad, len(samples)))
    try:
        encoded = encode_cached(
            encoder,
            [samples[row] for row in readable],
            names=[names[row] for row in readable],
            keys=[found.keys[row] for row in readable],
            # Where files are missing, those that are there may be damaged: one message for all.
            skip_bad=skip_bad or bool(bad),
            cache=cache,
            progress=progress,
            scheduler=scheduler,
        )
    except DataError:  # not one of them can be read
        if not bad:
            raise
        bad = [
            Unreadable(row, names[row], missing.get(row, "cannot be read"))
            for row in range(len(samples))
        ]
        raise DataError(unreadable_message(bad, len(samples))) from None
    bad += [Unreadable(readable[one.index], one.name, one.reason) for one in encoded.unreadable]
    bad.sort(key=lambda one: one.index)
    if bad and not skip_bad:
        raise DataError(unreadable_message(bad, len(samples)))
    kept = np.array(readable)[encoded.kept]
    pictures = None if found.paths is None else tuple(found.paths[row] for row in kept)
    return Prepared(encoded.features, kept, encoder, encoder.name, pictures, bad)


def _usual_encoder(data: Annotations, images: Path | str | None) -> str:
    if images is None and data.features is not None:
        return FEATURES
    if images is None and data.texts is not None:
        return "text"
    if images is None and data.files is None:
        raise InputError(
            "there are only names and labels of the samples; say where their pictures are "
            "(images=FOLDER), which column holds their texts (text=COLUMN) or where their vectors "
            "are (features=FILE or features_columns=COLUMNS)"
        )
    raise InputError(
        "say what turns the samples into features: encoder='omniglot-conv4' for drawn characters, "
        "'photos' for photos, 'text' for texts, 'features' for vectors, or the path of a checkpoint"
    )


def _vectors(data: Annotations) -> np.ndarray:
    if data.features is None:
        raise InputError(
            "encoder='features' needs vectors, and there are none; name their file or their "
            "columns where the labels are read: features=FILE or features_columns=COLUMNS"
        )
    return data.features


def vector_key(vector: Any) -> bytes | None:
    """Return the hash of a vector, the same for the same numbers in whichever type."""
    numeric = isinstance(vector, np.ndarray) and vector.dtype.kind in "biuf"
    return content_key(vector.astype(np.float64) + 0.0, "vector") if numeric else None


def _texts(data: Annotations) -> tuple[str, ...]:
    if data.texts is None:
        raise InputError(
            "the encoder takes texts, and there are none; name their column where the labels are "
            "read: text=COLUMN"
        )
    return data.texts


def _called(data: Annotations, row: int, paths: list[Path] | None) -> str:
    if paths is None:
        return f"{data.names[row]} ({data.origins[row]})"
    return f"{paths[row]} ({data.origins[row]})"


# -------------------------------------------------------------------- pictures


def find_pictures(
    data: Annotations, images: Path | str | None
) -> tuple[list[Path], dict[int, str]]:
    """Return the file of every sample, and why some cannot be found.

    A sample's file is looked for as it is written, below the folder. Where there is no such file,
    one with the same name in any folder below will do, or one that only lacks its ending, provided
    there is no other. Where there is none, and the name begins as that of a Label Studio upload,
    the file is looked for under the name that it had before.
    """
    return find_files(data.files if data.files is not None else data.names, images)


def find_files(
    written: Sequence[str], images: Path | str | None
) -> tuple[list[Path], dict[int, str]]:
    """Return the file of every picture as a table writes it, and why some cannot be found."""
    root = None if images is None else Path(images).expanduser()
    if root is not None and not root.is_dir():
        raise DataError(f"{root} is not a folder of pictures")
    before = original_names(written)
    index: _Index | None = None
    paths: list[Path] = []
    missing: dict[int, str] = {}
    for row, name in enumerate(written):
        path = _as_written(name, root)
        if path is None and root is not None:
            index = _Index(root) if index is None else index
            path, reason = index.find(name, before.get(name))
            if path is None:
                missing[row] = reason
        elif path is None:
            path = _as_written(before[name], None) if name in before else None
            if path is None:
                missing[row] = "does not exist (say where the pictures are: images=FOLDER)"
        paths.append(path or Path(name))
    return paths, missing


def _as_written(name: str, root: Path | None) -> Path | None:
    try:
        path = Path(name) if root is None else root / name  # an absolute name stays as it is
        return path if path.is_file() else None
    except (OSError, ValueError):  # too long a name, or one with a NUL
        return None


class _Index:
    """The files below a folder by their names, with and without endings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.found: dict[str, list[Path]] = {}
        for folder, folders, files in os.walk(root):
            folders.sort()
            for file in sorted(files):
                path = Path(folder, file)
                for name in {file, path.stem}:
                    self.found.setdefault(name, []).append(path)

    @cached_property
    def stored(self) -> dict[str, list[Path]]:
        """The same by the names that Label Studio would give them."""
        found: dict[str, list[Path]] = {}
        for name, paths in self.found.items():
            found.setdefault(stored_name(name), []).extend(paths)
        return found

    def find(self, name: str, before: str | None) -> tuple[Path | None, str]:
        """Return the one file of a name, or of the name that it had before; else why not."""
        found = self.found.get(last_part(name)) or self.found.get(last_part(path_of(name)))
        if not found and before is not None:
            found = self.found.get(before) or self.stored.get(before)
        if not found:
            return None, f"is not in {self.root}"
        if len(found) == 1:
            return found[0], ""
        shown = listed([path.relative_to(self.root) for path in found], _SHOWN)
        return None, f"may be any of {shown} in {self.root}; write the folder before its name"
