"""``fspll label`` of files with many rows, and encoding on a cluster that is not there."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def words(tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    mask = np.eye(4, dtype=bool)[truth]
    mask[np.arange(60), (truth + rng.integers(1, 4, 60)) % 4] = True
    np.save(tmp_path / "X.npy", 4 * np.eye(3)[truth] + rng.normal(size=(60, 3)))
    sparse.save_npz(tmp_path / "sets.npz", sparse.csr_array(mask))
    files = tmp_path / "sets.npz", "--features", tmp_path / "X.npy"
    return ("label", *files, "--out", tmp_path / "out")


def test_more_rows_than_are_read_as_a_whole_are_streamed(run, words, tmp_path, monkeypatch):
    monkeypatch.setenv("FSPLL_MAX_ROWS", "50")
    code, said, errors = run(*words)
    assert (code, errors) == (0, "")
    assert "60 samples, 4 classes, 0 answers of a person" in said
    assert "there is no report of so many" in said
    assert (tmp_path / "out" / "labels.parquet").exists()
    for option, value in (("--sure", "0.9"), ("--encoder", "photos"), ("--device", "cpu")):
        code, _, errors = run(*words, option, value)
        assert code == 2
        message = f"error: {option} has no effect on labels that are streamed to parquet"
        assert errors.startswith(message)


def test_a_later_result_in_tables_replaces_a_streamed_one(run, words, tmp_path):
    assert run(*words, "--parquet")[0] == 0
    assert run(*words)[0] == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert "labels.csv" in names
    assert "labels.parquet" not in names


def test_other_files_than_arrays_are_not_streamed(run, tmp_path):
    (tmp_path / "labels.csv").write_text("sample,candidates\na,x|y\n")
    code, _, errors = run("label", tmp_path / "labels.csv", "--parquet", "--out", tmp_path / "out")
    assert code == 2
    assert "from candidates in an .npz file" in errors
    assert "not from labels.csv and no vectors" in errors


def test_a_scheduler_that_does_not_answer_is_one_sentence(run, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("fspll._common.cluster.CONNECTING", 0.5)
    table = tmp_path / "labels.csv"
    from PIL import Image

    for name in "ab":
        Image.fromarray(np.zeros((28, 28), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    table.write_text("file,candidates\na.png,x|y\nb.png,x\n")
    code, _, errors = run(
        *("label", table, "--images", tmp_path, "--encoder", "omniglot-conv4"),
        *("--out", tmp_path / "out", "--scheduler", "tcp://127.0.0.1:9"),
    )
    assert code == 2
    assert "error: no Dask scheduler answers at tcp://127.0.0.1:9" in errors
    assert "Traceback" not in errors
