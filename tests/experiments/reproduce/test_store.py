"""Results in SQLite: once each, whole parts, and clear refusals."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from fspll._common.errors import DataError
from fspll.experiments.reproduce.store import Figures, Store


def add(store, key="k", tasks=(0, 1), query=(0.5, 1.0)):
    n = len(tasks)
    store.add(key, {"a": 1}, {"torch": "2"}, Figures(tasks, query, [1.0] * n, [3.0 / n] * n))


def test_figures_come_back_in_the_order_of_the_tasks(tmp_path):
    with Store(tmp_path / "deep" / "results.sqlite") as store:
        add(store, tasks=(3, 1), query=(0.3, 0.1))
        figures = store.figures("k")
    assert figures.tasks.tolist() == [1, 3]
    assert figures.query.tolist() == [0.1, 0.3]
    assert figures.seconds.tolist() == [1.5, 1.5]


def test_a_task_is_kept_once_and_never_overwritten(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        add(store)
    with Store(path) as store, Store(path) as other:
        add(other, tasks=(1, 2), query=(0.0, 0.7))
        assert store.figures("k").query.tolist() == [0.5, 1.0, 0.7]
        assert store.missing("k", 5) == [3, 4]
        assert store.figures("k", 2).tasks.tolist() == [0, 1]


def test_a_part_is_written_whole_or_not_at_all(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        with pytest.raises(ValueError, match="zip"):
            add(store, tasks=(0, 1, 2))
        with pytest.raises(DataError, match="cannot write results"):
            add(store, tasks=(0, 1), query=(0.5, np.nan))  # NaN is NULL, which no column takes
        assert store.missing("k", 2) == [0, 1]
        assert store.versions(["k"]) == []


def test_unknown_jobs_have_no_figures(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        assert store.figures("nobody").query.shape == (0,)
        assert store.missing("nobody", 2) == [0, 1]


def test_networks_and_runs_are_recorded(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.add_network("n", {"plan": 1}, {}, 2.0)
        store.add_network("n", {"plan": 1}, {}, 5.0)
        store.add_run("2026-01-01", "omniglot", "quick", "2 processes", 9.94)
        assert store.networks() == {"n": ({"plan": 1}, 2.0)}
        assert store.runs("omniglot", "quick") == [
            {"started": "2026-01-01", "workers": "2 processes", "seconds": 9.9}
        ]
        assert store.runs("noise", "quick") == []


def test_files_that_are_no_store_are_refused(tmp_path):
    bad = tmp_path / "results.sqlite"
    bad.write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match=r"cannot keep results in .*results\.sqlite"):
        Store(bad)
    assert bad.read_bytes().startswith(b"not a database")
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version=7")
    db.close()
    with pytest.raises(DataError, match="format 7"):
        Store(newer)
    with pytest.raises(DataError, match="cannot keep results"):
        Store(bad / "below" / "a_file.sqlite")
