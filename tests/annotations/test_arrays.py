"""Feature vectors: .mat and .npz files, and vectors for a table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from fspll._common.errors import DataError, InputError
from fspll.annotations import read_annotations

X = np.arange(6.0).reshape(3, 2)
MASK = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]])
CLASSES = ["dog", "cat", "lynx", "nobody"]
EXPECTED = {"row 0": {"dog": 1, "cat": 1}, "row 1": {"lynx": 1}, "row 2": {"dog": 1, "lynx": 1}}


@pytest.fixture
def save(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "s.npz", **arrays)
        return tmp_path / "s.npz"

    return write


def test_mat(tmp_path, votes_of):
    savemat(tmp_path / "s.mat", {"data": X, "partial_target": MASK.T})
    found = read_annotations(tmp_path / "s.mat", classes=CLASSES)
    assert votes_of(found) == EXPECTED
    np.testing.assert_array_equal(found.features, X)
    assert found.origins[2] == "s.mat, row 2"
    assert read_annotations(tmp_path / "s.mat").classes == ("0", "1", "2")
    with pytest.raises(DataError, match="4 columns of candidates but 2 different classes"):
        read_annotations(tmp_path / "s.mat", classes=["a", "b"])
    with pytest.raises(InputError, match=r"sample=... names a column, but s\.mat has arrays"):
        read_annotations(tmp_path / "s.mat", sample="x")
    with pytest.raises(DataError, match=r"nix\.mat does not exist"):
        read_annotations(tmp_path / "nix.mat")


def test_a_real_mat_file(real_data):
    found = read_annotations(real_data("pll/lost.mat"))
    assert len(found) == len(found.features) == 1122
    assert found.votes.data.min() == found.votes.data.max() == 1


@pytest.mark.parametrize("key", ["candidates", "mask", "y", "votes", "partial_target"])
@pytest.mark.parametrize("dtype", [bool, np.uint8, float])
def test_npz_mask(save, votes_of, key, dtype):
    found = read_annotations(save(X=X, classes=CLASSES, **{key: MASK.astype(dtype)}))
    assert votes_of(found) == EXPECTED
    np.testing.assert_array_equal(found.features, X)


def test_npz_names_and_no_features(save):
    found = read_annotations(save(mask=MASK, names=["a", "b", "c"]))
    assert found.names == ("a", "b", "c")
    assert found.features is None
    assert found.classes == ("0", "1", "2")


def test_npz_counts(save, votes_of):
    path = save(votes=MASK * np.array([[3], [1], [1]]) + np.eye(3, 4, dtype=int), classes=CLASSES)
    counts = votes_of(read_annotations(path))
    assert counts["row 0"] == {"dog": 4, "cat": 3}
    assert votes_of(read_annotations(path, combine="majority"))["row 0"] == {"dog": 4}


def test_npz_sparse_mask(tmp_path, save, votes_of):
    parts = sparse.csr_array(MASK)
    whole = {"indptr": parts.indptr, "indices": parts.indices, "shape": parts.shape}
    assert votes_of(read_annotations(save(X=X, classes=CLASSES, **whole))) == EXPECTED
    sparse.save_npz(tmp_path / "t.npz", parts * 2)
    found = read_annotations(tmp_path / "t.npz", classes=CLASSES)
    assert votes_of(found)["row 1"] == {"lynx": 2}
    assert found.features is None
    sparse.save_npz(tmp_path / "t.npz", parts.tocsc())
    with pytest.raises(DataError, match="must be stored by rows"):
        read_annotations(tmp_path / "t.npz")
    whole["indices"] = whole["indices"] + 90
    with pytest.raises(DataError, match="the sparse mask is damaged"):
        read_annotations(save(**whole))


def test_npz_one_value_a_sample(save, votes_of):
    found = read_annotations(save(X=X, y=np.array(["cat|dog", "dog", "cat"]), names=[7, 8, 9]))
    assert votes_of(found) == {"7": {"cat": 1, "dog": 1}, "8": {"dog": 1}, "9": {"cat": 1}}
    assert found.features.shape == (3, 2)
    found = read_annotations(save(y=np.array([2, 0]), classes=CLASSES))
    assert votes_of(found) == {"row 0": {"lynx": 1}, "row 1": {"dog": 1}}
    assert read_annotations(save(y=np.array([20, 3]))).classes == ("20", "3")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "has no array of candidates .* it has 'X'"),
        ({"y": MASK * 2}, "row 0 of 'y' holds 2; only 0 and 1 are allowed"),
        ({"votes": -MASK}, "row 0 of 'votes' holds -1; only counts are allowed"),
        ({"votes": MASK * np.nan}, "row 0 of 'votes' holds nan; only counts"),
        ({"y": np.zeros((0, 3))}, "'y' has no rows"),
        ({"y": np.array([0.5])}, "'y' of shape .* holds float64; expected texts"),
        ({"y": np.array([5]), "classes": CLASSES}, "row 0 of 'y' is 5, but there are 4 classes"),
        ({"y": MASK[None]}, r"'y' of shape \(1, 3, 4\)"),
        ({"y": MASK, "X": X[:2]}, "has 2 rows of features but 3 samples"),
        ({"y": np.array([1, 2]), "X": X}, "has 3 rows of features but 2 samples"),
        ({"y": MASK, "X": X[:, 0]}, r"'X' must be of shape \(samples, features\), not \(3,\)"),
        ({"y": MASK, "X": np.where(X == 3, np.inf, X)}, "'X', row 1, column 1 is inf"),
        ({"y": MASK, "X": X.astype(str)}, "'X' holds <U.*, not numbers"),
        ({"y": MASK, "names": ["a", "b", "a"]}, "must have 3 different names"),
        ({"y": np.array([1, 2]), "names": ["a"]}, "has 2 samples but 1 name"),
        ({"y": MASK, "names": np.eye(3)}, "'names' of shape .* expected a list of texts"),
        ({"y": MASK, "classes": ["a"]}, "has 4 columns of candidates but 1 different class"),
        ({"y": np.array([{"a"}], dtype=object)}, "holds Python objects"),
    ],
)
def test_npz_errors(save, arrays, message):
    with pytest.raises(DataError, match=message):
        read_annotations(save(**arrays))


def test_damaged_and_missing_files(make, tmp_path, save):
    whole = save(X=X, y=MASK).read_bytes()
    for content in (b"", b"nonsense", whole[:-30], whole[: len(whole) // 2]):
        with pytest.raises(DataError, match=r"d\.npz cannot be read"):
            read_annotations(make("d.npz", content))
    with pytest.raises(DataError, match=r"nix\.npz does not exist"):
        read_annotations(tmp_path / "nix.npz")


# -------------------------------------------------------------------- vectors for a table


@pytest.fixture
def table(make):
    return make("l.csv", "sample,annotator,label\na,1,x\nb,1,y\na,2,y\nc,1,x\n")


def test_vectors_in_the_order_of_the_samples(table, tmp_path):
    np.save(tmp_path / "v.npy", X.astype(np.float32))
    found = read_annotations(table, features=tmp_path / "v.npy")
    assert found.names == ("a", "b", "c")
    assert found.features.dtype == np.float32
    np.testing.assert_array_equal(found.features, X)
    np.testing.assert_array_equal(read_annotations(table, features=X).features, X)
    assert read_annotations(table, features=X.astype(int)).features.dtype == np.float64


def test_vectors_by_name(table, save):
    path = save(X=X, names=["c", "a", "b"])
    np.testing.assert_array_equal(read_annotations(table, features=path).features, X[[1, 2, 0]])
    with pytest.raises(DataError, match=r"no vector for the sample 'b' \(l\.csv, row 3\)"):
        read_annotations(table, features=save(X=X, names=["c", "a", "z"]))
    with pytest.raises(DataError, match="names 'a' more than once"):
        read_annotations(table, features=save(X=X, names=["a", "a", "b"]))
    with pytest.raises(DataError, match="has 3 vectors but 1 name"):
        read_annotations(table, features=save(X=X, names=["a"]))


def test_vectors_that_do_not_fit(table, save, tmp_path):
    np.save(tmp_path / "v.npy", X[:2])
    with pytest.raises(DataError, match=r"v\.npy has 2 rows but l\.csv has 3 samples"):
        read_annotations(table, features=str(tmp_path / "v.npy"))
    with pytest.raises(DataError, match="has no array 'X'; it has 'a', 'b'"):
        read_annotations(table, features=save(a=X, b=X))
    np.testing.assert_array_equal(read_annotations(table, features=save(a=X)).features, X)
    with pytest.raises(DataError, match="features, row 1, column 0 is nan"):
        read_annotations(table, features=np.where(X == 2, np.nan, X))
    with pytest.raises(DataError, match=r"holds features without labels; .*features='v.npy'"):
        read_annotations(tmp_path / "v.npy")
