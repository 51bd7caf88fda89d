"""Small pieces of HTML for pages that are one file: no script, no request to anywhere.

Text is escaped unless it is :class:`Html`, which only the functions here make.

>>> tag("p", "a < b", class_="note")
'<p class="note">a &lt; b</p>'
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

CSS = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
_MEDIA = {"png": "image/png", "svg": "image/svg+xml", "jpeg": "image/jpeg"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return anything as markup: as it is when it is Html, escaped otherwise."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Return parts one after the other, each escaped unless it is Html."""
    return Html(between.join(map(text, parts)))


def tag(name: str, *content: object, **attributes: object) -> Html:
    """Return an element; ``class_`` stands for class, and attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(content)}</{name}>")


def page(title: str, body: object, *, contents: Sequence[tuple[str, str]] = ()) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        For the window and as the first heading.
    body : Html or str
    contents : sequence of (anchor, title)
        Sections to link to below the heading.
    """
    links = [tag("a", words, href=f"#{anchor}") for anchor, words in contents]
    parts = [tag("h1", title), tag("nav", join(links, " ")) if links else "", text(body)]
    main = tag("main", *parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"{tag('title', title)}\n<style>{CSS}</style>\n</head>\n<body>\n{main}\n</body>\n</html>\n"
    )


def section(title: str, *content: object, anchor: str | None = None) -> Html:
    """Return a section with its heading."""
    return tag("section", tag("h2", title), *content, id=anchor)


def details(summary: object, *content: object, open_: bool = False) -> Html:
    """Return content that shows when its summary is pressed."""
    state = " open" if open_ else ""
    return Html(f"<details{state}>{tag('summary', summary)}{join(content)}</details>")


def bullets(items: Iterable[object]) -> Html:
    """Return a list."""
    return tag("ul", *(tag("li", item) for item in items))


def tiles(items: Iterable[tuple[object, object]]) -> Html:
    """Return figures to see first, each a value over a few words."""
    return tag(
        "div",
        *(tag("div", tag("b", value), tag("span", words), class_="tile") for value, words in items),
        class_="tiles",
    )


def table(
    head: Sequence[object], lines: Iterable[Sequence[object]], *, caption: object = None
) -> Html:
    """Return a table whose first column names its lines; it scrolls sideways where it must."""
    top = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))
    body = tag(
        "tbody",
        *(
            tag("tr", tag("th", line[0], scope="row"), *(tag("td", cell) for cell in line[1:]))
            for line in lines
        ),
    )
    return scrolling(tag("table", tag("caption", caption) if caption else "", top, body))


def scrolling(content: object) -> Html:
    """Return content that scrolls sideways by itself rather than with the page."""
    return tag("div", content, class_="scroll", tabindex=0)


def figure(image: bytes, kind: str, caption: str) -> Html:
    """Return a picture, inside the page, with its caption.

    Parameters
    ----------
    image : bytes
        The file.
    kind : str
        "png", "svg" or "jpeg".
    caption : str
        Also what readers hear who do not see it.
    """
    data = base64.b64encode(image).decode("ascii")
    source = f"data:{_MEDIA[kind]};base64,{data}"
    picture = Html(f'<img src="{source}" alt="{html.escape(caption, quote=True)}">')
    return tag("figure", tag("div", picture, class_="picture"), tag("figcaption", caption))


def nested(value: Any) -> Html:
    """Return what JSON can hold, dictionaries in dictionaries, as lists of terms.

    A list of dictionaries with the same keys, all plain, becomes a table.
    """
    if isinstance(value, Mapping):
        if not value:
            return text("none")
        terms = (tag("dt", key) + tag("dd", nested(inner)) for key, inner in value.items())
        return tag("dl", *map(Html, terms))
    if isinstance(value, (list, tuple)):
        if not any(isinstance(inner, (Mapping, list, tuple)) for inner in value):
            return join(map(_plain, value), ", ") if value else text("none")
        if _is_table(value):
            keys = list(value[0])
            return table(keys, [[_plain(inner[key]) for key in keys] for inner in value])
        return bullets(map(nested, value))
    return text(_plain(value))


def _is_table(value: Sequence[Any]) -> bool:
    return all(
        isinstance(inner, Mapping)
        and list(inner) == list(value[0])
        and not any(isinstance(cell, (Mapping, list, tuple)) for cell in inner.values())
        for inner in value
    ) and bool(value[0])


def _plain(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.6g}"
    return str(value)
