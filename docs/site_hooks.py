"""What the site of fspll needs beyond mkdocs: pages from outside docs/, formulas, a check.

``mkdocs.yml`` names this file. Measured results, the changelog and the guide for contributors stay
where they are in the repository and become pages too. Formulas and the diagram become MathML and
SVG while the site is built, so that pages fetch nothing; a page that would ask another machine for
anything ends the build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from site_diagram import draw_flowchart

ROOT = Path(__file__).parents[1]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}  # in the site
LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}


def on_config(config: Any) -> Any:
    """Let fenced blocks ``math`` and ``mermaid`` become MathML and SVG."""
    fences = [
        {"name": "math", "class": "math", "format": _math_block},
        {"name": "mermaid", "class": "diagram", "format": _diagram},
    ]
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = fences
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside docs/: results, the changelog, the guide for contributors."""
    for path in sorted((ROOT / "results").rglob("*")):
        if path.is_file():
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Let links between files of the repository lead to the same pages of the site, by title."""
    here = page.file.src_uri
    source = next((name for name, uri in PAGES.items() if uri == here), None)
    source = source or (here if here.startswith("results/") else f"docs/{here}")
    titles = dict(_titles(config.nav))

    def moved(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        uri = PAGES.get(target, target.removeprefix("docs/"))
        if text.endswith(".md"):  # files are called by their names only in the repository
            text = titles.get(uri, text)
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(here) or '.')}{anchor})"

    markdown = re.sub(r"\[([^][]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)", moved, markdown)
    if "```math" in markdown:  # elsewhere a dollar is a dollar
        markdown = re.sub(r"\$([^$`]+)\$", _math_inline, markdown)
    # Pygments takes lines of a console without a prompt for output.
    return re.sub(r"^( *)```console$", r"\1```bash", markdown, flags=re.MULTILINE)


def _titles(nav: Any) -> Iterator[tuple[str, str]]:
    """Yield the address and the title of every page that the navigation names."""
    for entry in nav:
        if isinstance(entry, dict):
            for title, inside in entry.items():
                yield from [(inside, title)] if isinstance(inside, str) else _titles(inside)


def on_post_build(config: Any) -> None:
    """Refuse a site whose pages load anything from another machine."""
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        found = outside_requests(page.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{page} loads from outside: {', '.join(sorted(found))}")


def outside_requests(html: str) -> set[str]:
    """Return the addresses on other machines that a browser fetches to show a page."""
    found: set[str] = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            address = given.get(LOADED.get(tag, "")) or ""
            if tag == "link" and given.get("rel") in ("canonical", "prev", "next", "alternate"):
                return
            if re.match(r"(https?:)?//", address):
                found.add(address)

    Tags().feed(html)
    found.update(re.findall(r"@import\s+[\"']?((?:https?:)?//[^\"')\s]+)", html))
    return found


def _math_inline(found: re.Match[str]) -> str:
    return f"<span>{convert(found[1])}</span>"  # at the start of a line, <math> would be a block


def _math_block(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="math">{convert(source, display="block")}</div>'


def _diagram(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="diagram">{draw_flowchart(source)}</div>'
