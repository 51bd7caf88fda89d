"""What candidate sets decide: against all permutations, the published table, and by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fspll.ambiguity import corrupt_mask
from fspll.candidates import Candidates
from fspll.diagnosis import Diagnosis, Question, ceiling, diagnose
from fspll.errors import CandidateError, InputError, InputTypeError

EPS = 0.01
PAIR = [{"a", "b"}, {"a", "b"}]


def all_maps(mask, clusters):
    """Return every map of clusters to labels and what each weighs, the plain way."""
    names, inverse = np.unique(clusters, return_inverse=True)
    maps = np.array(list(permutations(range(mask.shape[1]), len(names))))
    misses = (~mask)[np.arange(len(mask)), maps[:, inverse]].sum(axis=1)
    weights = (misses == 0).astype(float) if misses.min() == 0 else EPS ** misses.astype(float)
    return maps, weights / weights.sum(), misses == misses.min()


def marginals_of(maps, weights, n_classes):
    shares = np.zeros((maps.shape[1], n_classes))
    for one, weight in zip(maps, weights, strict=True):
        shares[np.arange(len(one)), one] += weight
    return shares


def groups_of(maps, n_classes):
    """Labels of one group are those that clusters take in turn, over the maps given."""
    group = list(range(n_classes))
    for taken in (set(column) for column in maps.T.tolist()):
        joined = {group[label] for label in taken}
        group = [min(joined) if own in joined else own for own in group]
    found = [[c for c in range(n_classes) if group[c] == one] for one in set(group)]
    return sorted(labels for labels in found if len(labels) > 1)


def expected_ceiling(maps, weights, sizes, asked):
    """Return the best expected share of right labels when some clusters' labels are known."""
    total = 0.0
    for answer in {tuple(one) for one in maps[:, asked].tolist()}:
        same = (maps[:, asked] == answer).all(axis=1)
        shares = marginals_of(maps[same], weights[same], maps.max() + 1)
        total += sizes @ shares.max(axis=1)
    return total / sizes.sum()


@st.composite
def tasks(draw):
    """Candidate sets that may or may not agree with their clusters, K <= l <= 6."""
    n_classes = draw(st.integers(2, 6))
    n_clusters = draw(st.integers(1, n_classes))
    more = draw(st.lists(st.integers(0, n_clusters - 1), max_size=6))
    clusters = np.array([*range(n_clusters), *more])
    mask = draw(hnp.arrays(bool, (len(clusters), n_classes)))
    if draw(st.booleans()):  # agreeing sets are rare by chance
        truth = draw(st.permutations(range(n_classes)))
        mask[np.arange(len(mask)), np.array(truth)[clusters]] = True
    mask[~mask.any(axis=1)] = True
    return mask, clusters


# -------------------------------------------------------------------- against all permutations


@settings(derandomize=True, deadline=None, max_examples=300)
@given(tasks())
def test_marginals_ceiling_and_groups_are_those_of_all_permutations(task):
    mask, clusters = task
    maps, weights, best = all_maps(mask, clusters)
    found = diagnose(mask, clusters, n_ask=0)
    assert found.exact
    assert found.ceiling_error is None
    shares = marginals_of(maps, weights, mask.shape[1])
    assert np.abs(found.marginals - shares).max() < 1e-6
    right = np.bincount(clusters) @ shares.max(axis=1) / len(clusters)
    assert found.ceiling == pytest.approx(right, abs=1e-6)
    assert ceiling(mask, clusters) == found.ceiling
    assert sorted(found.undecided) == groups_of(maps[best], mask.shape[1])
    misses = (~mask)[np.arange(len(mask)), maps[best][:, clusters]].sum(axis=1)
    assert len(found.contradictions) == misses[0]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(tasks())
def test_questions_are_the_best_ones_and_keep_what_they_promise(task):
    mask, clusters = task
    maps, weights, _ = all_maps(mask, clusters)
    sizes = np.bincount(clusters)
    found = diagnose(mask, clusters, n_ask=3)
    asked: list[int] = []
    reached = found.ceiling
    for question in found.ask:
        after = {
            k: expected_ceiling(maps, weights, sizes, [*asked, k])
            for k in range(len(sizes))
            if k not in asked
        }
        cluster = int(clusters[question.sample])
        assert question.ceiling_after == pytest.approx(after[cluster], abs=1e-6)
        assert after[cluster] == pytest.approx(max(after.values()), abs=1e-6)
        assert question.ceiling_after > reached
        reached = question.ceiling_after
        asked.append(cluster)
    if len(found.ask) < 3:  # no other is worth a twentieth of a sample
        rest = [expected_ceiling(maps, weights, sizes, [*asked, k]) for k in range(len(sizes))]
        assert max(rest) - reached < 0.05 / len(clusters) + 1e-6


@settings(derandomize=True, deadline=None, max_examples=50)
@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_classes_samples_and_clusters_does_not_matter(task, random):
    mask, clusters = task
    columns, rows = list(range(mask.shape[1])), list(range(len(mask)))
    random.shuffle(columns)
    random.shuffle(rows)
    one = diagnose(mask, clusters, n_ask=0)
    other = diagnose(mask[rows][:, columns], 7 - clusters[rows], n_ask=0)
    assert np.allclose(other.marginals[::-1], one.marginals[:, columns], atol=1e-9)
    assert other.ceiling == pytest.approx(one.ceiling, abs=1e-9)


# -------------------------------------------------------------------- the published table


@pytest.mark.parametrize(
    ("n_shot", "r", "published", "n_tasks"),
    [
        (5, 3, 0.834, 500),
        (10, 3, 0.992, 500),
        (5, 2, 0.999, 200),
        (1, 1, 0.723, 400),
        (2, 1, 0.990, 400),
        (3, 1, 1.000, 200),
        (1, 2, 0.486, 400),
        (2, 2, 0.789, 400),
        (3, 2, 0.958, 400),
        (1, 3, 0.330, 400),
        (2, 3, 0.449, 400),
        (3, 3, 0.574, 400),
    ],
)
def test_the_ceiling_of_five_way_tasks(n_shot, r, published, n_tasks):
    labels = np.repeat(np.arange(5), n_shot)
    rng = np.random.default_rng(0)
    found = [ceiling(corrupt_mask(labels, 5, 1, r, rng), labels) for _ in range(n_tasks)]
    # The published figures are means of 1,000 tasks, rounded to three digits.
    error = np.std(found) * np.sqrt(1 / n_tasks + 1 / 1000)
    assert abs(np.mean(found) - published) <= 4 * error + 0.001


# -------------------------------------------------------------------- sampling


def entangled(n_way, r, seed):
    labels = np.arange(n_way)
    return corrupt_mask(labels, n_way, 1, r, np.random.default_rng(seed)), labels


def sampled(monkeypatch, mask, clusters, **settings):
    with monkeypatch.context() as patch:
        patch.setattr("fspll.diagnosis._STEPS_TO_COUNT", 0)
        return diagnose(mask, clusters, **settings)


@pytest.mark.parametrize(("n_way", "r", "n_left_out"), [(12, 3, 0), (12, 4, 3), (9, 8, 2)])
def test_sampling_agrees_with_counting(monkeypatch, n_way, r, n_left_out):
    mask, clusters = entangled(n_way, r, seed=1)
    keep = n_way - n_left_out
    mask, clusters = mask[:keep], clusters[:keep]
    exact = diagnose(mask, clusters, n_ask=1)
    found = sampled(monkeypatch, mask, clusters, n_ask=1)
    assert exact.exact
    assert not found.exact
    assert 0 < found.ceiling_error < 0.005
    assert abs(found.ceiling - exact.ceiling) < 4 * found.ceiling_error
    # Of 20,000 independent draws a share would vary by 0.004 at most.
    assert np.abs(found.marginals - exact.marginals).max() < 0.02
    assert not found.marginals[exact.marginals == 0].any()
    assert found.undecided == exact.undecided
    assert found.ask[0].ceiling_after == pytest.approx(exact.ask[0].ceiling_after, abs=0.015)


def test_sampling_agrees_with_counting_when_sets_contradict(monkeypatch):
    mask, clusters = entangled(8, 3, seed=2)
    mask[0] = mask[1] = mask[2] = [True, *[False] * 7]
    exact, found = diagnose(mask, clusters, n_ask=0), sampled(monkeypatch, mask, clusters, n_ask=0)
    assert len(exact.contradictions) == 2
    assert np.abs(found.marginals - exact.marginals).max() < 0.02
    assert abs(found.ceiling - exact.ceiling) < 4 * found.ceiling_error


def test_sampling_reaches_what_only_a_long_exchange_reaches(monkeypatch):
    # Of six clusters in a ring, each may have its own label or the next: two maps in all.
    ring = np.eye(6, dtype=bool) | np.roll(np.eye(6, dtype=bool), 1, axis=1)
    found = sampled(monkeypatch, ring, np.arange(6))
    assert np.abs(found.marginals - ring / 2).max() < 0.02
    assert found.undecided == [[0, 1, 2, 3, 4, 5]]


def test_sampling_is_repeated_by_its_seed(monkeypatch):
    mask, clusters = entangled(9, 4, seed=0)
    one, same, other = (
        sampled(monkeypatch, mask, clusters, n_ask=0, seed=seed) for seed in (3, 3, 4)
    )
    assert np.array_equal(one.marginals, same.marginals)
    assert not np.array_equal(one.marginals, other.marginals)


def test_all_labels_possible_is_chance_at_any_size():
    # 22 clusters of one sample are too many to count; the largest of noisy shares would mislead.
    found = diagnose(np.ones((22, 22), dtype=bool), np.arange(22), n_ask=2)
    assert not found.exact
    assert abs(found.ceiling - 1 / 22) < 4 * found.ceiling_error
    assert found.ask[0].ceiling_after == pytest.approx(2 / 22, abs=0.005)


def test_a_long_ring_is_counted_not_sampled():
    # More labels than bits of a state, but few are open at a time.
    size = 120
    ring = np.eye(size, dtype=bool) | np.roll(np.eye(size, dtype=bool), 1, axis=1)
    found = diagnose(ring, np.arange(size))
    assert found.exact
    assert np.allclose(found.marginals, ring / 2)
    assert [question.ceiling_after for question in found.ask] == [1.0]


# -------------------------------------------------------------------- by hand


def test_one_question_settles_two_clusters():
    found = diagnose(PAIR, ["x", "y"])
    assert found.ceiling == 0.5
    assert found.undecided == [["a", "b"]]
    assert found.always_together == [["a", "b"]]
    assert found.ask == [Question(sample=0, candidates=["a", "b"], ceiling_after=1.0)]
    assert found.clusters.tolist() == ["x", "y"]


def test_the_larger_doubt_is_asked_first_about_its_shortest_set():
    y = [{"a", "b"}, {"a", "b"}, {"c", "d", "e"}, {"c", "d"}, {"c", "d"}, {"e"}]
    found = diagnose(y, [0, 1, 2, 2, 3, 4])
    assert found.ceiling == pytest.approx((1 + 1.5 + 1) / 6)
    assert found.undecided == [["a", "b"], ["c", "d"]]
    assert [question.sample for question in found.ask] == [3, 0]
    assert [question.ceiling_after for question in found.ask] == pytest.approx([5 / 6, 1])


def test_clusters_decide_what_always_comes_together():
    y = [{"a", "b"}, {"a", "b"}, {"b"}]
    assert diagnose(y, [0, 1, 1]).ceiling == 1
    assert diagnose(y, [0, 1, 1]).ask == []
    assert diagnose(y, [0, 0, 1]).undecided == []


def test_likelier_candidates_come_first():
    # The maps are ac, ba, bc and ca.
    found = diagnose([{"a", "b", "c"}, {"a", "c"}], [0, 1], classes=["a", "b", "c"])
    assert found.marginals.tolist() == [[0.25, 0.5, 0.25], [0.5, 0, 0.5]]
    assert found.ceiling == 0.5
    assert found.ask[0].candidates == ["b", "a", "c"]


def test_fewer_clusters_than_classes():
    found = diagnose([{"a", "b"}, {"b", "c"}], [0, 1], classes=["a", "b", "c", "d"])
    # The maps are ab, ac and bc.
    assert np.allclose(found.marginals, [[2 / 3, 1 / 3, 0, 0], [0, 1 / 3, 2 / 3, 0]])
    assert found.ceiling == pytest.approx(2 / 3)
    assert found.undecided == [["a", "b", "c"]]
    assert found.never_candidates == ["d"]
    assert (found.n_samples, found.n_clusters, found.n_classes) == (2, 2, 4)


def test_a_sample_in_the_wrong_cluster_contradicts():
    y = [{"a"}, {"a", "b"}, {"b"}, {"b"}, {"b", "a"}, {"a", "c"}]
    found = diagnose(y, [0, 0, 0, 1, 1, 1], classes=["a", "b", "c"])
    assert found.contradictions == [2, 5]  # with 0 = b and 1 = a: rows 0 and 3, as many
    assert found.undecided == [["a", "b"]]
    assert found.ask[0].ceiling_after > 0.99


def test_a_contradiction_leaves_the_other_clusters_decided():
    labels = np.repeat(np.arange(4), 5)
    mask = np.eye(4, dtype=bool)[labels]
    mask[7] = [False, False, True, False]
    found = diagnose(mask, labels)
    assert found.contradictions == [7]
    assert found.ceiling == pytest.approx(1, abs=1e-6)
    assert found.undecided == []
    assert found.ask == []


def test_eps_says_how_far_a_majority_is_trusted():
    y = [{"a"}, {"a"}, {"b"}]
    for eps in (0.01, 0.2):
        found = diagnose(y, [0, 0, 0], eps=eps)
        assert found.contradictions == [2]
        assert found.marginals[0].tolist() == pytest.approx([1 / (1 + eps), eps / (1 + eps)])
        assert ceiling(Candidates.read(y).mask, [0, 0, 0], eps=eps) == found.ceiling


def test_large_contradicting_clusters_do_not_vanish():
    # 0.01 to the power of 1,000 is no floating-point number.
    labels = np.repeat([0, 1], 1000)
    mask = np.eye(2, dtype=bool)[np.repeat([0, 1, 0, 1], 500)]
    found = diagnose(mask, labels)
    assert found.marginals.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert len(found.contradictions) == 1000


def test_clear_labels_decide_everything():
    found = diagnose(["x", "y", "x"], [4, -1, 4])
    assert found.marginals.tolist() == [[0, 1], [1, 0]]
    assert (found.ceiling, found.undecided, found.ask) == (1, [], [])


def test_the_number_of_questions_is_kept():
    y = [{f"{i}", f"{i}'"} for i in range(7) for _ in range(2)]
    for n_ask in (0, 1, 5, 9):
        found = diagnose(y, range(14), n_ask=n_ask)
        assert len(found.ask) == min(n_ask, 7)


def test_a_hundred_classes():
    mask, clusters = entangled(100, 3, seed=0)
    found = diagnose(mask, clusters)
    assert np.allclose(found.marginals.sum(axis=1), 1)
    assert not found.marginals[~mask].any()
    assert 0.3 < found.ceiling < 0.7
    rises = np.diff([found.ceiling, *(question.ceiling_after for question in found.ask)])
    assert len(rises) == 5
    assert (rises > 0).all()


# -------------------------------------------------------------------- printing


def test_printing_says_it_in_sentences():
    y = [{"a", "b"}, {"a", "b"}, {"c"}, {"c"}, {"a", "b"}]
    found = diagnose(y, [0, 1, 2, 2, 2], classes=["a", "b", "c", "d"])
    assert str(found).splitlines() == [
        "5 samples in 3 clusters, 4 classes",
        "given the clusters, no method can expect more than 79.8% of the labels to be right",
        "no labelling of the clusters agrees with all sets; the best contradicts 1, where the true "
        "label is missing or the cluster is wrong: row 4",
        "cannot be told apart, given the clusters: a, b",
        "always together, cannot be told apart by any sample: a, b",
        "never a candidate: d",
        "ask for the label of row 0 (a or b): up to 99.7% right",
    ]


def test_printing_when_all_is_decided():
    assert str(diagnose(["x", "x"], [0, 0])).splitlines() == [
        "2 samples in 1 cluster, 1 class",
        "given the clusters, the candidate sets decide every label",
    ]


def test_printing_of_sampled_and_of_long_lists(monkeypatch):
    found = sampled(monkeypatch, np.ones((12, 12), dtype=bool), np.arange(12), n_ask=2)
    lines = str(found).splitlines()
    assert f"{found.ceiling:.1%} (± {found.ceiling_error:.1%}, sampled)" in lines[1]
    assert lines[2] == (
        "cannot be told apart, given the clusters: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    )
    assert lines[4].startswith("ask for the label of row ")
    assert lines[5].startswith("then ask for the label of row ")


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("clusters", "error", "message"),
    [
        (
            [0, 1, 2],
            InputError,
            "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), "
            "not one of shape (3,)",
        ),
        (
            np.full((2, 2), 0.5),
            InputError,
            "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), "
            "not one of shape (2, 2)",
        ),
        (
            None,
            InputError,
            "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), "
            "not one of shape ()",
        ),
        (
            [0.0, 0.5],
            InputTypeError,
            "clusters are whole numbers or names, but row 1 holds 0.5",
        ),
        (
            [float("nan"), 1],
            InputTypeError,
            "clusters are whole numbers or names, but row 0 holds nan",
        ),
        (
            ["x", None],
            InputTypeError,
            "clusters are whole numbers or names, but row 1 holds None",
        ),
    ],
)
def test_clusters_that_are_none(clusters, error, message):
    for call in (
        lambda: diagnose(PAIR, clusters),
        lambda: ceiling(np.ones((2, 2), dtype=bool), clusters),
    ):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == message


def test_more_clusters_than_classes():
    message = (
        "3 clusters cannot each have a class of their own out of 2; merge clusters or name all "
        "classes"
    )
    for call in (
        lambda: diagnose([*PAIR, {"a"}], [0, 1, 2]),
        lambda: ceiling(np.ones((3, 2), dtype=bool), [0, 1, 2]),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == message


def test_empty_sets_and_masks_that_are_none():
    empty = "row 1 of candidates is empty; every sample needs at least one candidate label"
    for call in (
        lambda: diagnose([{"a"}, set()], [0, 0]),
        lambda: ceiling(np.array([[True], [False]]), [0, 0]),
        lambda: ceiling(np.array([[1], [0]]), [0, 0]),
    ):
        with pytest.raises(CandidateError) as caught:
            call()
        assert str(caught.value) == empty
    with pytest.raises(CandidateError, match="holds 0 and 1 only, but 2 was found at row 0"):
        ceiling(np.array([[2, 1]]), [0])
    with pytest.raises(CandidateError, match="there are no samples"):
        ceiling(np.ones((0, 2), dtype=bool), [])


@pytest.mark.parametrize("eps", [0, 1, -0.5, float("nan"), "small"])
def test_eps_is_a_chance(eps):
    with pytest.raises(InputError) as caught:
        diagnose(PAIR, [0, 1], eps=eps)
    assert str(caught.value) == f"eps is a chance, above 0 and below 1, not {eps!r}"


@pytest.mark.parametrize("n_ask", [-1, 1.0, True, None])
def test_questions_are_counted(n_ask):
    with pytest.raises(InputError) as caught:
        diagnose(PAIR, [0, 1], n_ask=n_ask)
    assert str(caught.value) == (
        f"n_ask counts questions: a whole number of 0 or more, not {n_ask!r}"
    )


def test_names_of_clusters_may_be_objects():
    found = diagnose(PAIR, np.array(["one", "two"], dtype=object))
    assert isinstance(found, Diagnosis)
    assert found.clusters.tolist() == ["one", "two"]
