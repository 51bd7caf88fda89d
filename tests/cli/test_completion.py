"""Shells complete commands and options."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(words):
    """Return what bash offers after these words."""
    environment = os.environ | {
        "_FSPLL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "fspll"], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"), [("fspll la", ["label"]), ("fspll label --op", ["--open"])]
)
def test_commands_and_options_are_completed(words, offered):
    assert complete(words) == offered


def test_install_completion_writes_what_bash_reads(tmp_path):
    environment = os.environ | {
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "fspll", "--install-completion", "bash"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bash completion installed" in done.stdout
    assert "_FSPLL_COMPLETE=complete_bash" in (tmp_path / ".bash_completions/fspll.sh").read_text()
    assert "fspll.sh" in (tmp_path / ".bashrc").read_text()
