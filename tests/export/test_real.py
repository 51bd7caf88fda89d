"""Exported models on real characters, real photos and texts, and one that is served."""

from __future__ import annotations

import csv
import io
import json
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from fspll import FsPLLClassifier
from fspll.datasets.glyphs.drawing import load_glyphs
from fspll.embeddings.encoders import photos, text
from fspll.export import export_onnx

for _package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(_package, reason="the extra 'onnx' is not installed")
pytestmark = pytest.mark.usefixtures("one_thread")
SERVER = Path(__file__).parents[2] / "docs" / "examples" / "serve_onnx.py"
# Runs a script where neither package can be imported.
ALONE = """
import runpy, sys
sys.modules["torch"] = sys.modules["fspll"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def split(classes, read, n_support, n_queries):
    """Return support samples with two candidates each, and queries."""
    drawn, names = random.Random(0), sorted(classes)
    X = [read(one) for name in names for one in classes[name][:n_support]]
    y = [{name, drawn.choice(names)} for name in names for _ in range(n_support)]
    queries = [one for name in names for one in classes[name][n_support:]]
    return X, y, [read(one) for one in drawn.sample(queries, n_queries)]


def reader(archive):
    return lambda name: Image.open(io.BytesIO(archive.read(name)))


def test_a_thousand_real_characters(real_data, tmp_path):
    archive = zipfile.ZipFile(real_data("omniglot/images_evaluation.zip"))
    classes = {}
    for name in sorted(name for name in archive.namelist() if name.endswith(".png")):
        classes.setdefault(name.rpartition("/")[0], []).append(name)
    some = {name: classes[name] for name in random.Random(1).sample(sorted(classes), 70)}
    X, y, queries = split(some, reader(archive), 5, 1000)
    clf = FsPLLClassifier(embedding="omniglot-conv4").fit(X, y)
    done = export_onnx(clf, tmp_path / "out.onnx", queries)
    assert done.n_checked == 1000
    assert done.difference < 1e-4


def test_two_hundred_real_photos(real_data, tmp_path):
    if photos.missing_package() is not None:
        pytest.skip(str(photos.missing_package()))
    folder = real_data("mini_imagenet_standin/images.zip").parent
    archive = zipfile.ZipFile(folder / "images.zip")
    places = {name.rpartition("/")[2]: name for name in archive.namelist()}
    classes = {}
    with (folder / "test.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            classes.setdefault(row["label"], []).append(places[row["filename"]])
    some = {name: classes[name][:25] for name in sorted(classes)[:10]}
    X, y, queries = split(some, reader(archive), 5, 200)
    clf = FsPLLClassifier(embedding="photos").fit(X, y)
    done = export_onnx(clf, tmp_path / "out.onnx", queries)
    assert done.n_checked == 200
    assert done.difference < 1e-4


def test_texts_from_their_tokens(tmp_path):
    if text.missing_package() is not None:
        pytest.skip(str(text.missing_package()))
    texts = ["the cat sleeps", "a dog barks at night", "rain", "my cat", "dogs run", "it rains"]
    names = ["cat", "dog", "rain"] * 2
    clf = FsPLLClassifier(embedding="text").fit(texts, [{name, "rain"} for name in names])
    more = ["wet weather, and more of it tomorrow in the north", "kittens", "puppy " * 200]
    done = export_onnx(clf, tmp_path / "out.onnx", more)
    assert [one.name for one in done.inputs] == ["tokens", "mask"]
    assert done.n_checked == 3
    assert done.difference < 1e-4


def test_serving_without_this_package_or_torch(tmp_path):
    drawn = load_glyphs(4, 5, split="test", size=50)
    clf = FsPLLClassifier(embedding="omniglot-conv4")
    clf.fit(drawn.images, [{"abcd"[c], "abcd"[(c + 1) % 4]} for c in drawn.labels])
    export_onnx(clf, tmp_path / "out.onnx")
    lines = [line for line in SERVER.read_text().splitlines() if line.strip()]
    assert len([line for line in lines if '"""' not in line]) <= 20
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", ALONE, SERVER, tmp_path / "out.onnx", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        for picture, expected in zip(
            drawn.images[::5], clf.predict(drawn.images[::5]), strict=True
        ):
            file = io.BytesIO()
            Image.fromarray(255 - picture).save(file, "PNG")
            answer = ask(server, port, file.getvalue())
            assert answer["label"] == expected
            assert answer["probability"] == pytest.approx(
                clf.predict_proba(255 - picture[None]).max(), abs=1e-4
            )
    finally:
        server.kill()
        server.communicate()


def ask(server, port, body):
    for _ in range(600):  # it starts in a second; much longer on a busy machine
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}", body, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            assert server.poll() is None, server.stderr.read().decode()
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def test_the_two_packages_cannot_be_imported_there(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nimport fspll\n")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, tmp_path / "script.py"], capture_output=True, text=True
    )
    assert "ModuleNotFoundError: import of fspll halted" in done.stderr
