"""Candidate sets in every shape people have them, and one sentence for every shape they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from fspll._common.errors import CandidateError, InputTypeError
from fspll.candidates import Candidates, Summary, check_ambiguity, corrupt, corrupt_mask

MASK = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]])
SETS = [{"a", "b"}, {"b"}, {"a", "c"}]


class Frame:
    """What is used of a data frame; pandas itself is no dependency."""

    def __init__(self, values, columns, index=None):
        self.values, self.columns, self.index = np.asarray(values), columns, index

    @property
    def shape(self):
        return self.values.shape

    def to_numpy(self):
        return self.values


class Series:
    """What is used of a column of a data frame."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, row):
        return self.values[row]

    def __array__(self, dtype=None, copy=None):
        array = np.empty(len(self.values), dtype=object)
        array[:] = self.values
        return array


def objects(rows):
    """Return an object array of shape (n,) whose items stay what they are."""
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


def assert_reads(y, mask, names, classes=None):
    found = Candidates.read(y, classes)
    assert found.mask.tolist() == np.asarray(mask, dtype=bool).tolist()
    assert found.classes.tolist() == names
    assert {type(name) for name in found.classes.tolist()} == {type(name) for name in names}
    assert found.matrix.dtype == bool
    assert found.matrix.has_canonical_format
    return found


# -------------------------------------------------------------------- masks


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, float, np.float32, bool, object])
def test_a_mask_of_any_type(dtype):
    assert_reads(MASK.astype(dtype), MASK, [0, 1, 2])
    assert_reads(MASK.astype(dtype), MASK, ["x", "y", "z"], classes=["x", "y", "z"])


def test_a_mask_of_numpy_objects_is_a_mask():
    mask = np.array([[np.int64(v) for v in row] for row in MASK], dtype=object)
    assert_reads(mask, MASK, [0, 1, 2])
    mixed = np.array([[True, 0, 1.0], [np.bool_(False), np.float32(1), 0]], dtype=object)
    assert_reads(mixed, [[1, 0, 1], [0, 1, 0]], [0, 1, 2])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [bool, np.uint8, float])
def test_a_sparse_mask_of_any_format(kind, dtype):
    assert_reads(sparse.coo_array(MASK.astype(dtype)).asformat(kind), MASK, [0, 1, 2])
    assert_reads(sparse.coo_matrix(MASK.astype(dtype)).asformat(kind), MASK, [0, 1, 2])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_explicit_zeros_of_a_sparse_mask_are_no_candidates(kind):
    rows, columns, values = [0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1]
    found = assert_reads(kind((values, (rows, columns)), shape=(2, 2)), np.eye(2), [0, 1])
    assert found.sizes.tolist() == [1, 1]


def test_repeated_entries_of_a_sparse_mask_count_once():
    # As bytes, 256 ones add up to nothing.
    rows = [0] * 256 + [1]
    mask = sparse.coo_array((np.ones(257, np.uint8), (rows, [0] * 256 + [1])), shape=(2, 2))
    found = assert_reads(mask, np.eye(2), [0, 1])
    assert found.sizes.tolist() == [1, 1]
    unsorted = sparse.csr_array(([1, 1, 1, 1], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    assert_reads(unsorted, [[1, 0, 1], [0, 1, 0]], [0, 1, 2])


def test_reading_leaves_the_sparse_mask_alone():
    mask = sparse.csr_array(([1, 0, 1, 1], [2, 1, 0, 1], [0, 3, 4]), shape=(2, 3))
    before = mask.data.tolist(), mask.indices.tolist(), mask.indptr.tolist()
    Candidates.read(mask)
    assert (mask.data.tolist(), mask.indices.tolist(), mask.indptr.tolist()) == before


def test_lists_of_truth_values_are_a_mask():
    assert_reads(MASK.astype(bool).tolist(), MASK, [0, 1, 2])
    assert_reads([tuple(row) for row in MASK.astype(bool)], MASK, [0, 1, 2])
    assert_reads(list(MASK.astype(bool)), MASK, [0, 1, 2])


def test_a_data_frame_names_the_classes_by_its_columns():
    assert_reads(Frame(MASK, ["cat", "dog", "owl"]), MASK, ["cat", "dog", "owl"])
    mixed = Frame(MASK.astype(object), ["cat", "dog", "owl"])
    assert_reads(mixed, MASK, [7, 8, 9], classes=[7, 8, 9])


def test_a_data_frame_of_one_column_is_a_column_of_labels():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert_reads(Frame([["b"], ["a"]], ["label"]), [[0, 1], [1, 0]], ["a", "b"])
    column = Frame(objects(SETS)[:, None], ["label"])
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert_reads(column, MASK, ["a", "b", "c"])


# -------------------------------------------------------------------- sets of names


@pytest.mark.parametrize(
    "y",
    [
        SETS,
        [frozenset(names) for names in SETS],
        [sorted(names) for names in SETS],
        tuple(tuple(names) for names in SETS),
        [np.array(sorted(names)) for names in SETS],
        [["b", "a", "b"], "b", {"a", "c"}],
        [("a", "b"), ["b"], {"c", "a"}],
        objects(SETS),
        objects([["a", "b"], "b", ("a", "c")]),
        Series(SETS),
        [{np.str_("a"), "b"}, np.str_("b"), {"a", "c"}],
    ],
    ids=lambda y: f"{type(y).__name__} of {type(y[0]).__name__}",
)
def test_sets_of_names(y):
    assert_reads(y, MASK, ["a", "b", "c"])


def test_sets_of_numbers():
    assert_reads([{0, 2}, {5}], [[1, 1, 0], [0, 0, 1]], [0, 2, 5])
    assert_reads([[0, 2], [5]], [[1, 1, 0], [0, 0, 1]], [0, 2, 5])
    assert_reads([{np.int64(2), 0}, np.int64(5)], [[1, 1, 0], [0, 0, 1]], [0, 2, 5])
    assert_reads([5, {0, 2}], [[0, 0, 1], [1, 1, 0]], [0, 2, 5])
    assert_reads([{0.5, 1.5}, {0.5}], [[1, 1], [1, 0]], [0.5, 1.5])
    assert_reads([{True, False}, {True}], [[1, 1], [0, 1]], [False, True])
    assert_reads([{2**70, 1}, {1}], [[1, 1], [1, 0]], [1, 2**70])


def test_rows_of_a_text_array_are_lists_of_names():
    rows = np.array([["a", "b"], ["b", "b"]])
    assert_reads(rows, [[1, 1], [0, 1]], ["a", "b"])
    assert_reads(rows.astype(object), [[1, 1], [0, 1]], ["a", "b"])


def test_equal_lists_of_names_are_not_ambiguous():
    assert_reads([["a", "b"], ["b", "c"]], [[1, 1, 0], [0, 1, 1]], ["a", "b", "c"])


def test_classes_give_the_order_and_may_be_nobodys_candidate():
    mask = [[1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]]
    for classes in (["b", "x", "a", "c"], np.array(["b", "x", "a", "c"], dtype=object)):
        assert_reads(SETS, mask, ["b", "x", "a", "c"], classes=classes)


# -------------------------------------------------------------------- ordinary labels


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        ([7, 3, 7], [3, 7]),
        ([1.0, 0.0, 1.0], [0.0, 1.0]),
        ([True, False, True], [False, True]),
        ((7, 3, 7), [3, 7]),
        (np.array(["b", "a", "b"]), ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        (np.array([7, 3, 7], dtype=object), [3, 7]),
        (np.array([7, 3, 7], dtype=np.uint8), [3, 7]),
        (np.array([True, False, True]), [False, True]),
        (Series(["b", "a", "b"]), ["a", "b"]),
        ([2**70, 1, 2**70], [1, 2**70]),
    ],
)
def test_ordinary_labels_are_sets_of_one(y, classes):
    found = assert_reads(y, [[0, 1], [1, 0], [0, 1]], classes)
    assert found.sizes.tolist() == [1, 1, 1]


@pytest.mark.parametrize("values", [[2, 1, 2], ["y", "x", "y"], [True, False, True]])
@pytest.mark.parametrize("dtype", [None, object])
def test_a_column_is_read_as_labels_with_a_warning(values, dtype):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        found = Candidates.read(np.array(values, dtype=dtype)[:, None])
    assert found.mask.tolist() == [[False, True], [True, False], [False, True]]
    assert found.classes.tolist() == sorted(set(values))


def test_many_whole_floats_are_labels_without_a_warning():
    # scikit-learn's own test of a target warns that so many classes may be a regression.
    assert Candidates.read(np.arange(30.0)).n_classes == 30


def test_fractions_are_labels_when_they_are_named():
    y = np.array([0.5, 1.5])
    with pytest.raises(CandidateError, match="Unknown label type: continuous"):
        Candidates.read(y)
    assert_reads(y, np.eye(2), [0.5, 1.5], classes=[0.5, 1.5])


def test_candidates_pass_as_they_are():
    sets = Candidates.read(SETS)
    assert Candidates.read(sets) is sets
    assert Candidates.read(sets, classes=["a", "b", "c"]) is sets
    with pytest.raises(CandidateError, match="the candidate sets were read with other classes"):
        Candidates.read(sets, classes=["b", "a", "c"])


def test_exclusions():
    classes = ["a", "b", "c"]
    found = Candidates.from_exclusions(["a", {"a", "c"}, [], ("b", "b")], classes)
    assert found.mask.astype(int).tolist() == [[0, 1, 1], [0, 1, 0], [1, 1, 1], [1, 0, 1]]
    numbers = Candidates.from_exclusions([np.int64(1), {0, 2}], [0, 1, 2])
    assert numbers.mask.astype(int).tolist() == [[1, 0, 1], [0, 1, 0]]


# -------------------------------------------------------------------- refusals

AMBIGUOUS = "could be a 0/1 mask or lists of class numbers; pass a NumPy array for a 0/1 mask, or a"

REFUSED = {
    "equal integer lists": (
        [[0, 1], [1, 2]],
        None,
        "2 lists of numbers of equal length 2 could",
    ),
    "equal 0/1 lists": ([[0, 1], [1, 1]], None, AMBIGUOUS),
    "equal 0.0/1.0 lists": ([[0.0, 1.0], [1.0, 1.0]], None, AMBIGUOUS),
    "flags mixed with numbers": ([[True, 0], [1, False]], None, AMBIGUOUS),
    "equal integer tuples": (((0, 1), (1, 2)), None, AMBIGUOUS),
    "equal integer arrays in a list": (list(MASK), None, AMBIGUOUS),
    "one integer list": ([[0, 1]], None, "1 lists of numbers of equal length 2 could"),
    "equal integer lists as objects": (objects([[0, 1], [1, 2]]), None, AMBIGUOUS),
    "empty set": (
        [{"a"}, set(), {"b"}],
        None,
        "row 1 of candidates is empty; every sample needs at least one candidate label",
    ),
    "several empty sets": ([{"a"}, [], set(), ()], None, r"row 1 .* \(and 2 more empty rows\)"),
    "two empty sets": ([set(), {"a"}, set()], None, r"row 0 .* \(and 1 more empty row\)$"),
    "only empty sets": ([set(), set()], None, "row 0 of candidates is empty"),
    "empty row of a mask": (np.array([[1, 0], [0, 0]]), None, "row 1 of candidates is empty"),
    "mask without columns": (np.empty((2, 0)), None, "row 0 of candidates is empty"),
    "explicit zeros only": (
        sparse.csr_array(([1, 0], [0, 1], [0, 1, 2]), shape=(2, 2)),
        None,
        "row 1 of candidates is empty",
    ),
    "stranger": (
        [{"a"}, {"b", "z"}],
        ["a", "b"],
        "row 1 has the label 'z', which is not one of the classes 'a', 'b'$",
    ),
    "ordinary stranger": (np.array([3, 4]), [3], "row 1 has the label 4, which is not one of"),
    "stranger among many": ([{9}], list(range(9)), r"classes 0, 1, 2, 3, 4, 5, \.\.\.$"),
    "NaN label": (
        np.array([0.0, np.nan]),
        None,
        "y contains NaN or infinity, first at row 1",
    ),
    "infinite label": (np.array([np.inf, 0.0]), None, "NaN or infinity, first at row 0"),
    "NaN in a list": ([1.0, float("nan")], None, "row 1 holds NaN; labels must be known"),
    "NaN in a set": ([{1.0}, {float("nan"), 1.0}], None, "row 1 holds NaN; labels must be known"),
    "infinity in a set": ([{1.0, np.inf}], None, "row 0 holds infinity; labels must be known"),
    "NaN among objects": (objects(["a", float("nan")]), None, "row 1 holds NaN"),
    "2 in a mask": (
        np.array([[0, 1], [2, 1]]),
        None,
        "a mask of candidates holds 0 and 1 only, but 2 was found at row 1; pass a NumPy array",
    ),
    "fraction in a mask": (np.array([[0.5, 1]]), None, "but 0.5 was found at row 0"),
    "NaN in a mask": (np.array([[1, 0], [1, np.nan]]), None, "but nan was found at row 1"),
    "2 in an object mask": (np.array([[1, 2]], dtype=object), None, "but 2 was found at row 0"),
    "2 in a sparse mask": (
        sparse.csc_array(np.array([[1, 0], [0, 2]])),
        None,
        "holds 0 and 1 only, but 2 was found at row 1",
    ),
    "text in a data frame": (
        Frame([["cat", "dog"], ["dog", "dog"]], ["first", "second"]),
        None,
        "a mask of candidates holds 0 and 1 only, but 'cat' was found at row 0",
    ),
    "complex mask": (np.ones((2, 2), complex), None, r"but \(1\+0j\) was found at row 0"),
    "flat sparse": (sparse.coo_array(np.array([1, 0, 1])), None, r"must be 2-D \(n, l\), not 1-D"),
    "three axes": (
        np.ones((2, 2, 2)),
        None,
        r"array, not one of shape \(2, 2, 2\)",
    ),
    "no axes": (np.array(3), None, r"one-dimensional array, not one of shape \(\)"),
    "too few classes": (
        MASK,
        ["a", "b"],
        "name 2 labels but the candidates have 3 columns",
    ),
    "classes twice": (MASK, ["a", "b", "a"], "classes name 'a' more than once"),
    "no classes": (SETS, [], "classes is empty; at least one class is needed"),
    "NaN class": ([{1.0}], [1.0, float("nan")], "classes holds NaN; labels must be known"),
    "no samples in a list": (
        [],
        None,
        "no samples; at least one candidate set is needed",
    ),
    "no samples in a mask": (np.empty((0, 3)), None, "there are no samples"),
    "no samples in a sparse mask": (sparse.csr_array((0, 3)), None, "there are no samples"),
    "continuous labels": (
        np.array([0.25, 1.5]),
        None,
        "Unknown label type: continuous; labels",
    ),
    "nothing": (None, None, "requires y to be passed, but the target y is None"),
}

REFUSED_TYPES = {
    "text and numbers": (
        ["a", 1, "b"],
        None,
        "labels mix text and numbers: 'a' in row 0, 1 in row 1; use one kind",
    ),
    "text and numbers in sets": ([{1}, {"a"}], None, "1 in row 0, 'a' in row 1"),
    "text and numbers as objects": (objects([1, "a"]), None, "labels mix text and numbers"),
    "text and numbers as classes": ([{1}], [1, "a"], "classes mix text and numbers: 1 and 'a'"),
    "missing label": (["a", None], None, "row 1 holds None of type NoneType; labels are text or"),
    "missing in a set": ([{"a", None}], None, "row 0 holds None of type NoneType"),
    "nested lists": ([[["a"]], [["b"]]], None, r"row 0 holds \['a'\] of type list; labels are"),
    "arrays of two axes": ([np.ones((2, 2))], None, r"row 0 holds \[1.0, 1.0\] of type list"),
    "dictionary in a row": ([{"a"}, {"b": 1}], None, "row 1 holds {'b': 1} of type dict"),
    "dates": (np.array(["2020-01-01"], "datetime64[D]"), None, "text or numbers, not datetime64"),
    "bytes": (np.array([b"a"]), None, r"labels are text or numbers, not \|S1"),
    "dictionary": ({"a": 1}, None, "candidate sets cannot be read from dict; pass a NumPy array"),
    "one text": ("abc", None, "candidate sets cannot be read from str"),
    "one number": (5, None, "candidate sets cannot be read from int"),
    "one set": ({"a", "b"}, None, "candidate sets cannot be read from set"),
    "a set of classes": (SETS, {"a", "b", "c"}, "labels in order, not of type set"),
    "a text of classes": (SETS, "abc", "labels in order, not of type str"),
    "a number of classes": (MASK, 3, "labels in order, not of type int"),
    "a matrix of classes": (MASK, np.ones((3, 1)), "labels are text or numbers"),
}


@pytest.mark.parametrize(("y", "classes", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_value(y, classes, message):
    with pytest.raises(CandidateError, match=message):
        Candidates.read(y, classes)


@pytest.mark.parametrize(("y", "classes", "message"), REFUSED_TYPES.values(), ids=REFUSED_TYPES)
def test_refused_type(y, classes, message):
    with pytest.raises(InputTypeError, match=message):
        Candidates.read(y, classes)


def test_readers_that_are_called_directly_refuse_too():
    with pytest.raises(CandidateError, match="but 'a' was found at row 0"):
        Candidates.from_mask(np.array([["a", "b"]]))
    with pytest.raises(InputTypeError, match="cannot be read from str"):
        Candidates.from_sets("abc")
    with pytest.raises(InputTypeError, match="cannot be read from int"):
        Candidates.from_labels(3)


def test_exclusions_are_refused():
    with pytest.raises(CandidateError, match="row 1 excludes all 2 classes; one must stay"):
        Candidates.from_exclusions(["a", {"a", "b"}], ["a", "b"])
    with pytest.raises(CandidateError, match="row 0 has the label 'z', which is not one of"):
        Candidates.from_exclusions(["z"], ["a", "b"])
    with pytest.raises(
        InputTypeError, match=r"list or array of labels in order, not of type NoneType"
    ):
        Candidates.from_exclusions(["z"], None)
    with pytest.raises(CandidateError, match="there are no samples"):
        Candidates.from_exclusions([], ["a", "b"])


# -------------------------------------------------------------------- views


def test_views():
    sets = Candidates.read(SETS)
    assert (len(sets), sets.n_classes, sets.sizes.tolist()) == (3, 3, [2, 1, 2])
    assert [sets.names(row) for row in (0, 1, 2, -1)] == [["a", "b"], ["b"], ["a", "c"], ["a", "c"]]
    assert repr(sets) == "Candidates(3 samples, 3 classes, average set size 1.67)"
    with pytest.raises(IndexError):
        sets.names(3)
    sets.mask[0] = False
    assert sets.mask[0].any()  # a mask of its own on each access


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([2, 0], [["a", "c"], ["a", "b"]]),
        (np.array([True, False, True]), [["a", "b"], ["a", "c"]]),
        (slice(1, None), [["b"], ["a", "c"]]),
        (1, [["b"]]),
        ([-1, -1], [["a", "c"], ["a", "c"]]),
    ],
)
def test_take(rows, names):
    taken = Candidates.read(SETS).take(rows)
    assert [taken.names(row) for row in range(len(taken))] == names
    assert taken.classes.tolist() == ["a", "b", "c"]


def test_take_nothing():
    with pytest.raises(CandidateError, match="there are no samples"):
        Candidates.read(SETS).take([])


def test_names_follow_the_order_of_the_classes():
    assert Candidates.read(SETS, classes=["c", "b", "a"]).names(0) == ["b", "a"]


def test_check_truth():
    sets = Candidates.read(SETS)
    sets.check_truth(["a", "b", "c"])
    sets.check_truth(np.array(["b", "b", "a"]))
    with pytest.raises(
        CandidateError,
        match=r"the true label 'c' of row 1 is not among its candidates \['b'\]$",
    ):
        sets.check_truth(np.array(["a", "c", "b"]))
    with pytest.raises(CandidateError, match="2 true labels for 3 candidate sets"):
        sets.check_truth(["a", "b"])
    with pytest.raises(CandidateError, match="row 2 has the label 'z', which is not one of the"):
        sets.check_truth(["a", "b", "z"])


def test_summary():
    y = [{"cat", "lynx", "dog"}, {"dog"}, {"cat", "lynx"}, {"owl", "emu"}]
    summary = Candidates.read(y, classes=["emu", "owl", "lynx", "fox", "dog", "cat"]).summary()
    assert summary == Summary(
        n_samples=4,
        n_classes=6,
        average_size=2.0,
        share_ambiguous=0.75,
        always_together=[["emu", "owl"], ["lynx", "cat"]],
        never_candidates=["fox"],
    )
    assert str(summary).splitlines() == [
        "4 samples, 6 classes",
        "2.00 candidates per sample, 75% of the samples ambiguous",
        "always together, cannot be told apart: emu, owl",
        "always together, cannot be told apart: lynx, cat",
        "never a candidate: fox",
    ]


def test_summary_of_clear_labels():
    summary = Candidates.read(["a", "b"]).summary()
    assert summary == Summary(2, 2, 1.0, 0.0, [], [])
    assert len(str(summary).splitlines()) == 2


# -------------------------------------------------------------------- making candidate sets


@pytest.mark.parametrize("n_way", [2, 5, 20])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_corruption_keeps_the_truth_and_adds_r_labels_to_a_share_p(n_way, p):
    labels = np.repeat(np.arange(n_way), 7)
    for r in {0, 1, n_way - 1}:
        sets = corrupt(labels, p, r, np.random.default_rng(3))
        sets.check_truth(labels)
        extra = sets.sizes - 1
        assert set(extra.tolist()) <= {0, r}
        if r:
            assert (extra == r).sum() == int(np.floor(p * len(labels) + 0.5))


def test_halves_round_up():
    for n, ambiguous in ((1, 1), (2, 1), (3, 2), (5, 3)):
        mask = corrupt_mask(np.zeros(n, int), 3, 0.5, 1, np.random.default_rng(0))
        assert (mask.sum(axis=1) == 2).sum() == ambiguous


def test_the_other_classes_are_drawn_uniformly():
    mask = corrupt_mask(np.full(20_000, 2), 5, 1.0, 2, np.random.default_rng(0))
    assert mask[:, 2].all()
    shares = mask[:, [0, 1, 3, 4]].mean(axis=0)
    assert np.abs(shares - 0.5).max() < 0.02  # four standard errors
    pairs = np.unique(mask[:, [0, 1, 3, 4]], axis=0, return_counts=True)[1] / 20_000
    assert len(pairs) == 6
    assert np.abs(pairs - 1 / 6).max() < 0.012


def test_who_is_ambiguous_is_drawn_uniformly():
    rng = np.random.default_rng(0)
    chosen = sum(
        corrupt_mask(np.zeros(10, int), 2, 0.3, 1, rng)[:, 1].astype(int) for _ in range(4000)
    )
    assert np.abs(chosen / 4000 - 0.3).max() < 0.03


def test_sets_are_nested_in_r_and_in_p():
    labels = np.arange(40) % 8

    def draw(p, r):
        return corrupt_mask(labels, 8, p, r, np.random.default_rng(11))

    for r in range(7):
        assert (draw(1, r) <= draw(1, r + 1)).all()
    for p in (0.0, 0.25, 0.5, 0.75):
        assert (draw(p, 3) <= draw(p + 0.25, 3)).all()


def test_corruption_is_the_same_in_parts(monkeypatch):
    labels = np.arange(50) % 6
    whole = corrupt_mask(labels, 6, 0.7, 2, np.random.default_rng(5))
    monkeypatch.setattr("fspll.candidates.corruption._KEYS_AT_ONCE", 20)  # three rows at a time
    assert np.array_equal(corrupt_mask(labels, 6, 0.7, 2, np.random.default_rng(5)), whole)


def test_corruption_of_names_with_other_classes():
    sets = corrupt(["x", "y"], 1, 2, np.random.default_rng(0), classes=["z", "y", "x"])
    assert sets.classes.tolist() == ["z", "y", "x"]
    assert sets.mask.all()


@pytest.mark.parametrize(
    ("p", "r", "message"),
    [
        (1, 5, "r = 5 is too many: with 5 classes there are only 4 other labels to add"),
        (1, -1, "r counts extra labels: a whole number of 0 or more, not -1"),
        (1, 1.0, "r counts extra labels: a whole number of 0 or more, not 1.0"),
        (1, True, "r counts extra labels: a whole number of 0 or more, not True"),
        (1.5, 1, "p is a share of the samples, between 0 and 1, not 1.5"),
        (-0.1, 1, "p is a share of the samples, between 0 and 1, not -0.1"),
        (float("nan"), 1, "p is a share of the samples, between 0 and 1, not nan"),
        ("half", 1, "p is a share of the samples, between 0 and 1, not 'half'"),
    ],
)
def test_impossible_ambiguity_is_refused(p, r, message):
    for call in (
        lambda: check_ambiguity(p, r, 5),
        lambda: corrupt_mask(np.arange(5), 5, p, r, np.random.default_rng(0)),
        lambda: corrupt(np.arange(5), p, r, np.random.default_rng(0)),
    ):
        with pytest.raises(CandidateError) as caught:
            call()
        assert str(caught.value) == message


def test_a_seed_is_no_generator():
    with pytest.raises(InputTypeError, match=r"rng must be a numpy.random.Generator .* not 0$"):
        corrupt(["a", "b"], 1, 1, 0)


# -------------------------------------------------------------------- round trips


def masks(min_side=1):
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=min_side, max_side=7)
    return hnp.arrays(bool, shapes).map(lambda mask: mask | (~mask.any(1, keepdims=True)))


@settings(derandomize=True, deadline=None)
@given(masks(), st.booleans())
def test_mask_to_sets_and_back(mask, as_text):
    classes = [f"class {i}" if as_text else i for i in range(mask.shape[1])]
    there = Candidates.from_mask(mask, classes)
    sets = [set(there.names(row)) for row in range(len(there))]
    assert [sorted(names) for names in sets] == [
        [classes[column] for column in np.flatnonzero(row)] for row in mask
    ]
    back = Candidates.read(sets, classes)
    assert np.array_equal(back.mask, mask)
    assert back.classes.tolist() == classes


@settings(derandomize=True, deadline=None)
@given(masks(min_side=2), st.sampled_from(["csr", "csc", "coo", "lil", "dok"]))
def test_sparse_to_mask(mask, kind):
    found = Candidates.read(sparse.coo_array(mask).asformat(kind))
    assert np.array_equal(found.mask, mask)
    assert np.array_equal(found.sizes, mask.sum(axis=1))


@settings(derandomize=True, deadline=None)
@given(masks(min_side=2), st.randoms(use_true_random=False))
def test_taking_rows_is_indexing_the_mask(mask, random):
    rows = [random.randrange(len(mask)) for _ in range(random.randint(1, 9))]
    assert np.array_equal(Candidates.read(mask).take(rows).mask, mask[rows])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1), st.floats(0, 1), st.integers(0, 10))
def test_corruption_of_any_labels(labels, p, r):
    n_classes = len(set(labels))
    if r > n_classes - 1:
        with pytest.raises(CandidateError, match=f"r = {r} .* with {n_classes} class"):
            corrupt(labels, p, r, np.random.default_rng(0))
        return
    sets = corrupt(labels, p, r, np.random.default_rng(0))
    sets.check_truth(labels)
    assert set(sets.sizes.tolist()) <= {1, r + 1}
