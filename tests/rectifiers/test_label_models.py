"""What candidate sets and annotators say about labels, before any feature is seen."""

from __future__ import annotations

import pytest
import torch

from fspll.rectifiers.label_models import PSEUDO_WINS, Annotators, EvenSets, SetOdds

SETS = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 0]]).double()
FREQUENCY = torch.tensor([0.5, 0.25, 0.25]).double()
NONE_CERTAIN = torch.zeros(3, dtype=torch.bool)


def test_candidates_of_even_sets_are_as_likely_as_their_classes_are_frequent():
    prior = EvenSets(SETS, NONE_CERTAIN).prior(FREQUENCY)
    assert prior.tolist() == [
        pytest.approx([2 / 3, 1 / 3, 0]),
        pytest.approx([0, 0.5, 0.5]),
        pytest.approx([1, 0, 0]),
    ]


def test_sets_that_lack_the_truth_leave_their_share_to_the_other_classes():
    certain = torch.tensor([False, False, True])
    prior = EvenSets(SETS, certain).prior(FREQUENCY, 0.1)
    assert prior.tolist() == [
        pytest.approx([0.6, 0.3, 0.1]),
        pytest.approx([0.1, 0.45, 0.45]),
        pytest.approx([1, 0, 0]),  # a person said so
    ]


def test_a_full_set_lacks_nothing():
    full = EvenSets(torch.ones(1, 3).double(), torch.zeros(1, dtype=torch.bool))
    assert full.prior(FREQUENCY, 0.3)[0].tolist() == pytest.approx(FREQUENCY.tolist())


def test_frequencies_follow_from_how_many_sets_hold_a_label():
    # 2,000 sets of two, distractors drawn evenly: label c is in pi_c + (1 - pi_c) / 2 of them.
    generator = torch.Generator().manual_seed(0)
    frequency = torch.tensor([0.8, 0.15, 0.05])
    truth = torch.multinomial(frequency.expand(2000, 3), 1, generator=generator)
    other = (truth + torch.randint(1, 3, (2000, 1), generator=generator)) % 3
    sets = torch.zeros(2000, 3).double().scatter_(1, truth, 1).scatter_(1, other, 1)
    model = EvenSets(sets, torch.zeros(2000).bool())
    assert model.start(torch.ones(3).bool()).tolist() == pytest.approx(frequency.tolist(), abs=0.04)


def test_differences_that_may_be_chance_leave_frequencies_equal():
    present = torch.tensor([True, True, True, False])
    sets = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0]]).double()
    start = EvenSets(sets, torch.zeros(4).bool()).start(present)
    assert start.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    full = EvenSets(torch.ones(5, 4).double(), torch.zeros(5).bool())
    assert full.start(torch.ones(4).bool()).tolist() == [0.25] * 4


def test_votes_weight_the_candidates():
    prior = EvenSets(torch.tensor([[3.0, 1.0, 0.0]]).double(), NONE_CERTAIN[:1]).prior(
        torch.full((3,), 1 / 3).double()
    )
    assert prior[0].tolist() == pytest.approx([0.75, 0.25, 0])


def test_one_step_of_the_odds_by_hand():
    model = SetOdds(SETS, NONE_CERTAIN)
    model.update(torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 0, 0]]).double())
    a = PSEUDO_WINS
    # Class 0 is in a set of two and in a set of one, class 1 in two of two, class 2 in one of two.
    raw = torch.tensor([(2 + a) / (1.5 + a), (1 + a) / (1 + a), (0 + a) / (0.5 + a)])
    expected = raw / raw.log().mean().exp()
    assert model.g.tolist() == pytest.approx(expected.tolist())


def test_the_odds_of_a_popular_distractor_become_small():
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(0, 4, (2000,), generator=generator)
    sets = torch.nn.functional.one_hot(truth, 5).double()
    sets[:, 4] = 1  # in every set, never the truth
    model = SetOdds(sets, torch.zeros(2000, dtype=torch.bool))
    for _ in range(20):
        model.update(torch.nn.functional.one_hot(truth, 5).double())
    prior = model.prior(torch.full((5,), 0.2).double())
    assert prior[:, 4].max() < 0.01
    assert prior[0, truth[0]] > 0.98


def crowd(n=400, classes=4, right=(0.95, 0.9, 0.3), seed=0):
    """Return judgments of people who are right more or less often, and the truth."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randint(0, classes, (n,), generator=generator)
    rows, people, labels = [], [], []
    for person, share in enumerate(right):
        said = truth.clone()
        wrong = torch.rand(n, generator=generator) > share
        said[wrong] = torch.randint(0, classes, (int(wrong.sum()),), generator=generator)
        rows.append(torch.arange(n))
        people.append(torch.full((n,), person))
        labels.append(said)
    row, person, label = (torch.cat(part) for part in (rows, people, labels))
    sets = torch.zeros(n, classes).double()
    sets[row, label] = 1
    model = Annotators(
        row,
        person,
        label,
        torch.ones(len(row)).double(),
        len(right),
        sets,
        torch.zeros(n, dtype=torch.bool),
    )
    return model, truth


def test_the_first_prior_of_a_crowd_is_its_votes():
    model, _ = crowd(n=3)
    votes = torch.zeros(3, 4).double()
    for row, label in zip(model.row.tolist(), model.label.tolist(), strict=True):
        votes[row, label] += 1 / 3
    assert torch.allclose(model.prior(torch.full((4,), 0.25).double()), votes)


def test_a_careless_annotator_counts_less():
    model, truth = crowd()
    frequency = torch.full((4,), 0.25).double()
    shares = model.prior(frequency)
    majority = (shares.argmax(-1) == truth).double().mean()
    for _ in range(10):
        model.update(shares)
        shares = model.prior(frequency)
    found = (shares.argmax(-1) == truth).double().mean()
    assert found > majority
    assert found > 0.94
    confusion = model.confusion.exp().reshape(3, 4, 4)
    right = confusion.diagonal(dim1=1, dim2=2).mean(dim=-1)
    assert right[0] > right[1] > 0.85
    assert right[2] < 0.6


def test_discounted_judgments_are_less_sure_and_settled_samples_stay_certain():
    model, truth = crowd()
    frequency = torch.full((4,), 0.25).double()
    model.update(torch.nn.functional.one_hot(truth, 4).double())
    sure, unsure = model.prior(frequency), model.prior(frequency, 0.35)
    assert unsure.amax(-1).mean() < sure.amax(-1).mean()
    assert torch.allclose(unsure.sum(-1), torch.ones(400).double())
    model.certain[0] = True
    model.weight[0] = torch.nn.functional.one_hot(torch.tensor(2), 4).double()
    assert model.prior(frequency, 0.35)[0, 2] > 0.999


def test_a_part_of_a_crowd_has_its_own_judgments():
    model, truth = crowd(n=50)
    model.update(torch.nn.functional.one_hot(truth, 4).double())
    frequency = torch.full((4,), 0.25).double()
    rows = torch.tensor([7, 3, 40])
    assert torch.allclose(model.take(rows).prior(frequency), model.prior(frequency)[rows])
