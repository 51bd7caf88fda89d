"""The command line as a person meets it: words in; exit code, output and errors out."""

import sys

import pytest

from fspll.cli.main import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command and gives exit code, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fspll", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        return ended.value.code, output, errors.strip()

    return run
