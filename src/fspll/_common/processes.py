"""Worker processes that end with the process that started them."""

from __future__ import annotations

import os
import sys
import threading
import time

_PAUSE = 0.5  # seconds between two looks


def end_with(parent: int) -> None:
    """End this process as soon as its parent has ended, however that ended.

    A thread watches, because Linux's own signal for it follows the parent's thread, which may end
    long before the parent does. The process ends at once, as if it were killed.

    Parameters
    ----------
    parent : int
        The number of the process that started this one.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    if sys.platform == "win32":  # where a process keeps the number of its parent for ever
        import _winapi

        handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(_PAUSE)
    os._exit(1)
