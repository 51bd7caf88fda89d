"""Numbers, names and lists as messages and pages show them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

NAME_LENGTH = 60  # characters of a file name or label that a page shows
# Control characters, among them those that begin an escape sequence; marks that turn the direction
# of text; and bytes of file names that are no text.
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


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


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a question in parentheses where a name is much like a known one, otherwise nothing.

    >>> did_you_mean("Dgo", ["cat", "dog"]), did_you_mean("yak", ["cat", "dog"])
    (" (did you mean 'dog'?)", '')
    """
    plain = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), plain, n=1)
    return f" (did you mean {plain[close[0]]!r}?)" if close else ""


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


def printable(name: str) -> str:
    r"""Return a file's name as text; bytes of it that are not UTF-8 become escapes.

    >>> printable("caf\udce9.png")
    'caf\\xe9.png'
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half of a pair that stands for no byte of a name
        return name.encode("utf-8", "backslashreplace").decode("utf-8")


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


def visible(text: str, keep: str = "") -> str:
    r"""Return a text in which whatever a terminal might obey is written out.

    Parameters
    ----------
    text : str
        From a file, or the name of one.
    keep : str
        Control characters that stay, such as line ends.

    Examples
    --------
    >>> print(visible("cat\x1b[2J"))
    cat\x1b[2J
    """

    def write_out(found: re.Match[str]) -> str:
        return found[0] if found[0] in keep else found[0].encode("unicode_escape").decode()

    return _HIDDEN.sub(write_out, text)
