"""Encode samples batch by batch: here, or on the workers of a Dask cluster.

A batch is encoded by one call, wherever that is: features may depend in their last bits on what is
encoded together (texts are padded to the longest of a batch) and on the number of threads. Both
are the same on a worker as they would be here.

Shapes: m features.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch

from fspll._common.cluster import compute_pieces, connect
from fspll._common.errors import FsPLLError, InputError, InputTypeError
from fspll._common.version import __version__
from fspll.embeddings.encoders.base import Encoder

SHARD = 8  # batches that a worker encodes at a time, and what is lost with it


@dataclass
class Batch:
    """What became of a batch of samples.

    Attributes
    ----------
    features : dict of int to array of shape (m,)
        By the samples' places in the batch.
    bad : dict of int to str
        Why the others cannot be read.
    """

    features: dict[int, np.ndarray] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)


def encode_batch(encoder: Encoder, samples: Sequence[Any]) -> Batch:
    """Encode samples by one call; where that fails, one by one, to tell which of them it is."""
    try:
        return Batch(dict(enumerate(encoder.encode(samples))))
    except (InputError, InputTypeError):
        if not encoder.per_sample:
            raise
    found = Batch()
    for place, sample in enumerate(samples):
        try:
            found.features[place] = encoder.encode([sample])[0]
        except (InputError, InputTypeError) as error:
            found.bad[place] = _reason(str(error), sample)
    return found


def _reason(message: str, sample: Any) -> str:
    """Return a message about the only sample of a batch without its name."""
    for start in (f"picture 0 ({sample}) ", "picture 0 ", "text 0 ", "sample 0 "):
        if message.startswith(start):
            return message.removeprefix(start)
    return f"cannot be encoded: {message}"


# -------------------------------------------------------------------- on the workers of a cluster


@dataclass(frozen=True, eq=False)
class SentEncoder:
    """What a worker makes an encoder of: tensors and a description, as a model file holds them.

    Attributes
    ----------
    name : str
    tensors, description
        Of :func:`fspll.embeddings.describe_encoder`, the tensors as arrays.
    fingerprint : str or None
        What the encoder that a worker makes must have as well.
    device : str
        Where to compute, if the worker has it.
    threads : int
        Of torch.
    version : str
        Of this package.
    """

    name: str
    tensors: dict[str, np.ndarray]
    description: dict[str, Any]
    fingerprint: str | None
    device: str
    threads: int
    version: str = __version__

    @classmethod
    def of(cls, encoder: Encoder) -> SentEncoder:
        """Describe an encoder; raise where it is one of the user's own, which nobody can send."""
        from fspll.embeddings.stored import describe_encoder

        tensors, description = describe_encoder(encoder)
        if description["network"] is None and not description["installed"]:
            raise InputError(
                f"{encoder.name!r} is an encoder of your own, which workers of a cluster do not "
                "have; register it in a package that they have as well, or give the path of a "
                "checkpoint"
            )
        return cls(
            encoder.name,
            {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()},
            description,
            encoder.fingerprint,
            str(getattr(encoder, "device", "auto")),
            torch.get_num_threads(),
        )

    def make(self) -> Encoder:
        """Return the encoder, where it is the same here."""
        from fspll.embeddings.stored import restore_encoder

        if self.version != __version__:
            raise InputError(f"it has fspll {__version__}, not {self.version}")
        tensors = {name: torch.from_numpy(array.copy()) for name, array in self.tensors.items()}
        made = restore_encoder(tensors, self.description, self.device, f"{self.name!r}")
        if made.fingerprint != self.fingerprint:
            raise InputError(f"its encoder {self.name!r} is another one, or another version of it")
        return made


def encode_on_workers(
    encoder: Encoder, batches: Sequence[Sequence[Any]], scheduler: str
) -> Iterator[tuple[int, Batch]]:
    """Yield the number of each batch with its features, in the order in which workers finish.

    Parameters
    ----------
    encoder : Encoder
        A registered one, or a network of a registered architecture.
    batches : sequence of sequences of samples
        Paths must lead to the same files on the workers.
    scheduler : str
        The address of a Dask scheduler, ``tcp://HOST:PORT``.
    """
    sent = SentEncoder.of(encoder)
    shards = (
        {number: _absolute(batches[number], encoder) for number in numbers}
        for numbers in (
            range(start, min(start + SHARD, len(batches)))
            for start in range(0, len(batches), SHARD)
        )
    )
    with connect(scheduler) as client:
        for shard, found in compute_pieces(client, encode_shard, sent, shards):
            if isinstance(found, str):
                raise InputError(f"a Dask worker cannot encode: {found}")
            for number, batch in found.items():
                _check_seen(shard[number], batch)
                yield number, batch


_encoder: tuple[SentEncoder, Encoder] | None = None
_one_at_a_time = Lock()  # the threads of a worker share one encoder, and all of its cores


def encode_shard(sent: SentEncoder, shard: dict[int, Sequence[Any]]) -> dict[int, Batch] | str:
    """Encode batches; called on a worker. Returns a sentence where no sample could be encoded."""
    global _encoder
    with _one_at_a_time:
        before = torch.get_num_threads()
        torch.set_num_threads(sent.threads)
        try:
            if _encoder is None or not _same_encoder(_encoder[0], sent):
                _encoder = sent, sent.make()
            encoder = _encoder[1]
            return {number: encode_batch(encoder, batch) for number, batch in shard.items()}
        except FsPLLError as error:  # whose classes need not be the same on both sides
            return f"{socket.gethostname()}: {error}"
        finally:
            torch.set_num_threads(before)


def _same_encoder(one: SentEncoder, other: SentEncoder) -> bool:
    about = [(e.name, e.fingerprint, e.device, e.version) for e in (one, other)]
    return one is other or (one.fingerprint is not None and about[0] == about[1])


def _absolute(samples: Sequence[Any], encoder: Encoder) -> list[Any]:
    """Return samples with whole paths: a worker has another working folder."""
    named = (Path, str) if encoder.modality == "image" else Path
    return [Path(one).absolute() if isinstance(one, named) else one for one in samples]


def _check_seen(samples: Sequence[Any], found: Batch) -> None:
    """Tell a picture that only the workers cannot see from one that is not there."""
    for place, reason in found.bad.items():
        sample = samples[place]
        if isinstance(sample, Path) and reason == "does not exist" and sample.is_file():
            raise InputError(
                f"a Dask worker does not see {sample}; pictures must be on a disk that all "
                "workers share, under the same path"
            )
