"""Which arguments the library's messages name, and whether commands that show them have options.

Messages are the strings of the library that hold a sentence: not docstrings, not SQL. The rewriting
itself is tested in ``test_console.py``, and real messages in ``test_messages.py``.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer

import fspll
from fspll.cli.console import _options_of
from fspll.cli.main import app

SOURCE = Path(fspll.__file__).parent
COMMANDS = typer.main.get_command(app).commands
READING, TRAINING = ("label", "diagnose"), ("train",)
EVERYTHING = (*READING, "predict")
# The commands that a user may meet the messages of a file or folder in, the longest path first.
SHOWN_BY = {
    "_common/devices.py": ("label", "train", "reproduce"),
    "annotations/": READING,
    "app/running.py": ("app",),
    "annotations/opening.py": EVERYTHING,
    "annotations/tables.py": EVERYTHING,
    "annotations/workbooks.py": EVERYTHING,
    "candidates/corruption.py": ("train", "evaluate"),
    "embeddings/features.py": EVERYTHING,
    "embeddings/stored.py": ("predict",),
    "experiments/evaluation.py": ("evaluate",),
    "labeling/": ("label",),
    "labeling/new_samples.py": ("predict",),
    "labeling/samples.py": READING,
    "metalearning/": TRAINING,
    "tasks.py": TRAINING,
}
# Arguments and functions in messages that no command can show.
LIBRARY_ONLY = {
    "annotations/reading.py": {"read_annotations", "features_columns"},  # commands check it first
    "baselines/base.py": {"random_state"},
    "candidates/labels.py": {"classes"},
    "classifier.py": {"embedding", "rectifier"},
    "datasets/glyphs/drawing.py": {"n_classes", "first_class"},
    "datasets/partial_label.py": {"split"},
    "embeddings/encoders/base.py": {"n_samples", "n_features"},
    "embeddings/encoders/network.py": {"batch_size", "device"},
    "embeddings/encoders/photo_network.py": {  # what networks print of themselves
        *("resampling", "revision", "active", "groups", "stride", "padding"),
    },
    "embeddings/encoders/text.py": {"batch_size"},
    "embeddings/inputs.py": {"polarity"},
    "embeddings/networks/conv4.py": {"in_channels", "n_way"},
    "embeddings/networks/resnet12.py": {"in_channels"},
    "embeddings/networks/standardize.py": {"n_features"},
    "embeddings/networks/whitening.py": {"unit_length"},
    "labeling/inputs.py": {"read_annotations"},
    "labeling/pipeline.py": {"read_answers"},
    "rectifiers/adaptive.py": {"class_balance", "held_out"},
    "rectifiers/base.py": {"n_neighbors"},
    "rectifiers/evidence.py": {"class_balance"},
    "rectifiers/registry.py": {"class_balance"},
}
# Files whose strings are no messages: databases, captions of figures and tables, progress bars,
# headers of responses, XML.
OTHER = (
    "_common/progress.py",
    "app/downloads.py",
    "embeddings/registry.py",
    "embeddings/store.py",
    "experiments/reproduce/",
    "labeling/label_studio/config.py",
)
VALUE = r"""True\b|False\b|None\b|['"{]|\.\.\.|[A-Z]+\b|[0-9]"""
NAMED = re.compile(
    rf"(?<![\w/.+'-])(?:([a-z]\w*) ?= ?(?:{VALUE})|([a-z]+(?:_[a-z0-9]+)+)(?![\w/.']))"
)
BRITISH = re.compile(
    r"\b(?:colour|grey|neighbour|labell|unlabell|behaviour|favour|centre|analys[ei](?!s)|artefact|"
    r"licence|learnt|whilst|modell|cancell|catalogue|(?:recogn|standard|normal|optim|initial|"
    r"general|organ|summar|real)is[ei])",
    re.IGNORECASE,
)
INSTEAD_OF_PER = re.compile(
    r"\b(?:one|two|[0-9]+) \w+ an? (?:sample|class|task|row|file|picture|cell|epoch)\b"
)


@cache
def sentences(path):
    """Return the line and the text of every string with a blank in it; values are ``{}``."""
    found = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(node.value)  # a docstring, or one of an attribute
        elif isinstance(node, ast.JoinedStr):
            inside.update(node.values)
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "{}" for one in node.values]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text:
            found.append((node.lineno, text))
    return found


def files():
    paths = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    return [path for path in paths if not path.startswith(OTHER)]


@cache
def options_of(command):
    """Return the arguments that a command has an option for."""
    return {name for name, _ in _options_of(COMMANDS[command])}


def commands_of(path):
    found = [start for start in SHOWN_BY if path.startswith(start)]
    return SHOWN_BY[max(found, key=len)] if found else ()


def test_arguments_in_messages_are_options_of_the_commands_that_show_them():
    problems = []
    for path in files():
        if path.startswith("cli/") or path.endswith("__init__.py"):
            continue  # which name options, and public names
        for line, text in sentences(SOURCE / path):
            names = {one[1] or one[2] for one in NAMED.finditer(text)}
            for name in names - LIBRARY_ONLY.get(path, set()):
                where = f"{path}:{line} names {name!r}"
                if not commands_of(path):
                    problems.append(f"{where}: who may read it belongs into SHOWN_BY")
                problems += [
                    f"{where}, but fspll {command} has no such option"
                    for command in commands_of(path)
                    if name not in options_of(command)
                ]
    assert problems == []


def test_the_tables_above_are_current():
    named = {}
    for path in files():
        for _, text in sentences(SOURCE / path):
            named.setdefault(path, set()).update(one[1] or one[2] for one in NAMED.finditer(text))
    for path, names in LIBRARY_ONLY.items():
        assert names <= named[path], path
    for start in (*SHOWN_BY, *OTHER):
        assert (SOURCE / start).exists(), start


def test_american_words_and_per():
    problems = [
        f"{path}:{line}: {found[0]!r} in {text!r}"
        for path in files()
        for line, text in sentences(SOURCE / path)
        for pattern in (BRITISH, INSTEAD_OF_PER)
        if (found := pattern.search(text))
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("pattern", "wrong", "right"),
    [
        (NAMED, "give encoding='x'", "give '--encoding', a_b.csv or 'a_b'"),
        (NAMED, "it needs n_shot", "it needs n shots"),
        (BRITISH, "it is not recognised", "precise labels, realistic analysis"),
        (INSTEAD_OF_PER, "one row a sample", "one row per sample; a class a sample may have"),
    ],
)
def test_the_patterns_can_fail(pattern, wrong, right):
    assert pattern.search(wrong)
    assert not pattern.search(right)
