"""The uploads that are open: each known by a secret, and no more of them than there is room for."""

from __future__ import annotations

import threading
import time

from fspll._common.errors import InputError
from fspll._common.words import counted
from fspll.app.requests import UnknownError
from fspll.app.session import FAILED
from fspll.app.uploads import RESULT, Upload
from fspll.app.workspaces import Workspaces
from fspll.labeling.folder import LOG

MOST_UPLOADS = 8  # at once
IDLE = 600.0  # seconds after which an upload without answers may make room for another


class Uploads:
    """Uploads by their secret keys, and the workspaces that came of them."""

    def __init__(self, workspaces: Workspaces, *, most: int = MOST_UPLOADS) -> None:
        self.workspaces, self._most = workspaces, most
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()

    def start(self) -> Upload:
        """Begin an upload; one that nobody works at, and that holds no answers, may make room."""
        with self._lock:
            if len(self._uploads) >= self._most:
                free = [one for one in self._uploads.values() if self._may_go(one)]
                if not free:
                    count = counted(self._most, "uploaded data set is", "uploaded data sets are")
                    raise InputError(f"{count} open here already; delete one of them first")
                oldest = min(free, key=self._last_use)
                del self._uploads[oldest.key]
                self._close(oldest)
            upload = Upload()
            self._uploads[upload.key] = upload
            return upload

    def get(self, key: str) -> Upload:
        """Return an upload; an unknown key is refused."""
        with self._lock:
            upload = self._uploads.get(key)
        if upload is None:
            raise UnknownError("there is no such upload here; it may have been deleted")
        upload.used = time.monotonic()
        return upload

    def is_running(self, upload: Upload) -> bool:
        """Tell whether the upload has a result, or will have one."""
        if not upload.workspace:
            return False
        return self.workspaces.session(upload.workspace).state != FAILED

    def close(self, key: str) -> None:
        """Delete an upload with everything that came of it."""
        upload = self.get(key)
        with self._lock:
            self._uploads.pop(key, None)
        self._close(upload)

    def close_all(self) -> None:
        """Delete all uploads."""
        with self._lock:
            uploads, self._uploads = list(self._uploads.values()), {}
        for upload in uploads:
            self._close(upload)

    def _close(self, upload: Upload) -> None:
        upload.closed.set()  # first: a run that is at work stops at the next sample
        if upload.workspace:
            self.workspaces.remove(upload.workspace)
        upload.close()

    def _may_go(self, upload: Upload) -> bool:
        answered = (upload.folder / RESULT / LOG).exists()
        return not answered and time.monotonic() - self._last_use(upload) > IDLE

    def _last_use(self, upload: Upload) -> float:
        used = self.workspaces.last_use(upload.workspace) if upload.workspace else 0.0
        return max(upload.used, used)
