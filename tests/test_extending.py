"""docs/extending.md is true: its package is built outside of fspll, and everything on it is run."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import sys
import tomllib
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fspll import FsPLLClassifier
from fspll._common.errors import CheckpointError, InputError
from fspll.baselines import BASELINES
from fspll.cli.main import main
from fspll.datasets import DATASETS, load_images
from fspll.embeddings import ENCODERS, read_metadata
from fspll.experiments import evaluate
from fspll.metalearning import REGIMES, TrainingPlan, train
from fspll.modelfile import FORMAT
from fspll.rectifiers import RECTIFIERS
from fspll.tasks import TaskSettings
from page_runner import read_blocks

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = [(block.language, block.text) for block in read_blocks(PAGE)]
FILES = {  # the package's modules: blocks that begin with their path
    content.split("\n")[0].removeprefix("# "): content
    for language, content in BLOCKS
    if language == "python" and content.startswith("# my_lab/")
}
(PROJECT,) = (tomllib.loads(content) for language, content in BLOCKS if language == "toml")
REGISTRIES = [DATASETS, ENCODERS, RECTIFIERS, BASELINES, REGIMES]
OWN_PROCESS = ("soft", "soft/model.fspll")  # label and predict, by encoder and rectifier

pytestmark = pytest.mark.usefixtures("one_thread")


# -------------------------------------------------------------------- the package of the page


def write_package(folder):
    """Write the modules of the page, and what an installer would write of their registration."""
    (folder / "my_lab").mkdir(parents=True)
    (folder / "my_lab" / "__init__.py").touch()
    for path, content in FILES.items():
        (folder / path).write_text(content)
    about = folder / "my_lab-1.0.dist-info"
    about.mkdir()
    name, version = PROJECT["project"]["name"], PROJECT["project"]["version"]
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, points in PROJECT["project"]["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


@contextmanager
def importable(folder):
    """Let this process see what is in a folder, and forget it afterwards."""

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_lab"]:
            del sys.modules[name]
        for registry in REGISTRIES:
            vars(registry).pop("_found", None)

    before = [dict(registry._things) for registry in REGISTRIES]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        forget()
        try:
            yield
        finally:
            for registry, things in zip(REGISTRIES, before, strict=True):
                registry._things = things
            forget()


def command(line):
    """Run ``fspll ...`` in this process; return its exit code and its output."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", shlex.split(line))
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code, out.getvalue(), err.getvalue()


def command_in_own_process(line, package):
    """Run ``fspll ...`` in a process of its own that finds the package; return the same."""
    words = [sys.executable, "-m", "fspll", *shlex.split(line)[1:]]
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(words, capture_output=True, text=True, timeout=200, env=environment)
    return ended.returncode, ended.stdout, ended.stderr


@dataclass
class Ran:
    """The page after everything on it was run: where, and what each block printed."""

    package: Path
    work: Path
    commands: dict[str, str]  # output by command line
    shown: list[tuple[str, str]]  # what code printed, and what the page shows after it


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run the page from top to bottom in an empty folder."""
    package, work, home = (tmp_path_factory.mktemp(name) for name in ("package", "work", "home"))
    write_package(package)
    found = Ran(package, work, {}, [])
    printed = ""
    with pytest.MonkeyPatch.context() as patch, importable(package):
        patch.chdir(work)
        for variable in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "FSPLL_DATA"):
            patch.setenv(variable, str(home / variable))
        for language, content in BLOCKS:
            if language == "console":
                for line in content.splitlines():
                    if set(OWN_PROCESS) & set(shlex.split(line)):
                        code, out, err = command_in_own_process(line, package)
                    else:
                        code, out, err = command(line)
                    assert code == 0, f"{line}\n{err}"
                    found.commands[line] = out
            elif language == "python" and content not in FILES.values():
                prints = io.StringIO()
                with redirect_stdout(prints):
                    exec(compile(content, "extending.md", "exec"), {})  # our own file
                printed = prints.getvalue()
            elif language == "" and printed:
                found.shown.append((printed, content))
                printed = ""
    assert not printed, "the page does not show what its code prints"
    return found


@pytest.fixture
def outside(ran, monkeypatch):
    """Let a test use the package of the page in this process."""
    monkeypatch.chdir(ran.work)
    with importable(ran.package):
        yield ran


def output(ran, *words):
    """Return what the only command with these words printed."""
    (found,) = (out for line, out in ran.commands.items() if set(words) <= set(line.split()))
    return found


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# -------------------------------------------------------------------- the page


def test_each_kind_is_one_file_and_one_registration():
    points = PROJECT["project"]["entry-points"]
    assert set(points) == {registry.group for registry in REGISTRIES}
    assert all(len(names) == 1 for names in points.values())
    places = [place for names in points.values() for place in names.values()]
    assert sorted(f"{place.partition(':')[0].replace('.', '/')}.py" for place in places) == sorted(
        FILES
    )
    (layout,) = (content for language, content in BLOCKS if content.startswith("my-lab/"))
    for path in FILES:
        assert f"    {Path(path).name} " in layout


def test_code_prints_what_the_page_shows(ran):
    assert len(ran.shown) == 2
    for printed, shown in ran.shown:
        assert printed == shown


def test_every_kind_is_used_by_a_command(ran):
    alone = [line for line in ran.commands if set(OWN_PROCESS) & set(line.split())]
    assert [line.split()[1] for line in alone] == ["label", "predict"]
    assert "--encoder thumbnails --rectifier soft-means" in alone[0]
    used = {shlex.split(line)[1] for line in ran.commands}
    assert used == {"data", "models", "train", "evaluate", "label", "predict"}
    for names in PROJECT["project"]["entry-points"].values():
        assert any(name in line for name in names for line in ran.commands)


def test_names_are_listed_without_an_import(outside):
    for registry in REGISTRIES:
        (name,) = PROJECT["project"]["entry-points"][registry.group]
        assert name in registry.names()
    assert not [name for name in sys.modules if name.startswith("my_lab")]


# -------------------------------------------------------------------- each kind


def test_the_data_set(outside):
    listed = output(outside, "data", "list").splitlines()
    assert listed[-1].split("\t")[0] == "flags"
    assert listed[-1].endswith("built in: nothing to fetch")
    parts = [load_images("FLAGS", split, size=9) for split in ("train", "test")]
    assert [data.n_classes for data in parts] == [100, 25]
    assert not set(parts[0].class_names) & set(parts[1].class_names)
    assert parts[1].images.shape == (500, 9, 9, 3)
    metadata = read_metadata(outside.work / "flags-network" / "model.safetensors")
    assert metadata["training"]["data"] == "flags/train"
    assert "flags/test, 20 tasks per setting" in output(outside, "evaluate", "flags-network")


def test_the_encoder(outside):
    (row,) = (line for line in output(outside, "models").splitlines() if "thumbnails" in line)
    assert "Thumbnails" in row
    assert "pictures" in row
    assert "see the package my_lab" in row
    labels = table(outside.work / "result" / "labels.csv")
    flags = load_images("flags", "test")
    truth = np.array(flags.class_names)[flags.labels[:99]]
    assert np.mean(truth == [row["label"] for row in labels]) > 0.9
    name, label, *_ = output(outside, "predict", "result/model.fspll").splitlines()[-1].split("\t")
    assert (name, label) == ("photos/99.png", flags.class_names[flags.labels[99]])
    assert "thumbnails" in (outside.work / "result" / "report.html").read_text(encoding="utf-8")


def test_a_model_keeps_the_encoder_by_name(outside, tmp_path):
    flags = load_images("flags", "test")
    clf = FsPLLClassifier(embedding="thumbnails").fit(flags.images[:40], flags.labels[:40])
    assert clf.prototypes_.shape == (2, 108)
    clf.save(tmp_path / "model.fspll")
    again = FsPLLClassifier.load(tmp_path / "model.fspll")
    assert np.array_equal(again.predict_proba(flags.images), clf.predict_proba(flags.images))


def test_the_rectifier(outside):
    labels = table(outside.work / "soft" / "labels.csv")
    flags = load_images("flags", "test")
    truth = np.array(flags.class_names)[flags.labels[:99]]
    assert np.mean(truth == [row["label"] for row in labels]) > 0.9
    plain = table(outside.work / "result" / "labels.csv")
    assert [row["confidence"] for row in labels] != [row["confidence"] for row in plain]
    _, label, *_ = output(outside, "predict", "soft/model.fspll").splitlines()[-1].split("\t")
    assert label == flags.class_names[flags.labels[99]]
    # Its confidences are not called probabilities, since it does not say that they are.
    assert "mean score of the labels" in output(outside, "label", "soft-means")
    report = (outside.work / "soft" / "report.html").read_text(encoding="utf-8")
    assert "got one label each" in report
    found = {row["method"]: float(row["mean"]) for row in table(outside.work / "soft.csv")}
    assert list(found) == ["PN", "soft-means"]
    assert found["soft-means"] > found["PN"]


def test_the_settings_of_the_rectifier_are_checked(outside):
    with pytest.raises(ValueError, match="sharpness must be positive, not 0"):
        RECTIFIERS.get("soft-means")(sharpness=0)
    with pytest.raises(InputError, match="metric must be one of"):
        RECTIFIERS.get("soft-means")(metric="manhattan")


def test_the_baseline(outside):
    found = {row["method"]: float(row["mean"]) for row in table(outside.work / "means.csv")}
    assert list(found) == ["weighted-means", "PL-KNN"]
    assert found["weighted-means"] > 0.5  # one of five classes
    clf = BASELINES.get("weighted-means")(scale="none")
    clf.fit([[0.0], [3.0], [9.0]], [{"a"}, {"a", "b"}, {"b"}])
    np.testing.assert_allclose(clf.means_.ravel(), [1.0, 7.0])


def test_everything_at_once_in_python(outside):
    rows = evaluate(
        ["thumbnails"],
        load_images("flags", "test"),
        [TaskSettings(n_way=5, n_shot=4, n_query=4, r=1)],
        ["soft-means", "weighted-means"],
        n_tasks=5,
    )
    assert [(row.checkpoint, row.method) for row in rows] == [
        ("thumbnails", "soft-means"),
        ("thumbnails", "weighted-means"),
    ]


def test_the_regime(outside, tmp_path):
    folder = outside.work / "margin-network"
    training = read_metadata(folder / "model.safetensors")["training"]
    assert training["plan"]["regime"] == "candidate-margin"
    assert training["steps"] == len((folder / "log.jsonl").read_text().splitlines()) == 5
    assert "FsPLL" in output(outside, "evaluate", "margin-network")
    regime = REGIMES.get("Candidate_Margin")
    solved = SimpleNamespace(
        query_log_p=lambda: torch.tensor([[-0.1, -2.5, -4.0], [-0.1, -2.5, -4.0]]),
        query_labels=torch.tensor([[False, True, True], [True, False, False]]),
    )
    assert regime.objective(solved).item() == pytest.approx(3.4 / 2)
    REGIMES.register("blind-margin", replace(regime, query="none"))
    plan = TrainingPlan(regime="blind-margin", n_way=3, n_shot=2, n_query=1, n_tasks=1, epochs=1)
    with pytest.raises(InputError, match="reads query labels, but the regime hides them"):
        train(load_images("flags", "train", size=16), plan, tmp_path, device="cpu")


# -------------------------------------------------------------------- files that name things


@pytest.mark.parametrize(
    ("model", "needs"), [("soft", "rectifier 'soft-means'"), ("result", "encoder 'thumbnails'")]
)
def test_without_the_package_a_model_is_refused(ran, monkeypatch, model, needs):
    monkeypatch.chdir(ran.work)
    code, out, err = command(f"fspll predict {model}/model.fspll photos/99.png")
    assert (code, out) == (2, "")
    said = " ".join(err.split())
    assert f"model.fspll needs the {needs}, which is not registered here; install the" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", ["rectifier", "embedding"])
@pytest.mark.parametrize("name", ["my_lab", "my_lab.soft_means", "my_lab.soft_means:SoftMeans"])
def test_a_file_imports_nothing_that_is_not_registered(ran, tmp_path, monkeypatch, kind, name):
    """The modules can be imported here; they are only not registered under these names."""
    monkeypatch.syspath_prepend(str(ran.package))
    tensors, metadata = FORMAT.read(ran.work / "soft" / "model.fspll")
    if kind == "rectifier":
        metadata["parameters"]["rectifier"] = name
    else:
        metadata["parameters"]["rectifier"] = "none"
        metadata["embedding"]["name"] = name
    path = tmp_path / "model.fspll"
    FORMAT.write(path, tensors, json.loads(json.dumps(metadata)))
    before = set(sys.modules)
    with pytest.raises(CheckpointError, match=f"'{name}', which is not registered here"):
        FsPLLClassifier.load(path)
    assert set(sys.modules) == before


def test_a_registered_module_that_cannot_be_imported_is_named(ran, tmp_path):
    write_package(tmp_path)
    for path in FILES:
        (tmp_path / path).write_text("import a_package_that_is_not_there\n")
    reason = "cannot be imported: No module named 'a_package_that_is_not_there'"
    with importable(tmp_path):
        for model, what in (("soft", "rectifier 'soft-means'"), ("result", "encoder 'thumbnails'")):
            with pytest.raises(CheckpointError, match=f"needs the {what}: .*{reason}"):
                FsPLLClassifier.load(ran.work / model / "model.fspll")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.noun)
def test_an_entry_point_that_leads_to_the_wrong_thing_is_named(tmp_path, registry):
    write_package(tmp_path)
    for path in FILES:
        (tmp_path / path).write_text(
            "Flags = Thumbnails = SoftMeans = WeightedMeans = CANDIDATE_MARGIN = 5\n"
        )
    (name,) = PROJECT["project"]["entry-points"][registry.group]
    with (
        importable(tmp_path),
        pytest.raises(InputError, match=f"what is registered as the {registry.noun} '{name}'"),
    ):
        registry.get(name)
