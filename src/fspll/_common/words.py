"""Numbers, names and lists as messages and pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NAME_LENGTH = 60  # characters of a file name or label that a page shows


def percent(share: float, digits: int = 1) -> str:
    """Return a share for people: never all of what is less, never nothing of what is more.

    >>> percent(0.5), percent(0.99999), percent(1.0)
    ('50.0%', '>99.9%', '100.0%')
    """
    step = 10.0 ** -(digits + 2)
    if 1 - step / 2 <= share < 1 - 1e-9:
        return f">{1 - step:.{digits}%}"
    if 1e-9 < share < step / 2:
        return f"<{step:.{digits}%}"
    return f"{share:.{digits}%}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "class", "classes"), counted(1200, "sample")
    ('1 class', '1,200 samples')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(items: Sequence[object], most: int = 10, between: str = ", ") -> str:
    """Return the first items in one line, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return between.join(map(str, items[:most])) + more


def shorten(value: object, length: int = NAME_LENGTH) -> str:
    """Return one line that is not too long; its end, which tells files apart, stays.

    >>> shorten("a" * 30 + "_17.png", 20)
    'aaaaaaaaaaaa…_17.png'
    """
    words = " ".join(str(value).split())
    if len(words) <= length:
        return words
    tail = length // 3 + 1
    return f"{words[: length - tail - 1]}…{words[-tail:]}"


def beginning(value: object, length: int) -> str:
    """Return the first words of a text.

    >>> beginning("one two three", 9)
    'one two …'
    """
    words = " ".join(str(value).split())
    if len(words) <= length:
        return words
    cut = words[: length - 1]
    return f"{cut.rpartition(' ')[0] or cut} …"


def spoken(items: Sequence[str]) -> str:
    """Return items as in a sentence.

    >>> spoken(["a", "b", "c"])
    'a, b and c'
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def plain(value: object) -> str:
    """Return what JSON can hold besides lists and dictionaries; those are here when empty.

    >>> plain(None), plain(True), plain(180000), plain(0.0003), plain([])
    ('–', 'yes', '180,000', '0.0003', 'none')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.6g}"
    return "none" if isinstance(value, Mapping | list | tuple) else str(value)
