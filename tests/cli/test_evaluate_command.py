"""``fspll evaluate``: its table, its files, and what it refuses before any work."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from PIL import Image

from fspll._common.files import user_cache_dir
from fspll.datasets import load_glyphs
from fspll.datasets.glyphs import GLYPHS
from fspll.embeddings import InputSpec, build_network, load_embedding, save_checkpoint
from fspll.experiments import evaluate, settings_grid
from fspll.experiments.methods import DEFAULT_METHODS as METHODS

SPEC = InputSpec(16, 1, "bright-ink")
SMALL = ["--n-way", "5", "--n-shot", "2,3", "--r", "1", "--tasks", "3"]


@pytest.fixture(scope="module")
def glyphs():
    return load_glyphs(8, 7, split="test", size=16)


@pytest.fixture(autouse=True)
def _small_data(monkeypatch, glyphs):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(GLYPHS, "load", lambda split, **options: glyphs)


def model(folder, seed=0, architecture="conv4", **training):
    network = build_network(architecture, seed=seed, width=4, size=16)
    save_checkpoint(
        folder / "model.safetensors", network, input_spec=SPEC, training={"plan": training}
    )
    return folder


LINE = re.compile(
    r"(\w+: )?(PN|FsPLL-nM|FsPLL|adaptive|MAML) +([\d.]+ ± [\d.]+) +([\d.]+) +([\d.]+)"
    r"(?: +([\d.]+))? *(\S*)"
)


def lines(output):
    """Return checkpoint, method, accuracy, standard deviation, support, ECE and p per line."""
    return [found.groups(default="") for found in LINE.finditer(output)]


def test_a_table_of_one_checkpoint(run, tmp_path, glyphs):
    code, output, errors = run("evaluate", model(tmp_path / "mine"), *SMALL, "--seed", 4)
    assert (code, errors) == (0, "")
    assert "glyphs/test, 3 tasks per setting, seed 4" in output
    encoder = load_embedding(tmp_path / "mine" / "model.safetensors")
    settings = settings_grid(glyphs, [5], [2, 3], [1])
    rows = evaluate([encoder], glyphs, settings, list(METHODS), n_tasks=3, seed=4)
    assert lines(output) == [
        (
            *("", row.method, f"{row.mean:.3f} ± {row.half_width:.3f}"),
            *(f"{row.std:.3f}", f"{row.support_mean:.3f}", f"{row.query_calibration:.3f}", ""),
        )
        for row in rows
    ]
    starts = [line.split()[:3] for line in output.splitlines() if " PN " in line]
    assert starts == [["5", "2", "1"], ["5", "3", "1"]]


def test_two_checkpoints_and_p_values(run, tmp_path):
    one, two = model(tmp_path / "one"), model(tmp_path / "two", seed=1)
    code, output, _ = run(
        *("evaluate", one, two / "model.safetensors", *SMALL),
        *("--methods", "PN,FsPLL", "--against", "two:PN"),
    )
    assert code == 0
    assert "signed-rank test against two:PN" in " ".join(output.split())
    assert "\naccuracy: mean over tasks" in output  # what columns mean is not centered
    names = [row[0] + row[1] for row in lines(output)]
    assert names == ["one: PN", "one: FsPLL", "two: PN", "two: FsPLL"] * 2
    for row in lines(output):
        assert (row[-1] == "") == (row[:2] == ("two: ", "PN"))
        if row[-1]:
            assert 0 <= float(row[-1]) <= 1


def test_a_maml_checkpoint(run, tmp_path):
    folder = model(tmp_path / "maml", architecture="conv4-classifier", inner_rate=0.1)
    code, output, _ = run("evaluate", folder, *SMALL, "--maml-steps", 1)
    assert code == 0
    assert [row[1] for row in lines(output)] == ["MAML", "MAML"]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_the_rows_are_saved(run, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    folder = model(tmp_path / "mine", regime="pn")
    code, output, _ = run("evaluate", folder, *SMALL, "--save", path)
    assert code == 0
    assert output.splitlines()[-1] == f"written to {path}"
    if ending == "csv":
        with path.open(newline="") as file:
            found = list(csv.DictReader(file))
    else:
        contents = json.loads(path.read_text())
        assert contents["data"] == "glyphs/test"
        assert contents["training"] == {"mine": {"plan": {"regime": "pn"}}}
        found = contents["rows"]
    assert [(row["checkpoint"], row["method"], int(row["n_shot"])) for row in found] == [
        ("mine", method, shots) for shots in (2, 3) for method in METHODS
    ]
    shown = [float(row[2].split()[0]) for row in lines(output)]
    np.testing.assert_allclose([float(row["mean"]) for row in found], shown, atol=5.1e-4)


def test_from_training_to_evaluation(run, tmp_path):
    options = ("--n-way", 5, "--n-shot", 2, "--n-query", 1, "--tasks", 2, "--epochs", 1)
    assert run("train", "--out", tmp_path / "run", *options)[0] == 0
    code, output, _ = run("evaluate", tmp_path / "run", *SMALL, "--save", tmp_path / "rows.json")
    assert code == 0
    assert len(lines(output)) == 2 * len(METHODS)
    about = json.loads((tmp_path / "rows.json").read_text())["training"]["run"]
    assert (about["steps"], about["plan"]["regime"]) == (2, "leave-one-out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--methods PN,KNN",
            "there is no method 'KNN' (did you mean 'PL-KNN'?); known are PN, FsPLL-nM",
        ),
        ("--n-way five", "--n-way takes whole numbers such as 5,10,20, not 'five'"),
        ("--n-shot 7", "--n-shot 7 leaves no query: a class of glyphs/test has 7"),
        ("--n-way 5,30", "--n-way 30 but glyphs/test has 8 classes"),
        ("--against KNN", "nothing evaluated is called 'KNN'; there are mine:PN, mine:FsPLL-nM,"),
        ("--save rows.txt", "results are written as .csv, .json, .md, not rows.txt"),
    ],
)
def test_bad_options_give_one_sentence(run, tmp_path, options, message):
    code, output, errors = run("evaluate", model(tmp_path / "mine"), *SMALL, *options.split())
    assert (code, output) == (2, "")
    assert errors.startswith(f"error: {message}")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    "options", ["--methods PN,KNN", "--n-way five", "--r 1,x", "--save rows.txt"]
)
def test_bad_options_are_refused_before_anything_is_loaded(run, tmp_path, monkeypatch, options):
    asked = []
    monkeypatch.setattr(GLYPHS, "load", lambda *arguments, **options: asked.append(arguments))
    code, _, errors = run("evaluate", tmp_path / "no_such_model", *SMALL, *options.split())
    assert (code, asked) == (2, [])
    assert "no_such_model" not in errors


def test_missing_and_ambiguous_checkpoints(run, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, errors = run("evaluate", tmp_path / "empty", *SMALL)
    missing = tmp_path / "empty" / "model.safetensors"
    assert (code, errors) == (2, f"error: there is no model file {missing}")
    one, two = model(tmp_path / "a" / "run"), model(tmp_path / "b" / "run", seed=1)
    code, _, errors = run("evaluate", one, two, *SMALL)
    expected = "error: two checkpoints are called 'run'; give one another name"
    assert (code, errors) == (2, expected)


def test_usage_errors(run, tmp_path):
    code, _, errors = run("evaluate", model(tmp_path / "mine"), "--tasks", 1)
    assert code == 2
    assert "Invalid value for '--tasks'" in errors


def test_files_of_the_data_set_are_never_overwritten(run, tmp_path, tiny_photos):
    before = (tiny_photos / "test.csv").read_bytes()
    where = ["--dataset", "mini-imagenet", "--root", tiny_photos, "--save"]
    code, output, errors = run(
        "evaluate", model(tmp_path / "mine"), *where, tiny_photos / "test.csv"
    )
    assert (code, output) == (2, "")
    assert errors == (
        f"error: {tiny_photos / 'test.csv'} is read here, and would be overwritten; write to "
        "another file"
    )
    assert (tiny_photos / "test.csv").read_bytes() == before


def test_damaged_caches_change_no_figure(run, tmp_path):
    """Pixels that became zeros are images like any other, and so are features."""
    rng = np.random.default_rng(0)
    for number in range(5):
        (tmp_path / "pets" / f"pet{number}").mkdir(parents=True)
        for i in range(6):
            pixels = rng.integers(0, 256, (16, 16), dtype=np.uint8) // 4 + 40 * number
            Image.fromarray(pixels).save(tmp_path / "pets" / f"pet{number}" / f"{i}.png")
    options = ("--dataset", tmp_path / "pets", "--all-classes", *SMALL, "--tasks", 20, "--save")
    options = ("evaluate", model(tmp_path / "mine"), *options)
    assert run(*options, tmp_path / "before.csv")[0] == 0
    kept = [path for path in user_cache_dir().rglob("*") if path.suffix in (".npy", ".sqlite")]
    assert {path.parent.name for path in kept} == {"decoded", "features"}
    for path in kept:
        whole = path.read_bytes()
        half = len(whole) // 2
        path.write_bytes(whole[:half] + bytes(len(whole) - half))
    assert run(*options, tmp_path / "after.csv")[0] == 0
    assert (tmp_path / "after.csv").read_text() == (tmp_path / "before.csv").read_text()
