"""``fspll export``: what it prints, what it writes and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fspll import FsPLLClassifier
from fspll.export import writing

X = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 5.0], [0.1, 5.0], [0.0, 5.2]])
Y = [{"a", "b"}, {"a"}, {"b", "c"}, {"b"}, {"c", "a"}, {"c"}]


@pytest.fixture
def model(tmp_path):
    FsPLLClassifier().fit(X, Y).save(tmp_path / "model.fspll")
    return tmp_path / "model.fspll"


def test_a_model_and_samples_of_ones_own(run, model, tmp_path):
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="the extra 'onnx' is not installed")
    np.save(tmp_path / "new.npy", X + 0.3)
    code, output, errors = run(
        "export", model, tmp_path / "out.onnx", "--samples", tmp_path / "new.npy"
    )
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert re.fullmatch(r".*out\.onnx: \d+\.\d KB, 3 labels", lines[0])
    assert lines[1] == "takes: features (n x 2, float64, finite numbers)"
    assert lines[2].startswith("before: Give the features in the order")
    assert re.fullmatch(
        r"checked with onnxruntime on 6 samples: probabilities differ by \d\.\de-\d\d at most",
        lines[3],
    )
    assert (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["out.txt"], "the file to write should end in .onnx, not be called 'out.txt'"),
        (["model.onnx"], "model.onnx is read here, and would be overwritten"),
        (["out.onnx", "--samples", "a.npy", "--samples", "b.npy"], "give one file of samples"),
    ],
)
def test_refusals(run, model, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    model.rename("model.onnx")
    code, _, errors = run("export", "model.onnx", *arguments)
    assert code == 2
    assert complaint in errors


def test_the_extra_is_named(run, model, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "find_spec", lambda name: None)
    code, _, errors = run("export", model, tmp_path / "out.onnx")
    assert code == 2
    assert "exporting needs the package 'onnx', which is not installed" in errors
    assert "pip install 'fspll[onnx]'" in errors
