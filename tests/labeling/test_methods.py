"""Baselines in the rectifier's place: the same results, and a model that is fitted again."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from fspll import label
from fspll._common.errors import CheckpointError, InputError
from fspll.annotations import read_annotations
from fspll.baselines import BASELINES
from fspll.labeling import BaselineModel, load_model
from fspll.labeling.prediction import predict_samples


@pytest.fixture
def crowd(tmp_path):
    """Return annotations of 40 samples by three people, of whom Eva is wrong half of the time."""
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 3
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[truth] + rng.normal(size=(40, 2))
    lines = ["sample,annotator,label"]
    for row, right in enumerate(truth):
        for who, chance in (("Ann", 0.95), ("Ben", 0.9), ("Eva", 0.5)):
            said = right if rng.random() < chance else (right + 1) % 3
            lines.append(f"s{row},{who},{'xyz'[said]}")
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(lines))
    return read_annotations(path, features=X), np.array(list("xyz"))[truth]


@pytest.mark.parametrize("method", list(BASELINES))
def test_labels_and_a_model_that_predicts_the_same_again(crowd, tmp_path, method):
    data, truth = crowd
    found = label(data, method=method.lower())
    assert found.rectifier == method
    assert not found.calibrated
    assert (found.labels == truth).mean() > 0.85
    inside = [one in found.candidates.names(row) for row, one in enumerate(found.labels)]
    assert all(inside)
    assert found.rounds is None
    least = [found.confidence[one.index] for one in found.review]
    assert least == sorted(least)
    found.save(tmp_path / "out")
    with (tmp_path / "out" / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == found.labels.tolist()
    assert f"{found.confidence[0]:.4f}" == rows[0]["confidence"]
    again = load_model(tmp_path / "out")
    new = np.random.default_rng(1).normal(size=(30, 2)) * 3
    assert np.array_equal(again.predict_proba(new), found.classifier.predict_proba(new))
    assert np.array_equal(again.confidence_, found.classifier.confidence_)
    predicted = predict_samples(again, [str(i) for i in range(30)], new)
    assert predicted.labels.tolist() == found.classifier.predict(new).tolist()
    assert predicted.labels.tolist() == found.classifier.estimator.predict(new).tolist()


def test_settled_rows_stay_settled(crowd):
    data, _ = crowd
    for method in ("dawid-skene", "pl-aggd"):
        found = label(data, method=method, answers={"s3": "z"})
        assert found.labels[3] == "z"
        assert found.confidence[3] == pytest.approx(1)


def test_votes_without_names_are_enough_for_majority_vote(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("sample,label\na,x\na,y\na,y\nb,x\nb,x\nb,y\n")
    data = read_annotations(path, combine="union", features=np.array([[0.0], [1.0]]))
    found = label(data, method="majority-vote")
    assert found.labels.tolist() == ["y", "x"]
    assert found.confidence == pytest.approx([2 / 3, 2 / 3])
    assert found.annotators == []
    for method in ("dawid-skene", "crowdlab"):
        with pytest.raises(InputError, match="needs to know who gave which label"):
            label(data, method=method)


def test_plain_candidate_sets():
    X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
    sets = [{1, 2}, {1, 3}, {1}, {2, 1}, {2, 3}, {2}]
    assert label((X, sets), method="PL-LEAF").labels.tolist() == [1, 1, 1, 2, 2, 2]
    with pytest.raises(InputError, match="'Dawid-Skene' needs to know who"):
        label((X, sets), method="Dawid-Skene")


def test_what_is_refused(crowd):
    data, _ = crowd
    with pytest.raises(InputError, match="there is no baseline 'pl-agd'; did you mean 'PL-AGGD'"):
        label(data, method="pl-agd")
    with pytest.raises(InputError, match="rectifier is of no use beside method='pl-knn'"):
        label(data, method="pl-knn", rectifier="fspll")
    with pytest.raises(InputError, match="class_balance is of no use beside"):
        label(data, method="pl-knn", class_balance=True)
    with pytest.raises(InputError, match="the baseline 'PL-KNN' has no setting 'classes'"):
        BaselineModel("pl-knn", {"classes": [1]})
    sets = ([[0.0]] * 9000, [{1}] * 9000)
    with pytest.raises(InputError, match="'PL-AGGD' is for fewer samples and classes than 9000"):
        label(sets, method="PL-AGGD")


def test_an_encoder_is_kept(tmp_path):
    X = np.array([[0.0, 900.0], [0.2, 100.0], [5.0, 500.0], [5.2, 300.0]])
    found = label((X, [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}]), method="pl-knn", standardize=True)
    found.save(tmp_path / "out")
    again = load_model(tmp_path / "out")
    new = np.array([[5.1, 400.0], [0.1, 400.0]])
    predicted = predict_samples(again, ["one", "other"], new)
    assert predicted.labels.tolist() == again.predict(new).tolist() == ["b", "a"]
    assert repr(predicted).startswith("Predictions(2 samples, ")
    scaled = (new - X.mean(axis=0)) / X.std(axis=0)
    direct = again.estimator.decision_function(scaled)
    assert again.estimator.decision_function(again.embedding.encode(new)) == pytest.approx(direct)
    wide = load_model(tmp_path / "out", encoder=lambda samples: np.zeros((len(samples), 3)))
    with pytest.raises(InputError, match="3 features, but"):
        wide.predict(new)


def change(path, edit):
    """Write the model file with something in it changed."""
    with safe_open(path, framework="np") as file:
        header = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    metadata = json.loads(header["metadata"])
    edit(tensors, metadata)
    save_file(tensors, path, metadata=header | {"metadata": json.dumps(metadata)})


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda t, m: m.update(method="os.system"), "there is no baseline 'os.system'"),
        (lambda t, m: m["settings"].update(smoothing="x"), "smoothing must be"),
        (lambda t, m: m["settings"].update(colour=1), "has no setting 'colour'"),
        (lambda t, m: m.pop("classes"), "it lacks 'classes'"),
        (lambda t, m: m.update(annotators=None), "its annotators are no list"),
        (lambda t, m: m["annotators"].pop(), "there are 2 annotators, but one judgment is by 2"),
        (lambda t, m: t.update(features=t["features"][:5]), "candidate sets do not fit"),
        (lambda t, m: t["judgments.labels"].fill(9), "a judgment of label 9"),
        (lambda t, m: t["features"].fill(np.nan), "contains NaN"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(crowd, tmp_path, edit, complaint):
    path = tmp_path / "model.fspll"
    label(crowd[0], method="dawid-skene").classifier.save(path)
    change(path, lambda tensors, metadata: None)
    assert load_model(path).name == "Dawid-Skene"
    change(path, edit)
    with pytest.raises(CheckpointError, match=f"model.fspll is damaged: .*{complaint}") as raised:
        load_model(path)
    assert "\n" not in str(raised.value)
