"""``fspll train --encoder``: earlier data in, an adapted encoder out that other commands take."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from fspll.datasets import load_glyphs
from fspll.datasets.glyphs import GLYPHS
from fspll.embeddings import load_embedding

FEW = ("--n-way", 4, "--n-shot", 4, "--tasks", 8, "--device", "cpu")
ENCODER = ("--encoder", "omniglot-conv4", "--dataset", "glyphs")


@pytest.fixture(autouse=True)
def _small_data(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(GLYPHS, "load", lambda split, **_: load_glyphs(12, 8, split=split, size=28))


def write_table(folder, n_classes=6):
    """Write a table of candidate sets and the vectors of its samples."""
    rng = np.random.default_rng(0)
    means = 3 * rng.normal(size=(n_classes, 4))
    labels = np.arange(10 * n_classes) % n_classes
    np.save(folder / "x.npy", means[labels] + rng.normal(size=(len(labels), 4)) * [6, 1, 1, 1])
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sample", "candidates"])
        for row, label in enumerate(labels):
            writer.writerow([f"s{row}", f"c{label}|c{(label + 1 + row % 3) % n_classes}"])
    return folder / "labels.csv", folder / "x.npy"


def test_a_data_set_gives_a_checkpoint_that_evaluate_takes(run, tmp_path):
    code, output, errors = run("train", *ENCODER, *FEW, "--r", 1, "--out", tmp_path / "run")
    assert (code, errors) == (0, "")
    assert output.endswith(f"adapted encoder: {tmp_path / 'run' / 'model.safetensors'}\n")
    found = load_embedding(tmp_path / "run" / "model.safetensors")
    training = found.metadata["training"]
    assert training["data"] == "glyphs/train"
    assert training["plan"]["n_way"] == 4
    assert (found.modality, found.base.name) == ("image", "omniglot-conv4")
    code, output, errors = run(
        *("evaluate", tmp_path / "run", "--dataset", "glyphs", "--n-way", 4, "--n-shot", 4),
        *("--r", 1, "--tasks", 2),
    )
    assert (code, errors) == (0, "")
    assert "adaptive" in output


def test_a_table_of_vectors_gives_an_encoder_that_label_and_predict_take(run, tmp_path):
    labels, vectors = write_table(tmp_path)
    target = tmp_path / "run" / "model.safetensors"
    code, output, errors = run(
        *("train", "--encoder", "features", "--dataset", labels, "--features", vectors),
        *("--out", tmp_path / "run"),
    )
    assert (code, errors) == (0, "")
    assert "on held-out classes, the likeliest class of a sample that was left out" in output
    assert load_embedding(target).modality == "vector"
    code, output, errors = run(
        *("label", labels, "--features", vectors, "--encoder", target, "--out", tmp_path / "found")
    )
    assert (code, errors) == (0, "")
    code, output, _ = run("predict", tmp_path / "found", "--features", vectors)
    assert code == 0
    assert len(output.splitlines()) == 61


def test_a_column_of_candidates_of_another_name_can_be_said(run, tmp_path):
    labels, vectors = write_table(tmp_path)
    labels.write_text(labels.read_text().replace("sample,candidates", "sample,heading"))
    options = ("train", "--encoder", "features", "--dataset", labels, "--features", vectors)
    code, _, errors = run(*options, "--out", tmp_path / "run")
    assert code == 2
    assert errors.endswith("say which with --candidates ...")
    code, output, errors = run(*options, "--candidates", "heading", "--out", tmp_path / "run")
    assert (code, errors) == (0, "")
    assert "60 samples, 6 labels" in output
    assert "labels from 'heading'" in output


@pytest.mark.parametrize("name", ["earlier/labels.csv", "earlier"])
def test_the_labels_of_an_earlier_result_will_do(run, tmp_path, name):
    labels, vectors = write_table(tmp_path)
    earlier = tmp_path / "earlier"
    assert run("label", labels, "--features", vectors, "--out", earlier)[0] == 0
    code, output, errors = run(
        *("train", "--encoder", "features", "--dataset", tmp_path / name),
        *("--features", vectors, "--out", tmp_path / "run"),
    )
    assert (code, errors) == (0, "")
    assert "60 samples, 6 labels" in output


def test_an_earlier_model_is_replaced_on_request_only(run, tmp_path):
    assert run("train", *ENCODER, *FEW, "--out", tmp_path / "run")[0] == 0
    model = tmp_path / "run" / "model.safetensors"
    first = model.read_bytes()
    code, _, errors = run("train", *ENCODER, *FEW, "--out", tmp_path / "run")
    assert code == 2
    assert errors == (
        f"error: {model} is there and would be replaced; choose another folder, or start over with "
        "--restart"
    )
    assert run("train", *ENCODER, *FEW, "--out", tmp_path / "run", "--restart")[0] == 0
    assert model.read_bytes() == first  # equal runs write equal files


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (*ENCODER, "--epochs", 3),
            "--epochs does not go with --encoder: its head is computed in one step, not trained "
            "in many",
        ),
        (("--text", "x"), "--text is for adapting an encoder; name it with --encoder"),
        (("--candidates", "x"), "--candidates is for adapting an encoder; name it with --encoder"),
        (
            (*ENCODER, "--candidates", "x"),
            "--candidates is for a file of labels, but --dataset glyphs is not a file",
        ),
        (
            (*ENCODER, "--text", "x"),
            "--text is for a file of labels, but --dataset glyphs is not a file",
        ),
        (
            ("--encoder", "features", "--dataset", "glyphs"),
            "--encoder features needs a file of labels with vectors as --dataset",
        ),
        (
            (*ENCODER, "--regime", "PN"),
            "regime of a head must be one of leave-one-out, precise, not 'pn'",
        ),
        (
            (*ENCODER, "--n-shot", 9),
            "--n-shot 9 but class",
        ),
    ],
)
def test_what_is_refused(run, tmp_path, options, message):
    code, _, errors = run("train", *options, "--out", tmp_path / "run")
    assert code == 2
    assert errors.startswith(f"error: {message}")
    assert not (tmp_path / "run").exists()


def test_small_classes_make_smaller_tasks_unless_it_was_said_how_large(run, tmp_path, monkeypatch):
    def unequal(split, **_):
        data = load_glyphs(12, 8, split=split, size=28)
        kept = np.arange(len(data)) >= 5  # of the first class, three are left
        return replace(data, images=data.images[kept], labels=data.labels[kept])

    monkeypatch.setattr(GLYPHS, "load", unequal)
    code, _, errors = run(
        *("train", *ENCODER, "--n-way", 4, "--tasks", 8, "--device", "cpu"),
        *("--out", tmp_path / "run"),
    )
    assert code == 0
    assert errors == (
        "note: tasks take 8 samples per class, not 10\n"
        "note: left out: 1 class with fewer than 8 samples"
    )
    found = load_embedding(tmp_path / "run" / "model.safetensors")
    assert found.metadata["training"]["plan"]["n_shot"] == 8


def test_a_file_has_no_true_labels(run, tmp_path):
    labels, vectors = write_table(tmp_path)
    code, _, errors = run(
        *("train", "--encoder", "features", "--dataset", labels, "--features", vectors),
        *("--regime", "precise", "--out", tmp_path / "run"),
    )
    assert code == 2
    assert errors == (
        "error: --regime precise reads true labels, but a file holds candidate sets; leave it out"
    )
