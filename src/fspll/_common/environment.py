"""What a report of a bug should say about the machine and what is installed on it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from fspll._common.files import user_cache_dir
from fspll._common.version import __version__

_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[[^\]]*\])?[^;]*(?:;.*extra == ["']([\w-]+)["'])?""")
_FOR_DEVELOPERS = ("dev", "browser")


def describe_environment() -> Iterator[tuple[str, str]]:
    """Yield what a line is about and what it says: versions, platform, threads, extras, cache.

    Nothing else of the machine is named; the home folder is written as ``~``.

    >>> dict(describe_environment())["fspll"] == __version__
    True
    """
    yield "fspll", __version__
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "platform", f"{platform.platform()}, {platform.machine()}"
    needed, extras = _requirements()
    for package in needed:
        yield package, _version(package) or "not installed"
    yield from _torch()
    for extra, packages in extras.items():
        found = {package: _version(package) for package in packages}
        missing = [package for package, version in found.items() if version is None]
        versions = ", ".join(f"{package} {version}" for package, version in found.items())
        said = f"not installed ({', '.join(missing)})" if missing else versions
        yield f"extra {extra}", said
    yield "cache", _without_home(user_cache_dir())


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the packages that are always needed, and those of every extra."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    try:
        lines = metadata.requires("fspll") or []
    except metadata.PackageNotFoundError:  # run from its sources
        lines = ["numpy", "scipy", "scikit-learn", "torch"]
    for line in lines:
        match = _REQUIREMENT.match(line)
        assert match is not None
        package, extra = match[1], match[2]
        if extra is None:
            needed.append(package)
        elif extra not in _FOR_DEVELOPERS:
            extras.setdefault(extra, []).append(package)
    return needed, extras


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _torch() -> Iterator[tuple[str, str]]:
    try:
        import torch
    except (ImportError, OSError) as error:  # what is wrong may be the very bug
        yield "threads", f"unknown: torch cannot be imported ({str(error).splitlines()[0]})"
        return
    chosen = os.environ.get("OMP_NUM_THREADS")
    limit = "" if chosen is None else f", OMP_NUM_THREADS={chosen}"
    yield "threads", f"{torch.get_num_threads()} of {os.cpu_count()} processors{limit}"
    cuda = torch.version.cuda
    build = "a build for the CPU" if cuda is None else f"a build for CUDA {cuda}"
    mps = torch.backends.mps.is_available()
    usable = "CUDA" if torch.cuda.is_available() else "MPS" if mps else "CPU"
    yield "device", f"{usable} ({build})"


def _without_home(folder: Path) -> str:
    try:
        return str(Path("~") / folder.relative_to(Path.home()))
    except (ValueError, RuntimeError):  # elsewhere, or there is no home
        return str(folder)
