"""The addresses under which Label Studio keeps pictures, and the files that they stand for.

An upload is stored under another name than it had: eight hexadecimal digits and a hyphen come
first, blanks become underscores, and signs such as parentheses are dropped. ``my cat (1).jpg`` is
at ``/data/upload/3/2dce645f-my_cat_1.jpg``. A file of its local storage keeps its name, which is
then part of a query: ``/data/local-files/?d=pets/my%20cat%20%281%29.jpg``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from fspll._common.words import counted

_HOST = r"(?:https?://[^?#]*?)?"
_UPLOAD = re.compile(_HOST + r"/data/upload/(?:[0-9]+/)?([0-9a-f]{8}-[^/?#]+)")
_LOCAL = re.compile(_HOST + r"/data/local-files/?\?.*", re.DOTALL)
_PREFIX = re.compile(r"[0-9a-f]{8}-(?=.)")
_WEB = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def is_upload(address: str) -> bool:
    """Tell whether a text is the address of an upload."""
    return _UPLOAD.fullmatch(address) is not None


def is_remote(address: str) -> bool:
    """Tell whether a browser may load an address as it is: an upload, or one with a scheme."""
    return is_upload(address) or _WEB.match(address) is not None


def path_of(address: str) -> str:
    """Return the path in an address; any other text as it is.

    >>> path_of("/data/local-files/?d=set%201/b.png")
    'set 1/b.png'
    >>> path_of("http://localhost:8080/data/upload/3/2dce645f-caf%C3%A9.jpg")
    '2dce645f-café.jpg'
    >>> path_of("s3://bucket/pets/a.png"), path_of("pets/100%25.png")
    ('pets/a.png', 'pets/100%25.png')
    """
    upload = _UPLOAD.fullmatch(address)
    if upload:
        return unquote(upload[1])
    try:
        if _LOCAL.fullmatch(address):
            return parse_qs(urlsplit(address).query).get("d", [address])[0]
        if _WEB.match(address):
            return unquote(urlsplit(address).path).lstrip("/") or address
    except ValueError:  # no address after all
        pass
    return address


def last_part(path: str) -> str:
    r"""Return the name of a file, whichever way its folders are written.

    >>> last_part("pets\\cats/a.png")
    'a.png'
    """
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def stored_name(name: str) -> str:
    """Return the name that Label Studio gives an uploaded file, without the digits before it.

    >>> stored_name("my cat (1) é.jpg")
    'my_cat_1_é.jpg'
    """
    return re.sub(r"[^-\w.]", "", name.strip().replace(" ", "_"))


def original_names(written: Iterable[str]) -> dict[str, str]:
    """Return what files with Label Studio's digits before their names were called before.

    Names that two of the files would share, or that another file has, are left out: which is which
    cannot be told then.

    >>> original_names(["/data/upload/3/2dce645f-a.jpg", "c.jpg", "0badcafe-c.jpg"])
    {'/data/upload/3/2dce645f-a.jpg': 'a.jpg'}
    """
    last = {name: last_part(path_of(name)) for name in dict.fromkeys(written)}
    plain = {name: _PREFIX.sub("", part, count=1) for name, part in last.items()}
    holders = Counter(plain.values())
    return {name: part for name, part in plain.items() if part != last[name] and holders[part] == 1}


def read_addresses(
    names: list[str], files: list[str] | None
) -> tuple[list[str], list[str] | None, tuple[str, ...]]:
    """Return names and files without Label Studio's addresses, and what was done.

    An upload's file stays as it is written: in Label Studio's own folder it has the digits.

    >>> read_addresses(["/data/upload/3/2dce645f-a.jpg"], None)
    (['a.jpg'], None, ("1 upload named without Label Studio's prefix",))
    """
    different = {*names, *(files or ())}
    new = {one: path_of(one) for one in different if _LOCAL.fullmatch(one)}
    if files is not None:
        files = [new.get(one, one) for one in files]
    uploads = {one for one in different.intersection(names) if is_upload(one)}
    said = []
    if uploads:
        short = {one: name for one, name in original_names(names).items() if one in uploads}
        new |= short
        said.append(f"{counted(len(short), 'upload')} named without Label Studio's prefix")
        if len(short) < len(uploads):
            said.append(f"{len(uploads) - len(short)} with it, as names would not differ")
    return [new.get(one, one) for one in names], files, tuple(said)


def without_prefix_note(written: Sequence[str], found: Sequence[str]) -> str:
    """Say how many files were found under another name than is written; "" where none was.

    Parameters
    ----------
    written : sequence of str
        Names or addresses.
    found : sequence of str
        The names of the files that were taken.
    """
    originals = original_names(written)
    count = sum(
        one in originals and last_part(path_of(one)) != name
        for one, name in zip(written, found, strict=True)
    )
    if not count:
        return ""
    return f"{counted(count, 'picture')} found without the prefix of a Label Studio upload"
