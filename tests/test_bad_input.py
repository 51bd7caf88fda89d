"""Bad input, over the library and the command line: what each gets to hear.

One table. A library case is a function of a folder to work in; a command-line case is a list of
arguments. Messages are compared whole, ``{folder}`` being that folder.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from fspll import Candidates, FsPLLClassifier, TaskSettings, TaskSource, corrupt, diagnose, rectify
from fspll._common.devices import choose_device
from fspll._common.errors import FsPLLError, MissingPackageError
from fspll.baselines import PALOC, PLAGGD, PLECOC, PLKNN, PLLEAF
from fspll.cli.main import main
from fspll.datasets import load_image_folder, load_partial_label_mat
from fspll.embeddings import InputSpec, build_network, load_checkpoint, save_checkpoint
from fspll.rectifiers import FsPLLRule

HOW = (
    "pass a NumPy array for a 0/1 mask, or a list of Python sets such as [{{0, 2}}, {{1}}] for "
    "candidate sets"
)
KNOWN = "glyphs, omniglot, mini-imagenet, lost, MSRCv2"


def fitted():
    return FsPLLClassifier().fit([[0.0, 0.0], [1.0, 1.0]], ["a", "b"])


def wrong_architecture(folder):
    """Say in the metadata that the tensors of a conv4 are those of a wider one."""
    network = build_network("conv4", width=4, size=16, seed=0)
    network.settings["width"] = 8
    save_checkpoint(folder / "net.safetensors", network, input_spec=InputSpec(16, 1))
    load_checkpoint(folder / "net.safetensors")


def cut_model(folder):
    fitted().save(folder / "m.fspll")
    whole = (folder / "m.fspll").read_bytes()
    (folder / "m.fspll").write_bytes(whole[: len(whole) // 2])
    FsPLLClassifier.load(folder / "m.fspll")


def not_a_model(folder):
    (folder / "m.fspll").write_text("a text of more than nine letters")
    FsPLLClassifier.load(folder / "m.fspll")


def save_below_a_file(folder):
    (folder / "file").write_text("in the way")
    fitted().save(folder / "file" / "m.fspll")


def with_network(folder, *pictures):
    network = build_network("conv4", width=4, size=16, seed=0)
    save_checkpoint(folder / "net.safetensors", network, input_spec=InputSpec(16, 1))
    clf = FsPLLClassifier(embedding=folder / "net.safetensors")
    clf.fit(list(pictures), ["a"] * len(pictures))


def missing_picture(folder):
    with_network(folder, folder / "a.png")


def cut_picture(folder):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "a.png")
    whole = (folder / "a.png").read_bytes()
    (folder / "a.png").write_bytes(whole[: len(whole) // 2])
    with_network(folder, folder / "a.png")


def picture_without_class(folder):
    Image.new("L", (8, 8)).save(folder / "a.png")
    load_image_folder(folder)


def truth_outside(folder):
    X = np.arange(4.0).reshape(2, 2)
    savemat(
        folder / "d.mat",
        {"data": X, "partial_target": np.eye(2), "target": np.array([[0, 1], [1, 0]])},
    )
    load_partial_label_mat(folder / "d.mat")


def two_rows(y, **parameters):
    return lambda _: FsPLLClassifier(**parameters).fit([[0.0], [1.0]], y)


def rows(X):
    return lambda _: FsPLLClassifier().fit(X, ["a", "b"])


TABLE = {
    # What y may be.
    "empty candidate set": (
        two_rows([{"a"}, set()]),
        "row 1 of candidates is empty; every sample needs at least one candidate label",
    ),
    "label not in classes": (
        two_rows([{"a"}, {"b"}], classes=["a", "c"]),
        "row 1 has the label 'b', which is not one of the classes 'a', 'c'",
    ),
    "equal integer lists": (
        two_rows([[0, 1], [1, 2]]),
        "2 lists of numbers of equal length 2 could be a 0/1 mask or lists of class numbers; "
        + HOW,
    ),
    "a 2 in a mask": (
        two_rows(np.array([[0, 1], [1, 2]])),
        "a mask of candidates holds 0 and 1 only, but 2 was found at row 1; " + HOW,
    ),
    "mask of another width": (
        two_rows(np.eye(2), classes=["a", "b", "c"]),
        "classes name 3 labels but the candidates have 2 columns",
    ),
    "class named twice": (
        two_rows(["a", "b"], classes=["a", "b", "a"]),
        "classes name 'a' more than once",
    ),
    "text and numbers": (
        two_rows(["a", 1]),
        "labels mix text and numbers: 'a' in row 0, 1 in row 1; use one kind",
    ),
    "unknown label": (
        two_rows(np.array([1.0, np.nan])),
        "Input y contains NaN or infinity, first at row 1; labels must be known",
    ),
    "missing label": (
        two_rows(["a", None]),
        "row 1 holds None of type NoneType; labels are text or numbers",
    ),
    "no labels": (two_rows(None), "requires y to be passed, but the target y is None"),
    "labels in one text": (
        two_rows("ab"),
        "candidate sets cannot be read from str; " + HOW,
    ),
    "too few labels": (
        two_rows(["a"]),
        "Found input variables with inconsistent numbers of samples: X has 2 rows but y has 1 "
        "candidate sets",
    ),
    "everything excluded": (
        lambda _: Candidates.from_exclusions([{"a", "b"}], ["a", "b"]),
        "row 0 excludes all 2 classes; one must stay possible",
    ),
    "truth outside the candidates": (
        lambda _: Candidates.read([{"a", "b"}, {"b"}]).check_truth(["a", "a"]),
        "the true label 'a' of row 1 is not among its candidates ['b']",
    ),
    "r too large": (
        lambda _: corrupt(["a", "b", "c"], 1, 3, np.random.default_rng(0)),
        "r = 3 is too many: with 3 classes there are only 2 other labels to add",
    ),
    "p no share": (
        lambda _: corrupt(["a", "b"], 50, 1, np.random.default_rng(0)),
        "p is a share of the samples, between 0 and 1, not 50",
    ),
    # What X may be.
    "NaN": (
        rows([[0.0, 1.0], [np.nan, 1.0]]),
        "Input X contains NaN at row 1, feature 0; every feature must be a known number",
    ),
    "infinity": (
        rows([[0.0, -np.inf], [0.0, 1.0]]),
        "Input X contains infinity at row 0, feature 1; every feature must be a known number",
    ),
    "too large to square": (
        rows([[1e160], [0.0]]),
        "the largest feature is 1e+160, too large to take distances in float64; multiply the "
        "features by a number that brings them closer to 1",
    ),
    "paths without an embedding": (
        rows(["a.png", "b.png"]),
        "X holds text, but embedding=None expects feature vectors; name an embedding, e.g. "
        "FsPLLClassifier(embedding='model.safetensors')",
    ),
    "another number of features": (
        lambda _: fitted().predict([[1.0]]),
        "X has 1 features, but FsPLLClassifier is expecting 2 features as input.",
    ),
    "score with too few candidate sets": (
        lambda _: fitted().score([[0.0, 0.0], [1.0, 1.0]], [{"a", "b"}]),
        "Found input variables with inconsistent numbers of samples: X has 2 rows but y has 1 "
        "candidate sets",
    ),
    "missing picture": (missing_picture, "picture 0 ({folder}/a.png) does not exist"),
    "cut picture": (
        cut_picture,
        "picture 0 ({folder}/a.png) cannot be decoded, so it is damaged or cut short ...",
    ),
    "picture without a class": (
        picture_without_class,
        "image 'a.png' lies directly in {folder}; every image has to be in a sub-folder that is "
        "named after its class",
    ),
    "truth outside in a file": (
        truth_outside,
        "{folder}/d.mat: the true label 1 of row 0 is not among its candidates [0]",
    ),
    # What clusters may be.
    "diagnose an empty set": (
        lambda _: diagnose([{"a"}, set()], [0, 1]),
        "row 1 of candidates is empty; every sample needs at least one candidate label",
    ),
    "more clusters than labels": (
        lambda _: diagnose([{"a", "b"}, {"a"}, {"b"}], [0, 1, 2]),
        "3 clusters cannot each have a class of their own out of 2; merge clusters or name all "
        "classes",
    ),
    "clusters of another length": (
        lambda _: diagnose([{"a", "b"}, {"a"}], [0, 0, 1]),
        "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), not "
        "one of shape (3,)",
    ),
    "clusters in lists": (
        lambda _: diagnose([{"a", "b"}, {"a"}], [[0], [0, 1]]),
        "clusters names one cluster for each of the 2 candidate sets, not lists of different "
        "lengths",
    ),
    "a NaN among the clusters": (
        lambda _: diagnose([{"a", "b"}, {"a"}], [0, np.nan]),
        "clusters are whole numbers or names, but row 1 holds nan",
    ),
    # FsPLLRule.
    "unknown rectifier": (
        two_rows(["a", "b"], rectifier="magic"),
        "there is no rectifier 'magic'; known are adaptive, evidence, fspll, none",
    ),
    "negative neighbors": (
        two_rows(["a", "b"], n_neighbors=-3),
        "n_neighbors must be a whole number of 0 or more, not -3",
    ),
    "unknown kernel of PL-ECOC": (
        lambda _: PLECOC(kernel="poly").fit([[0.0], [1.0]], ["a", "b"]),
        "kernel must be one of rbf, linear, not 'poly'",
    ),
    "PL-ECOC without columns": (
        lambda _: PLECOC(n_columns=0).fit([[0.0], [1.0]], ["a", "b"]),
        "n_columns must be a whole number of 1 or more, not 0",
    ),
    "PALOC without cost": (
        lambda _: PALOC(C=0.0).fit([[0.0], [1.0]], ["a", "b"]),
        "C must be a number above 0, not 0.0",
    ),
    "unknown scaling of PL-KNN": (
        lambda _: PLKNN(scale="log").fit([[0.0], [1.0]], ["a", "b"]),
        "scale must be one of standard, minmax, none, not 'log'",
    ),
    "PL-AGGD without ridge": (
        lambda _: PLAGGD(ridge=0).fit([[0.0], [1.0]], ["a", "b"]),
        "ridge must be a number above 0, not 0",
    ),
    "PL-AGGD on an empty set": (
        lambda _: PLAGGD().fit([[0.0], [1.0]], [{"a"}, set()]),
        "row 1 of candidates is empty; every sample needs at least one candidate label",
    ),
    "PL-AGGD asked with another number of features": (
        lambda _: PLAGGD().fit([[0.0], [1.0]], ["a", "b"]).predict([[0.0, 1.0]]),
        "X has 2 features, but PLAGGD is expecting 1 features as input.",
    ),
    "unknown solver of PL-LEAF": (
        lambda _: PLLEAF(solver="fast").fit([[0.0], [1.0]], ["a", "b"]),
        "solver must be one of exact, reference, not 'fast'",
    ),
    "PL-LEAF on a NaN": (
        lambda _: PLLEAF().fit([[0.0], [np.nan]], ["a", "b"]),
        "Input X contains NaN at row 1, feature 0; every feature must be a known number",
    ),
    "PL-LEAF scored with a mask of other classes": (
        lambda _: PLLEAF().fit([[0.0], [1.0]], ["a", "b"]).score([[0.0]], np.eye(3)[:1]),
        "classes name 2 labels but the candidates have 3 columns",
    ),
    "unknown metric": (
        lambda _: FsPLLRule(metric="cosine"),
        "metric must be one of euclidean, sqeuclidean, not 'cosine'",
    ),
    "unknown device": (
        lambda _: choose_device("abacus"),
        "device must be 'auto', 'cpu', 'cuda', 'cuda:<number>' or 'mps', not 'abacus'",
    ),
    "unknown embedding": (
        two_rows(["a", "b"], embedding="resnet-9000"),
        "there is no encoder 'resnet-9000'; known are ...",
    ),
    "a class for an embedding": (
        two_rows(["a", "b"], embedding=dict),
        "embedding is the class dict; pass an instance of it",
    ),
    "embeddings as whole numbers": (
        lambda _: rectify(torch.ones(2, 2, dtype=torch.long), torch.ones(2, 1, dtype=torch.bool)),
        "embeddings must be floating point, not torch.int64",
    ),
    "task with too few samples": (
        lambda _: TaskSource(np.zeros(12, int), TaskSettings(1, 5, 15), class_names=["dog"]),
        "n_shot + n_query = 20 but class 'dog' has 12 samples",
    ),
    "task with r too large": (
        lambda _: TaskSettings(5, 5, 15, r=5),
        "r = 5 is too many: with 5 classes there are only 4 other labels to add",
    ),
    # Files.
    "no model": (
        lambda folder: FsPLLClassifier.load(folder / "m.fspll"),
        "there is no model file {folder}/m.fspll",
    ),
    "half a model": (cut_model, "{folder}/m.fspll is damaged or cut short ..."),
    "no model at all": (not_a_model, "{folder}/m.fspll is not a safetensors file ..."),
    "checkpoint of another architecture": (
        wrong_architecture,
        "{folder}/net.safetensors is not a whole conv4: ...",
    ),
    "no place to save": (save_below_a_file, "cannot write {folder}/file/m.fspll: ..."),
    # The command line.
    "get an unknown data set": (
        ["data", "get", "nope"],
        f"there is no data set 'nope'; known are {KNOWN}",
    ),
    "check an unknown data set": (
        ["data", "check", "nope"],
        f"there is no data set 'nope'; known are {KNOWN}",
    ),
    "markup is no markup": (
        ["data", "get", "[bold]x[/]"],
        f"there is no data set '[bold]x[/]'; known are {KNOWN}",
    ),
    "a name of two lines": (
        ["data", "get", "two\nlines"],
        f"there is no data set 'two\\nlines'; known are {KNOWN}",
    ),
    "check an absent data set": (
        ["data", "check", "omniglot"],
        "omniglot is absent: fetch it into {folder}/data/omniglot with: fspll data get omniglot",
    ),
    "get from nowhere": (
        ["data", "get", "omniglot", "--from", "{folder}/none"],
        "{folder}/none does not exist",
    ),
    "get from an empty folder": (
        ["data", "get", "omniglot", "--from", "{folder}"],
        "{folder} has no images_background.zip or images_background, which is a part of omniglot",
    ),
    "get from an address and a folder": (
        ["data", "get", "omniglot", "--from", "{folder}", "--from", "https://127.0.0.1/"],
        "--from https://127.0.0.1/ is an address; give it alone, it is for all files",
    ),
    "get what cannot be fetched": (
        ["data", "get", "lost"],
        "lost is not downloadable; place lost.mat by hand in {folder}/data/pll",
    ),
    "get by an address that is not safe": (
        ["data", "get", "omniglot", "--from", "ftp://127.0.0.1"],
        "ftp://127.0.0.1/images_background.zip is not fetched because only https:// addresses "
        "are; use one",
    ),
    "tasks for Label Studio in a table": (
        ["label", "labels.csv", "--out", "{folder}/out", "--to-label-studio", "tasks.csv"],
        "Label Studio takes tasks as JSON; let the name of tasks.csv end in .json",
    ),
}

LIBRARY = {name: case for name, case in TABLE.items() if callable(case[0])}
COMMANDS = {name: case for name, case in TABLE.items() if isinstance(case[0], list)}


def check_message(found, expected, folder):
    """Compare whole messages; one that ends in ``...`` ends in another library's words."""
    expected = expected.replace("{folder}", str(folder)).replace("{{", "{").replace("}}", "}")
    if expected.endswith("..."):
        assert found.startswith(expected.removesuffix("..."))
    else:
        assert found == expected
    assert len(found.splitlines()) == 1


def test_the_table_is_whole():
    assert len(TABLE) >= 30
    assert len(LIBRARY) + len(COMMANDS) == len(TABLE)


@pytest.mark.parametrize(("do", "message"), LIBRARY.values(), ids=LIBRARY)
def test_library(do, message, tmp_path):
    with pytest.raises(FsPLLError) as caught:
        do(tmp_path)
    assert isinstance(caught.value, ValueError | TypeError | ImportError)
    check_message(str(caught.value), message, tmp_path)


def run(arguments, monkeypatch, capsys):
    """Run the command line in this process; return its exit code, output and error output."""
    monkeypatch.setattr(sys, "argv", ["fspll", *arguments])
    for variable in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SystemExit) as caught:
        main()
    shown = capsys.readouterr()
    return caught.value.code, shown.out, shown.err


@pytest.mark.parametrize(("arguments", "message"), COMMANDS.values(), ids=COMMANDS)
def test_command_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FSPLL_DATA", str(tmp_path / "data"))
    arguments = [argument.replace("{folder}", str(tmp_path)) for argument in arguments]
    code, out, err = run(arguments, monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    check_message(err.removeprefix("error: ").removesuffix("\n"), message, tmp_path)
    assert not (tmp_path / "data").exists()


USAGE = {
    "unknown command": (["learn"], "No such command 'learn'."),
    "unknown command of data": (["data", "wash"], "No such command 'wash'."),
    "unknown option": (["demo", "--taks", "3"], "No such option: --taks"),
    "missing argument": (["data", "get"], "Missing argument"),
    "number out of range": (["demo", "--tasks", "1"], "Invalid value for '--tasks'"),
    "no number": (["demo", "--seed", "lucky"], "Invalid value for '--seed'"),
    "surplus argument": (["demo", "now"], "unexpected extra argument"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_usage_errors(arguments, message, monkeypatch, capsys):
    code, out, err = run(arguments, monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "Usage: fspll" in err
    assert message in err
    assert "Traceback" not in err


def test_ctrl_c_is_answered(monkeypatch, capsys):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("fspll.datasets.DataSet.state", stop)
    code, out, err = run(["data", "list"], monkeypatch, capsys)
    assert (code, out, err) == (130, "", "stopped; what was finished is kept\n")


def test_a_bug_keeps_its_traceback(monkeypatch):
    def crash(*args, **kwargs):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("fspll.datasets.DataSet.state", crash)
    monkeypatch.setattr(sys, "argv", ["fspll", "data", "list"])
    with pytest.raises(ZeroDivisionError, match="a bug of ours"):
        main()


@pytest.mark.parametrize(
    "program", [["-m", "fspll"], ["-c", "import fspll.cli.main as m; m.main()"]]
)
def test_a_process_of_its_own(program, tmp_path):
    with zipfile.ZipFile(tmp_path / "images_background.zip", "w") as packed:
        packed.writestr("elsewhere/note.txt", "no drawings here")
    (tmp_path / "images_evaluation").mkdir()
    for arguments, start in (
        (["data", "get", "nope"], "error: there is no data set 'nope'"),
        (["data", "get", "omniglot", "--from", str(tmp_path)], "error: "),
    ):
        shown = subprocess.run(
            [sys.executable, *program, *arguments], capture_output=True, text=True, timeout=60
        )
        assert (shown.returncode, shown.stdout) == (2, "")
        assert shown.stderr.startswith(start)
        assert len(shown.stderr.splitlines()) == 1, shown.stderr


def test_version_and_help(monkeypatch, capsys):
    from fspll import __version__

    assert run(["--version"], monkeypatch, capsys) == (0, f"fspll {__version__}\n", "")
    code, out, err = run(["--help"], monkeypatch, capsys)
    assert (code, err) == (0, "")
    assert "Learn from a handful of samples whose labels are ambiguous." in out


def test_a_missing_package_says_how_to_install_it():
    error = MissingPackageError("distributed", "cluster", "the scheduler")
    assert isinstance(error, FsPLLError)
    assert isinstance(error, ImportError)
    assert str(error) == (
        "the scheduler needs the package 'distributed', which is not installed; install it with: "
        "pip install 'fspll[cluster]'"
    )
