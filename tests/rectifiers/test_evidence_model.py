"""The default rectifier against its stated model: loops, enumeration, brute force.

The loops follow the docstrings of :mod:`fspll.rectifiers.evidence`: one number at a time, in double
precision.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from fspll.rectifiers import EvidenceRule, class_model, evidence, infer_labels, neighbor_likelihood
from fspll.rectifiers import assignment as naming

pytestmark = pytest.mark.usefixtures("one_thread")


# -------------------------------------------------------------------- the model, one by one


def loop_softmax(scores):
    top = max(scores.values())
    total = math.fsum(math.exp(v - top) for v in scores.values())
    return {c: math.exp(v - top) / total for c, v in scores.items()}


def loop_shift(pairs):
    """Three bounded steps up the objective; pairs are (logit, same, different)."""
    shift, prior = 0.0, 1 / neighbor_likelihood.SHIFT_SPREAD**2
    for _ in range(3):
        slope, curve = -prior * shift, prior
        for logit, same, different in pairs:
            rho = 1 / (1 + math.exp(-logit - shift))
            slope += rho * same / (rho * same + (1 - rho) * different) - rho
            curve += rho * (1 - rho)
        shift += min(
            max(slope / curve, -4 * neighbor_likelihood.SHIFT_SPREAD),
            4 * neighbor_likelihood.SHIFT_SPREAD,
        )
    return shift


def loop_neighbors_say(e, sets, n_classes, k):
    """Return the log-likelihood of the neighbors' sets, by sample and label."""
    n = len(e)
    told = [dict.fromkeys(range(n_classes), 0.0) for _ in range(n)]
    k = min(k, n - 1)
    if k == 0:
        return told
    others = max(1, len(set().union(*sets)) - 1)
    square = [[float(((a - b) ** 2).sum()) for b in e] for a in e]
    near, edge = [], []
    for i in range(n):
        away = sorted((square[i][j], j) for j in range(n) if j != i)
        limit = away[k - 1][0]
        near.append([j for d, j in away if d <= limit])
        edge.append(min((d for d, _ in away if d > limit), default=limit))
    pairs = {}
    for i in range(n):
        for j in near[i]:
            reference = (edge[i] + edge[j]) / 2
            ratio = square[i][j] / reference if reference > 0 else 0.0
            same = len(sets[i] & sets[j]) / len(sets[i])
            different = (len(sets[j]) - same) / others
            pairs[i, j] = (
                neighbor_likelihood.SLOPE * (neighbor_likelihood.MIDPOINT - ratio),
                same,
                different,
            )
    shift = loop_shift(list(pairs.values()))
    for (i, j), (logit, _, _) in pairs.items():
        rho = min(max(1 / (1 + math.exp(-logit - shift)), 1e-3), 1 - 1e-3)
        s = len(sets[j])
        for c in range(n_classes):
            held = rho + (1 - rho) * (s - 1) / others
            told[i][c] += math.log(held if c in sets[j] else (1 - rho) * s / others)
    return told


def loop_balanced(score, n_classes, strength):
    for _ in range(4 if strength > 0 else 0):
        soft = [loop_softmax(row) for row in score]
        mass = [math.fsum(row.get(c, 0) for row in soft) for c in range(n_classes)]
        off = [strength / 2 * math.log(max(share, 1e-6)) for share in mass]
        score = [{c: v - off[c] for c, v in row.items()} for row in score]
    return [loop_softmax(row) for row in score]


def loop_part_twins(e, y):
    """Return what labels with the same samples get, by sample and label."""
    columns = [tuple(column) for column in y.T]
    norms = (e**2).sum(axis=1)
    near = e @ e[norms.argmax()] / max(norms.max(), 1e-30)
    side = [
        columns[:c].count(column) - (columns.count(column) - 1) / 2
        for c, column in enumerate(columns)
    ]
    return np.outer(near, side)


def loop_name(member, sets, n_classes):
    there = sorted(set().union(*sets))
    w = np.zeros((len(there), len(there)))
    for g, c in itertools.product(range(len(there)), range(len(there))):
        for i, s in enumerate(sets):
            R = min(member[i][there[g]], naming.SURE)
            w[g, c] += math.log((R if there[c] in s else 0) + (1 - R) * len(s) / len(there))
    names = np.eye(n_classes)
    w = w - w.max(axis=1, keepdims=True)
    w = np.maximum(np.exp(w - w.max(axis=0, keepdims=True)), 1e-12)
    names[np.ix_(there, there)] = brute_force(w)
    return 0.999 * names + 0.001 * np.eye(n_classes)


def loop_weigh(e, y, chosen, queries):
    """Return confidence, prototypes and the queries' probabilities; samples really left out."""
    n, n_classes = y.shape
    sets = [set(np.flatnonzero(row).tolist()) for row in y]
    there = sorted(set().union(*sets))
    told = loop_neighbors_say(e, sets, n_classes, chosen.n_neighbors)
    center = e.mean(axis=0)
    e = e - center
    total = (e**2).sum() / max(1, n - 1)
    apart = neighbor_likelihood.SYMMETRY * loop_part_twins(e, y)
    told = [{c: told[i][c] + apart[i, c] for c in sets[i]} for i in range(n)]
    belief = loop_balanced(told, n_classes, 1.0)
    final = min(class_model.SHARPNESS, e.shape[1] / 2)

    def mean(c, kappa, without=None):
        kept = [i for i in range(n) if i != without]
        weight = math.fsum(belief[i].get(c, 0) for i in kept) + kappa
        return sum(belief[i].get(c, 0) * e[i] for i in kept) / weight, weight

    def judge(kappa, classes):
        square, grown = {}, {}
        for i in range(n):
            for c in classes[i]:
                p, weight = mean(c, kappa, without=i)
                grown[i, c] = 1 + 1 / weight
                square[i, c] = ((e[i] - p) ** 2).sum() / grown[i, c]
        spread = sum(q * square[i, c] for i in range(n) for c, q in belief[i].items()) / n
        spread = max(spread, 2.0**-52 * total + 1e-30)
        fit = [
            {
                c: -square[i, c] / spread - class_model.SIZE_WEIGHT * math.log(grown[i, c])
                for c in classes[i]
            }
            for i in range(n)
        ]
        return fit, spread

    kappa, rounds = class_model.FIRST_SHRINKAGE, chosen.n_iterations
    for turn in range(rounds):
        progress = turn / (rounds - 1) if rounds > 1 else 1.0
        sharpness = final * evidence.FIRST_SHARE ** (1 - progress)
        fit, spread = judge(kappa, sets)
        score = [
            {c: sharpness * fit[i][c] + (1 - progress) * told[i][c] for c in sets[i]}
            for i in range(n)
        ]
        even = 1.0 if chosen.class_balance else max(0.0, 1 - progress / evidence.EVEN_START)
        belief = loop_balanced(score, n_classes, even)
        kappa = spread / max(total - spread, 1e-3 * total + 1e-30)
        kappa = min(max(kappa, class_model.SHRINKAGE_RANGE[0]), class_model.SHRINKAGE_RANGE[1])
    fit, spread = judge(kappa, [there] * n)
    place = [loop_softmax({c: final * v for c, v in row.items()}) for row in fit]
    member = [{c: (place[i][c] + belief[i].get(c, 0)) / 2 for c in there} for i in range(n)]
    names = loop_name(member, sets, n_classes)
    confidence, prototypes = np.zeros((n, n_classes)), np.zeros((n_classes, e.shape[1]))
    for i in range(n):
        for c in sets[i]:
            confidence[i, c] = math.fsum(place[i][g] * names[g, c] for g in there)
        confidence[i] /= confidence[i].sum()
    answers = np.zeros((len(queries), n_classes))
    for c in there:
        prototypes[c] = mean(c, kappa)[0] + center
    mass = {c: math.fsum(row.get(c, 0) for row in belief) for c in there}
    least = 0.99 * min(0.5, max(mass.values()))
    for q, query in enumerate(queries):
        fits = {c: -((query - prototypes[c]) ** 2).sum() / spread for c in there if mass[c] > least}
        for g, share in loop_softmax({c: final * v for c, v in fits.items()}).items():
            answers[q] += share * names[g]
    return confidence, prototypes, answers


@st.composite
def tasks(draw):
    """Ragged sets; features normal, in clusters, or multiples of 1/4 (duplicates, ties)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes, m = draw(st.integers(1, 12)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["normal", "clusters", "quarters"]))
    e = rng.normal(size=(n, m))
    if kind == "clusters":
        e += 6 * np.eye(6)[rng.integers(0, 6, n)][:, :m]
    elif kind == "quarters":
        e = rng.integers(-3, 4, size=(n, m)) / 4
    y = rng.random((n, n_classes)) < rng.uniform(0, 1)
    y[np.arange(n), rng.integers(0, n_classes, n)] = True
    chosen = EvidenceRule(draw(st.integers(0, n)), draw(st.integers(1, 5)), draw(st.booleans()))
    return e, y, chosen, rng.normal(size=(3, m))


@given(task=tasks())
@settings(derandomize=True, deadline=None, max_examples=200)
def test_double_precision_equals_the_plain_loop(task):
    e, y, chosen, queries = task
    far = np.sort(np.square(e - e.mean(axis=0)).sum(axis=1))
    # Of labels with the same sets the outermost sample decides; rounding must not choose it.
    assume(len(np.unique(y, axis=1).T) == y.shape[1] or len(far) == 1 or far[-1] > far[-2] + 1e-9)
    confidence, prototypes, answers = loop_weigh(e, y, chosen, queries)
    result = infer_labels(torch.as_tensor(e), torch.as_tensor(y), chosen)
    found = result.predict_proba(torch.as_tensor(queries)).numpy()
    np.testing.assert_allclose(result.confidence.numpy(), confidence, atol=1e-8)
    np.testing.assert_allclose(result.prototypes.numpy(), prototypes, atol=1e-8)
    np.testing.assert_allclose(found, answers, atol=1e-8)
    assert result.present.tolist() == y.any(axis=0).tolist()


# -------------------------------------------------------------------- neighbors


def sets_of(size, n_classes):
    return [frozenset(s) for s in itertools.combinations(range(n_classes), size)]


def likelihood(s, c, n_classes):
    """p(S | c, size): the true class and distractors drawn evenly from the others."""
    possible = [x for x in sets_of(len(s), n_classes) if c in x]
    return (s in possible) / len(possible)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_what_a_neighbors_set_says_by_enumeration(n_classes, monkeypatch):
    """One pair of samples, every pair of sets: labels' odds and the two pair likelihoods."""
    caught = {}

    def no_shift(logit, same, different, task, n_tasks):
        caught.update(same=same, different=different, logit=logit)
        return logit.new_zeros(n_tasks)

    monkeypatch.setattr(neighbor_likelihood, "_task_shift", no_shift)
    labels = range(n_classes)
    every = [s for size in range(1, n_classes + 1) for s in sets_of(size, n_classes)]
    # A third sample of full set, so that all labels are somebody's candidates.
    e = torch.tensor([[0.0], [1.0], [1.3]], dtype=torch.float64).expand(1, 3, 1)
    for mine, other in itertools.product(every, every):
        y = torch.tensor([[[c in s for c in labels] for s in (mine, other, set(labels))]])
        told = neighbor_likelihood.neighbor_log_likelihood(e, y, 1)[0, 0]
        rho = float(caught["logit"][0].sigmoid().clamp(1e-3, 1 - 1e-3))
        assert 0.01 < rho < 0.99
        expected = []
        for c in labels:
            strangers = [likelihood(other, x, n_classes) for x in labels if x != c]
            p = rho * likelihood(other, c, n_classes) + (1 - rho) * np.mean(strangers)
            expected.append(math.log(p) if p > 0 else -math.inf)
        odds = np.array(expected) - expected[0]
        np.testing.assert_allclose((told - told[0]).numpy(), odds, atol=1e-12)
        same = np.mean([likelihood(other, c, n_classes) for c in mine])
        strange = [[likelihood(other, x, n_classes) for x in labels if x != c] for c in mine]
        factor = math.comb(n_classes - 1, len(other) - 1)  # which the code leaves out
        assert caught["same"][0].item() == pytest.approx(same * factor, abs=1e-12)
        assert caught["different"][0].item() == pytest.approx(np.mean(strange) * factor, abs=1e-12)


def pairs_of(seed):
    """Pairs of a random task: half with sure neighbors of contradicting sets."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 120))
    logit = rng.uniform(5, 9.5, size) if seed % 2 else rng.normal(2, 3, size)
    same = rng.choice([0, 1 / 3, 1 / 2, 1], size)
    different = (rng.integers(1, 4, size) - same) / 4
    return logit, same, different


def objective(shift, logit, same, different):
    rho = 1 / (1 + np.exp(-logit - shift))
    return np.log(rho * same + (1 - rho) * different).sum() - shift**2 / 2


def test_the_shift_climbs_its_objective_and_does_not_run_away(monkeypatch):
    """Three steps stop short of the maximum, by 0.2 logits in the median and up to 1 here.

    More steps of the same kind reach it.
    """
    short = []
    for seed in range(40):
        pairs = pairs_of(seed)
        tensors = [torch.as_tensor(p) for p in pairs]
        one_task = torch.zeros(len(pairs[0]), dtype=torch.int64)
        grid = np.linspace(-12, 12, 241)
        start = grid[np.argmax([objective(x, *pairs) for x in grid])]
        best = minimize_scalar(
            lambda x, p=pairs: -objective(x, *p),
            bounds=(start - 0.2, start + 0.2),
            method="bounded",
        ).x
        shift = neighbor_likelihood._task_shift(*tensors, one_task, 1).item()
        assert objective(shift, *pairs) >= objective(0.0, *pairs)
        short.append(abs(shift - best))
        with monkeypatch.context() as more:
            more.setattr(neighbor_likelihood, "_SHIFT_STEPS", 300)
            assert neighbor_likelihood._task_shift(*tensors, one_task, 1).item() == pytest.approx(
                best, abs=0.01
            )
    assert max(short) < 1.5
    assert np.median(short) < 0.4


def test_each_task_has_its_own_shift():
    both = [pairs_of(1), pairs_of(2)]
    alone = [
        neighbor_likelihood._task_shift(*map(torch.as_tensor, p), torch.zeros(len(p[0])).long(), 1)
        for p in both
    ]
    together = [torch.as_tensor(np.concatenate(x)) for x in zip(*both, strict=True)]
    task = torch.repeat_interleave(torch.tensor([len(p[0]) for p in both]))
    torch.testing.assert_close(
        neighbor_likelihood._task_shift(*together, task, 2), torch.cat(alone)
    )


# -------------------------------------------------------------------- names of groups


def brute_force(w):
    total = np.zeros(w.shape)
    for names in itertools.permutations(range(len(w))):
        weight = math.prod(w[g, c] for g, c in enumerate(names))
        for g, c in enumerate(names):
            total[g, c] += weight
    return total / total.sum(axis=1, keepdims=True)


def loop_marginals(w):
    """Belief propagation, one message at a time."""
    size = range(len(w))
    up, down = np.zeros(w.shape), np.ones(w.shape)
    for turn in range(10):
        for g, c in itertools.product(size, size):
            rest = math.fsum(w[g, x] * down[g, x] for x in size if x != c)
            up[g, c] = w[g, c] / max(rest, 1e-12)
        for g, c in itertools.product(size, size):
            news = 1 / max(math.fsum(up[x, c] for x in size if x != g), 1e-12)
            down[g, c] = news if turn == 0 else math.sqrt(down[g, c] * news)
    share = up * down / (1 + up * down)
    return share / share.sum(axis=1, keepdims=True)


def marginals(w, way=naming.matching_marginals):
    return way(torch.as_tensor(w).unsqueeze(0))[0].numpy()


@pytest.mark.parametrize("n_classes", range(1, 7))
def test_names_are_counted_exactly(n_classes):
    rng = np.random.default_rng(n_classes)
    for spread in (0.3, 3, 10):
        w = np.exp(spread * rng.normal(size=(n_classes, n_classes)))
        w /= w.max(axis=1, keepdims=True)
        np.testing.assert_allclose(marginals(w), brute_force(w), atol=1e-9)


@pytest.mark.parametrize("way", [naming.matching_marginals, naming._propagated_marginals])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5])
def test_names_are_exact_where_choices_form_no_cycle(n_classes, way):
    rng = np.random.default_rng(n_classes)
    for _ in range(20):
        order = np.ix_(rng.permutation(n_classes), rng.permutation(n_classes))
        forced = np.tril(rng.uniform(0.01, 1, (n_classes, n_classes)))[order]
        np.testing.assert_allclose(marginals(forced, way), brute_force(forced), atol=1e-9)
    equal = np.ones((n_classes, n_classes))
    np.testing.assert_allclose(marginals(equal, way), equal / n_classes, atol=1e-12)


def test_messages_are_those_of_the_loop_for_many_labels():
    rng = np.random.default_rng(0)
    w = rng.uniform(0, 1, (10, 10))
    np.testing.assert_allclose(marginals(w), loop_marginals(w), atol=1e-9)


def test_messages_against_brute_force():
    """Measured: where maps are allowed or not, off by 0.013 in the mean and at most 0.134.

    Graded weights are judged too surely (0.128, at most 0.33), but in the right order.
    """
    allowed, graded, wrong = [], [], 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n_classes = 2 + seed % 4
        shape = n_classes, n_classes
        w = np.where((rng.random(shape) < 0.5) | np.eye(n_classes, dtype=bool), 1, 1e-12)
        found = marginals(w, naming._propagated_marginals)
        allowed.append(np.abs(found - brute_force(w)).max())
        w = np.exp(3 * rng.normal(size=shape))
        w /= w.max(axis=1, keepdims=True)
        exact, found = brute_force(w), marginals(w, naming._propagated_marginals)
        graded.append(np.abs(found - exact).max())
        second, first = np.sort(exact, axis=1)[:, -2:].T
        wrong += ((first - second > 0.2) & (exact.argmax(1) != found.argmax(1))).sum()
    assert max(allowed) < 0.15
    assert np.mean(allowed) < 0.02
    assert max(graded) < 0.35
    assert np.mean(graded) < 0.15
    assert wrong == 0


def test_names_of_a_full_set_say_nothing():
    """Samples with full sets change no name, wherever they are."""
    rng = np.random.default_rng(0)
    member = torch.as_tensor(rng.dirichlet(np.ones(4), size=(1, 12)))
    y = torch.as_tensor(rng.random((1, 12, 4)) < 0.5) | torch.eye(4).bool().repeat(3, 1)
    more = torch.as_tensor(rng.dirichlet(np.full(4, 0.1), size=(1, 30)))
    with_more = naming.name_groups(
        torch.cat([member, more], 1), torch.cat([y, torch.ones(1, 30, 4).bool()], 1)
    )
    torch.testing.assert_close(with_more, naming.name_groups(member, y))


def test_a_group_of_hundreds_keeps_its_label():
    """Stragglers of a small class must not take the name of a very large one."""
    n, n_classes = 1000, 50
    for seed in range(2):
        rng = np.random.default_rng(seed)
        size = rng.pareto(1.0, n_classes) + 0.2
        truth = rng.choice(n_classes, n, p=size / size.sum())
        features = 1.5 * rng.normal(size=(n, 64)) + rng.normal(size=(n_classes, 64))[truth]
        sets = np.eye(n_classes, dtype=bool)[truth]
        for row in sets:
            row[rng.choice(np.flatnonzero(~row), 3, replace=False)] = True
        chosen = EvidenceRule(n_neighbors=19)
        found = infer_labels(torch.from_numpy(features), torch.from_numpy(sets), chosen)
        assert (found.confidence.argmax(dim=-1).numpy() == truth).mean() > 0.85
