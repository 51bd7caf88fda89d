"""Things of one kind by name: this package's own, and those that other packages add.

A registry knows where each thing is written ("module:attribute") and imports it when it is first
asked for. Other packages add to it through an entry point of its group, for instance in their
``pyproject.toml``::

    [project.entry-points."fspll.rectifiers"]
    majority = "my_package.majority:MajorityRule"

A name that is not registered causes no import, wherever it comes from: a file can ask for what is
installed and registered, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from fspll._common.errors import InputError

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Named things of one kind, imported when asked for.

    Names are compared without regard to case, and "-" is the same as "_".

    Parameters
    ----------
    noun : str
        What one of them is called in messages, such as "rectifier".
    group : str
        The entry-point group of other packages, such as "fspll.rectifiers".
    own : mapping of name to "module:attribute"
        What this package has, in the order of lists. A value may also be the thing itself.
    aliases : mapping of name to name, optional
        Other names for what is there.
    expected, accepts : str and callable, optional
        What has to be registered, for messages, and whether a thing is that.

    Examples
    --------
    >>> counters = Registry("counter", "fspll.counters", {"multi-set": "collections:Counter"})
    >>> counters.get("Multi_Set")
    <class 'collections.Counter'>
    >>> counters.get("multiset")
    Traceback (most recent call last):
        ...
    fspll._common.errors.InputError: there is no counter 'multiset'; did you mean 'multi-set'?
    """

    def __init__(
        self,
        noun: str,
        group: str,
        own: Mapping[str, Any],
        *,
        aliases: Mapping[str, str] | None = None,
        expected: str = "",
        accepts: Callable[[Any], bool] = lambda thing: True,
    ) -> None:
        self.noun, self.group = noun, group
        self._expected, self._accepts = expected, accepts
        self._things: dict[str, Any] = dict(own)
        self._aliases = {_plain(alias): name for alias, name in (aliases or {}).items()}

    @cached_property
    def _found(self) -> dict[str, EntryPoint]:
        """What installed packages register; a name of this package's own is not replaced."""
        return {point.name: point for point in entry_points(group=self.group)}

    def names(self) -> list[str]:
        """Return every name: this package's own first, then those of others, sorted."""
        own = list(self._things)
        taken = set(map(_plain, own))
        return own + sorted(name for name in self._found if _plain(name) not in taken)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def find(self, name: str) -> str | None:
        """Return the registered spelling of a name, or None."""
        asked = _plain(name)
        known = {_plain(one): one for one in self.names()}
        return known.get(asked) or self._aliases.get(asked)

    def get(self, name: str) -> Thing:
        """Return what a name stands for; a wrong name suggests the right one."""
        found = self.find(name) if isinstance(name, str) else None
        if found is None:
            raise InputError(self.unknown(name))
        thing = self._things.get(found)
        if thing is None:
            thing = self._things[found] = self._load_foreign(self._found[found])
        elif isinstance(thing, str):
            module, _, attribute = thing.partition(":")
            thing = self._things[found] = getattr(import_module(module), attribute)
        if not self._accepts(thing):
            raise InputError(
                f"what is registered as the {self.noun} {found!r} must be {self._expected}, "
                f"not {thing!r}"
            )
        return thing

    def register(self, name: str, thing: Thing | str) -> None:
        """Add a thing, or the place "module:attribute" where it is, for the life of the process."""
        if self.find(name) is not None:
            raise InputError(f"there is a {self.noun} {name!r} already")
        self._things[name] = thing

    def unknown(self, name: object, known: str | None = None) -> str:
        """Return what to say of a name that is not registered; ``known`` lists those that are."""
        names = self.names()
        plain = {_plain(one): one for one in (*names, *self._aliases)}
        close = get_close_matches(_plain(str(name)), plain, n=1)
        hints = [f"did you mean {plain[close[0]]!r}?"] if close else []
        if known or not close:
            hints.append(f"known are {known or ', '.join(names)}")
        return f"there is no {self.noun} {name!r}; {' '.join(hints)}"

    def _load_foreign(self, point: EntryPoint) -> Any:
        try:
            return point.load()
        except Exception as error:  # whatever another package's import does wrong
            reason = str(error) or type(error).__name__
            raise InputError(
                f"the {self.noun} {point.name!r} ({point.value}) cannot be imported: {reason}"
            ) from error


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")
