"""``fspll reproduce``: tables, figures and a page from one command, and what it refuses."""

from __future__ import annotations

import re

import pytest

from fspll.experiments.reproduce import profiles

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _tiny(monkeypatch, tiny_profile):
    monkeypatch.setitem(profiles.PROFILES, "quick", tiny_profile)


@pytest.fixture
def reproduce(run, tiny_photos, tmp_path):
    def reproduce(*arguments, out="out"):
        folder = tmp_path / out
        where = ["--root", tiny_photos, "--out", folder, "--jobs", 1]
        return (*run("reproduce", "mini-imagenet", *where, *arguments), folder)

    return reproduce


def test_one_command_writes_tables_figures_and_a_page(reproduce):
    code, told, complaints, out = reproduce("--rows", "PN,FsPLL,PL-LEAF,ceiling")
    assert (code, complaints) == (0, "")
    assert "not miniImageNet" in told
    assert "5 cells" in told  # PL-LEAF has two columns
    endings = {path.suffix for path in out.rglob("*") if path.is_file()}
    assert {".html", ".md", ".tex", ".csv", ".png", ".pdf", ".sqlite"} <= endings
    page = (out / "index.html").read_text()
    assert "tiny_photos" in page
    assert not re.search(r'(?:src|href)="https?://', page)


def test_a_second_run_computes_nothing_and_writes_the_same_tables(reproduce):
    reproduce("--rows", "PN,ceiling")
    code, _, _, out = reproduce("--rows", "PN,ceiling")
    assert code == 0
    first = {path.name: path.read_bytes() for path in out.glob("**/*.csv")}
    networks = {path: path.stat().st_mtime_ns for path in out.glob("networks/*.safetensors")}
    assert len(networks) == 1
    code, told, _, _ = reproduce("--rows", "PN,ceiling", "--only-page")
    assert code == 0
    assert "2 cells" in told
    assert {path.name: path.read_bytes() for path in out.glob("**/*.csv")} == first
    assert networks == {path: path.stat().st_mtime_ns for path in networks}


def test_what_is_not_there_yet_is_counted_not_made_up(reproduce):
    reproduce("--rows", "ceiling")
    code, told, _, _ = reproduce("--rows", "PN,ceiling", "--only-page")
    assert code == 0
    assert "1 cell, 1 cell missing" in told


def test_a_run_in_pieces_says_what_is_left(reproduce):
    code, told, complaints, out = reproduce("--rows", "PN,ceiling", "--minutes", "0")
    assert (code, complaints) == (0, "")
    assert "left: 1 network and 16 tasks; the same command goes on" in told
    code, told, _, _ = reproduce("--rows", "PN,ceiling", "--minutes", "30")
    assert (code, "left" in told) == (0, False)
    assert (out / "results.jsonl").read_text().count('"job"') == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tables"], "what to reproduce is one of omniglot, mini-imagenet, noise, parameters"),
        (["omniglot", "--profile", "huge"], "--profile must be one of quick, cpu, paper"),
        (
            ["omniglot", "--dataset", "mnist"],
            "there is no data set 'mnist'; did you mean",
        ),
        (["omniglot", "--profile", "cpu"], "Omniglot was not found"),
        (["mini-imagenet"], "miniImageNet was not found"),
        (["mini_imagenet"], "miniImageNet was not found"),
        (["omniglot", "--dataset", "mini_imagenet"], "miniImageNet was not found"),
        (["omniglot", "--dataset", "lost"], "lost holds feature vectors, one candidate set each"),
        (["omniglot", "--dataset", "glyphs", "--r", "one"], "--r takes whole numbers"),
    ],
)
def test_bad_words_are_refused_before_any_work(run, tmp_path, arguments, sentence):
    code, _, complaints = run("reproduce", *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert sentence in complaints
    assert not (tmp_path / "out").exists()


def test_a_page_of_somebody_else_is_not_overwritten(reproduce, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("my home page")
    code, told, complaints, out = reproduce("--rows", "ceiling", out="site")
    assert (code, told) == (2, "")
    assert complaints == (
        f"error: {out / 'index.html'} is not the page of a reproduction, and would be "
        "overwritten; choose another folder"
    )
    assert [path.read_text() for path in out.iterdir()] == ["my home page"]
