"""Names of files that come from elsewhere: none of them leads out of a folder."""

from __future__ import annotations

import os
import re

from fspll._common.errors import InputError
from fspll._common.words import shorten, visible

LONGEST_NAME = 200  # bytes
# There, a colon names a stream of a file, and some names are those of devices.
_NOT_ON_WINDOWS = re.compile(r'.*[<>:"|?*].*|.*[ .]|(con|prn|aux|nul|com\d|lpt\d)(\..*)?', re.I)


def file_name(given: str) -> str:
    r"""Return the last part of a name, or refuse what is no plain name of a file.

    >>> file_name("../../etc/a.png"), file_name("C:\\photos\\a.png")
    ('a.png', 'a.png')
    """
    name = given.replace("\\", "/").rstrip("/").rpartition("/")[2].strip()
    shown = f"the file name {shorten(given)!r}"
    if name.strip(".") == "" or name.startswith("."):
        raise InputError(f"{shown} is not taken: it is empty, or that of a hidden file")
    if visible(name) != name:
        raise InputError(f"{shown} is not taken: it holds a character that cannot be shown")
    if len(name.encode()) > LONGEST_NAME:
        raise InputError(f"{shown} is not taken: it is longer than {LONGEST_NAME} bytes")
    if os.name == "nt" and _NOT_ON_WINDOWS.fullmatch(name):
        raise InputError(f"{shown} is not taken: Windows cannot have a file of that name")
    return name


def inside(name: str) -> str:
    r"""Return the name of a picture that leads out of no folder: that, or its last part.

    >>> [inside(name) for name in ("cats/a.png", "/etc/b.png", "x/../../c.png", "\\\\host\\d.png")]
    ['cats/a.png', 'b.png', 'c.png', 'd.png']
    """
    parts = name.replace("\\", "/").split("/")
    has_drive = parts[0][1:2] == ":"
    if parts[0] and ".." not in parts and not has_drive:
        return name
    return parts[-1].rpartition(":")[2] if os.name == "nt" else parts[-1]
