"""Workers of a Dask cluster: one connection, and pieces of work that survive the loss of a worker.

A cluster is trusted as the person who started it is: Dask itself sends Python objects both ways.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pkgutil import resolve_name
from typing import Any

from fspll._common.errors import InputError, MissingPackageError
from fspll._common.version import __version__

CONNECTING = 15.0  # seconds to wait for a cluster, and for its first worker, to answer
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:\d+")
_VERSION = "fspll._common.version:__version__"
_QUEUED = 3  # pieces per thread of the workers that are handed out at a time
_PAUSE = 0.02  # seconds between two looks at what is finished
_PATIENCE = 60.0  # seconds without a single worker, after which nobody waits any longer


def connect(address: str) -> Any:
    """Return a client of the Dask scheduler at an address, to be used as a context.

    Parameters
    ----------
    address : str
        ``tcp://HOST:PORT``.

    Raises
    ------
    InputError
        When no scheduler answers, when it has no workers, or when a worker lacks this version of
        the package.
    MissingPackageError
        When Dask is not installed here.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackageError("distributed", "cluster", "a Dask scheduler") from None
    if not _ADDRESS.fullmatch(address):
        raise InputError(
            f"scheduler must be the address of a Dask scheduler, tcp://HOST:PORT, not {address!r}"
        )
    try:
        client = Client(address, timeout=CONNECTING)
    except OSError as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"no Dask scheduler answers at {address}: {reason}") from None
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return client


def _check_workers(client: Any, address: str) -> None:
    """Raise unless there are workers, all with this version of the package."""
    try:
        client.wait_for_workers(1, timeout=CONNECTING)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler at {address} has no workers; start one on each machine with: "
            f"dask worker {address}"
        ) from None
    # A function of Python's own, which a worker without the package can call as well.
    for worker, found in client.run(resolve_name, _VERSION, on_error="return").items():
        if isinstance(found, ImportError):
            raise InputError(f"the Dask worker {worker} lacks the package fspll: {found}")
        if isinstance(found, BaseException):
            raise InputError(f"the Dask worker {worker} cannot load the package fspll: {found}")
        if found != __version__:
            raise InputError(
                f"the Dask worker {worker} has fspll {found}, but this is {__version__}; install "
                "the same version on all machines"
            )


def compute_pieces(
    client: Any, function: Callable[..., Any], common: Any, pieces: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield each piece with ``function(common, piece)`` as soon as a worker has computed it.

    A few pieces per worker are under way at a time, and results are fetched at once: what a worker
    takes with it when it dies is what it was computing, and others compute that again.

    Parameters
    ----------
    client : Client
        Of :func:`connect`.
    function : callable
        Of a module that workers can import.
    common : object
        What every call needs; sent to a worker once.
    pieces : iterable
        What the calls differ in.
    """
    from distributed import as_completed
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    address = client.scheduler.address
    lost = "what is finished so far is kept: run the same again to go on"
    shared = client.submit(_same, common, pure=False)
    waiting: dict[Any, Any] = {}
    left, alone = iter(pieces), time.monotonic()
    # Its own thread fetches results, however long the caller takes over each.
    finished = as_completed(with_results=True, raise_errors=False)
    try:
        while True:
            n_threads = sum(client.nthreads().values())
            alone = time.monotonic() if n_threads else alone
            room = max(1, _QUEUED * n_threads) - len(waiting)
            for piece in islice(left, max(0, room)):
                future = client.submit(function, shared, piece, pure=False)
                waiting[future] = piece
                finished.add(future)
            if not waiting:
                return
            ready = finished.next_batch(block=False)
            if not ready and time.monotonic() > alone + _PATIENCE:
                raise InputError(f"all workers of the Dask scheduler at {address} are gone; {lost}")
            if not ready:
                time.sleep(_PAUSE)
            for future, result in ready:
                if future.status != "finished":
                    future.result()  # raises what went wrong
                yield waiting.pop(future), result
    except KilledWorker:
        raise InputError(
            "the same piece of work ended several Dask workers one after the other; most likely "
            f"they have too little memory; {lost}"
        ) from None
    except (FutureCancelledError, OSError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(
            f"the connection to the Dask scheduler at {address} was lost ({reason}); {lost}"
        ) from None
    finally:
        client.cancel(list(waiting))


def _same(value: Any) -> Any:
    return value
