"""Bars show where somebody sees them: a terminal or a notebook, and nowhere else."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from fspll import label
from fspll._common.errors import InputTypeError
from fspll._common.progress import show_progress

DATA = (["one", "two", "three", "four"], [["a"], ["a", "b"], ["b"], ["b"]])


class Encoder:
    """Encodes texts by their length; its samples are never cached."""

    name, modality = "lengths", "text"

    def encode(self, texts):
        return np.array([[float(len(text))] for text in texts])


@pytest.fixture
def notebook(monkeypatch):
    """Pretend that this is the kernel of a notebook; return what its cell shows over time."""
    shown = []
    package, display = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=object())

    def show(page, display_id):
        assert display_id is True
        shown.append(page)
        return SimpleNamespace(update=shown.append)

    display.HTML, display.display = str, show
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich treat the captured stream as a terminal
    monkeypatch.setenv("COLUMNS", "100")


def test_a_pipe_stays_silent(capsys):
    label(DATA, encoder=Encoder())
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_on_standard_error(capsys, terminal):
    label(DATA, encoder=Encoder())
    out, err = capsys.readouterr()
    assert out == ""
    assert "encoding" in err
    assert "4/4" in err


def test_false_turns_it_off(capsys, terminal, notebook):
    label(DATA, encoder=Encoder(), progress=False)
    assert capsys.readouterr() == ("", "")
    assert notebook == []


def test_vectors_need_no_bar(capsys, terminal):
    label(([[0.0], [0.1], [5.0]], [{"a", "b"}, {"a"}, {"b"}]))
    assert capsys.readouterr() == ("", "")


def test_a_function_is_called_instead(capsys, terminal):
    seen = []
    label(DATA, encoder=Encoder(), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_a_bar_in_its_cell_and_takes_it_away(capsys, notebook):
    label(DATA, encoder=Encoder())
    assert 'encoding <progress value="4" max="4"></progress> 4 of 4' in notebook
    assert notebook[-1] == ""
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_gone_after_an_error(notebook):
    def work():
        with show_progress("<b>work</b>") as report:
            report(1, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    bar = '&lt;b&gt;work&lt;/b&gt; <progress value="1" max="2"></progress> 1 of 2'
    assert notebook == [bar, ""]


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch, notebook, capsys):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    label(DATA, encoder=Encoder())
    assert notebook == []


def test_something_else_is_refused():
    message = r"^progress must be True, False or a function of \(done, total\), not 'yes'$"
    with pytest.raises(InputTypeError, match=message):
        label(DATA, encoder=Encoder(), progress="yes")
