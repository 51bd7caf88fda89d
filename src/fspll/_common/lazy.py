"""Public names of a package that are imported when first used, so that commands start quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], *own: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        The modules below the package, each with the public names that live there.
    *own : str
        Public names that the package defines itself.

    Examples
    --------
    >>> get, names = lazy_names("collections", {"abc": "Mapping Sized"})
    >>> get("Sized"), names()
    (<class 'collections.abc.Sized'>, ['Mapping', 'Sized'])
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted([*own, *home])
