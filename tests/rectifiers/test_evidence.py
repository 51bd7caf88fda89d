"""The default rectifier: invariances, edges and how well it does on simulated tasks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fspll._common.errors import CandidateError, InputError
from fspll.rectifiers import EvidenceRule, infer_labels, rectify

pytestmark = pytest.mark.usefixtures("one_thread")


def tensors(model):
    """Return what the model says about its classes."""
    return (model.prototypes, model.present, model.spread, model.naming, model.has_support)


def run(e, y, chosen=None, **kwargs):
    """Infer, and check what must hold always."""
    e, y = torch.as_tensor(e), torch.as_tensor(y)
    result = infer_labels(e, y, chosen or EvidenceRule(**{"n_neighbors": 4, **kwargs}))
    assert result.confidence.isfinite().all()
    assert (result.confidence >= 0).all()
    assert (result.confidence.sum(dim=-1) - 1).abs().max() < 1e-5
    assert not result.confidence[~y].any()
    model = result
    assert torch.equal(model.present, y.any(dim=-2))
    assert all(x.isfinite().all() for x in tensors(model))
    assert (model.naming.sum(dim=-1) - 1).abs().max() < 1e-5
    answers = model.predict_proba(e)
    assert (answers.sum(dim=-1) - 1).abs().max() < 1e-5
    assert not answers.masked_fill(model.present.unsqueeze(-2), 0).any()
    return result


def close(actual, expected, tolerance):
    np.testing.assert_allclose(
        torch.as_tensor(actual).numpy(), torch.as_tensor(expected).numpy(), 0, tolerance
    )


def ragged(rng, shape):
    mask = rng.random(shape) < rng.uniform(0, 1)
    np.put_along_axis(mask, rng.integers(0, shape[-1], shape[:-1])[..., None], True, axis=-1)
    return mask


@st.composite
def tasks(draw, batch=(), kinds=("normal", "clusters", "quarters")):
    """Ragged sets; features normal, in clusters, or multiples of 1/4 (duplicates, ties)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes, m = draw(st.integers(1, 30)), draw(st.integers(1, 8)), draw(st.integers(1, 6))
    kind = draw(st.sampled_from(kinds))
    e = rng.normal(size=(*batch, n, m))
    if kind == "clusters":
        e += 6 * np.eye(6)[rng.integers(0, 6, (*batch, n))][..., :m]
    elif kind == "quarters":
        e = rng.integers(-3, 4, size=(*batch, n, m)) / 4
    chosen = EvidenceRule(draw(st.integers(0, 6)), draw(st.integers(1, 10)), draw(st.booleans()))
    return e, ragged(rng, (*batch, n, n_classes)), chosen, rng


def simulated(seed, n_tasks, way, shot, r, distance, m=32):
    """Gaussian classes; sets of the true class and r distractors drawn evenly."""
    rng = np.random.default_rng(seed)
    labels = np.tile(np.repeat(np.arange(way), shot), (n_tasks, 1))
    means = rng.normal(size=(n_tasks, way, m)) * distance
    e = np.take_along_axis(means, labels[..., None], 1) + rng.normal(size=(*labels.shape, m))
    key = rng.random((*labels.shape, way))
    np.put_along_axis(key, labels[..., None], -1, axis=-1)
    y = key.argsort(axis=-1).argsort(axis=-1) <= r
    return torch.as_tensor(e, dtype=torch.float32), torch.as_tensor(y), torch.as_tensor(labels)


def shares_sets(y):
    """Tell whether two labels occur in exactly the same sets: the outermost sample parts them."""
    return len(np.unique(y, axis=1).T) < y.shape[1]


def has_one_outermost(e):
    """Tell whether rounding or the order of the samples cannot decide which one is outermost."""
    far = np.sort(np.square(e - e.mean(axis=0)).sum(axis=1))
    return len(far) == 1 or far[-1] - far[-2] > 1e-9


light = settings(derandomize=True, deadline=None, max_examples=60)

# -------------------------------------------------------------------- invariances


@given(task=tasks())
@light
def test_permuting_samples_permutes_the_outputs(task):
    """Also with duplicates and equal distances, which rounding must not break."""
    e, y, chosen, rng = task
    assume(has_one_outermost(e) or not shares_sets(y))
    order = rng.permutation(len(e))
    before, after = run(e, y, chosen), run(e[order], y[order], chosen)
    close(after.confidence, before.confidence[order], 1e-7)
    close(after.prototypes, before.prototypes, 1e-7)
    close(after.naming, before.naming, 1e-7)


@given(task=tasks())
@light
def test_permuting_labels_permutes_the_outputs(task):
    e, y, chosen, rng = task
    assume(not shares_sets(y))  # of labels with the same sets, one is first
    order = rng.permutation(y.shape[1])
    before, after = run(e, y, chosen), run(e, y[:, order], chosen)
    close(after.confidence, before.confidence[:, order], 1e-7)
    close(after.prototypes, before.prototypes[order], 1e-7)


@given(task=tasks(kinds=("normal", "clusters")))
@light
def test_moving_turning_and_scaling_the_features_changes_nothing(task):
    e, y, chosen, rng = task
    assume(has_one_outermost(e) or not shares_sets(y))
    m = e.shape[1]
    turn, shift = np.linalg.qr(rng.normal(size=(m, m)))[0], 10 * rng.normal(size=m)
    before, after = run(e, y, chosen), run(3e-7 * (e @ turn + shift), y, chosen)
    close(after.confidence, before.confidence, 1e-7)
    expected = (before.prototypes.numpy() @ turn + shift) * before.present[:, None].numpy()
    close(after.prototypes / 3e-7, expected, 1e-7)
    queries = rng.normal(size=(5, m))
    close(
        after.predict_proba(torch.as_tensor(3e-7 * (queries @ turn + shift))),
        before.predict_proba(torch.as_tensor(queries)),
        1e-7,
    )


def test_moving_a_grid_by_whole_numbers_keeps_equal_distances_equal():
    """Centering rounds; it must not decide who is among the nearest."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        e = rng.integers(-3, 4, size=(int(rng.integers(5, 13)), 1)) / 4
        y = ragged(rng, (len(e), 5))
        before, after = (
            run(e, y, n_neighbors=2, n_iterations=1),
            run(e + 7, y, n_neighbors=2, n_iterations=1),
        )
        close(after.confidence, before.confidence, 1e-7)


@given(task=tasks())
@light
def test_labels_nobody_has_change_nothing(task):
    e, y, chosen, _ = task
    assume(y.shape[1] <= 5)  # beyond eight labels, names are no longer counted but passed on
    before, after = run(e, y, chosen), run(e, np.insert(y, [0, 1, 1], False, axis=1), chosen)
    kept = [1, *range(4, y.shape[1] + 3)]
    close(after.confidence[:, kept], before.confidence, 1e-7)
    close(after.prototypes[kept], before.prototypes, 1e-7)


@pytest.mark.parametrize("batch", [(3,), (2, 3)])
@given(data=st.data())
@settings(light, max_examples=15)
def test_a_batch_equals_its_tasks_one_by_one(batch, data):
    e, y, chosen, rng = data.draw(tasks(batch))
    together = run(e, y, chosen)
    queries = torch.as_tensor(rng.normal(size=(*batch, 4, e.shape[-1])))
    answers = together.predict_proba(queries)
    assert answers.shape == (*batch, 4, y.shape[-1])
    for at in np.ndindex(batch):
        alone = run(e[at], y[at], chosen)
        close(together.confidence[at], alone.confidence, 1e-7)
        for a, b in zip(tensors(together), tensors(alone), strict=True):
            close(a[at].double(), b.double(), 1e-7)
        close(answers[at], alone.predict_proba(queries[at]), 1e-7)


def test_tasks_are_split_into_parts_without_a_trace(monkeypatch):
    e, y, _ = simulated(0, 7, 5, 5, 2, 1)
    whole = run(e, y)
    monkeypatch.setattr("fspll.rectifiers.evidence._ENTRIES_AT_ONCE", 2 * 25 * 32)
    parts = run(e, y)
    close(parts.confidence, whole.confidence, 1e-5)
    close(parts.prototypes, whole.prototypes, 1e-5)


def test_a_query_does_not_depend_on_the_others():
    e, y, _ = simulated(1, 1, 5, 5, 2, 0.5)
    model = run(e[0], y[0])
    alone = torch.cat([model.predict_proba(row.unsqueeze(0)) for row in e[0]])
    assert torch.equal(alone, model.predict_proba(e[0]))


def test_single_precision_is_close_on_ordinary_tasks():
    e, y, _ = simulated(2, 200, 5, 5, 2, 1)
    close(run(e, y).confidence.double(), run(e.double(), y).confidence, 2e-3)


# -------------------------------------------------------------------- edges


@pytest.mark.parametrize("scale", [1e-18, 1e-12, 1e12, 1e18])
def test_extreme_scales_in_single_precision(scale):
    e, y, _ = simulated(3, 20, 5, 5, 2, 1, m=64)
    before, after = run(e, y), run(e * scale, y)
    close(after.confidence, before.confidence, 1e-4)
    queries = torch.randn(20, 6, 64, generator=torch.Generator().manual_seed(0))
    close(after.predict_proba(queries * scale), before.predict_proba(queries), 1e-3)


@pytest.mark.parametrize("k", [0, 4])
@pytest.mark.parametrize("balance", [False, True])
def test_one_sample(k, balance):
    result = run([[2.0, 3.0]], [[True, False, True]], n_neighbors=k, class_balance=balance)
    close(result.confidence, [[0.5, 0, 0.5]], 1e-6)
    close(result.prototypes, [[2.0, 3.0], [0, 0], [2.0, 3.0]], 1e-6)


def test_one_class():
    e, _, _ = simulated(4, 1, 5, 5, 2, 1)
    result = run(e[0], torch.ones(25, 1).bool())
    close(result.confidence, torch.ones(25, 1), 0)


def test_a_label_nobody_has_is_never_given():
    e, y, _ = simulated(5, 1, 4, 5, 1, 1)
    y = np.insert(y[0].numpy(), 2, False, axis=1)
    model = run(e[0], y)
    answers = model.predict_proba(torch.zeros(1, 32))  # where its missing prototype would be
    assert answers[0, 2] == 0
    assert not model.prototypes[2].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("place", [0.0, 0.1, 1e6])
def test_all_samples_equal(dtype, place):
    """No place says anything: only candidate sets, the same wherever the samples are."""
    e = torch.full((6, 3), place, dtype=dtype)
    y = ragged(np.random.default_rng(0), (6, 4))
    result = run(e, y, n_neighbors=2)
    close(result.confidence, run(torch.zeros(6, 3, dtype=dtype), y, n_neighbors=2).confidence, 0)
    far = result.predict_proba(torch.tensor([[1e5, 0, 0], [1e30, 0, 0]], dtype=dtype))
    close(far.sum(dim=-1), torch.ones(2, dtype=dtype), 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_classes_of_equal_samples(dtype):
    """No spread at all: candidate sets that intersect to one label decide, and far queries too."""
    e = torch.tensor([[0.1, 0], [0.7, 3], [5, -2.3]], dtype=dtype).repeat_interleave(4, 0)
    y = torch.eye(3).bool().repeat_interleave(4, 0)
    y[::2, 0] = y[1::2, 1] = True
    result = run(e, y)
    assert result.confidence.argmax(-1).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert result.predict_proba(e[::4]).argmax(-1).tolist() == [0, 1, 2]
    assert result.predict_proba(e[::4] * 1e4).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("way", [2, 3, 6])
def test_sets_of_one_stay_certain_even_in_the_midst_of_others(dtype, way):
    """Odds of 1e-36 are left for the only candidate, and still it is the only one."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(way), 8)
    e = torch.as_tensor(100 * np.eye(way)[labels] + rng.normal(size=(8 * way, way)), dtype=dtype)
    labels[0] = 1
    one = torch.as_tensor(np.eye(way, dtype=bool)[labels])
    close(run(e, one).confidence, one.to(dtype), 1e-6)


def test_full_sets_prefer_no_label():
    e, _, _ = simulated(6, 1, 4, 5, 1, 3)
    for n_classes, balance in itertools.product([2, 4], [False, True]):
        result = run(e[0], torch.ones(20, n_classes).bool(), class_balance=balance)
        close(result.confidence, torch.full((20, n_classes), 1 / n_classes), 1e-3)


def test_labels_that_are_always_together_are_shared_between_two_groups():
    """A toss-up, but each group gets one of the names, and keeps its own prototype."""
    e = torch.tensor([[0.0, 0, 1], [0.1, 0, 1], [5.0, 0, 1], [5.1, 1, 0]])
    result = run(e, torch.ones(4, 2).bool(), EvidenceRule(1))
    close(result.confidence, torch.full((4, 2), 0.5), 1e-3)
    one, same, other, too = result.confidence.argmax(-1).tolist()
    assert one == same != other == too
    assert (result.prototypes[other] - result.prototypes[one])[0] > 0.5


def test_a_label_that_no_sample_is_has_support_to_have_is_not_given_to_new_ones():
    """Label 2 is a distractor only; its mean is the task's, right where the query is."""
    e = torch.tensor([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
    y = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]]).bool()
    result = run(e, y)
    assert result.has_support.tolist() == [True, True, False]
    assert result.predict_proba(torch.tensor([[2.4], [2.8]])).argmax(-1).tolist() == [0, 1]


@pytest.mark.parametrize("m", [2, 3, 8])
def test_few_features_are_not_taken_for_many(m):
    """Two groups far apart in a plane: overconfident rounds would lock in a wrong split."""
    right = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(3), 6)
        e = 8 * np.eye(m, m)[labels % m] * (1 + labels[:, None] // m) + rng.normal(size=(18, m))
        y = np.eye(3, dtype=bool)[labels]
        y[np.arange(18), (labels + rng.integers(1, 3, 18)) % 3] = True
        right.append((run(e, y).confidence.argmax(-1).numpy() == labels).mean())
    assert np.mean(right) > 0.98


def test_more_neighbors_than_samples():
    e, y, _ = simulated(7, 1, 3, 2, 1, 1)
    assert torch.equal(
        run(e[0], y[0], n_neighbors=50).confidence, run(e[0], y[0], n_neighbors=5).confidence
    )


@pytest.mark.parametrize("balance", [False, True])
def test_one_shot_and_very_unequal_classes(balance):
    e, y, labels = simulated(8, 50, 5, 1, 1, 3)
    result = run(e, y, class_balance=balance)
    assert (result.confidence.argmax(-1) == labels).double().mean() > 0.65  # ceiling: .723
    rng = np.random.default_rng(0)
    e = np.concatenate([rng.normal(size=(1, 8)) + 6, rng.normal(size=(200, 8))])
    y = np.array([[True, True]] + [[False, True], [True, True]] * 100)
    run(e, y, class_balance=balance)
    y[0, 1] = False
    assert run(e, y, class_balance=balance).confidence[0, 0] == 1


def test_three_hundred_classes():
    e, y, labels = simulated(9, 1, 300, 3, 2, 2)
    assert (run(e[0], y[0]).confidence.argmax(-1) == labels[0]).double().mean() > 0.99


def test_far_duplicates_without_labels_do_not_break_a_task():
    """A fourth group for three labels takes one of them; the other two classes stay."""
    e, y, labels = simulated(10, 1, 3, 5, 1, 2)
    far = torch.cat([e[0], torch.full((20, 32), 30.0)])
    full = torch.cat([y[0], torch.ones(20, 3).bool()])
    for balance in (False, True):
        found = run(far, full, class_balance=balance).confidence[:15].argmax(-1)
        assert (found == labels[0]).double().mean() > 0.6
    run(torch.cat([e[0], torch.full((20, 32), 1e7)]), full)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype):
    e, y, _ = simulated(11, 2, 4, 4, 1, 1)
    result, same = run(e.to(dtype), y), run(e.to(dtype).float(), y)
    assert result.confidence.dtype == torch.float32
    assert torch.equal(result.confidence, same.confidence)
    assert result.predict_proba(e.to(dtype)).dtype == torch.float32


def test_inputs_are_not_touched_and_nothing_is_differentiated():
    e, y, _ = simulated(12, 1, 4, 4, 1, 1)
    before, mask = e.clone(), y.clone()
    result = infer_labels(e.requires_grad_(), y)
    assert not any(x.requires_grad for x in (result.confidence, *tensors(result)))
    assert torch.equal(e.detach(), before)
    assert torch.equal(y, mask)


def test_bad_input():
    e, y = torch.zeros(3, 2), torch.ones(3, 4).bool()
    for wrong in (e.long(), e / 0, e[:2], e[:, :0]):
        with pytest.raises(InputError):
            infer_labels(wrong, y)
    y[1] = False
    with pytest.raises(CandidateError, match="row 1 of candidates is empty"):
        infer_labels(e, y)
    for settings_ in ({"n_neighbors": -1}, {"n_iterations": 0}, {"n_neighbors": 1.5}):
        with pytest.raises(InputError, match=next(iter(settings_))):
            EvidenceRule(**settings_)


# -------------------------------------------------------------------- behavior


def test_sets_that_intersect_to_one_label():
    rng = np.random.default_rng(0)
    e = np.repeat([[0.0, 0], [9, 9]], 3, axis=0) + 0.1 * rng.normal(size=(6, 2))
    y = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
    result = run(e, y)
    assert result.confidence.argmax(-1).tolist() == [0, 0, 0, 1, 1, 1]
    assert result.confidence.amax(-1).min() > 0.9


def test_a_label_that_nobody_else_can_have():
    """The middle pair could be b or c. Without exclusivity, b would be as good."""
    e = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.2]])
    y = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1], [0, 1, 1], [1, 1, 0]]).bool()
    result = run(e, y, n_neighbors=1)
    assert result.confidence.argmax(-1).tolist() == [0, 0, 2, 2, 1, 1]
    assert result.predict_proba(torch.tensor([[5.05], [9.1]])).argmax(-1).tolist() == [2, 1]


def test_open_tasks_say_so_and_still_tell_the_groups_apart():
    """Groups A and B share labels a and b everywhere; sets of group C break the symmetry."""
    rng = np.random.default_rng(0)
    means = np.repeat([[0.0, 0, 8], [8, 8, 0], [-9, 9, 0]], 5, axis=0)
    e = means + rng.normal(size=(15, 3))
    y = np.zeros((15, 3), dtype=bool)
    y[:10, :2] = y[10:, 2] = y[10:14, 0] = True
    result = run(e, y)
    queries = result.predict_proba(torch.as_tensor(means[[0, 5, 10]]))
    for chance in (result.confidence[:10], queries[:2]):
        close(chance[:, :2], np.full((len(chance), 2), 0.5), 0.01)
    first, second, third = result.confidence.argmax(-1).reshape(3, 5).tolist()
    assert sorted([first, second]) == [[0] * 5, [1] * 5]
    assert third == [2] * 5
    assert queries.argmax(-1).tolist() == [first[0], second[0], 2]


def exact_names(y, way, shot):
    """Return each group's chances, groups being known: all allowed maps are equally likely."""
    allowed = y.reshape(way, shot, way).all(axis=1)
    maps = [
        p for p in itertools.permutations(range(way)) if all(allowed[g, c] for g, c in enumerate(p))
    ]
    return np.mean([np.eye(way)[list(p)] for p in maps], axis=0)


def test_far_classes_are_decided_as_well_as_possible_and_with_calibrated_confidence():
    """5-way 5-shot with 3 distractors is open in part; every map of groups to labels is tried."""
    e, y, labels = simulated(13, 200, 5, 5, 3, 3)
    confidence = run(e, y).confidence
    right = (confidence.argmax(-1) == labels).double().mean(dim=-1)
    exact = np.stack([exact_names(task, 5, 5) for task in y.numpy()])
    best = exact.max(axis=-1).mean()
    assert right.mean() > best - 0.03
    assert confidence.amax(-1).mean().item() == pytest.approx(right.mean().item(), abs=0.05)
    assert np.abs(confidence.numpy() - exact.repeat(5, axis=1)).mean() < 0.05
    plain = (rectify(e, y).confidence.argmax(-1) == labels).double().mean(dim=-1)
    assert right.mean() > plain.mean() + 0.05


@pytest.mark.parametrize(("way", "r", "distance"), [(5, 1, 0.6), (10, 3, 0.8)])
def test_confidence_is_calibrated_where_classes_overlap(way, r, distance):
    e, y, labels = simulated(14, 200, way, 5, r, distance)
    confidence = run(e, y).confidence
    right = (confidence.argmax(-1) == labels).double().mean().item()
    assert 0.9 < right < 0.99
    assert confidence.amax(-1).mean().item() == pytest.approx(right, abs=0.05)
