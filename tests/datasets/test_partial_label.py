"""Partial-label sets from .mat files, real and made up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from fspll._common.errors import DataError
from fspll.datasets.partial_label import load_partial_label_mat, load_partial_label_split

# Four samples, three features, five classes; class 4 is nobody's candidate.
DATA = np.arange(12, dtype=float).reshape(4, 3)
TRUE = np.array([0, 1, 3, 2])
MASK = np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 1, 1, 0, 0]])
TARGET = np.eye(5)[TRUE]


def save(tmp_path, **variables):
    savemat(tmp_path / "small.mat", variables)
    return tmp_path / "small.mat"


def check(data):
    np.testing.assert_array_equal(data.X, DATA)
    np.testing.assert_array_equal(data.candidates.mask, MASK.astype(bool))
    np.testing.assert_array_equal(data.true_labels, TRUE)
    assert data.X.dtype == np.float64
    assert data.true_labels.dtype == np.int64
    assert (data.name, data.n_classes, len(data)) == ("small", 5, 4)


@pytest.mark.parametrize(
    "store",
    [
        lambda m: m.T.astype(float),
        lambda m: m.T.astype(np.uint8),
        lambda m: sparse.csc_matrix(m.T.astype(float)),
        lambda m: m.astype(np.int16),  # one row per sample
    ],
    ids=["dense", "uint8", "sparse", "rows"],
)
def test_label_matrices_of_every_kind(tmp_path, store):
    path = save(tmp_path, data=DATA, target=store(TARGET), partial_target=store(MASK))
    check(load_partial_label_mat(path))


def test_integer_and_sparse_features_are_cast(tmp_path):
    for data in (DATA.astype(np.uint8), sparse.csc_matrix(DATA)):
        check(
            load_partial_label_mat(
                save(tmp_path, data=data, target=TARGET.T, partial_target=MASK.T)
            )
        )


def test_truth_may_be_unknown(tmp_path):
    data = load_partial_label_mat(save(tmp_path, data=DATA, partial_target=MASK.T))
    assert data.true_labels is None
    assert repr(data) == "PartialLabelSet('small': 4 samples, 3 features, 5 classes)"


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": changed(DATA, (2, 1), np.nan)}, "row 2, column 1 of 'data' is nan"),
        ({"data": changed(DATA, (3, 0), np.inf)}, "row 3, column 0 of 'data' is inf"),
        ({"data": DATA[:3]}, r"'partial_target' of shape \(5, 4\) does not fit the 3 rows"),
        ({"target": TARGET.T[:4]}, "'target' has 4 classes but 'partial_target' has 5"),
        (
            {"partial_target": changed(MASK, (2, 3), 0).T},
            r"true label 3 of row 2 is not among its candidates \[0, 2\]",
        ),
        ({"partial_target": changed(MASK, (1, 0), 0.5).T}, "'partial_target' holds 0.5 for row 1"),
        ({"target": changed(TARGET, (3, 2), 0).T}, "row 3 has 0 true labels in 'target'"),
        ({"target": changed(TARGET, (0, 4), 1).T}, "row 0 has 2 true labels in 'target'"),
        ({"data": "text"}, "'data' holds char, not numbers"),
    ],
)
def test_contradictions_name_the_place(tmp_path, change, message):
    good = {"data": DATA, "target": TARGET.T, "partial_target": MASK.T}
    with pytest.raises(DataError, match=message) as caught:
        load_partial_label_mat(save(tmp_path, **(good | change)))
    assert "small.mat: " in str(caught.value)


def test_an_empty_candidate_set_names_file_and_row(tmp_path):
    path = save(tmp_path, data=DATA, partial_target=changed(MASK, 1, 0).T)
    with pytest.raises(DataError, match=r"small\.mat: row 1 of candidates is empty"):
        load_partial_label_mat(path)


def test_missing_variables_are_listed_with_those_present(tmp_path):
    path = save(tmp_path, features=DATA, target=TARGET.T)
    with pytest.raises(
        DataError, match=r"no variable 'data', 'partial_target'; it has 'features', 'target'"
    ):
        load_partial_label_mat(path)


def test_files_that_are_not_mat_files(tmp_path):
    with pytest.raises(DataError, match=r"gone\.mat does not exist"):
        load_partial_label_mat(tmp_path / "gone.mat")
    path = tmp_path / "text.mat"
    path.write_text("this is not a mat file at all " * 20)
    with pytest.raises(DataError, match=r"text\.mat is not a whole \.mat file"):
        load_partial_label_mat(path)
    path = save(tmp_path, data=DATA, target=TARGET.T, partial_target=MASK.T)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"small\.mat is not a whole \.mat file"):
        load_partial_label_mat(path)


def test_matlab_7_3_says_how_to_save_again(tmp_path):
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "new.mat").write_bytes(header + b"\x89HDF" * 100)
    with pytest.raises(DataError, match=r"MATLAB 7\.3 file, .* '-v7'"):
        load_partial_label_mat(tmp_path / "new.mat")


def test_a_damaged_sparse_matrix_is_refused(tmp_path):
    broken = sparse.csc_matrix(MASK.T.astype(float))
    broken.indices[0] = 77  # outside of the five rows
    path = save(tmp_path, data=DATA, partial_target=broken)
    with pytest.raises(DataError, match="'partial_target' is damaged: an index is 77, which"):
        load_partial_label_mat(path)


@pytest.mark.parametrize(
    ("at", "was", "value", "message"),
    [
        (176, 9, 200, r"the element at byte \d+ is damaged"),  # the type of its numbers, double
        (180, 96, 255, r"the element at byte \d+ is damaged"),  # their length in bytes
        (145, 0, 8, "a variable is complex"),  # the flags of the first variable
    ],
)
def test_damage_on_which_scipy_would_crash_is_refused(tmp_path, at, was, value, message):
    path = save(tmp_path, data=DATA, partial_target=MASK.T)
    content = bytearray(path.read_bytes())
    assert content[at] == was
    content[at] = value
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"not a whole \.mat file: {message}"):
        load_partial_label_mat(path)


def test_compressed_files_and_other_variables_do_not_disturb(tmp_path):
    extra = {"notes": np.array(["a", "bc"], dtype=object), "info": {"year": 2013, "who": "x"}}
    for compressed in (True, False):
        path = tmp_path / "small.mat"
        variables = {"data": DATA, "target": TARGET.T, "partial_target": MASK.T}
        savemat(path, extra | variables, do_compression=compressed)
        check(load_partial_label_mat(path))


def test_a_sparse_matrix_of_absurd_size_is_refused(tmp_path):
    path = save(tmp_path, data=DATA, partial_target=sparse.csc_matrix((2**30, 4)))
    with pytest.raises(DataError, match=r"'partial_target' of shape \(1073741824, 4\) has more"):
        load_partial_label_mat(path)


def test_split_layout(tmp_path):
    path = save(
        tmp_path,
        train_data=DATA,
        train_p_target=sparse.csc_matrix(MASK.astype(float)),
        test_data=DATA[:2] + 1,
        test_target=TARGET[:2],
    )
    train, test = load_partial_label_split(path)
    assert train.true_labels is None
    np.testing.assert_array_equal(train.candidates.mask, MASK.astype(bool))
    np.testing.assert_array_equal(test.true_labels, TRUE[:2])
    np.testing.assert_array_equal(test.candidates.mask, TARGET[:2].astype(bool))
    assert (train.name, test.name) == ("small/train", "small/test")


def test_split_halves_must_agree(tmp_path):
    path = save(
        tmp_path,
        train_data=DATA,
        train_p_target=MASK,
        test_data=DATA[:, :2],
        test_target=TARGET,
    )
    with pytest.raises(DataError, match="have 3 features and 5 classes but the test samples 2 and"):
        load_partial_label_split(path)


@pytest.mark.parametrize(
    ("name", "n", "d", "n_classes", "average"),
    [("lost", 1122, 108, 16, 2.23), ("MSRCv2", 1758, 48, 23, 3.16)],
)
def test_real_sets_have_their_published_figures(real_data, name, n, d, n_classes, average):
    data = load_partial_label_mat(real_data(f"pll/{name}.mat"))
    assert data.X.shape == (n, d)
    assert data.n_classes == n_classes
    assert data.candidates.sizes.mean() == pytest.approx(average, abs=0.005)


def test_real_lost_has_two_labels_that_are_never_true(real_data):
    data = load_partial_label_mat(real_data("pll/lost.mat"))
    assert len(np.unique(data.true_labels)) == 14


def test_real_reference_split_is_a_split_of_lost(real_data):
    whole = load_partial_label_mat(real_data("pll/lost.mat"))
    train, test = load_partial_label_split(real_data("pll/lost_reference_split.mat"))
    assert len(train) == len(test) == 561
    both = np.vstack([train.X, test.X])
    order, halves = np.lexsort(whole.X.T), np.lexsort(both.T)
    np.testing.assert_allclose(both[halves], whole.X[order])
