"""``fspll diagnose``: what candidate sets alone can decide, and what they decide with samples."""

from __future__ import annotations

import numpy as np
import pytest

TABLE = """sample,candidates,pile
s0,lynx|cat,1
s1,lynx|cat|dog,1
s2,lynx|cat,1
s3,cat|lynx,2
s4,cat|lynx|fox,2
s5,dog|fox,3
s6,dog|cat,3
s7,fox|dog,4
s8,fox|lynx,4
s9,fox,4
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(TABLE)
    return path


def test_sets_alone(run, table):
    code, output, complaints = run("diagnose", table)
    assert (code, complaints) == (0, "")
    lines = output.splitlines()
    read = "labels.csv: 10 samples, 4 labels (cat, dog, fox, lynx), labels from 'candidates'"
    assert lines[0] == f"{read}, separator '|', samples from 'sample'"
    counts = "1 with 1, 7 with 2, 2 with 3"
    assert lines[1] == f"10 samples, 4 classes, 2.10 candidates per sample ({counts})"
    assert lines[2] == "1 of 4 classes have a sample with no other candidate"
    assert lines[-1].startswith("to compute the largest share of labels that can be right, say")


def test_labels_that_may_be_the_same_are_noted_and_merged(run, tmp_path, table):
    table.write_text(TABLE.replace("s9,fox", "s9,Fox"))
    code, _, complaints = run("diagnose", table)
    assert code == 0
    assert complaints == (
        "note: labels that may be the same: 'fox' (4) and 'Fox' (1); --merge-similar makes them "
        "one, and --rename FILE says what to call them"
    )
    code, output, complaints = run("diagnose", table, "--merge-similar")
    assert (code, complaints) == (0, "")
    assert output.splitlines()[0].endswith("'Fox' is 'fox'")
    renames = tmp_path / "renames.csv"
    renames.write_text("from,to\nFox,fox\nlynx,cat\n")
    code, output, complaints = run("diagnose", table, "--rename", renames)
    assert (code, complaints) == (0, "")
    assert "10 samples, 3 labels (cat, dog, fox), " in output


def test_groups_give_the_ceiling_and_questions_by_name(run, table):
    code, output, _ = run("diagnose", table, "--groups", "pile")
    assert code == 0
    assert "no method can expect more than 75.0% of the labels to be right" in output
    assert ", groups from 'pile'" in output.splitlines()[0]
    assert "cannot be told apart, given the clusters: cat, lynx" in output
    assert "ask for the label of s0 (cat or lynx): up to 100.0% right" in output


def test_inseparable_labels_few_samples_and_votes(run, tmp_path):
    path = tmp_path / "labels.csv"
    rows = ["sample,annotator,label"]
    rows += [f"s{i},{who},{what}" for i in range(3) for who, what in (("x", "a"), ("y", "b"))]
    rows += ["s3,x,c", "s3,y,c", "s4,x,d"]
    path.write_text("\n".join(rows) + "\n")
    code, output, _ = run("diagnose", path)
    assert code == 0
    assert "always together, cannot be told apart by any sample: a, b" in output
    assert "too few samples that may have the label: c (1), d (1)" in output
    assert "9 votes; labels with more votes count more" in output
    assert "2 of 4 classes have a sample with no other candidate" in output


def test_with_vectors(run, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.repeat(list("abc"), 6)
    X = np.repeat(rng.normal(size=(3, 6)) * 6, 6, axis=0) + rng.normal(size=(18, 6)) * 0.2
    rows = [f"s{i},{name}" for i, name in enumerate(truth)]
    rows[4] = "s4,b|c"
    (tmp_path / "labels.csv").write_text("\n".join(["sample,candidates", *rows]) + "\n")
    np.save(tmp_path / "X.npy", X)
    code, output, complaints = run(
        "diagnose", tmp_path / "labels.csv", "--features", tmp_path / "X.npy"
    )
    assert (code, complaints) == (0, "")
    assert "with the samples sorted by the encoder:" in output
    assert "likely contradiction: s4 lies among samples of a" in output


def test_what_is_refused(run, table, tmp_path):
    code, output, complaints = run("diagnose", table, "--groups", "pile", "--images", tmp_path)
    assert (code, output) == (2, "")
    assert "give one of them" in complaints
    code, _, complaints = run("diagnose", table, "--groups", "nothing")
    assert code == 2
    assert "'nothing'" in complaints
    code, _, complaints = run("diagnose", tmp_path / "none.csv")
    assert code == 2
