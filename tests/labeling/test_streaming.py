"""Labels streamed to parquet: the same as those of label, and answers that count."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy import sparse

from fspll import label
from fspll._common.errors import DataError, InputError
from fspll.labeling import label_to_parquet

parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def files(tmp_path):
    """Write vectors of three classes and their candidates; return paths and candidates."""
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    X = (4 * np.eye(3)[truth] + rng.normal(size=(90, 3))).astype(np.float32)
    mask = np.eye(4, dtype=bool)[truth]
    mask[np.arange(90), (truth + rng.integers(1, 4, 90)) % 4] = True
    np.save(tmp_path / "X.npy", X)
    sparse.save_npz(tmp_path / "sets.npz", sparse.csr_array(mask))
    return tmp_path / "X.npy", tmp_path / "sets.npz"


def test_labels_are_those_of_label(files, tmp_path):
    features, sets = files
    out = tmp_path / "out"
    label_to_parquet(features, sets, out)
    table = parquet.read_table(out / "labels.parquet").to_pydict()
    expected = label((np.load(features), sparse.load_npz(sets)))
    assert table["sample"] == list(expected.names)
    assert table["label"] == [str(one) for one in expected.labels]
    assert np.allclose(table["confidence"], expected.confidence, atol=1e-6)
    assert table["candidates"][0] == [str(one) for one in expected.candidates.names(0)]
    assert sorted(path.name for path in out.iterdir()) == [
        "labels.parquet",
        "model.fspll",
        "review.csv",
    ]


def test_an_answer_counts_while_its_vector_is_in_its_row(files, tmp_path):
    features, sets = files
    out = tmp_path / "out"
    label_to_parquet(features, sets, out)
    lines = list(csv.DictReader((out / "review.csv").read_text().splitlines()))
    row, other = int(lines[0]["sample"].split()[1]), lines[0]["candidates"].split("|")[-1]
    lines[0]["answer"] = other
    with (out / "review.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    found = label_to_parquet(features, sets, out)
    assert found.n_answers == 1
    table = parquet.read_table(out / "labels.parquet").to_pydict()
    assert (table["label"][row], table["confidence"][row]) == (other, 1.0)
    moved = np.load(features)
    moved[row] += 1
    np.save(features, moved)
    found = label_to_parquet(features, sets, out)
    assert (found.n_answers, [one.sample for one in found.unused]) == (0, [f"row {row}"])
    assert other in (out / "answers.csv").read_text()  # a person's answer is never lost


def test_files_that_cannot_be_mapped_are_refused(files, tmp_path):
    features, sets = files
    np.save(features, np.ones((90, 3), dtype=np.int64))
    with pytest.raises(DataError, match="must be float32 or float64 by rows"):
        label_to_parquet(features, sets, tmp_path / "out")
    np.save(features, np.ones((89, 3)))
    with pytest.raises(InputError, match="X has 89 rows but y has 90 candidate sets"):
        label_to_parquet(features, sets, tmp_path / "out")
    content = features.read_bytes()
    features.write_bytes(content[:-8])
    with pytest.raises(DataError, match="is not a whole array: it declares"):
        label_to_parquet(features, sets, tmp_path / "out")
