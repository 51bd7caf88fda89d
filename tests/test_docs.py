"""Every page of the documentation is run, from top to bottom, and shows what happens."""

from __future__ import annotations

import csv
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import page_runner as pages
from fspll.labeling import folder

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ALONE = {DOCS / "extending.md"}  # its package has to be installed first: tests/test_extending.py
MARKDOWN = sorted({ROOT / "README.md", *DOCS.rglob("*.md")} - ALONE)
NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))
# Pages on which a reader already has a table and photos
WITH_PHOTOS = ("README.md", "index.md", "labeling.md", "app.md", "label-studio.md", "commands.md")

pytestmark = pytest.mark.usefixtures("one_thread")


def page_id(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Write labels.csv and photos/, new/ and ~/Downloads/answers.csv, as pages call them."""
    rng = np.random.default_rng(0)
    names = ["cat", "dog", "fox", "lynx"]
    colors = dict(zip(names, rng.integers(0, 256, (4, 3)), strict=True))
    rows = [["file", "candidates"]]
    for part, count in (("photos", 6), ("new", 1)):
        (tmp_path / part).mkdir()
        for name in names:
            for number in range(count):
                pixels = np.clip(colors[name] + rng.normal(0, 20, (32, 32, 3)), 0, 255)
                file = f"{name}{number}.png"
                Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / part / file)
                other = rng.choice([one for one in names if one != name])
                if part == "photos":
                    rows.append([file, f"{name}|{other}"])
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "Downloads").mkdir(parents=True)
    answers = tmp_path / "home" / "Downloads" / "answers.csv"
    answers.write_text("sample,answer\ncat0.png,cat\n")


@pytest.mark.parametrize("page", MARKDOWN, ids=page_id)
def test_a_page_shows_what_happens(page, tmp_path, monkeypatch, request):
    if page.name in WITH_PHOTOS:
        request.getfixturevalue("photos")
    monkeypatch.chdir(tmp_path)
    run = pages.run_page(page)
    assert run.compared >= LEAST_COMPARED.get(page_id(page), 0)
    if page.parent.name == "examples":
        assert folder.is_result(tmp_path / "result")
        report = (tmp_path / "result" / "report.html").read_text(encoding="utf-8")
        assert "got one label each" in report


LEAST_COMPARED = {  # outputs that a page shows; fewer would mean that blocks are no longer found
    "docs/diagnosis.md": 2,
    "docs/examples/characters.md": 4,
    "docs/examples/tickets.md": 4,
    "docs/formats.md": 20,
    "docs/label-studio.md": 1,
    "docs/labeling.md": 1,
    "docs/large.md": 1,
}


@pytest.mark.parametrize("page", NOTEBOOKS, ids=page_id)
def test_a_notebook_prints_what_is_stored(page, tmp_path, monkeypatch):
    blocks = pages.read_blocks(page)
    for extra in {extra for block in blocks for extra in block.extras}:
        if not pages.has_extra(extra):
            pytest.skip(f"the extra {extra} is not installed: pip install 'fspll[{extra}]'")
    monkeypatch.chdir(tmp_path)
    assert pages.run_page(page).compared == len(blocks)


@pytest.mark.parametrize("page", NOTEBOOKS, ids=page_id)
def test_a_notebook_was_run_in_order(page):
    cells = [
        cell for cell in json.loads(page.read_text(encoding="utf-8"))["cells"] if cell["source"]
    ]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [out for cell in code for out in cell["outputs"] if out["output_type"] == "error"]


def test_there_is_a_notebook_for_each_kind_of_data():
    assert [page.stem for page in NOTEBOOKS] == ["annotators", "pictures", "texts", "vectors"]


@pytest.mark.parametrize("page", [*MARKDOWN, *ALONE], ids=page_id)
def test_code_and_commands_are_in_blocks_that_are_run(page):
    """A block without a language is output or a sketch; nothing in it may be meant to be typed."""
    code = re.compile(r"\s*(fspll \w|pip install|make \w+\b|python |import \w|from \w+ import|\$ )")
    for block in pages.read_blocks(page):
        if not block.language:
            assert not code.match(block.text), block.text
        assert block.language in ("", "python", "console", "toml", "csv", "json", "mermaid", "math")
    fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(pages.read_blocks(page))


# -------------------------------------------------------------------- the runner can fail


def page_of(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```python\nprint(1)\n```\n\n```\n2\n```\n", "shows something else"),
        ("```python\nprint(1)\n```\n", "does not show what its code prints"),
        ("```console\nfspll lable a.csv\n```\n", "there is no command lable"),
        ("```console\n# needs data\nfspll label a.csv --outt b\n```\n", "No such option: --outt"),
        ("```console\nfspll label none.csv --out b\n```\n", "none.csv does not exist"),
        ('```console\npip install "fspll[nothing]"\n```\n', "there is no extra nothing"),
        ("```console\nmake tea\n```\n", "tea"),
        ("```console\npython benchmarks/none.py\n```\n", "none.py"),
    ],
)
def test_a_page_that_is_not_true_is_found(tmp_path, monkeypatch, text, why):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=why):
        pages.run_page(page_of(tmp_path, text))


def test_what_is_missing_is_not_run_but_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = pages.run_page(page_of(tmp_path, "```python\n# needs Omniglot\nraise KeyError\n```\n"))
    assert run.left_out == ["needs Omniglot"]
    with pytest.raises(SyntaxError):
        pages.run_page(page_of(tmp_path, "```python\n# needs Omniglot\nraise KeyError(\n```\n"))


# -------------------------------------------------------------------- the reference

ROOMS = [
    "fspll",
    *("fspll.annotations", "fspll.baselines", "fspll.candidates", "fspll.datasets"),
    *("fspll.datasets.glyphs", "fspll.diagnosis", "fspll.embeddings", "fspll.experiments"),
    "fspll.export",
    *("fspll.labeling", "fspll.labeling.label_studio", "fspll.labeling.report"),
    *("fspll.metalearning", "fspll.rectifiers"),
]


def documented():
    """Return every name that has an entry in the reference, or a link to one."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    entries = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    links = re.findall(r"^\| \[`([\w.]+)`\]\[([\w.]+)\]", text, re.MULTILINE)
    return entries | {name for name, target in links if target in entries}


def test_every_room_with_public_names_is_listed():
    source = ROOT / "src" / "fspll"
    found = {
        ".".join(["fspll", *path.parent.relative_to(source).parts])
        for path in source.rglob("__init__.py")
        if "__all__ = [" in path.read_text(encoding="utf-8")
    }
    assert found == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room):
    missing = {f"{room}.{name}" for name in import_module(room).__all__} - documented()
    assert not missing


@pytest.mark.parametrize("name", sorted(documented()))
def test_every_name_of_the_reference_exists(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(import_module(module), attribute)
