"""``fspll demo``: what a first user reads, and the folder that is left to look at."""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import sys

import pytest

from fspll.cli import progress
from fspll.cli.console import call
from fspll.datasets import load_glyphs
from fspll.datasets.glyphs import drawing
from fspll.embeddings import load_checkpoint
from fspll.labeling import load_model
from fspll.labeling.example import CLASSES  # imported before `_few_classes` replaces what it draws

QUICK = ("demo", "--steps", 2, "--tasks", 2)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def _few_classes(monkeypatch, tmp_path):
    """As many classes and drawings as the tasks of the demo take, and a folder of one's own."""

    def few(n_classes, *, split):
        assert (n_classes, split) in ((400, "train"), (200, "test"))
        return load_glyphs(31 if split == "train" else 21, split=split, size=16)

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(drawing, "load_glyphs", few)
    monkeypatch.chdir(tmp_path)


def column(path, name):
    with path.open(newline="", encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_the_demo_prints_its_table(run, tmp_path):
    code, output, errors = run(*QUICK, "--out", tmp_path / "kept")
    assert (code, errors) == (0, "")
    rows = [re.findall(r"[\d.]+", line) for line in output.splitlines() if line.count("±") == 4]
    assert [row[:2] for row in rows] == [[n, k] for n in ("5", "20") for k in ("2", "3", "4")]
    assert all(0 <= float(figure) <= 1 for row in rows for figure in row[2::2])
    assert len({row[2] for row in rows}) > 1
    lines = output.splitlines()
    place = next(i for i, line in enumerate(lines) if "labels per sample" in line and "PN" in line)
    names = ["PN", "FsPLL-nM", "FsPLL", "adaptive"]
    assert re.findall(r"PN|FsPLL-nM|FsPLL|adaptive", lines[place]) == names
    # Right above, a line says what each column is.
    said = [re.match(r"(\S.*?)   *\S{2,} \S", line) for line in lines[place - 7 : place - 1]]
    assert [one and one[1] for one in said] == ["classes", "labels per sample", *names]
    assert f"The model is in {tmp_path / 'kept'}." in output
    plan = load_checkpoint(tmp_path / "kept" / "model.safetensors").metadata["training"]["plan"]
    assert (plan["regime"], plan["n_tasks"]) == ("leave-one-out", 2)


def test_a_labeled_folder_is_left(run, tmp_path):
    code, output, _ = run(*QUICK)
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        *("README.txt", "labels.csv", "model.safetensors", "pictures", "result", "truth.csv")
    ]
    result, truth = tmp_path / "demo/result", column(tmp_path / "demo/truth.csv", "truth")
    said, sure = column(result / "labels.csv", "label"), column(result / "labels.csv", "confidence")
    right = [one == true for one, true in zip(said, truth, strict=True)]
    n_right = sum(one for one, level in zip(right, sure, strict=True) if float(level) >= 0.9)
    n_sure = sum(float(level) >= 0.9 for level in sure)
    assert (
        f"{sum(right)} of 60 labels are right, and {n_right} of the {n_sure} that are at least 90% "
        "sure; choosing names by chance gives about 20."
    ) in " ".join(output.split())
    for row in range(8):
        assert re.search(rf"drawing_0{row + 1}.png .* {said[row]} .* {truth[row]} *\n", output)
    assert "Look at the report, demo/result/report.html:\n" in output
    assert "drawing_01.png" in (result / "report.html").read_text(encoding="utf-8")
    new = load_model(result).predict([tmp_path / "demo/pictures/drawing_01.png"])
    assert new[0] in CLASSES


@pytest.mark.parametrize("opener", [None, "/usr/bin/open"])
def test_the_commands_that_are_printed_work(run, monkeypatch, tmp_path, opener):
    monkeypatch.setattr(shutil, "which", lambda name: opener)
    _, output, _ = run(*QUICK)
    commands = [shlex.split(line) for line in output.splitlines() if re.match(r" {4}\S", line)]
    first, opening, again, install, own = commands
    report = tmp_path / "demo/result/report.html"
    assert report.is_file()
    # Without a program that opens it, its address.
    assert opening[-1] == ("demo/result/report.html" if opener else report.as_uri())
    assert first == again
    assert first[:3] == ["fspll", "label", "demo/labels.csv"]
    assert install == [sys.executable, "-m", "pip", "install", "fspll[photos]"]
    assert own[:5] == ["fspll", "label", "labels.csv", "--images", "photos"]
    # As the demo says: write the truth beside the first question, and run the command again.
    asked = re.search(
        r"write (\w\w), the truth, into the column 'answer' of (\S+) in demo/result/review.csv, "
        r"and run the command again. Then (\d+) of 60 labels are right, and (\d+) are at least 90%",
        " ".join(output.split()),
    )
    answer, name, n_right, n_sure = asked.groups()
    review = tmp_path / "demo/result/review.csv"
    text = review.read_text(encoding="utf-8")
    assert text.splitlines()[1].startswith(f"{name},,")
    review.write_text(text.replace(f"{name},,", f"{name},{answer},"), encoding="utf-8")
    code, output, _ = run(*again[1:])
    assert code == 0
    assert "1 answered by a person" in output
    assert f"{n_sure} are at least 90% sure" in output
    said = column(tmp_path / "demo/result/labels.csv", "label")
    truth = column(tmp_path / "demo/truth.csv", "truth")
    assert sum(map(str.__eq__, said, truth)) == int(n_right)


def test_an_earlier_demo_is_replaced(run, tmp_path):
    assert run(*QUICK)[0] == 0
    demo = tmp_path / "demo"
    first = {path: path.read_bytes() for path in demo.rglob("*") if path.suffix in (".csv", ".png")}
    review = demo / "result/review.csv"
    review.write_text(re.sub(",,", ",ba,", review.read_text(), count=1))
    (demo / "labels.csv").write_text("file,candidates\n")
    (demo / "pictures/mine.png").write_bytes(b"precious")
    code, output, errors = run(*QUICK)
    assert (code, errors) == (0, "")
    assert "answered by a person" not in output
    assert {path: path.read_bytes() for path in first} == first
    assert (demo / "pictures/mine.png").read_bytes() == b"precious"


def test_the_demo_overwrites_no_model(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"precious")
    code, output, errors = run("demo", "--steps", 2, "--tasks", 2, "--out", tmp_path / "mine")
    expected = f"error: {tmp_path / 'mine'} holds a trained model already; choose another folder"
    assert (code, output, errors) == (2, "", expected)
    assert (tmp_path / "mine" / "model.safetensors").read_bytes() == b"precious"
    (tmp_path / "file").write_text("mine")
    code, output, errors = run("demo", "--steps", 2, "--out", tmp_path / "file")
    expected = f"error: {tmp_path / 'file'} is a file; training needs a folder to write to"
    assert (code, output, errors) == (2, "", expected)


def test_other_folders_are_refused(run, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "labels.csv").write_text("file,candidates\n")
    code, output, errors = run(*QUICK)
    expected = "error: demo holds other things than an earlier demo; choose another folder"
    assert (code, output, errors) == (2, "", expected)
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["labels.csv"]


def test_an_interrupted_demo(run, monkeypatch, tmp_path):
    def interrupt(bar, report):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(progress.TrainingBar, "observe", interrupt)
    code, output, errors = run("demo", "--steps", 9)
    assert (code, errors) == (130, "stopped; what was finished is kept")
    assert "±" not in output
    assert not (tmp_path / "demo").exists()


def test_commands_name_the_program_as_it_can_be_called(monkeypatch, tmp_path):
    program = tmp_path / "bin" / "fspll"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["bin/fspll"])
    assert call("label", "my labels.csv") == "bin/fspll label 'my labels.csv'"
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert call("models") == "fspll models"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "fspll" / "__main__.py")])
    assert call("models") == f"{shlex.quote(sys.executable)} -m fspll models"
