"""Tasks by (seed, index): always the same, in any order; what they hold; what is refused."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from fspll._common.errors import CandidateError, InputError, TaskError
from fspll.tasks import TaskSettings, TaskSource

ARRAYS = ("classes", "support", "query", "candidates", "query_candidates")
LABELS = np.repeat(np.arange(12), 20)


def source(n_way=5, n_shot=3, n_query=4, *, r=1, p=1.0, seed=0, labels=LABELS, **kwargs):
    return TaskSource(labels, TaskSettings(n_way, n_shot, n_query, r=r, p=p), seed=seed, **kwargs)


def checksum(tasks):
    digest = hashlib.sha256()
    for name in ARRAYS:
        digest.update(np.ascontiguousarray(getattr(tasks, name)).astype("<i8").tobytes())
    return digest.hexdigest()


def assert_same(a, b, names=ARRAYS):
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


# -------------------------------------------------------------------- always the same task


@pytest.mark.parametrize(
    ("kwargs", "indices", "expected"),
    [
        ({}, [0, 1, 2], "bd105a5c69963d35852ba841d19e94b18c37ae3d6dc68ba6f6f0137668baf2d2"),
        (
            {"seed": 2021, "r": 3, "p": 0.6},
            [7, 1000],
            "1266bfd148b6df0cf5263d82cccd0d91ab0c085c704fa25bc3a2e8356172761a",
        ),
        (
            {"n_way": 12, "n_shot": 1, "n_query": 0, "r": 0, "seed": 2**40},
            [5],
            "61fe4c0827b706214beb95c9d2f3c38aa8178a7526d6f730c652480d14f20e1d",
        ),
    ],
)
def test_tasks_are_the_same_on_any_machine(kwargs, indices, expected):
    """A change of these sums changes every published figure."""
    assert checksum(source(**kwargs).batch(indices)) == expected


def test_a_task_by_hand():
    """The first task of two samples per class, read off the streams of its seed and index."""
    labels = np.array([4, 4, 9, 9])
    pictures, ambiguity = (
        np.random.Generator(np.random.PCG64(np.random.SeedSequence([3, 8, stream])))
        for stream in (0, 1)
    )
    order = np.argsort(pictures.random(2))
    rows = [np.array([[0, 1], [2, 3]][c])[np.argsort(pictures.random(2))] for c in order]
    task = source(2, 1, 1, r=0, seed=3, labels=labels).task(8)
    assert task.classes.tolist() == [[4, 9][c] for c in order]
    assert task.support.tolist() == [rows[0][0], rows[1][0]]
    assert task.query.tolist() == [rows[0][1], rows[1][1]]
    # two samples, one of them ambiguous: the one with the smaller first number
    half = source(2, 1, 1, r=1, p=0.5, seed=3, labels=labels).task(8)
    ambiguous = np.argmin(ambiguity.random(2))
    assert half.candidates.sum(axis=1).tolist() == [2 if i == ambiguous else 1 for i in (0, 1)]


def test_order_and_company_do_not_matter():
    first = source()
    batch = first.batch([9, 0, 3, 9])
    assert batch.support.shape == (4, 15)
    assert batch.query.shape == (4, 20)
    assert batch.candidates.shape == (4, 15, 5)
    assert batch.query_candidates.shape == (4, 20, 5)
    assert batch.classes.shape == (4, 5)
    for position, index in enumerate([9, 0, 3, 9]):
        alone = source().task(index)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(batch, name)[position], getattr(alone, name))
    assert_same(first.task(3), first.task(3))
    assert_same(source().batch(range(3)), source().batch(iter([0, 1, 2])))
    assert_same(source().task(np.int64(3)), source().task(3))


def test_seeds_and_indices_give_different_tasks():
    sums = {checksum(source(seed=s).task(i)) for s in range(10) for i in range(10)}
    assert len(sums) == 100


def test_the_global_generator_is_neither_read_nor_moved():
    np.random.seed(1)  # noqa: NPY002
    a = source().task(0)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert_same(a, source().task(0))
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


# -------------------------------------------------------------------- what a task holds


@pytest.mark.parametrize("shape", [(5, 3, 4), (12, 1, 19), (1, 5, 5), (3, 20, 0)])
def test_samples_are_of_the_right_classes_and_in_one_place_only(shape):
    n_way, n_shot, n_query = shape
    rng = np.random.default_rng(0)
    labels = rng.permutation(LABELS) * 7  # any order, any numbers
    chosen = source(*shape, r=0, labels=labels)
    for index in range(20):
        task = chosen.task(index)
        assert len(set(task.classes)) == n_way
        assert set(task.classes) <= set(labels)
        assert task.support.shape == (n_way * n_shot,)
        assert task.query.shape == (n_way * n_query,)
        rows = np.concatenate([task.support, task.query])
        assert len(set(rows)) == len(rows)
        np.testing.assert_array_equal(labels[task.support], task.classes[task.support_labels])
        np.testing.assert_array_equal(labels[task.query], task.classes[task.query_labels])
        np.testing.assert_array_equal(task.support_labels, np.repeat(np.arange(n_way), n_shot))
        np.testing.assert_array_equal(task.query_labels, np.repeat(np.arange(n_way), n_query))


def test_unequal_classes():
    sizes = [7, 30, 9, 7]
    labels = np.repeat(np.arange(4), sizes)
    chosen = source(4, 3, 4, labels=labels)
    seen = set()
    for index in range(60):
        task = chosen.task(index)
        np.testing.assert_array_equal(labels[task.support], task.classes[task.support_labels])
        np.testing.assert_array_equal(labels[task.query], task.classes[task.query_labels])
        seen |= set(task.support) | set(task.query)
    assert seen == set(range(sum(sizes)))  # every sample has its turn


def test_the_truth_is_always_a_candidate_and_r_others_are():
    for r in range(5):
        task = source(r=r).task(1)
        for mask, truth in (
            (task.candidates, task.support_labels),
            (task.query_candidates, task.query_labels),
        ):
            assert mask.dtype == bool
            assert mask[np.arange(len(truth)), truth].all()
            assert (mask.sum(axis=1) == r + 1).all()


@pytest.mark.parametrize("p", [1.0, 0.4])
def test_more_ambiguity_keeps_the_pictures_and_adds_to_the_sets(p):
    for index in range(10):
        by_r = [source(r=r, p=p).task(index) for r in range(5)]
        for less, more in pairwise(by_r):
            assert_same(less, more, ("classes", "support", "query"))
            assert (more.candidates | ~less.candidates).all()
            assert (more.query_candidates | ~less.query_candidates).all()
            assert more.candidates.sum() > less.candidates.sum()


@pytest.mark.parametrize(("p", "expected"), [(0, 0), (0.1, 2), (0.33, 5), (0.5, 8), (0.99, 15)])
def test_a_share_of_the_samples_is_ambiguous(p, expected):
    """``round(p * 15)`` of 15 support samples, not about as many."""
    if p != 0.5:  # 7.5 is rounded up
        assert round(p * 15) == expected
    which = set()
    for index in range(120):
        sizes = source(r=2, p=p).task(index).candidates.sum(axis=1)
        assert sorted(set(sizes)) == sorted({1, 3} if 0 < expected < 15 else {3 if expected else 1})
        assert (sizes == 3).sum() == expected
        which |= set(np.flatnonzero(sizes == 3))
    assert which == (set(range(15)) if expected else set())


# -------------------------------------------------------------------- chance is fair


def even(counts):
    """Tell whether counts look like draws from equally likely outcomes (one error in 10,000)."""
    return stats.chisquare(counts).pvalue > 1e-4


def test_distractors_are_drawn_evenly_from_the_other_classes():
    counts = np.zeros((5, 5), dtype=int)
    for task in map(source(5, 2, 0, r=1, seed=1).task, range(600)):
        for truth, row in zip(task.support_labels, task.candidates, strict=True):
            counts[truth] += row
    for truth in range(5):
        assert counts[truth, truth] == 1200
        assert even(np.delete(counts[truth], truth))


def test_pairs_of_distractors_are_drawn_evenly():
    pairs: dict[tuple[int, ...], int] = {}
    for task in map(source(5, 1, 0, r=2, seed=2).task, range(600)):
        extra = tuple(np.flatnonzero(task.candidates[0])[1:])
        pairs[extra] = pairs.get(extra, 0) + 1
    assert len(pairs) == 6
    assert even(list(pairs.values()))


def test_distractors_of_one_sample_say_nothing_of_anothers():
    table = np.zeros((4, 4), dtype=int)
    for task in map(source(5, 2, 0, r=1, seed=3).task, range(800)):
        first, second = (np.flatnonzero(row)[1] - 1 for row in task.candidates[:2])
        table[first, second] += 1
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_classes_and_samples_are_drawn_evenly():
    classes, samples = np.zeros(12), np.zeros(len(LABELS))
    for task in map(source(5, 3, 0, seed=4).task, range(600)):
        classes[task.classes] += 1
        samples[task.support] += 1
    # Draws without replacement spread less than independent ones: never too uneven, not too even.
    assert even(classes)
    assert even(samples)
    assert classes.std() > 0


# -------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 1, 1), "n_way must be a whole number of 1 or more, not 0"),
        ((5, 0, 1), "n_shot must be a whole number of 1 or more, not 0"),
        ((5, 1, -1), "n_query must be a whole number of 0 or more, not -1"),
        ((5, 2.0, 1), "n_shot must be a whole number of 1 or more, not 2.0"),
        (("5", 2, 1), "n_way must be a whole number of 1 or more, not '5'"),
        ((True, 2, 1), "n_way must be a whole number of 1 or more, not True"),
        ((5, 2, None), "n_query must be a whole number of 0 or more, not None"),
    ],
)
def test_bad_shapes(shape, message):
    with pytest.raises(TaskError, match=message):
        TaskSettings(*shape)


def test_numpy_integers_are_integers():
    setting = TaskSettings(np.int64(5), np.int32(3), np.int16(4), r=np.int8(1))
    a = TaskSource(LABELS, setting, seed=np.int64(0)).task(0)
    assert_same(a, source().task(0))


def test_more_distractors_than_other_classes():
    with pytest.raises(CandidateError, match=r"r = 5 is too many") as caught:
        TaskSettings(5, 1, 1, r=5)
    assert "with 5 classes there are only 4 other labels" in str(caught.value)
    assert TaskSettings(5, 1, 1, r=4).r == 4


@pytest.mark.parametrize(
    ("ambiguity", "message"),
    [
        ({"r": -1}, "r counts extra labels: a whole number of 0 or more, not -1"),
        ({"r": 1.5}, "r counts extra labels: a whole number of 0 or more, not 1.5"),
        ({"p": 1.1}, "p is a share of the samples, between 0 and 1, not 1.1"),
        ({"p": -0.1}, "p is a share of the samples, between 0 and 1, not -0.1"),
        ({"p": float("nan")}, "p is a share of the samples, between 0 and 1, not nan"),
    ],
)
def test_bad_ambiguity(ambiguity, message):
    with pytest.raises(InputError, match=message):
        TaskSettings(5, 1, 1, **ambiguity)


def test_a_class_with_too_few_samples_is_named():
    labels = np.array([0] * 20 + [1] * 12)
    with pytest.raises(TaskError, match=r"^n_shot \+ n_query = 20 but class 1 has 12 samples"):
        source(2, 5, 15, labels=labels)
    with pytest.raises(TaskError, match=r"n_shot \+ n_query = 20 but class 'dog' has 12 samples"):
        source(2, 5, 15, labels=labels, class_names=["cat", "dog"])
    assert source(2, 5, 7, labels=labels).task(0).query.shape == (14,)


def test_too_few_classes():
    with pytest.raises(TaskError, match="n_way = 13 but the data set has 12 classes"):
        source(n_way=13)
    with pytest.raises(TaskError, match="n_way = 5 but the data set has 0 classes"):
        source(labels=np.array([], dtype=int))


@pytest.mark.parametrize("seed", [-1, 0.5, "0", None, True])
def test_bad_seeds(seed):
    with pytest.raises(TaskError, match=f"seed must be a whole number of 0 or more, not {seed!r}"):
        source(seed=seed)


@pytest.mark.parametrize("index", [-1, 0.5, "0", None, True])
def test_bad_indices(index):
    message = f"a task index must be a whole number of 0 or more, not {index!r}"
    with pytest.raises(TaskError, match=message):
        source().task(index)
    with pytest.raises(TaskError, match=message):
        source().batch([0, index])


def test_an_empty_batch():
    with pytest.raises(TaskError, match="a batch needs at least one task index"):
        source().batch([])
