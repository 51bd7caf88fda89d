"""Results in SQLite: once each, whole parts, and clear refusals."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from fspll._common.errors import DataError
from fspll.experiments.reproduce.store import Figures, Run, Store


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
        store.add_run(Run("2026-01-01", "omniglot", "quick", "2 processes", 9.94))
        assert store.networks() == {"n": ({"plan": 1}, {}, 2.0)}
        assert store.runs() == [Run("2026-01-01", "omniglot", "quick", "2 processes", 9.94)]


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


def change(path, *commands):
    with sqlite3.connect(path) as db:
        for command in commands:
            db.execute(command)
    db.close()


def test_databases_of_something_else_are_left_alone(tmp_path):
    path = tmp_path / "results.sqlite"
    change(path, "CREATE TABLE jobs (name TEXT, salary REAL)")
    before = path.read_bytes()
    with pytest.raises(
        DataError,
        match=r"has a table 'jobs' with the columns name, salary, which fspll did not",
    ):
        Store(path)
    assert path.read_bytes() == before
    change(path, "DROP TABLE jobs", "CREATE TABLE cats (name TEXT)")
    with pytest.raises(DataError, match="has a table 'cats' with the columns name, which fspll"):
        Store(path)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (["ALTER TABLE tasks RENAME COLUMN query TO score"], "with the columns key, task, score,"),
        (
            ["ALTER TABLE jobs ADD COLUMN note"],
            "'jobs' with the columns key, settings, versions, n",
        ),
        (["DROP TABLE runs"], "is damaged: it lacks the table 'runs'; move it away, and run again"),
    ],
)
def test_other_columns_and_missing_tables_are_a_sentence(tmp_path, commands, message):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        add(store)
    change(path, *commands)
    with pytest.raises(DataError, match=message):
        Store(path)


@pytest.mark.parametrize(
    "damage",
    ["query = 0.25", "query = 'half'", "seconds = X'00'", "check_sum = 1", "task = 7"],
)
def test_a_figure_that_changed_counts_as_missing_and_is_measured_again(tmp_path, damage):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        add(store, tasks=(0, 1, 2), query=(0.5, 1.0, 0.75))
    change(path, "PRAGMA ignore_check_constraints=1", f"UPDATE tasks SET {damage} WHERE task = 1")
    with Store(path) as store:
        assert store.figures("k", 3).query.tolist() == [0.5, 0.75]
        assert store.missing("k", 3) == [1]
        add(store, tasks=(1,), query=(1.0,))
        assert store.figures("k", 3).query.tolist() == [0.5, 1.0, 0.75]


def test_files_of_the_first_format_are_taken_over(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        add(store)
    change(path, "ALTER TABLE tasks DROP COLUMN check_sum", "PRAGMA user_version=1")
    with Store(path) as store:
        add(store, tasks=(2,), query=(0.25,))
        assert store.figures("k").query.tolist() == [0.5, 1.0, 0.25]
    with Store(path) as store:
        assert store.missing("k", 4) == [3]


@pytest.mark.parametrize("column", ["settings", "versions"])
def test_settings_that_are_no_json(tmp_path, column):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        add(store)
        store.add_network("n", {"plan": 1}, {}, 2.0)
    change(path, f"UPDATE networks SET {column} = '{{'", f"UPDATE jobs SET {column} = '{{'")
    with Store(path) as store, pytest.raises(DataError, match="settings in it are no JSON; move"):
        (store.networks if column == "settings" else lambda: store.versions(["k"]))()


def test_damage_anywhere_is_a_sentence_or_changes_no_figure(tmp_path):
    """Zeros, and bytes that changed, in every part of the file."""
    path = tmp_path / "results.sqlite"
    query = np.random.default_rng(0).random((8, 100))
    with Store(path) as store:
        for job, figures in enumerate(query):
            add(store, f"k{job}", np.arange(100), figures)
        store.add_network("n", {"plan": 1}, {}, 2.0)
        store.add_run(Run("2026-01-01", "omniglot", "quick", "2 processes", 9.94))
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = []
    for round_ in range(150):
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        changed = np.frombuffer(whole, dtype=np.uint8).copy()
        start = int(rng.integers(len(whole)))
        if round_ % 3 == 0:
            changed[start:] = 0
        elif round_ % 3 == 1:
            changed[start : start + 1024] = 0
        else:
            changed[rng.integers(len(whole), size=5)] = rng.integers(256, size=5)
        path.write_bytes(changed.tobytes())
        try:
            with Store(path) as store:
                for job, expected in enumerate(query):
                    store.missing(f"k{job}", 100)
                    found = store.figures(f"k{job}", 100)
                    assert (found.query == expected[found.tasks]).all()
                store.networks()
                store.runs()
                store.versions(["k0"])
        except DataError as error:
            refused.append(str(error))
    assert 30 < len(refused) < 150
    assert [message for message in refused if str(path) not in message] == []


def test_damage_that_sqlite_quotes_is_a_sentence(tmp_path):
    """Its message holds the damaged bytes, which are not UTF-8."""
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        add(store)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"TABLE networks", b"TABL\xff networks"))
    with pytest.raises(DataError, match=r"cannot keep results in .*results\.sqlite"):
        Store(path)
