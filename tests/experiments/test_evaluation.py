"""Evaluations: rows against direct computation, p-values against scipy, files read back."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
import torch
from scipy import stats

from fspll._common.errors import InputError
from fspll.datasets import ImageSet
from fspll.embeddings import InputSpec, NetworkEncoder, build_network
from fspll.experiments import Row, evaluate, settings_grid
from fspll.experiments.methods import DEFAULT_METHODS, Samples, find_method, score_maml
from fspll.experiments.statistics import signed_rank_p, summarize
from fspll.experiments.tables import markdown_table, write_rows
from fspll.tasks import TaskSettings, TaskSource

SPEC = InputSpec(16, 1, "bright-ink")
SETTINGS = [TaskSettings(5, 3, 4, r=1), TaskSettings(3, 2, 5, r=2, p=0.5)]


@pytest.fixture(scope="module")
def data():
    """Noisy patterns: hard enough for a random network to err."""
    rng = np.random.default_rng(0)
    shapes = np.kron(rng.random((8, 4, 4)) > 0.5, np.ones((4, 4)))
    noisy = 110 * shapes[:, None] + 145 * rng.random((8, 9, 16, 16))
    return ImageSet(
        "patterns",
        noisy.reshape(-1, 16, 16).astype(np.uint8),
        np.repeat(np.arange(8), 9),
        tuple("abcdefgh"),
    )


def encoder(name="one", seed=0, architecture="conv4", **options):
    network = build_network(architecture, seed=seed, width=4, size=16).eval()
    return NetworkEncoder(network, SPEC, name, device="cpu", **options)


# -------------------------------------------------------------------- rows


def test_rows_against_direct_computation(data):
    one, two = encoder(), encoder("two", seed=1)
    rows = evaluate([one, two], data, SETTINGS, ["PN", "FsPLL"], n_tasks=8, seed=3)
    assert [(row.checkpoint, row.method, row.n_way) for row in rows] == [
        (checkpoint, method, n_way)
        for n_way in (5, 3)
        for checkpoint in ("one", "two")
        for method in ("PN", "FsPLL")
    ]
    for row in rows:
        setting = SETTINGS[0] if row.n_way == 5 else SETTINGS[1]
        assert TaskSettings(row.n_way, row.n_shot, row.n_query, row.r, row.p) == setting
        assert (row.n_tasks, row.seed, row.p_value) == (8, 3, None)
        tasks = TaskSource(data.labels, setting, seed=3).batch(range(8))
        network = one if row.checkpoint == "one" else two
        features = torch.from_numpy(network.encode(data.images, polarity="bright-ink"))
        scores = find_method(row.method).score(Samples(features=features), tasks)
        figures = summarize(scores.query_accuracy)
        assert (row.mean, row.std, row.half_width) == figures[:3]
        assert row.support_mean == pytest.approx(scores.support_accuracy.mean())
    assert len({row.mean for row in rows}) > 4


def test_maml_networks_are_adapted(data):
    """With the rate they were trained with, and one row whatever the methods."""
    trained = {"training": {"plan": {"inner_rate": 0.2}}}
    adapted = encoder("maml", architecture="conv4-classifier", metadata=trained)
    setting = SETTINGS[0]
    rows = evaluate(
        [adapted, encoder()], data, [setting], list(DEFAULT_METHODS), n_tasks=4, maml_steps=2
    )
    assert [row.method for row in rows] == ["MAML", *DEFAULT_METHODS]
    tasks = TaskSource(data.labels, setting, seed=0).batch(range(4))
    scores = score_maml(adapted.network, data, tasks, steps=2, rate=0.2)
    assert rows[0].mean == pytest.approx(scores.query_accuracy.mean())
    assert rows[0].support_mean == pytest.approx(scores.support_accuracy.mean())
    other = score_maml(adapted.network, data, tasks, steps=2, rate=0.5)
    assert (other.query_accuracy != scores.query_accuracy).any()


def test_progress_is_reported_after_every_setting(data):
    heard = []
    evaluate(
        [encoder()], data, SETTINGS, ["PN"], n_tasks=2, progress=lambda *step: heard.append(step)
    )
    assert heard == [(1, 2), (2, 2)]


# -------------------------------------------------------------------- p-values


def test_p_values_against_scipy(data):
    encoders = [encoder(), encoder("two", seed=1)]
    setting = SETTINGS[0]
    tasks = TaskSource(data.labels, setting, seed=0).batch(range(25))
    values = {}
    for network in encoders:
        features = torch.from_numpy(network.encode(data.images, polarity="bright-ink"))
        for method in ("PN", "FsPLL"):
            scores = find_method(method).score(Samples(features=features), tasks)
            values[network.name, method] = scores.query_accuracy
    for against, reference in (("FsPLL", ("one", "FsPLL")), ("two:PN", ("two", "PN"))):
        rows = evaluate(encoders, data, [setting], ["PN", "FsPLL"], n_tasks=25, against=against)
        for row in rows:
            key = (row.checkpoint, row.method)
            if key == reference:
                assert row.p_value is None
                continue
            hits = np.round(20 * (values[key].astype(float) - values[reference]))  # of 20 queries
            expected = stats.wilcoxon(hits, method="approx").pvalue
            assert row.p_value == pytest.approx(expected, rel=1e-12)
            assert 0 < row.p_value < 1


def test_equal_figures_tie_in_any_precision():
    """7 of 75 in single precision and in double is the same accuracy."""
    hits = np.arange(20)
    assert signed_rank_p((hits / 75).astype(np.float32), hits / 75) == 1.0
    rng = np.random.default_rng(0)
    a, b = rng.integers(50, 76, size=40), rng.integers(42, 76, size=40)
    expected = stats.wilcoxon(a - b, method="approx").pvalue
    for kind in (np.float32, np.float64):
        assert signed_rank_p((a / 75).astype(kind), b / 75) == pytest.approx(expected, rel=1e-12)
    assert 0 < expected < 1


def test_two_tasks_give_no_warning():
    assert signed_rank_p([0.5, 0.75], [0.25, 0.75]) == pytest.approx(0.3173, abs=1e-4)


def test_an_unknown_reference_lists_what_there_is(data):
    with pytest.raises(
        InputError, match=r"nothing evaluated is called 'FSPLL'; there are one:PN, one:FsPLL"
    ):
        evaluate([encoder()], data, SETTINGS, ["PN", "FsPLL"], n_tasks=2, against="FSPLL")


def test_an_unknown_method(data):
    with pytest.raises(
        InputError, match=r"there is no method 'KNN'.*; known are PN, FsPLL-nM, .*, PL-KNN, "
    ):
        evaluate([encoder()], data, SETTINGS, ["PN", "KNN"], n_tasks=2)


# -------------------------------------------------------------------- the grid


def test_the_grid(data):
    grid = settings_grid(data, [3, 5], [1, 5], [0, 2], p=0.5)
    assert grid == [
        TaskSettings(n, k, 8 if k == 1 else 4, r, 0.5)
        for r in (0, 2)
        for n in (3, 5)
        for k in (1, 5)
    ]
    plenty = ImageSet("plenty", np.zeros((60, 8, 8), np.uint8), np.repeat([0, 1], 30), ("a", "b"))
    assert [setting.n_query for setting in settings_grid(plenty, [2], [5, 20], [1])] == [15, 10]


@pytest.mark.parametrize(
    ("n_way", "n_shot", "r", "message"),
    [
        ([5], [3, 9], [1], "n_shot = 9 leaves no query: a class of patterns has 9"),
        ([5, 30], [3], [1], "n_way = 30 but patterns has 8 classes"),
        ([5], [0], [1], "n_shot must be a whole number of 1 or more, not 0"),
    ],
)
def test_a_grid_that_the_data_cannot_serve(data, n_way, n_shot, r, message):
    with pytest.raises(InputError, match=message):
        settings_grid(data, n_way, n_shot, r)


def test_too_many_extra_labels_are_refused_before_any_work(data):
    with pytest.raises(InputError) as caught:
        settings_grid(data, [5, 3], [2], [3])
    assert "3" in str(caught.value)


# -------------------------------------------------------------------- files


@pytest.fixture
def rows(data):
    return evaluate([encoder()], data, SETTINGS, ["PN", "FsPLL"], n_tasks=4, against="PN")


def test_csv(rows, tmp_path):
    write_rows(rows, tmp_path / "new" / "rows.csv", {})
    with (tmp_path / "new" / "rows.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 4
    for row, line in zip(rows, found, strict=True):
        expected = {name: "" if v is None else str(v) for name, v in asdict(row).items()}
        assert line == expected
        assert float(line["mean"]) == row.mean


def test_names_begin_no_formula(rows, tmp_path):
    path = tmp_path / "rows.csv"
    named = replace(rows[0], checkpoint="=HYPERLINK(1)", method="a;=1+1", mean=-0.5)
    write_rows([named], path, {})
    with path.open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert line["checkpoint"] == "'=HYPERLINK(1)"
    assert line["method"] == "a;'=1+1"  # where a spreadsheet splits at semicolons
    assert line["mean"] == "-0.5"


def test_json(rows, tmp_path):
    write_rows(rows, tmp_path / "rows.json", {"data": "patterns"})
    found = json.loads((tmp_path / "rows.json").read_text())
    assert [Row(**record) for record in found["rows"]] == rows
    assert (found["data"], found["torch"]) == ("patterns", torch.__version__)


def test_no_rows(tmp_path):
    write_rows([], tmp_path / "rows.csv", {})
    names = ",".join(field.name for field in fields(Row))
    assert (tmp_path / "rows.csv").read_text().strip() == names


def test_another_ending_is_refused_and_leaves_nothing(rows, tmp_path):
    with pytest.raises(InputError, match=r"results are written as .*, not rows\.xlsx"):
        write_rows(rows, tmp_path / "rows.xlsx", {})
    assert list(tmp_path.iterdir()) == []


def test_markdown_has_one_line_per_setting_and_marks_the_best(tmp_path):
    def row(method: str, n_way: int, mean: float) -> Row:
        return Row("run", method, n_way, 5, 15, 1, 1.0, 10, 3, mean, 0.1, 0.02, 0.9)

    rows = [row("PN", 5, 0.5), row("FsPLL", 5, 0.75), row("PN", 20, 0.4), row("FsPLL", 20, 0.4)]
    write_rows(rows, tmp_path / "table.md", {})
    assert (tmp_path / "table.md").read_text().splitlines() == [
        "| N2 | K2 | r | PN | FsPLL |",
        "|---:|---:|---:|---:|---:|",
        "| 5 | 5 | 1 | 0.500 ± 0.020 | **0.750** ± 0.020 |",
        "| 20 | 5 | 1 | **0.400** ± 0.020 | **0.400** ± 0.020 |",
        "",
        "10 tasks per line, seed 3; mean ± 95% interval.",
    ]
    assert markdown_table([]) == "no rows\n"
