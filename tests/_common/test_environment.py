"""What `fspll --version --verbose` says of a machine, and what it does not."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from fspll._common import environment
from fspll._common.environment import describe_environment
from fspll._common.version import __version__
from fspll.cli.main import main


@pytest.fixture
def requires(monkeypatch):
    """Return a function that sets what the package's metadata ask for."""

    def ask_for(*lines):
        monkeypatch.setattr(environment.metadata, "requires", lambda name: list(lines))

    return ask_for


def test_versions_threads_and_extras(requires):
    requires("numpy>=1.26", 'pytest[more]>=8; extra == "tests"', "absent-one; extra == 'other'")
    said = dict(describe_environment())
    assert said["fspll"] == __version__
    assert said["Python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert said["numpy"] == metadata.version("numpy")
    assert said["extra tests"] == f"pytest {pytest.__version__}"
    assert said["extra other"] == "not installed (absent-one)"
    assert said["threads"].startswith(f"{torch.get_num_threads()} of ")
    assert "build for" in said["device"]


def test_the_home_folder_is_not_named(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA")
    said = dict(describe_environment())
    assert said["cache"].startswith("~")
    assert not any(str(Path.home()) in line for line in said.values())


def test_torch_that_cannot_be_imported_is_said(requires, monkeypatch):
    requires("torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert (
        "torch cannot be imported (import of torch halted"
        in dict(describe_environment())["threads"]
    )


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--version", "--verbose"], 0, "threads: "),
        (["--verbose", "--version"], 0, "threads: "),
        (["--verbose", "models"], 2, "--verbose belongs to --version."),
    ],
)
def test_the_command(arguments, code, expected, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fspll", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    output, errors = capsys.readouterr()
    assert ended.value.code == code
    assert expected in output + errors
