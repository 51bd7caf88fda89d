"""Which processor the tensors live on: chosen automatically, or forced with a clear refusal."""

from __future__ import annotations

import ctypes
import sys

import torch

from fspll._common.errors import InputError

_KINDS = ("cpu", "cuda", "mps")


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """Return the device to compute on.

    Parameters
    ----------
    device : str or torch.device, default="auto"
        ``"auto"`` takes CUDA when there is one, else Apple's MPS, else the CPU. ``"cpu"``,
        ``"cuda"``, ``"cuda:1"`` and ``"mps"`` are forced.

    Returns
    -------
    torch.device

    Raises
    ------
    InputError
        For a name that is no device, or a device this machine does not have.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        chosen = None
    if chosen is None or chosen.type not in _KINDS:
        raise InputError(
            f"device must be 'auto', 'cpu', 'cuda', 'cuda:<number>' or 'mps', not {str(device)!r}"
        )
    if not _is_present(chosen):
        raise InputError(
            f"device={str(device)!r} was asked for, but this machine or this build of torch does "
            "not have it; use device='auto' or device='cpu'"
        )
    return chosen


def _is_present(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count()
    if device.type == "mps":
        return torch.backends.mps.is_available() and (device.index or 0) == 0
    return (device.index or 0) == 0


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory for the next step instead of giving it back.

    Meta-training allocates and frees the same large maps in every step. By default glibc returns
    each to the system, which then hands out fresh pages, zeroed one by one. The setting is for the
    whole process, so commands call it and library functions do not.

    Returns
    -------
    bool
        Whether it took effect; only glibc on Linux has it.
    """
    if not sys.platform.startswith("linux"):
        return False
    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD and M_MMAP_MAX of malloc.h
    try:
        libc = ctypes.CDLL("libc.so.6")
        return bool(libc.mallopt(mmap_max, 0)) and bool(libc.mallopt(trim_threshold, -1))
    except (OSError, AttributeError):  # another C library
        return False
