"""Kernel ridge regression: leave-one-out in closed form, exact and with landmarks."""

from __future__ import annotations

import pytest
import torch

from fspll.rectifiers import kernel as module
from fspll.rectifiers.kernel import KernelRidge, distances_within


def task(n=20, m=4, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(n, m, generator=generator, dtype=torch.float64)
    shares = torch.rand(n, classes, generator=generator, dtype=torch.float64)
    return embeddings, shares / shares.sum(dim=-1, keepdim=True)


def plain_kernel(e, others, reach):
    return torch.exp(-torch.cdist(e, others).square() / reach) + 1


def test_leaving_a_sample_out_equals_a_regression_without_it():
    e, shares = task()
    regression = KernelRidge(e, ridge=0.3)
    found = regression.left_out(shares)
    for i in range(len(e)):
        rest = torch.arange(len(e)) != i
        gram = plain_kernel(e[rest], e[rest], regression.reach) + 0.3 * torch.eye(len(e) - 1)
        weights = torch.linalg.solve(gram, shares[rest])
        expected = plain_kernel(e[i : i + 1], e[rest], regression.reach) @ weights
        assert found[i].tolist() == pytest.approx(expected[0].tolist(), abs=1e-7)


def test_the_same_with_landmarks(monkeypatch):
    monkeypatch.setattr(module, "MOST_EXACT", 10)
    monkeypatch.setattr(module, "LANDMARKS", 8)
    e, shares = task()
    regression = KernelRidge(e, ridge=0.3)
    assert len(regression.basis) == 8
    found = regression.left_out(shares)
    value, vector = torch.linalg.eigh(
        plain_kernel(regression.basis, regression.basis, regression.reach)
    )
    feature = plain_kernel(e, regression.basis, regression.reach) @ (vector / value.sqrt())
    for i in range(len(e)):
        rest = torch.arange(len(e)) != i
        gram = feature[rest].T @ feature[rest] + 0.3 * torch.eye(8)
        expected = feature[i] @ torch.linalg.solve(gram, feature[rest].T @ shares[rest])
        assert found[i].tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    gram = feature.T @ feature + 0.3 * torch.eye(8)
    fitted = feature @ torch.linalg.solve(gram, feature.T @ shares)
    assert regression.predict(e, regression.dual(shares))[0].tolist() == [
        pytest.approx(row, abs=1e-6) for row in fitted.tolist()
    ]


def test_all_samples_as_landmarks_are_the_exact_regression(monkeypatch):
    e, shares = task()
    exact = KernelRidge(e)
    monkeypatch.setattr(module, "MOST_EXACT", 10)
    monkeypatch.setattr(module, "LANDMARKS", len(e))
    approximate = KernelRidge(e)
    assert not approximate.is_exact
    assert torch.allclose(exact.left_out(shares), approximate.left_out(shares), atol=1e-6)
    new = task(seed=1)[0]
    assert torch.allclose(
        exact.predict(new, exact.dual(shares))[0],
        approximate.predict(new, approximate.dual(shares))[0],
        atol=1e-6,
    )


def test_place_and_scale_of_the_features_do_not_matter():
    e, shares = task()
    one, other = KernelRidge(e), KernelRidge(1000 * e + 7)
    assert torch.allclose(one.left_out(shares), other.left_out(shares), atol=1e-8)
    new = task(seed=1)[0]
    moved, _ = other.predict(1000 * new + 7, other.dual(shares))
    assert torch.allclose(one.predict(new, one.dual(shares))[0], moved, atol=1e-8)


def test_a_batch_is_its_tasks():
    tasks = [task(seed=seed) for seed in range(3)]
    e, shares = (torch.stack(part) for part in zip(*tasks, strict=True))
    batch = KernelRidge(e)
    for i, (one, share) in enumerate(tasks):
        alone = KernelRidge(one)
        assert torch.allclose(batch.left_out(shares)[i], alone.left_out(share), atol=1e-10)


def test_equal_samples_predict_the_mean():
    e = torch.zeros(4, 2)
    shares = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = KernelRidge(e).left_out(shares)
    assert found[0].tolist() == pytest.approx([1 / 3, 2 / 3], abs=0.05)


# -------------------------------------------------------------------- far from any sample


@pytest.mark.parametrize("most_exact", [100, 10])
def test_the_nearest_other_sample_is_not_the_sample_itself(monkeypatch, most_exact):
    monkeypatch.setattr(module, "MOST_EXACT", most_exact)
    monkeypatch.setattr(module, "LANDMARKS", 8)
    e, _ = task()
    regression = KernelRidge(e)
    basis = {tuple(row) for row in regression.basis.tolist()}
    found = regression.nearest_others(e) * regression.reach
    for i, row in enumerate(e):
        others = [j for j in range(len(e)) if j != i and tuple(e[j].tolist()) in basis]
        expected = min(float((row - e[j]).square().sum()) for j in others)
        assert float(found[i]) == pytest.approx(expected, rel=1e-6)


def test_the_nearest_sample_of_a_new_one():
    e, shares = task()
    regression = KernelRidge(e)
    new = e[:3] + 0.1
    _, nearest = regression.predict(new, regression.dual(shares))
    expected = (new.unsqueeze(1) - e).square().sum(dim=-1).min(dim=1).values
    assert (nearest * regression.reach).ravel().tolist() == pytest.approx(expected.tolist())


def test_known_distances_change_nothing(monkeypatch):
    e = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 5
    shares = torch.eye(3, dtype=e.dtype)[torch.arange(30) % 3]
    square = distances_within(e)
    assert torch.allclose(square, torch.cdist(e, e).square(), atol=1e-9)
    seen = torch.arange(30) >= 6  # a part of the samples, as in a fold
    plain, known = KernelRidge(e[seen]), KernelRidge(e[seen], square=square[seen][:, seen])
    assert torch.allclose(plain.left_out(shares[seen]), known.left_out(shares[seen]))
    dual = plain.dual(shares[seen])
    found = known.predict(e[~seen], dual, square[~seen][:, seen])
    for one, other in zip(plain.predict(e[~seen], dual), found, strict=True):
        assert torch.allclose(one, other)
    monkeypatch.setattr(module, "MOST_EXACT", 29)
    assert distances_within(e) is None
