"""Run everything on a page of the documentation, as a reader would, from top to bottom.

A page is a Markdown file or a notebook. It is run in an empty folder, with names kept from block to
block:

- ``python`` blocks are executed; what they print has to be in the plain block that follows;
- ``console`` blocks are run line by line, ``fspll`` by its own command line;
- a block with a ``title`` is written to a file of that name;
- a block that begins with ``# needs the extra text``, or that installs an extra itself, is run
  where that extra is installed;
- a block that begins with any other ``# needs ...`` (data from elsewhere, hours) is not run: Python
  is compiled, and commands are read by the real parser, so that every option on a page exists.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from fspll._common.errors import FsPLLError
from fspll.cli.main import app, main

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
_FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\n(.*?)^ *```$', re.DOTALL | re.MULTILINE)
_NEEDS = re.compile(r"# needs (?:the extra (\w+)|(.+))\n")
_INSTALLS = re.compile(r"^pip install .*\[([\w,]+)\]", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One block of a page: its language, its text, and the file or output that it stands for."""

    language: str
    text: str
    title: str = ""
    shows: str | None = None  # in a notebook, what is stored as its output

    @property
    def extras(self) -> list[str]:
        """The extras that it needs."""
        marked, installs = _NEEDS.match(self.text), _INSTALLS.search(self.text)
        named = [marked[1]] if marked and marked[1] else []
        return named + (installs[1].split(",") if installs else [])

    @property
    def missing(self) -> str | None:
        """Why it cannot be run here, if so."""
        marked = _NEEDS.match(self.text)
        if marked and marked[2]:
            return f"needs {marked[2]}"
        absent = [extra for extra in self.extras if not has_extra(extra)]
        return f"needs the extra {absent[0]}" if absent else None


def has_extra(name: str) -> bool:
    """Return whether all packages of an extra of ``pyproject.toml`` are installed."""
    assert name in EXTRAS, f"there is no extra {name}"
    try:
        for requirement in EXTRAS[name]:
            distribution(re.split(r"[^\w-]", requirement)[0])
    except PackageNotFoundError:
        return False
    return True


def read_blocks(page: Path) -> list[Block]:
    """Return the blocks of a Markdown page, or the code cells of a notebook."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        return [_cell(cell) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [
        Block(language, re.sub(f"^{indent}", "", content, flags=re.MULTILINE), title)
        for indent, language, title, content in _FENCE.findall(text)
    ]


def _cell(cell: dict[str, Any]) -> Block:
    source = "".join(cell["source"])
    printed = "".join(
        "".join(out["text"]) for out in cell["outputs"] if out.get("name") == "stdout"
    )
    if source.startswith("!"):
        return Block("console", source.replace("!", "", 1).replace("\n!", "\n"), shows=printed)
    return Block("python", source, shows=printed)


@dataclass
class Run:
    """What happened on a page: output by command line, what was compared, what was not run."""

    commands: dict[str, str] = field(default_factory=dict)
    compared: int = 0
    left_out: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)


def run_page(page: Path) -> Run:
    """Run a page in the current folder; raise AssertionError where it is not true."""
    run = Run()
    printed: str | None = ""  # what the page has to show next; None where nobody can tell
    for block in read_blocks(page):
        if block.title:
            Path(block.title).parent.mkdir(exist_ok=True, parents=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language in ("python", "console"):
            assert not printed, f"{page.name} does not show what its code prints: {printed}"
            if block.missing:
                run.left_out.append(block.missing)
            printed = run_block(block, run, page.name)
            if block.shows is not None and printed is not None:
                _compare(printed, block, page.name)
                run.compared += 1
                printed = ""
        elif not block.language:
            if printed:
                assert printed == block.text, f"{page.name} shows something else"
                run.compared += 1
            printed = ""
    assert not printed, f"{page.name} does not show what its code prints: {printed}"
    return run


def _compare(printed: str, block: Block, page: str) -> None:
    """Raise unless a cell of a notebook stores what it prints.

    Of a command, lines are compared that do not depend on the width of the terminal, as those of a
    table do, which begin with a blank.
    """
    assert block.shows is not None
    if block.language == "python":
        assert printed == block.shows, f"{page}: {block.text}"
        return
    stored = block.shows.splitlines()
    for line in printed.splitlines():
        assert line.startswith(" ") or line.rstrip() in stored, f"{page}: {line}"


def run_block(block: Block, run: Run, page: str) -> str | None:
    """Run a block, or check it where it cannot be run; return what its Python printed."""
    if block.language == "python":
        tree = ast.parse(block.text, page)
        return None if block.missing else _execute(tree, run.names, page)
    printed = ""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            check_command(words)
            if words[0] == "fspll" and not block.missing:
                run.commands[line] = run_command(words)
                printed += run.commands[line]
    return printed if block.shows is not None else ""


def _execute(tree: ast.Module, names: dict[str, Any], page: str) -> str:
    """Run statement by statement, so that a refusal is shown and the next statement runs."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        for statement in tree.body:
            try:
                exec(compile(ast.Module([statement], []), page, "exec"), names)  # our own file
            except FsPLLError as error:
                print(f"{type(error).__name__}: {error}")
    return printed.getvalue()


def check_command(words: list[str]) -> None:
    """Raise unless a command line of a page could be typed: its command, options, files exist."""
    while "=" in words[0]:  # variables of the environment
        words = words[1:]
    if words[0] == "fspll":
        parse_command(words)
    elif words[:2] == ["pip", "install"]:
        for extra in re.findall(r"\[([\w,]+)\]", " ".join(words)):
            assert set(extra.split(",")) <= set(EXTRAS), f"there is no extra {extra}"
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
    elif words[0] == "python" and not words[1].startswith("-"):
        assert (ROOT / words[1]).is_file(), words[1]
    else:
        assert words[0] in ("label-studio", "python", "docker", "soffice"), words


def parse_command(words: list[str]) -> None:
    """Read a command line by the real parser, without running it."""
    command: Any = get_command(app)
    rest = words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"there is no command {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    if hasattr(command, "commands"):  # an option of fspll itself, such as --version
        options = {option for known in command.params for option in known.opts}
        assert set(rest) <= options | {"--help"}, f"there is no option {rest}"
    else:
        command.make_context(command.name, rest)


def run_command(words: list[str]) -> str:
    """Run ``fspll ...`` as it is written, globs expanded; return its output."""
    words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in words]
    found = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in words]
    words = [one for files in found for one in files]
    if words[1] == "app":
        return _start_server(words)
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        patch.object(sys, "argv", words),
        patch.dict(os.environ, COLUMNS="200"),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{shlex.join(words)}\n{err.getvalue()}"
    return out.getvalue()


def _start_server(words: list[str]) -> str:
    """Start ``fspll app`` without a browser; return its first line and end it."""
    line = [sys.executable, "-u", "-m", "fspll", *words[1:]]
    line += [] if "--no-open" in words else ["--no-open"]
    server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for said in server.stdout or ():
            if "http://" in said:
                return said
        raise AssertionError(f"{shlex.join(words)} ended without an address")
    finally:
        server.terminate()
        server.communicate()
