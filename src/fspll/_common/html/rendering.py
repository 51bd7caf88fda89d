"""jinja2 templates that are files of the package, next to what they show.

Every value is escaped unless a template made it; a name that a template does not know is an error.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fspll._common import words

_MEDIA = {"png": "image/png", "svg": "image/svg+xml", "jpeg": "image/jpeg"}


def environment(package: str) -> Environment:
    """Return what renders the templates of a package.

    They can extend ``base.html.j2``, the page without its content, and import
    ``macros.html.j2``: sections, tables, tiles and figures. ``{% include %}`` also takes style
    sheets. A page runs no script but those that it names: ``{{ script("map.js") }}`` in its body
    and ``{{ script_hash("map.js") }}`` in the block ``scripts``, which its policy consists of.

    Parameters
    ----------
    package : str
        Where the templates are, such as ``fspll.labeling.report``.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, ""), PackageLoader(__package__, "")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.filters |= {
        "beginning": words.beginning,
        "counted": words.counted,
        "data_uri": data_uri,
        "json_form": json_form,
        "percent": words.percent,
        "plain": words.plain,
        "plain_rows": lambda rows: [list(map(words.plain, row.values())) for row in rows],
        "shorten": words.shorten,
        "thousands": "{:,}".format,
    }
    made.globals |= {"script": partial(script, made), "script_hash": partial(script_hash, made)}
    return made


def render(package: str, template: str, **values: Any) -> str:
    """Return a template of a package with these values in it."""
    return environment(package).get_template(template).render(values)


def script(made: Environment, name: str) -> Markup:
    """Return a script that is a file of the package as an element of a page."""
    return Markup("<script>{}</script>").format(Markup(_source(made, name)))  # our own file


def script_hash(made: Environment, name: str) -> str:
    """Return what allows exactly this script in a Content-Security-Policy."""
    digest = hashlib.sha256(_source(made, name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _source(made: Environment, name: str) -> str:
    assert made.loader is not None
    # As a browser reads it, whatever line ends a checkout has.
    return made.loader.get_source(made, name)[0].replace("\r\n", "\n")


def data_uri(content: bytes, kind: str) -> str:
    """Return a picture as an address that holds it: "png", "svg" or "jpeg".

    >>> data_uri(b"...", "png")
    'data:image/png;base64,Li4u'
    """
    return f"data:{_MEDIA[kind]};base64,{base64.b64encode(content).decode('ascii')}"


def json_form(value: Any) -> str:
    """Say how a page shows what JSON can hold.

    Dictionaries are "terms"; a list of them with the same keys and plain values is a "table", a
    list of plain values "items", any other a "list"; the rest, and what is empty, is "plain".
    """
    if not value or not isinstance(value, Mapping | list | tuple):
        return "plain"
    if isinstance(value, Mapping):
        return "terms"
    if not any(isinstance(inner, Mapping | list | tuple) for inner in value):
        return "items"
    same = all(isinstance(inner, Mapping) and list(inner) == list(value[0]) for inner in value)
    if same and value[0] and all(json_form([*inner.values()]) == "items" for inner in value):
        return "table"
    return "list"
