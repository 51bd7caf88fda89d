"""What ``fspll data`` prints, and what it leaves behind when it refuses."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
import zipfile

import pytest
from typer.testing import CliRunner

from fspll._common.errors import DataError, InputError
from fspll._common.files import data_dir
from fspll.cli import data
from fspll.datasets.omniglot import OMNIGLOT, Archive

PNG = b"\x89PNG\r\n\x1a\npicture"
NAMES = ("images_background.zip", "images_evaluation.zip")


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Return a folder with an Omniglot of one character per part, and let the registry know it."""
    archives = tuple(
        Archive(name=name, url="unset", md5="unset", n_alphabets=1, n_characters=1)
        for name in NAMES
    )
    monkeypatch.setattr(OMNIGLOT, "downloads", archives)
    folder = tmp_path / "source"
    folder.mkdir()
    for name in NAMES:
        with zipfile.ZipFile(folder / name, "w") as packed:
            for i in range(20):
                packed.writestr(
                    f"{name[:-4]}/Greek/character01/{i}.png", b"\x89PNG\r\n\x1a\npicture"
                )
    return folder


def run(*arguments):
    """Return what a successful command prints; raise what a refused one raises."""
    result = CliRunner().invoke(data.app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def damage(path):
    path.write_bytes(path.read_bytes().replace(b"picture", b"Picture", 1))


def test_list_is_one_line_per_set_when_not_a_terminal(source):
    run("get", "omniglot", "--from", str(source))
    rows = [line.split("\t") for line in run("list").splitlines()]
    assert [row[0] for row in rows] == ["glyphs", "omniglot", "mini-imagenet", "lost", "MSRCv2"]
    assert {len(row) for row in rows} == {4}
    states = {row[0]: row[3] for row in rows}
    assert states["glyphs"] == "built in: drawn by code, nothing to fetch"
    assert states["omniglot"] == "present: 40 drawings of 2 characters"
    assert states["lost"].startswith("absent: not downloadable; place lost.mat by hand in")
    assert rows[1][2] == str(data_dir() / "omniglot")


def test_list_is_a_table_on_a_terminal(monkeypatch):
    from rich.console import Console

    wide = Console(force_terminal=True, width=200, color_system=None)
    monkeypatch.setattr(data, "out", wide)
    lines = run("list").splitlines()
    assert lines[0].split() == ["name", "what", "where", "state"]
    assert any("Lake, Salakhutdinov and Tenenbaum (2015); MIT" in line for line in lines)


def test_get_from_a_folder_then_again(source, tmp_path):
    home = data_dir() / "omniglot"
    summary = "(40 drawings of 2 characters, re-packed files)"
    assert run("get", "omniglot", "--from", str(source)) == f"omniglot: put in {home} {summary}\n"
    assert run("get", "omniglot") == f"omniglot: already in {home} {summary}\n"
    forced = run("get", "omniglot", "--from", str(source), "--force")
    assert forced == f"omniglot: put in {home} {summary}\n"
    to = tmp_path / "elsewhere"
    files = [argument for name in NAMES for argument in ("--from", str(source / name))]
    assert run("get", "omniglot", *files, "--to", str(to)) == f"omniglot: put in {to} {summary}\n"


def test_get_from_a_server(source):
    handler = functools.partial(QuietHandler, directory=str(source))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            assert run("get", "omniglot", "--from", url).startswith("omniglot: put in ")
        finally:
            server.shutdown()
            thread.join()
    assert sorted(path.name for path in (data_dir() / "omniglot").iterdir()) == list(NAMES)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_get_refuses_and_leaves_nothing(source):
    damage(source / NAMES[1])
    with pytest.raises(DataError, match=r"images_evaluation\.zip is damaged: Bad CRC-32"):
        run("get", "omniglot", "--from", str(source))
    assert not (data_dir() / "omniglot").exists()


def test_get_refuses_an_address_among_others(source):
    with pytest.raises(InputError, match="is an address; give it alone"):
        run("get", "omniglot", "--from", str(source), "--from", "https://127.0.0.1/")


def test_get_what_needs_no_fetching():
    assert run("get", "glyphs") == "glyphs: drawn by code, nothing to fetch\n"


def test_check_survey_and_one_set(source):
    absent = run("check").splitlines()
    assert absent[0] == "glyphs: sound; drawn by code, nothing to fetch"
    home = data_dir() / "omniglot"
    advice = f"fetch it into {home} with: fspll data get omniglot"
    assert absent[1] == f"omniglot: absent; {advice}"
    assert len(absent) == 5
    with pytest.raises(DataError, match="omniglot is absent: fetch it into"):
        run("check", "omniglot")
    run("get", "omniglot", "--from", str(source))
    expected = "omniglot: sound; 40 drawings of 2 characters, re-packed files\n"
    assert run("check", "omniglot") == expected


def test_check_names_what_is_damaged(source):
    run("get", "omniglot", "--from", str(source))
    damage(data_dir() / "omniglot" / NAMES[0])
    result = CliRunner().invoke(data.app, ["check"])
    assert str(result.exception) == "omniglot is damaged; see the lines above"
    assert "omniglot: damaged; member 'images_background/Greek/character01/" in result.output
    assert "MSRCv2: absent" in result.output  # the survey goes on behind the damaged one


def test_list_waits_for_no_heavy_package():
    code = (
        "import sys; from fspll.cli.main import app; app(['data', 'list'], standalone_mode=False); "
        "print({'torch', 'sklearn'} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    *rows, heavy = shown.stdout.splitlines()
    assert len(rows) == 5
    assert heavy == "set()"


def test_command_module_is_light():
    code = "import sys, fspll.cli.data; print({'torch', 'PIL', 'sklearn'} & set(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "set()\n"
