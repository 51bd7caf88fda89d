"""``fspll train``, from its options to its files and messages."""

from __future__ import annotations

import builtins
import json
import shutil

import pytest
from PIL import Image

from fspll import datasets
from fspll.cli import progress
from fspll.datasets import load_glyphs
from fspll.datasets.glyphs import GLYPHS
from fspll.embeddings import Conv4Classifier, load_checkpoint
from fspll.metalearning import TrainingPlan

SMALL = (
    *("--n-way", 5, "--n-shot", 2, "--n-query", 2),
    *("--tasks", 4, "--epochs", 2, "--device", "cpu"),
)


@pytest.fixture(autouse=True)
def _small_data(monkeypatch):
    """Let the commands draw few and small characters."""
    monkeypatch.setenv("COLUMNS", "200")

    def small(split, **options):
        return load_glyphs(12, 8, split=split, size=16)

    monkeypatch.setattr(GLYPHS, "load", small)


# -------------------------------------------------------------------- training


def test_files_and_message(run, tmp_path):
    code, output, errors = run("train", "--out", tmp_path / "run", *SMALL)
    assert (code, errors) == (0, "")
    assert output == f"trained for 8 steps: {tmp_path / 'run' / 'model.safetensors'}\n"
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "model.safetensors",
        "state.safetensors",
        "log.jsonl",
    }
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 9))
    training = load_checkpoint(tmp_path / "run" / "model.safetensors").metadata["training"]
    assert training["data"] == "glyphs/train"


def test_options_become_the_plan(run, tmp_path):
    code, output, errors = run(
        *("train", "--out", tmp_path, "--regime", "PN-Average", "--r", "0,1,2", "--p", 0.5),
        *("--n-way", 4, "--n-shot", 3, "--n-query", 1, "--tasks", 4, "--epochs", 3, "--fresh"),
        *("--update", "epoch", "--optimizer", "sgd", "--learning-rate", 0.01, "--halve-every", 2),
        *("--metric", "sqeuclidean", "--held-out", 4, "--patience", 3, "--seed", 5),
        *("--inner-steps", 2, "--inner-rate", 0.1, "--first-order", "--device", "cpu"),
    )
    assert (code, errors) == (0, "")
    found = load_checkpoint(tmp_path / "model.safetensors").metadata["training"]
    assert TrainingPlan.from_dict(found["plan"]) == TrainingPlan(
        regime="pn-average", n_way=4, n_shot=3, n_query=1, r=(0, 1, 2), p=0.5, n_tasks=4,
        fresh=True, epochs=3, tasks_per_step=4, optimizer="sgd", learning_rate=0.01, halve_every=2,
        metric="sqeuclidean", held_out=4, patience=3, seed=5, inner_steps=2, inner_rate=0.1,
        first_order=True,
    )  # fmt: skip
    first, second = output.splitlines()
    assert first.startswith("trained for 3 steps: ")
    best, figure = found["best_epoch"] + 1, found["best_figure"]
    assert second == f"best epoch {best}, held-out figure {figure:.3f}"


def test_maml_and_several_tasks_per_step(run, tmp_path):
    options = ("--regime", "MAML+", "--meta-batch", 2, "--inner-steps", 1)
    code, output, _ = run("train", "--out", tmp_path, *SMALL, *options)
    assert (code, output.split(":")[0]) == (0, "trained for 4 steps")
    found = load_checkpoint(tmp_path / "model.safetensors")
    assert isinstance(found.network, Conv4Classifier)
    assert found.metadata["training"]["plan"]["regime"] == "maml+"


def test_a_finished_run_says_that_nothing_was_left(run, tmp_path):
    assert run("train", "--out", tmp_path, *SMALL)[0] == 0
    code, output, errors = run("train", "--out", tmp_path, *SMALL)
    assert (code, errors) == (0, "")
    assert output == f"nothing left to do after 8 steps: {tmp_path / 'model.safetensors'}\n"


def test_another_plan_is_refused_and_restart_helps(run, tmp_path):
    assert run("train", "--out", tmp_path, *SMALL)[0] == 0
    code, output, errors = run("train", "--out", tmp_path, *SMALL, "--seed", 1)
    assert (code, output) == (2, "")
    assert errors == (
        f"error: {tmp_path / 'state.safetensors'} belongs to a run with --seed 0, not 1; choose "
        "another folder, or start over with --restart"
    )
    assert run("train", "--out", tmp_path, *SMALL, "--seed", 1, "--restart")[0] == 0


def test_an_interrupt_is_answered_with_130(run, tmp_path, monkeypatch):
    """Twice at once, in the middle of the third step: what was saved before is kept."""

    def interrupted(bar, report):
        if report.step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.TrainingBar, "observe", interrupted)
    code, output, errors = run("train", "--out", tmp_path, *SMALL, "--save-every", 2)
    assert (code, output) == (130, "")
    assert errors == "stopped; what was finished is kept"
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--update step", "--update is task or epoch, not 'step'"),
        ("--r 1,two", "--r takes whole numbers such as 5,10,20, not '1,two'"),
        ("--regime protonet", "there is no regime 'protonet'; known are fspll, fspll-nm, pn, "),
        ("--dataset cifar", "there is no data set 'cifar'; known are glyphs, omniglot, "),
        ("--meta-batch 3", "--meta-batch 3 does not divide --tasks 4"),
        ("--optimizer lbfgs", "--optimizer must be one of adam, sgd, not 'lbfgs'"),
        ("--n-way 30", "--n-way 30 but the data set has 12 classes"),
        (
            "--n-query 7",
            "--n-shot + --n-query = 9 but class 'alphabet000/character01' has 8 samples",
        ),
        ("--patience 2", "--patience needs --held-out classes to compare the epochs on"),
        ("--held-out 2", "--held-out 2 keeps 2 classes aside, but a score on tasks of --r 1"),
        ("--device tpu", "--device must be 'auto', 'cpu', 'cuda', 'cuda:<number>' or 'mps', not"),
        ("--architecture vgg", "there is no architecture 'vgg'"),
    ],
)
def test_bad_options_give_one_sentence(run, tmp_path, options, message):
    code, output, errors = run("train", "--out", tmp_path / "run", *SMALL, *options.split())
    assert (code, output) == (2, "")
    assert errors.startswith(f"error: {message}")
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize(
    "options",
    [
        "--update step",
        "--r 1,two",
        "--r 9",
        "--regime protonet",
        "--meta-batch 3",
        "--optimizer lbfgs",
        "--metric cosine",
        "--learning-rate -1",
        "--patience 2",
        "--device tpu",
        "--architecture vgg",
        "--out FILE",
    ],
)
def test_bad_options_are_refused_before_the_data_are_loaded(run, tmp_path, monkeypatch, options):
    (tmp_path / "file").write_text("mine")
    asked = []
    monkeypatch.setattr(GLYPHS, "load", lambda *arguments, **options: asked.append(arguments))
    words = options.replace("FILE", str(tmp_path / "file")).split()
    code, _, errors = run("train", "--out", tmp_path / "run", *SMALL, *words)
    assert (code, asked) == (2, [])
    assert errors.startswith("error: ")


def test_a_file_in_the_place_of_the_folder(run, tmp_path):
    (tmp_path / "run").write_text("mine")
    code, _, errors = run("train", "--out", tmp_path / "run", *SMALL)
    expected = f"error: {tmp_path / 'run'} is a file; training needs a folder to write to"
    assert (code, errors) == (2, expected)


def test_usage_errors(run, tmp_path):
    code, _, errors = run("train", *SMALL)
    assert code == 2
    assert "Missing option '--out'" in errors
    code, _, errors = run("train", "--out", tmp_path, "--save-every", 0)
    assert code == 2
    assert "Invalid value for '--save-every'" in errors


def test_tensorboard_is_asked_for_when_it_is_missing(run, tmp_path, monkeypatch):
    load = builtins.__import__

    def without(name, *rest):
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    code, _, errors = run("train", "--out", tmp_path, *SMALL, "--tensorboard")
    assert code == 2
    assert errors == (
        "error: --tensorboard needs the package 'tensorboard', which is not installed; install it "
        "with: pip install 'fspll[tensorboard]'"
    )


# -------------------------------------------------------------------- folders


@pytest.fixture
def pets(tmp_path):
    """Return a folder of ten classes of four pictures."""
    for number in range(10):
        folder = tmp_path / "pets" / f"pet{number}"
        folder.mkdir(parents=True)
        for i in range(4):
            Image.new("L", (16, 16), 20 * number + i).save(folder / f"{i}.png")
    return tmp_path / "pets"


TINY = (
    *("--n-way", 2, "--n-shot", 2, "--n-query", 1, "--tasks", 1, "--epochs", 1, "--device", "cpu"),
)


def test_a_folder_is_tested_on_classes_it_was_not_trained_on(run, tmp_path, pets):
    where = ("--dataset", pets)
    code, _, notes = run("train", "--out", tmp_path / "run", *where, *TINY)
    chosen = "classes of pets, chosen by a hash of their names; the others are for"
    assert (code, notes) == (0, f"note: training on 8 of the 10 {chosen} test")
    trained = load_checkpoint(tmp_path / "run" / "model.safetensors").metadata["training"]
    assert trained["data"] == "pets/train"
    options = ("--n-way", 2, "--n-shot", 2, "--r", 1, "--tasks", 2, "--methods", "PN")
    saved = tmp_path / "rows.json"
    code, _, notes = run("evaluate", tmp_path / "run", *where, *options, "--save", saved)
    assert (code, notes) == (0, f"note: testing on 2 of the 10 {chosen} training")
    assert json.loads(saved.read_text())["data"] == "pets/test"
    seen, unseen = (datasets.load_images(str(pets), split) for split in ("train", "test"))
    assert not set(seen.class_names) & set(unseen.class_names)
    code, output, notes = run("evaluate", tmp_path / "run", *where, *options, "--all-classes")
    assert (code, output.split(",")[0].strip()) == (0, "pets")
    assert notes == "note: run was trained on pets/train, which shares classes with pets"


def test_a_folder_with_its_own_split(run, tmp_path, pets):
    for part, numbers in (("train", range(7)), ("test", range(7, 10))):
        (pets / part).mkdir()
        for number in numbers:
            (pets / f"pet{number}").rename(pets / part / f"pet{number}")
    code, _, notes = run("train", "--out", tmp_path / "run", "--dataset", pets, *TINY)
    assert (code, notes) == (0, "note: training on 7 classes of pets/train")


def test_too_few_classes_to_split(run, tmp_path, pets):
    for number in range(3, 10):
        shutil.rmtree(pets / f"pet{number}")
    code, output, errors = run("train", "--out", tmp_path / "run", "--dataset", pets, *TINY)
    assert (code, output) == (2, "")
    assert errors == (
        f"error: {pets} has 3 classes, which is too few to train on some and test on others; 4 or "
        "more are needed, or folders train/ and test/ of classes"
    )
