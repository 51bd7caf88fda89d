"""The heart against a plain loop of the equations, its limits, its invariances, its edges.

The loops below follow the text of the method: one number at a time, in double precision.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from fspll._common.errors import CandidateError, FsPLLError, InputError
from fspll.rectifiers import FsPLLRule, rectify
from fspll.rectifiers.equations import (
    METRICS,
    class_probabilities,
    class_prototypes,
    distances,
    exact_distances,
    log_confidence,
    nearest_neighbors,
)
from fspll.rectifiers.paper import ENGINES

BOTH_ENGINES = pytest.mark.parametrize("engine", ["equations", "pairwise"])
BOTH_METRICS = pytest.mark.parametrize("metric", METRICS)


pytestmark = pytest.mark.usefixtures("one_thread")


# -------------------------------------------------------------------- the equations, one by one


def loop_square(a, b):
    return math.fsum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True))


def loop_neighbors(e, k):
    """List the k nearest others of each sample; whoever is as near as the k-th belongs to them."""
    n = len(e)
    k = min(k, n - 1)
    result = []
    for i in range(n):
        away = {j: loop_square(e[i], e[j]) for j in range(n) if j != i}
        limit = sorted(away.values())[k - 1] if k > 0 else -1.0
        result.append([j for j, d in away.items() if d <= limit])
    return result


def loop_prototypes(e, Q):
    n, m = e.shape
    P = np.zeros((Q.shape[1], m))
    for c in range(Q.shape[1]):
        mass = math.fsum(Q[i, c] for i in range(n))
        if mass > 0:
            for f in range(m):
                P[c, f] = math.fsum(Q[i, c] * e[i, f] for i in range(n)) / mass
    return P


def loop_softmax(e, y, P, metric):
    """Eq. (2): candidates of a sample only; the nearest is subtracted to avoid 0 / 0."""
    Q = np.zeros(y.shape)
    for i in range(len(e)):
        d = {}
        for c in range(y.shape[1]):
            if y[i, c]:
                square = loop_square(e[i], P[c])
                d[c] = square if metric == "sqeuclidean" else math.sqrt(square)
        least = min(d.values())
        total = math.fsum(math.exp(least - v) for v in d.values())
        for c, v in d.items():
            Q[i, c] = math.exp(least - v) / total
    return Q


def loop_rectify(e, y, k, weight, n_iterations, metric):
    """Run Eq. (1) to (3): every round's confidence and the last prototypes."""
    e = np.asarray(e, dtype=np.float64)
    near = loop_neighbors(e, k)
    rounds = [y.astype(np.float64)]
    for _ in range(n_iterations):
        soft = loop_softmax(e, y, loop_prototypes(e, rounds[-1]), metric)
        Q = soft.copy()
        for i in range(len(e)):
            for c in range(y.shape[1]):
                if y[i, c] and near[i]:
                    Q[i, c] += weight * math.fsum(soft[j, c] for j in near[i]) / len(near[i])
        rounds.append(Q)
    return rounds, loop_prototypes(e, rounds[-1])


def log_sum(terms):
    largest = max(terms, default=-math.inf)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(math.fsum(math.exp(t - largest) for t in terms))


def loop_rectify_log(e, y, k, weight, n_iterations, metric):
    """Run the same loop on logarithms, which hold weights of exp(-100000); last round only."""
    e = np.asarray(e, dtype=np.float64)
    near = loop_neighbors(e, k)
    n, n_classes = y.shape
    L = np.where(y, 0.0, -np.inf)

    def prototypes():
        shifted = L - np.maximum(L.max(axis=0), -1e300)
        return loop_prototypes(e, np.exp(shifted))

    for _ in range(n_iterations):
        P = prototypes()
        soft = np.full((n, n_classes), -np.inf)
        for i in range(n):
            for c in range(n_classes):
                if y[i, c]:
                    square = loop_square(e[i], P[c])
                    soft[i, c] = -(square if metric == "sqeuclidean" else math.sqrt(square))
            soft[i] -= log_sum(list(soft[i]))
        L = np.full((n, n_classes), -np.inf)
        for i in range(n):
            for c in range(n_classes):
                if y[i, c]:
                    terms = [soft[i, c]]
                    if near[i] and weight > 0:
                        share = math.log(weight / len(near[i]))
                        terms += [share + soft[j, c] for j in near[i]]
                    L[i, c] = log_sum(terms)
    return L, prototypes()


# -------------------------------------------------------------------- random tasks


def random_candidates(rng, shape):
    """Ragged candidate sets: anything from one label to all."""
    mask = rng.random(shape) < rng.uniform(0, 1)
    keep = rng.integers(0, shape[-1], shape[:-1])
    np.put_along_axis(mask, keep[..., None], True, axis=-1)
    return mask


def random_features(rng, shape, kind):
    """``normal``, or multiples of 1/4: exact duplicates and equal distances everywhere."""
    if kind == "normal":
        return rng.normal(size=shape) / 2
    return rng.integers(-3, 4, size=shape) / 4


@st.composite
def tasks(draw, batch=()):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes, m = draw(st.integers(1, 30)), draw(st.integers(1, 8)), draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["normal", "quarters"]))
    chosen = FsPLLRule(
        n_neighbors=draw(st.integers(0, 6)),
        manifold_weight=draw(st.sampled_from([0.0, 0.5, 2.0])),
        n_iterations=draw(st.integers(0, 10)),
        metric=draw(st.sampled_from(METRICS)),
    )
    e = random_features(rng, (*batch, n, m), kind)
    return e, random_candidates(rng, (*batch, n, n_classes)), chosen


def run(e, y, chosen, **kwargs):
    return rectify(torch.as_tensor(e), torch.as_tensor(y), chosen, **kwargs)


def arguments(s):
    return s.n_neighbors, s.manifold_weight, s.n_iterations, s.metric


def close(actual, expected, tolerance):
    np.testing.assert_allclose(
        torch.as_tensor(actual).numpy(),
        torch.as_tensor(expected).numpy(),
        rtol=tolerance,
        atol=tolerance,
    )


light = settings(derandomize=True, deadline=None, max_examples=100)


@pytest.mark.parametrize("engine", ENGINES)
@given(task=tasks())
@light
def test_double_precision_equals_the_plain_loop(engine, task):
    e, y, chosen = task
    rounds, prototypes = loop_rectify(e, y, *arguments(chosen))
    result = run(e, y, chosen, engine=engine, history=True)
    assert result.confidence.dtype == torch.float64
    close(result.prototypes, prototypes, 1e-9)
    close(result.confidence, rounds[-1], 1e-9)
    close(result.history.confidence, np.stack(rounds), 1e-9)
    assert result.present.tolist() == y.any(axis=0).tolist()


@pytest.mark.parametrize("engine", ENGINES)
@given(task=tasks())
@light
def test_single_precision_equals_the_plain_loop_on_the_same_numbers(engine, task):
    e, y, chosen = task
    e = e.astype(np.float32)
    rounds, prototypes = loop_rectify(e, y, *arguments(chosen))
    result = run(e, y, chosen, engine=engine)
    assert result.confidence.dtype == result.prototypes.dtype == torch.float32
    close(result.prototypes, prototypes, 1e-5)
    close(result.confidence, rounds[-1], 1e-5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@given(data=st.data())
@settings(light, max_examples=15)
def test_a_batch_equals_its_tasks_one_by_one(engine, batch, data):
    e, y, chosen = data.draw(tasks(batch))
    together = run(e, y, chosen, engine=engine, history=True)
    assert together.prototypes.shape == (*batch, y.shape[-1], e.shape[-1])
    assert together.confidence.shape == y.shape
    assert together.present.shape == (*batch, y.shape[-1])
    for at in np.ndindex(batch):
        alone = run(e[at], y[at], chosen, engine=engine, history=True)
        close(together.prototypes[at], alone.prototypes, 1e-10)
        close(together.confidence[at], alone.confidence, 1e-10)
        assert torch.equal(together.present[at], alone.present)
        where = (slice(None), *at)
        close(together.history.confidence[where], alone.history.confidence, 1e-10)
        close(together.history.prototypes[where], alone.history.prototypes, 1e-10)


@given(task=tasks())
@settings(light, max_examples=30)
def test_the_loop_on_logarithms_is_the_same_loop(task):
    e, y, chosen = task
    rounds, prototypes = loop_rectify(e, y, *arguments(chosen))
    logs, log_prototypes = loop_rectify_log(e, y, *arguments(chosen))
    close(np.exp(logs), rounds[-1], 1e-9)
    close(log_prototypes, prototypes, 1e-9)


# -------------------------------------------------------------------- by hand

LINE = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
TWO_CLASSES = torch.tensor([[1, 0], [1, 1], [0, 1]]).bool()


@BOTH_ENGINES
def test_one_round_by_hand(engine):
    """Samples 0, 1, 3 with candidates {a}, {a, b}, {b}, no neighbors.

    p_a = (0 + 1) / 2 = 0.5                 p_b = (1 + 3) / 2 = 2
    sample 1: d_a = 0.5, d_b = 1            Q_1a = 1 / (1 + e^(0.5 - 1)) = 1 / 1.6065307 = 0.6224593
                                            Q_1b = 1 - Q_1a = 0.3775407
    p_a = 0.6224593 / 1.6224593 = 0.3836517
    p_b = (0.3775407 + 3) / 1.3775407 = 3.3775407 / 1.3775407 = 2.4518628
    """
    result = rectify(LINE, TWO_CLASSES, FsPLLRule(0, 0.5, 1), engine=engine)
    close(result.confidence, [[1, 0], [0.6224593, 0.3775407], [0, 1]], 1e-6)
    close(result.prototypes, [[0.3836517], [2.4518628]], 1e-6)


@BOTH_ENGINES
def test_one_round_with_squared_distances_by_hand(engine):
    """As above with d_a = 0.25, d_b = 1.

    Q_1a = 1 / (1 + e^(0.25 - 1)) = 1 / 1.4723666 = 0.6791787, Q_1b = 0.3208213
    p_a = 0.6791787 / 1.6791787 = 0.4044707
    p_b = (0.3208213 + 3) / 1.3208213 = 2.5142088
    """
    result = rectify(LINE, TWO_CLASSES, FsPLLRule(0, 0.5, 1, "sqeuclidean"), engine=engine)
    close(result.confidence, [[1, 0], [0.6791787, 0.3208213], [0, 1]], 1e-6)
    close(result.prototypes, [[0.4044707], [2.5142088]], 1e-6)


@BOTH_ENGINES
def test_one_round_with_neighbors_by_hand(engine):
    """One neighbor: 0 has 1, 1 has 0 (1 away; 3 is 2 away), 3 has 1. lambda = 0.5.

    Q_0a = 1 + 0.5 * 0.6224593 = 1.3112297
    Q_1a = 0.6224593 + 0.5 * 1 = 1.1224593      Q_1b = 0.3775407 + 0.5 * 0 = 0.3775407
    Q_3b = 1 + 0.5 * 0.3775407 = 1.1887703
    p_a = 1.1224593 / 2.4336890 = 0.4612172
    p_b = (0.3775407 + 3 * 1.1887703) / 1.5663110 = 3.9438517 / 1.5663110 = 2.5179238
    """
    result = rectify(LINE, TWO_CLASSES, FsPLLRule(1, 0.5, 1), engine=engine)
    close(
        result.confidence,
        [[1.3112297, 0], [1.1224593, 0.3775407], [0, 1.1887703]],
        1e-6,
    )
    close(result.prototypes, [[0.4612172], [2.5179238]], 1e-6)


@BOTH_ENGINES
def test_two_rounds_by_hand(engine):
    """Second round of the case without neighbors, from p_a = 0.3836517 and p_b = 2.4518628.

    d_a = 0.6163483, d_b = 1.4518628, difference 0.8355145, e^-0.8355145 = 0.4336513
    Q_1a = 1 / 1.4336513 = 0.6975197, Q_1b = 0.3024803
    """
    result = rectify(LINE, TWO_CLASSES, FsPLLRule(0, 0.5, 2), engine=engine)
    close(result.confidence[1], [0.6975197, 0.3024803], 1e-6)


@BOTH_ENGINES
def test_equally_near_samples_share_the_neighborhood(engine):
    """Sample 1 lies between 0 and 2: with k = 1 both are neighbors, each counting one half.

    All candidate sets hold one label, so Q_1a = 1 + 0.5 * (1 + 0) / 2 = 1.25.
    """
    e = torch.tensor([[0.0], [1.0], [2.0]])
    y = torch.tensor([[1, 0], [1, 0], [0, 1]]).bool()
    result = rectify(e, y, FsPLLRule(1, 0.5, 3), engine=engine)
    close(result.confidence, [[1.5, 0], [1.25, 0], [0, 1.0]], 1e-6)


# -------------------------------------------------------------------- limits


@given(task=tasks(), seed=st.integers(0, 1000))
@light
def test_one_candidate_each_gives_class_means_and_stays_certain(task, seed):
    """The confidence of the one label is 1 + lambda * share of neighbors with that label.

    With neighbors of other labels these weights differ, so the class means are ordinary ones
    only without Eq. (3).
    """
    e, y, chosen = task
    n, n_classes = y.shape
    labels = np.random.default_rng(seed).integers(0, n_classes, n)
    one = np.eye(n_classes, dtype=bool)[labels]
    near = loop_neighbors(e, chosen.n_neighbors)
    expected = one.astype(float)
    if chosen.n_iterations:
        for i in range(n):
            if near[i]:
                share = np.mean([labels[j] == labels[i] for j in near[i]])
                expected[i, labels[i]] += chosen.manifold_weight * share
    result = run(e, one, chosen)
    close(result.confidence, expected, 1e-9)
    plain = run(e, one, FsPLLRule(0, 0.5, chosen.n_iterations, chosen.metric))
    close(plain.confidence, one.astype(float), 1e-9)
    for c in np.unique(labels):
        close(plain.prototypes[c], e[labels == c].mean(axis=0), 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@given(task=tasks())
@settings(light, max_examples=20)
def test_no_rounds_weight_all_candidates_equally(engine, task):
    e, y, chosen = task
    result = run(e, y, FsPLLRule(chosen.n_neighbors, 0.5, 0, chosen.metric), engine=engine)
    close(result.confidence, y.astype(float), 0)
    for c in np.flatnonzero(y.any(axis=0)):
        close(result.prototypes[c], e[y[:, c]].mean(axis=0), 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@given(task=tasks())
@settings(light, max_examples=20)
def test_no_weight_and_no_neighbors_are_the_same(engine, task):
    e, y, s = task
    no_weight = run(e, y, FsPLLRule(s.n_neighbors, 0.0, s.n_iterations, s.metric), engine=engine)
    no_neighbors = run(e, y, FsPLLRule(0, 2.0, s.n_iterations, s.metric), engine=engine)
    assert torch.equal(no_weight.confidence, no_neighbors.confidence)
    assert torch.equal(no_weight.prototypes, no_neighbors.prototypes)


# -------------------------------------------------------------------- invariances


@BOTH_ENGINES
@given(task=tasks(), seed=st.integers(0, 1000))
@light
def test_permuting_classes_permutes_the_outputs(engine, task, seed):
    e, y, chosen = task
    order = np.random.default_rng(seed).permutation(y.shape[1])
    before, after = run(e, y, chosen, engine=engine), run(e, y[:, order], chosen, engine=engine)
    close(after.prototypes, before.prototypes[order], 1e-9)
    close(after.confidence, before.confidence[:, order], 1e-9)
    assert torch.equal(after.present, before.present[order])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@BOTH_ENGINES
@given(task=tasks(), seed=st.integers(0, 1000))
@light
def test_permuting_samples_permutes_the_outputs(engine, dtype, task, seed):
    """Also with equal distances, which rounding must not break one way or the other."""
    e, y, chosen = task
    e = e.astype(dtype)
    tolerance = 1e-9 if dtype == np.float64 else 2e-5
    order = np.random.default_rng(seed).permutation(len(e))
    before, after = run(e, y, chosen, engine=engine), run(e[order], y[order], chosen, engine=engine)
    close(after.prototypes, before.prototypes, tolerance)
    close(after.confidence, before.confidence[order], tolerance)


def random_task(seed, n=20, n_classes=4, m=5, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)) * scale, random_candidates(rng, (n, n_classes))


@BOTH_ENGINES
@BOTH_METRICS
@pytest.mark.parametrize("seed", range(5))
def test_moving_and_turning_the_embeddings_changes_nothing(engine, metric, seed):
    e, y = random_task(seed)
    rng = np.random.default_rng(seed + 100)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    shift = rng.normal(size=5) * 10
    before = run(e, y, FsPLLRule(metric=metric), engine=engine)
    after = run(e @ turn + shift, y, FsPLLRule(metric=metric), engine=engine)
    close(after.confidence, before.confidence, 1e-9)
    close(after.prototypes, before.prototypes.numpy() @ turn + shift, 1e-9)


@BOTH_ENGINES
@BOTH_METRICS
def test_single_precision_far_from_the_origin(engine, metric):
    """Features around 100, as from a network without centering, lose no more than others."""
    for seed in range(10):
        e, y = random_task(seed, scale=0.5)
        e = (e + 100).astype(np.float32)
        rounds, _ = loop_rectify(e, y, 4, 0.5, 10, metric)
        close(run(e, y, FsPLLRule(metric=metric), engine=engine).confidence, rounds[-1], 1e-5)


# -------------------------------------------------------------------- edges


@BOTH_ENGINES
@BOTH_METRICS
def test_a_class_that_is_nobodys_candidate(engine, metric):
    e, y = random_task(1)
    y = np.insert(y, [0, 2], False, axis=1)
    absent = [0, 3]
    result = run(e, y, FsPLLRule(metric=metric), engine=engine, history=True)
    assert np.flatnonzero(~result.present).tolist() == absent
    assert not result.prototypes[absent].any()
    assert not result.confidence[:, absent].any()
    assert result.prototypes.isfinite().all()
    assert result.history.prototypes.isfinite().all()
    assert result.history.confidence.isfinite().all()
    # A query at the origin is at distance zero of the missing prototype, and still not of its class
    query = torch.zeros(1, e.shape[1], dtype=torch.float64)
    away = distances(query, result.prototypes, metric)
    assert away.argmin().item() in absent
    chance = class_probabilities(away, result.present)
    assert not chance[0, absent].any()
    assert chance.sum().item() == pytest.approx(1)
    assert chance.argmax().item() not in absent
    # and the other classes do not notice
    rest = run(e, np.delete(y, absent, axis=1), FsPLLRule(metric=metric), engine=engine)
    close(result.prototypes[result.present], rest.prototypes, 1e-12)


@BOTH_ENGINES
def test_fewer_others_than_neighbors_wanted(engine):
    e, y = random_task(2, n=4)
    many = run(e, y, FsPLLRule(n_neighbors=50), engine=engine)
    three = run(e, y, FsPLLRule(n_neighbors=3), engine=engine)
    close(many.confidence, three.confidence, 0)


@BOTH_ENGINES
@BOTH_METRICS
@pytest.mark.parametrize("k", [0, 4])
def test_one_sample(engine, metric, k):
    y = np.array([[True, False, True]])
    result = run([[2.0, 3.0]], y, FsPLLRule(n_neighbors=k, metric=metric), engine=engine)
    close(result.confidence, [[0.5, 0, 0.5]], 1e-7)
    close(result.prototypes, [[2, 3], [0, 0], [2, 3]], 0)


@BOTH_ENGINES
def test_one_class(engine):
    e, _ = random_task(3)
    result = run(e, np.ones((20, 1), dtype=bool), FsPLLRule(), engine=engine)
    close(result.confidence, np.full((20, 1), 1.5), 1e-12)
    close(result.prototypes[0], e.mean(axis=0), 1e-12)


@BOTH_ENGINES
def test_full_candidate_sets_keep_all_labels_equal(engine):
    """Nothing tells the labels apart, so nothing may prefer one."""
    e, _ = random_task(4)
    result = run(e, np.ones((20, 4), dtype=bool), FsPLLRule(), engine=engine)
    close(result.confidence, np.full((20, 4), 1.5 / 4), 1e-9)
    close(result.prototypes, np.tile(e.mean(axis=0), (4, 1)), 1e-9)


@BOTH_ENGINES
def test_one_shot_has_no_neighbors(engine):
    e, y = random_task(5, n=4, n_classes=4)
    y |= np.eye(4, dtype=bool)
    result = run(e, y, FsPLLRule(n_neighbors=0), engine=engine)
    close(result.confidence.sum(dim=-1), np.ones(4), 1e-12)
    rounds, prototypes = loop_rectify(e, y, 0, 0.5, 10, "euclidean")
    close(result.confidence, rounds[-1], 1e-9)
    close(result.prototypes, prototypes, 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@BOTH_ENGINES
@BOTH_METRICS
@pytest.mark.parametrize("k", [1, 2, 4])
def test_duplicates_with_the_same_candidates_are_treated_alike(engine, metric, dtype, k):
    """Each sample three times, one copy with other candidates."""
    for seed in range(5):
        e, y = random_task(seed, n=8, m=7)
        other = random_candidates(np.random.default_rng(seed), y.shape)
        e = np.concatenate([e, e, e]).astype(dtype)
        y = np.concatenate([y, other, y])
        result = run(e, y, FsPLLRule(k, 2.0, 10, metric), engine=engine)
        assert result.confidence.isfinite().all()
        close(result.confidence[:8], result.confidence[16:], 1e-5)
        rounds, _ = loop_rectify(e, y, k, 2.0, 10, metric)
        close(result.confidence, rounds[-1], 1e-9 if dtype == np.float64 else 5e-5)


@BOTH_ENGINES
@BOTH_METRICS
def test_all_samples_equal(engine, metric):
    """Distances are all zero: candidates stay equal, and everyone is everyone's neighbor."""
    y = np.array([[1, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1]], dtype=bool)
    e = np.tile([0.1, -7.3, 3.3], (4, 1)).astype(np.float32)
    result = run(e, y, FsPLLRule(2, 0.5, 10, metric), engine=engine)
    # neighbors of sample 0: 1 (b, c: 1/2 each), 2 (b: 1), 3 (a, c: 1/2 each)
    # Q_0a = 1/2 + 1/2 * (1/2) / 3 = 7/12, Q_0b = 1/2 + 1/2 * (1/2 + 1) / 3 = 3/4
    close(result.confidence[0], [7 / 12, 3 / 4, 0], 1e-6)
    close(result.prototypes, e[:3], 1e-6)


@BOTH_ENGINES
@pytest.mark.parametrize("metric", METRICS)
def test_tight_clusters_far_apart_find_their_true_neighbors(engine, metric):
    """In single precision, |a|^2 + |b|^2 - 2ab cannot tell who is near inside such a cluster."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        centers = rng.normal(size=(4, 3)) * 30
        e = np.repeat(centers, 5, axis=0) + rng.normal(size=(20, 3)) * 0.01
        e = e.astype(np.float32)
        expected = np.zeros((20, 20), dtype=bool)
        for i, near in enumerate(loop_neighbors(e, 2)):
            expected[i, near] = True
        found = nearest_neighbors(torch.as_tensor(e), 2)
        assert (found > 0).tolist() == expected.tolist()
        y = np.repeat(np.eye(4, dtype=bool), 5, axis=0)
        y[:, 0] = True
        logs, _ = loop_rectify_log(e, y, 2, 2.0, 1, metric)
        result = run(e, y, FsPLLRule(2, 2.0, 1, metric), engine=engine)
        close(result.confidence, np.exp(logs), 1e-4)


@BOTH_METRICS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sample_on_its_prototype_is_at_distance_zero(metric, dtype):
    """Its squared distance is a difference of equal terms, whose root would magnify rounding."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        half = rng.normal(size=(int(rng.integers(2, 12)), 3)).astype(np.float32)
        e = np.concatenate([half, -half, np.zeros((1, 3))]).astype(dtype)
        y = np.ones((len(e), 2), dtype=bool)
        y[0, 1] = False
        rounds, _ = loop_rectify(e, y, 0, 0.5, 1, metric)
        result = run(e, y, FsPLLRule(0, 0.5, 1, metric), engine="pairwise")
        close(result.confidence, rounds[-1], 1e-6 if dtype == np.float32 else 1e-12)


@BOTH_ENGINES
@BOTH_METRICS
def test_huge_features_keep_the_ratios_of_vanishing_weights(engine, metric):
    """At scale 1e5 whole classes have weights below exp(-1000); their prototypes still exist."""
    underflows = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        e = rng.normal(size=(12, 2)) * 1e5
        y = np.argsort(rng.random((12, 8)), axis=1) < 4  # four candidates each
        logs, prototypes = loop_rectify_log(e, y, 3, 0.5, 10, metric)
        weight = logs.max(axis=0)
        underflows += int(((weight < -800) & y.any(axis=0)).sum())
        result = run(e, y, FsPLLRule(3, 0.5, 10, metric), engine=engine)
        close(result.confidence, np.exp(logs), 1e-3 if metric == "sqeuclidean" else 1e-6)
        assert result.present.all()
        close(result.prototypes / 1e5, prototypes / 1e5, 1e-3 if metric == "sqeuclidean" else 1e-6)
    assert underflows > 0  # or the cases above prove nothing


@BOTH_ENGINES
@BOTH_METRICS
@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_extreme_scales_in_single_precision(engine, metric, scale):
    for seed in range(5):
        e, y = random_task(seed, n=25, n_classes=5, scale=scale)
        e = e.astype(np.float32)
        result = run(e, y, FsPLLRule(metric=metric), engine=engine, history=True)
        assert result.confidence.isfinite().all()
        assert result.prototypes.isfinite().all()
        assert result.history.prototypes.isfinite().all()
        lowest, highest = torch.as_tensor(e).aminmax(dim=0)
        inside = result.prototypes[result.present]
        slack = 1e-5 * scale
        assert ((inside >= lowest - slack) & (inside <= highest + slack)).all()
        sums = result.confidence.sum(dim=-1)
        assert (sums >= 1 - 1e-5).all()
        if scale < 1:
            rounds, prototypes = loop_rectify(e, y, 4, 0.5, 10, metric)
            close(result.confidence, rounds[-1], 1e-5)
            close(result.prototypes / scale, prototypes / scale, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("engine", ENGINES)
def test_half_precision_is_computed_in_single(engine, dtype):
    e, y = random_task(6)
    half = torch.as_tensor(e).to(dtype)
    result = run(half, y, FsPLLRule(), engine=engine)
    same = run(half.float(), y, FsPLLRule(), engine=engine)
    assert result.confidence.dtype == result.prototypes.dtype == torch.float32
    assert torch.equal(result.confidence, same.confidence)
    assert torch.equal(result.prototypes, same.prototypes)


@BOTH_ENGINES
def test_inputs_are_not_touched_and_nothing_is_differentiated(engine):
    e, y = (torch.as_tensor(x) for x in random_task(7))
    before, mask = e.clone(), y.clone()
    e.requires_grad_()
    result = rectify(e, y, FsPLLRule(), engine=engine, history=True)
    assert not any(x.requires_grad for x in (result.prototypes, result.confidence))
    assert not any(x.requires_grad for x in result.history)
    assert e.requires_grad
    assert e.grad is None
    assert torch.equal(e.detach(), before)
    assert torch.equal(y, mask)
    # without rounds the confidence is the candidates: changing it must not change them
    rectify(e, y, FsPLLRule(n_iterations=0), engine=engine).confidence.zero_()
    assert torch.equal(y, mask)


@BOTH_ENGINES
def test_strided_inputs(engine):
    e, y = (torch.as_tensor(x) for x in random_task(8))
    straight = rectify(e, y, engine=engine)
    strided = rectify(e.T.contiguous().T, y.T.contiguous().T, engine=engine)
    close(strided.confidence, straight.confidence, 1e-12)


# -------------------------------------------------------------------- history


@BOTH_ENGINES
@pytest.mark.parametrize("n_iterations", [0, 1, 4])
def test_history_holds_the_result_of_every_number_of_rounds(engine, n_iterations):
    e, y = random_task(9)
    result = run(e, y, FsPLLRule(n_iterations=n_iterations), engine=engine, history=True)
    assert result.history.confidence.shape == (n_iterations + 1, 20, 4)
    assert result.history.prototypes.shape == (n_iterations + 1, 4, 5)
    assert torch.equal(result.history.confidence[0], torch.as_tensor(y).double())
    assert torch.equal(result.history.confidence[-1], result.confidence)
    assert torch.equal(result.history.prototypes[-1], result.prototypes)
    for t in range(n_iterations + 1):
        shorter = run(e, y, FsPLLRule(n_iterations=t), engine=engine)
        assert shorter.history is None
        close(result.history.confidence[t], shorter.confidence, 1e-12)
        close(result.history.prototypes[t], shorter.prototypes, 1e-12)


def test_defaults_are_the_papers():
    assert FsPLLRule() == FsPLLRule("auto", 0.5, 10, "euclidean")
    e, y = random_task(10)
    rounds, _ = loop_rectify(e, y, 4, 0.5, 10, "euclidean")
    close(run(e, y, None).confidence, rounds[-1], 1e-9)


# -------------------------------------------------------------------- the parts


def test_class_prototypes_of_a_weightless_class_are_zero():
    Q = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    e = torch.tensor([[3.0, 0.0], [0.0, 6.0]])
    assert class_prototypes(e, Q).tolist() == [[2.0, 2.0], [0.0, 0.0]]


@BOTH_METRICS
@pytest.mark.parametrize("shift", [0, 1000])
def test_distances_against_scipy(metric, shift):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40, 6)) + shift, rng.normal(size=(2, 30, 6)) + shift
    expected = np.stack([cdist(x, y, metric) for x, y in zip(a, b, strict=True)])
    a, b = torch.as_tensor(a), torch.as_tensor(b)
    close(distances(a, b, metric), expected, 1e-9)
    close(exact_distances(a, b, metric), expected, 1e-9)
    a, b = a.float(), b.float()
    near = np.stack([cdist(x, y, metric) for x, y in zip(a, b, strict=True)])
    close(distances(a, b, metric), near, 1e-4)
    close(exact_distances(a, b, metric), near, 1e-5)


@BOTH_METRICS
def test_exact_distances_do_not_depend_on_the_other_samples(metric):
    rng = np.random.default_rng(1)
    a = torch.as_tensor(rng.normal(size=(60, 33)), dtype=torch.float32)
    b = torch.as_tensor(rng.normal(size=(30, 33)), dtype=torch.float32)
    together = exact_distances(a, b, metric)
    alone = torch.cat([exact_distances(row.unsqueeze(0), b, metric) for row in a])
    assert torch.equal(together, alone)
    assert torch.equal(exact_distances(a, a, metric).diagonal(), torch.zeros(60))


def test_log_confidence_by_hand():
    """Distances 1, 2, 5 with the second no candidate: the odds are e^(5 - 1)."""
    d = torch.tensor([[1.0, 2.0, 5.0]])
    q = log_confidence(d, torch.tensor([[True, False, True]])).exp()
    close(q, [[0.9820138, 0.0, 0.0179862]], 1e-6)


def test_neighbor_weights_are_shares():
    e = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    assert nearest_neighbors(e, 2).tolist() == [
        [0, 0.5, 0.5, 0],
        [0.5, 0, 0.5, 0],
        [0.5, 0.5, 0, 0],
        [0, 0.5, 0.5, 0],
    ]
    assert nearest_neighbors(e, 0).tolist() == [[0.0] * 4] * 4
    assert nearest_neighbors(e[:1], 3).tolist() == [[0.0]]
    # equal distances share: 1 has 0 and 2 at the same distance
    tie = nearest_neighbors(torch.tensor([[0.0], [1.0], [2.0]]), 1)
    assert tie.tolist() == [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]
    assert nearest_neighbors(e.expand(2, 3, 4, 1), 2).shape == (2, 3, 4, 4)


def test_class_probabilities_by_hand():
    """Distances 0, ln 2, and a class without prototype: 1 to 1/2."""
    p = class_probabilities(
        torch.tensor([[0.0, math.log(2), 0.0]]), torch.tensor([True, True, False])
    )
    close(p, [[2 / 3, 1 / 3, 0]], 1e-6)


# -------------------------------------------------------------------- bad inputs

GOOD_E, GOOD_Y = torch.zeros(3, 2), torch.ones(3, 4, dtype=torch.bool)


@pytest.mark.parametrize(
    ("e", "y", "message"),
    [
        (GOOD_E.long(), GOOD_Y, r"embeddings must be floating point, not torch\.int64"),
        (GOOD_E, GOOD_Y.float(), r"candidates must be a bool mask, not torch\.float32"),
        (
            GOOD_E[:2],
            GOOD_Y,
            r"embeddings of shape \(2, 2\) and candidates of shape \(3, 4\) do not fit: "
            r"expected \(\.\.\., n, m\) and \(\.\.\., n, l\)",
        ),
        (GOOD_E[0], GOOD_Y[0], r"shape \(2,\) and candidates of shape \(4,\) do not fit"),
        (GOOD_E, GOOD_Y.expand(2, 3, 4), r"\(3, 2\) and candidates of shape \(2, 3, 4\)"),
        (GOOD_E.expand(2, 3, 2), GOOD_Y, r"\(2, 3, 2\) and candidates of shape \(3, 4\)"),
        (GOOD_E[:0], GOOD_Y[:0], r"embeddings of shape \(0, 2\) hold nothing"),
        (GOOD_E[:, :0], GOOD_Y, r"embeddings of shape \(3, 0\) hold nothing"),
        (
            GOOD_E.expand(2, 3, 2)[:0],
            GOOD_Y.expand(2, 3, 4)[:0],
            r"embeddings of shape \(0, 3, 2\) hold nothing; at least one task, one sample",
        ),
        (torch.full((3, 2), torch.nan), GOOD_Y, "embeddings hold NaN or infinite values"),
        (
            torch.tensor([[0, 1], [2, -torch.inf], [0, 0]]),
            GOOD_Y,
            "embeddings hold NaN or infinite values",
        ),
        (
            torch.tensor([[0, 1], [2, torch.inf], [0, 0]]),
            GOOD_Y,
            "embeddings hold NaN or infinite values",
        ),
    ],
)
def test_bad_tasks(e, y, message):
    with pytest.raises(InputError, match=message):
        rectify(e, y)


def test_an_empty_candidate_set_is_named():
    y = GOOD_Y.clone()
    y[1] = False
    with pytest.raises(
        CandidateError,
        match=r"^row 1 of candidates is empty; every sample needs at least one candidate label$",
    ):
        rectify(GOOD_E, y)
    batch = GOOD_Y.expand(2, 5, 3, 4).clone()
    batch[1, 3, 2] = False
    with pytest.raises(CandidateError, match=r"^row 2 of task \[1, 3\] of candidates is empty"):
        rectify(GOOD_E.expand(2, 5, 3, 2), batch)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_neighbors": -1}, "n_neighbors must be a whole number of 0 or more, not -1"),
        ({"n_neighbors": 1.5}, "n_neighbors must be a whole number of 0 or more, not 1.5"),
        ({"n_neighbors": True}, "n_neighbors must be a whole number of 0 or more, not True"),
        ({"n_neighbors": "all"}, "n_neighbors must be a whole number or 'auto', not 'all'"),
        ({"n_iterations": -3}, "n_iterations must be a whole number of 0 or more, not -3"),
        ({"n_iterations": None}, "n_iterations must be a whole number of 0 or more, not None"),
        ({"manifold_weight": -0.1}, "manifold_weight must be a number of 0 or more, not -0.1"),
        ({"manifold_weight": math.nan}, "manifold_weight must be a number of 0 or more, not nan"),
        ({"manifold_weight": math.inf}, "manifold_weight must be a number of 0 or more, not inf"),
        ({"manifold_weight": "0.5"}, "manifold_weight must be a number of 0 or more, not '0.5'"),
        ({"metric": "cosine"}, "metric must be one of euclidean, sqeuclidean, not 'cosine'"),
    ],
)
def test_bad_settings(wrong, message):
    with pytest.raises(InputError, match=message) as caught:
        FsPLLRule(**wrong)
    assert isinstance(caught.value, FsPLLError)
    assert isinstance(caught.value, ValueError)


def test_numpy_numbers_are_numbers():
    """A parameter grid made with np.arange hands out NumPy integers."""
    e, y = random_task(11)
    chosen = FsPLLRule(np.int64(2), np.float32(0.5), np.int32(3))
    close(run(e, y, chosen).confidence, run(e, y, FsPLLRule(2, 0.5, 3)).confidence, 1e-12)


def test_bad_engine_and_metric():
    with pytest.raises(
        InputError, match="engine must be one of auto, equations, pairwise, not 'fast'"
    ):
        rectify(GOOD_E, GOOD_Y, engine="fast")
    for function in (distances, exact_distances):
        with pytest.raises(InputError, match="metric must be one of euclidean, sqeuclidean"):
            function(GOOD_E, GOOD_E, "manhattan")
