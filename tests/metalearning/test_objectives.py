"""Objectives against plain loops, their gradients against finite differences."""

from __future__ import annotations

import math

import pytest
import torch

from fspll.metalearning.objectives import (
    average_over_candidates,
    largest_probability,
    leave_one_out_log_probabilities,
    leave_one_out_support,
    log_probabilities,
    total_candidate_probability,
    true_class,
)
from fspll.rectifiers.equations import METRICS, class_prototypes, distances

N, L, M, Q = 6, 4, 3, 5
CANDIDATES = torch.tensor(
    [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 0], [1, 0, 0, 1]]
).bool()


@pytest.fixture
def episode():
    """Return support, queries and confidence of a small task, in double precision."""
    generator = torch.Generator().manual_seed(0)
    support = torch.randn(N, M, generator=generator, dtype=torch.double)
    query = torch.randn(Q, M, generator=generator, dtype=torch.double)
    confidence = CANDIDATES * (0.2 + torch.rand(N, L, generator=generator, dtype=torch.double))
    return support, query, confidence


@pytest.fixture
def log_p():
    scores = torch.randn(Q, L, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    return scores.log_softmax(dim=-1)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


# -------------------------------------------------------------------- values


def test_log_probabilities_against_a_loop():
    distance = torch.tensor([[1.0, 2.0, 0.5], [3.0, 0.0, 4.0]], dtype=torch.double)
    present = torch.tensor([True, False, True])
    log_p = log_probabilities(distance, present)
    for i in range(2):
        total = sum(math.exp(-distance[i, c]) for c in (0, 2))
        for c in (0, 2):
            assert log_p[i, c].item() == pytest.approx(math.log(math.exp(-distance[i, c]) / total))
        assert log_p[i, 1] == -math.inf


def test_largest_probability_against_a_loop(log_p):
    expected = mean(-max(row) for row in log_p.tolist())
    assert largest_probability(log_p).item() == pytest.approx(expected)


def test_true_class_against_a_loop(log_p):
    labels = [2, 0, 3, 1, 2]
    expected = mean(-row[label] for row, label in zip(log_p.tolist(), labels, strict=True))
    assert true_class(log_p, torch.tensor(labels)).item() == pytest.approx(expected)


def test_average_over_candidates_against_a_loop(log_p):
    sets = [[0, 1], [2], [1, 2, 3], [0, 1, 2, 3], [3]]
    mask = torch.tensor([[c in chosen for c in range(L)] for chosen in sets])
    expected = mean(
        -sum(row[c] for c in chosen) / len(chosen)
        for row, chosen in zip(log_p.tolist(), sets, strict=True)
    )
    assert average_over_candidates(log_p, mask).item() == pytest.approx(expected)


def test_total_candidate_probability_against_a_loop(log_p):
    sets = [[0, 1], [2], [1, 2, 3], [0, 1, 2, 3], [3]]
    mask = torch.tensor([[c in chosen for c in range(L)] for chosen in sets])
    expected = mean(
        -math.log(sum(math.exp(row[c]) for c in chosen))
        for row, chosen in zip(log_p.tolist(), sets, strict=True)
    )
    assert total_candidate_probability(log_p, mask).item() == pytest.approx(expected)


def test_a_full_candidate_set_says_nothing_to_the_total_and_something_to_the_average(log_p):
    everything = torch.ones(Q, L, dtype=torch.bool)
    assert total_candidate_probability(log_p, everything).item() == pytest.approx(0, abs=1e-12)
    assert average_over_candidates(log_p, everything).item() > math.log(L)


def test_with_one_candidate_average_total_and_true_class_agree(log_p):
    labels = torch.tensor([3, 1, 0, 0, 2])
    mask = torch.nn.functional.one_hot(labels, L).bool()
    expected = true_class(log_p, labels).item()
    assert average_over_candidates(log_p, mask).item() == pytest.approx(expected, rel=1e-12)
    assert total_candidate_probability(log_p, mask).item() == pytest.approx(expected, rel=1e-12)


# -------------------------------------------------------------------- leave-one-out


def by_recomputing(support, confidence, metric):
    """Score every sample against prototypes of the others, one prototype at a time."""
    table = torch.full((N, L), -math.inf, dtype=torch.double)
    for i in range(N):
        away = {}
        for c in range(L):
            others = [j for j in range(N) if j != i and confidence[j, c] > 0]
            if not others:
                continue
            mass = sum(confidence[j, c] for j in others)
            prototype = sum(confidence[j, c] * support[j] for j in others) / mass
            away[c] = (support[i] - prototype).square().sum()
            if metric == "euclidean":
                away[c] = away[c].sqrt()
        total = sum(torch.exp(-d) for d in away.values())
        for c, d in away.items():
            table[i, c] = torch.log(torch.exp(-d) / total)
    return table


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("alone", [None, 0, 2])
def test_the_closed_form_equals_recomputing_the_prototypes(episode, metric, alone):
    """Also where class ``alone`` has a single sample, which leaves it with none."""
    support, _, confidence = episode
    if alone is not None:
        confidence = confidence.clone()
        confidence[:, alone] = 0
        confidence[4, alone] = 0.7
    away = distances(support, class_prototypes(support, confidence), metric)
    log_p, left = leave_one_out_log_probabilities(away, confidence, metric == "sqeuclidean")
    expected = by_recomputing(support, confidence, metric)
    torch.testing.assert_close(log_p, expected)
    assert torch.equal(left, expected.isfinite())
    assert not torch.allclose(log_p, log_probabilities(away, torch.tensor(True)))


def leave_one_out_loss(away, candidates, confidence, squared):
    log_p, left = leave_one_out_log_probabilities(away, confidence, squared)
    return leave_one_out_support(log_p, left, candidates)


@pytest.mark.parametrize("metric", METRICS)
def test_leave_one_out_support_against_a_loop(episode, metric):
    support, _, confidence = episode
    away = distances(support, class_prototypes(support, confidence), metric)
    table = by_recomputing(support, confidence, metric).tolist()
    expected = mean(
        -math.log(sum(math.exp(table[i][c]) for c in range(L) if CANDIDATES[i, c]))
        for i in range(N)
    )
    loss = leave_one_out_loss(away, CANDIDATES, confidence, metric == "sqeuclidean")
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_samples_that_say_nothing_are_skipped(episode, metric):
    """Sample 0 alone has label 0: without it, nothing is left to score it by."""
    support, _, _ = episode
    candidates = torch.tensor(
        [[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 0], [0, 1, 0, 1]]
    ).bool()
    confidence = candidates.double()
    support = support.clone().requires_grad_()
    away = distances(support, class_prototypes(support, confidence), metric)
    loss = leave_one_out_loss(away, candidates, confidence, metric == "sqeuclidean")
    loss.backward()
    table = by_recomputing(support.detach(), confidence, metric).tolist()
    expected = mean(
        -math.log(sum(math.exp(table[i][c]) for c in range(L) if candidates[i, c]))
        for i in range(1, N)
    )
    assert loss.item() == pytest.approx(expected)
    assert support.grad.isfinite().all()
    assert support.grad[1:].abs().max() > 0


def test_when_nobody_says_anything_the_loss_is_zero():
    candidates = torch.eye(3, dtype=torch.bool)
    support = torch.tensor([[0.0, 1.0], [2.0, 0.0], [5.0, 5.0]], requires_grad=True)
    away = distances(support, class_prototypes(support, candidates.float()))
    loss = leave_one_out_loss(away, candidates, candidates.float(), squared=False)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(support.grad, torch.zeros(3, 2))


# -------------------------------------------------------------------- gradients


QUERY_LABELS = torch.tensor([0, 3, 1, 2, 0])
QUERY_CANDIDATES = torch.tensor(
    [[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 0, 0]]
).bool()
PRESENT = torch.tensor(True)
QUERY_OBJECTIVES = {
    "largest": largest_probability,
    "true class": lambda log_p: true_class(log_p, QUERY_LABELS),
    "average": lambda log_p: average_over_candidates(log_p, QUERY_CANDIDATES),
    "total": lambda log_p: total_candidate_probability(log_p, QUERY_CANDIDATES),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", QUERY_OBJECTIVES)
def test_gradients_of_query_objectives(episode, name, metric):
    support, query, confidence = episode

    def loss(support, query):
        prototypes = class_prototypes(support, confidence)
        log_p = log_probabilities(distances(query, prototypes, metric), PRESENT)
        return QUERY_OBJECTIVES[name](log_p)

    inputs = (support.clone().requires_grad_(), query.clone().requires_grad_())
    assert torch.autograd.gradcheck(loss, inputs)
    gradients = torch.autograd.grad(loss(*inputs), inputs)
    assert all(gradient.abs().max() > 1e-3 for gradient in gradients)


@pytest.mark.parametrize("metric", METRICS)
def test_gradient_of_leave_one_out(episode, metric):
    support, _, confidence = episode

    def loss(support):
        away = distances(support, class_prototypes(support, confidence), metric)
        return leave_one_out_loss(away, CANDIDATES, confidence, metric == "sqeuclidean")

    support = support.clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (support,))
    assert torch.autograd.grad(loss(support), support)[0].abs().max() > 1e-3
