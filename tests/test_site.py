"""What ``make docs`` adds to mkdocs, and the site itself where the extra is installed."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from page_runner import has_extra
from site_diagram import draw_flowchart

ROOT = Path(__file__).parents[1]
with_docs = pytest.mark.skipif(
    not has_extra("docs"), reason="the extra docs is not installed; `make docs` installs it"
)


# -------------------------------------------------------------------- the diagram


def test_a_diagram_has_boxes_in_rows_and_arrows_that_lead_down():
    drawn = draw_flowchart(
        'flowchart BT\n  a["_a"]\n  b["b & c"]\n  top["t"]\n  b --> a\n  top --> a\n  top --> b\n'
    )
    heights = {
        text: int(y) for y, text in re.findall(r'<text x="\d+" y="(\d+)">([^<]*)</text>', drawn)
    }
    assert heights["t"] < heights["b &amp; c"] < heights["_a"]
    arrows = re.findall(r'<path d="M(\d+) (\d+) C.*? (\d+) (\d+)" marker-end', drawn)
    assert len(arrows) == 3
    assert all(int(start) < int(end) for _, start, _, end in arrows)


# -------------------------------------------------------------------- names and docstrings


@with_docs
def test_roles_of_docstrings_become_links():
    from site_names import link_roles

    assert link_roles("See :class:`~fspll.candidates.Candidates`.") == (
        'See <autoref optional identifier="fspll.candidates.Candidates"><code>Candidates</code>'
        "</autoref>."
    )
    assert "<code>fspll.label</code>" in link_roles(":func:`fspll.label`")
    assert link_roles("``:no role:`` 12:30") == "``:no role:`` 12:30"


@with_docs
def test_doctests_become_blocks_unless_a_section_holds_them():
    from site_names import fence_examples

    assert fence_examples("Do it.\n\n>>> 1 + 1\n2\n\nMore.") == (
        "Do it.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    )
    section = "Do it.\n\nExamples\n--------\n>>> 1 + 1\n2\n"
    assert fence_examples(section) == section


@with_docs
def test_lazy_names_are_found():
    from site_names import lazy_paths

    source = (ROOT / "src" / "fspll" / "labeling" / "__init__.py").read_text(encoding="utf-8")
    found = lazy_paths(ast.parse(source))
    assert found["label"] == "pipeline.label"
    assert found["Rounds"] == "result.Rounds"
    assert lazy_paths(ast.parse("import json")) == {}


# -------------------------------------------------------------------- the site


@with_docs
@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', {"https://cdn.example/x.js"}),
        ('<link rel="stylesheet" href="//fonts.example/a">', {"//fonts.example/a"}),
        ('<img src="http://a.example/b.png">', {"http://a.example/b.png"}),
        (
            '<style>@import url("x.css"); @import "https://a.example/b";</style>',
            {"https://a.example/b"},
        ),
        ('<a href="https://labelstud.io">a link</a><img src="images/a.png">', set()),
        ('<link rel="canonical" href="https://a.example/">', set()),
    ],
)
def test_what_a_page_would_fetch_is_found(html, found):
    from site_hooks import outside_requests

    assert outside_requests(html) == found


def build(config, folder):
    """Build the site as ``make docs`` does, elsewhere."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "mkdocs", "build", "--strict"),
            *("--config-file", str(config), "--site-dir", str(folder)),
        ],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", folder)
    assert built.returncode == 0, built.stderr
    return folder


@with_docs
def test_a_link_that_leads_nowhere_ends_the_build(tmp_path):
    """The same settings, with one page that has such a link."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Start\n\n[lost](nowhere.md)\n")
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = text[: text.index("\nplugins:")] + text[text.index("\nmarkdown_extensions:") :]
    text = text[: text.index("\nnav:")].replace("docs_dir: docs", "docs_dir: pages")
    text = re.sub(r"^(hooks|  custom_dir|  logo|  favicon): .*\n", "", text, flags=re.MULTILINE)
    (tmp_path / "mkdocs.yml").write_text(text, encoding="utf-8")
    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode == 1
    assert "'nowhere.md', but the target is not found" in built.stderr
    (tmp_path / "pages" / "index.md").write_text("# Start\n")
    assert build(tmp_path / "mkdocs.yml", tmp_path / "site").returncode == 0


@with_docs
def test_the_first_screen_has_the_picture_the_installation_and_the_command(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    first = re.sub(r"<[^>]+>", "", page[page.index("<article") : page.index('id="what-you-get"')])
    assert "images/candidate-sets.svg" in page
    assert "pip install" in first
    assert "fspll label labels.csv" in first


@with_docs
def test_every_public_name_has_an_entry_in_the_built_reference(site):
    pages = [page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html")]
    built = {name for page in pages for name in re.findall(r'id="(fspll\.[\w.]+)"', page)}
    sources = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md")]
    asked = {name for text in sources for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    assert len(asked) > 100
    assert asked <= built


@with_docs
def test_notebooks_are_shown_and_can_be_downloaded(site):
    page = (site / "tutorial" / "pictures.html").read_text(encoding="utf-8")
    assert "100.0% of the labels are right after one answer" in page
    assert 'title="Download this notebook"' in page
    assert (site / "tutorial" / "pictures.ipynb").is_file()


@with_docs
def test_formulas_are_there_without_a_script(site):
    page = (site / "method.html").read_text(encoding="utf-8")
    assert page.count('<div class="math"><math') >= 6
    assert "$" not in re.sub(r"<(script|code|pre).*?</\1>", "", page, flags=re.DOTALL)


@with_docs
def test_search_finds_pages_and_names(site):
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = {entry["title"] for entry in found}
    assert {"FAQ", "What a neighbor's set says"} <= titles
