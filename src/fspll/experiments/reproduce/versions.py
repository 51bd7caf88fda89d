"""Which packages computed a figure."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib import metadata


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions that a result depends on, by package."""
    names = ("fspll", "torch", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in names}
