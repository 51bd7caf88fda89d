"""The fields of the page *New*: what arguments of the library are called there."""

from __future__ import annotations

import re
from pathlib import Path

# In the order of the page.
FIELDS = {
    "candidates": "Candidates",
    "sample": "Sample names",
    "file": "Picture files",
    "annotator": "Annotator",
    "excluded": "Excluded labels",
    "text": "Texts",
    "features": "File of vectors",
    "features_columns": "Columns of vectors",
    "delimiter": "Between candidates",
    "combine": "Several annotators",
    "unlabeled": "Samples without candidates",
    "marks": "Columns hold marks",
    "sheet": "Sheet",
    "encoding": "Encoding",
    "rename": "Other names for labels",
    "merge_similar": "Merge similar labels",
    "encoder": "Encoder",
    "standardize": "Bring vectors to one scale",
    "skip_bad": "Leave out samples that cannot be read",
    "excel": "CSV files for Excel",
}
_VALUE = r"""True\b|False\b|'[^']*'|"[^"]*"|\.\.\.|[A-Z]+\b"""
_ARGUMENT = re.compile(rf"(?<![\w/.+-])(?P<name>{'|'.join(FIELDS)})=(?P<value>{_VALUE})")


def field(name: str) -> str:
    """Return what a field is called, for a message of the page itself."""
    return f"“{FIELDS.get(name, name)}”"


def for_page(message: str, folder: Path) -> str:
    """Return a message with fields in the place of arguments, and files without their folder.

    Parameters
    ----------
    message : str
        Of the library: an error or a note.
    folder : Path
        Of the upload, which means nothing to the person who sent it.

    Examples
    --------
    >>> print(for_page("/tmp/x/l.csv is odd; give encoding='cp1252'", Path("/tmp/x")))
    l.csv is odd; give “Encoding” 'cp1252'
    >>> print(for_page("merge_similar=True makes them one; say which: candidates=...", Path("/x")))
    “Merge similar labels” makes them one; say which: “Candidates”
    """

    def named(match: re.Match[str]) -> str:
        words, value = field(match["name"]), match["value"]
        if value in ("True", "False") and match["name"] == "marks":
            return f"{words}: {'yes' if value == 'True' else 'no'}"
        return f"{words} {value}" if value[0] in "'\"" else words

    return _ARGUMENT.sub(named, without_folder(message, folder))


def without_folder(message: str, folder: Path) -> str:
    """Return a message with paths as seen from a folder."""
    return message.replace(str(folder / "_")[:-1], "")
