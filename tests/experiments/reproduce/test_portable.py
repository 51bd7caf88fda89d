"""Results as a text file: exact, verified, and enough to go on from."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fspll._common.errors import DataError
from fspll.experiments.reproduce import run as runner
from fspll.experiments.reproduce import worker
from fspll.experiments.reproduce.collecting import collect
from fspll.experiments.reproduce.grid import grid
from fspll.experiments.reproduce.jobs import key_of
from fspll.experiments.reproduce.portable import PORTABLE, read_portable, write_portable
from fspll.experiments.reproduce.run import Workers, run, what_is_left
from fspll.experiments.reproduce.store import Figures, Run, Store

ROWS = ["PN", "MAML", "ceiling"]
HERE = Workers(1, device="cpu")
SETTINGS = {"network": {"plan": None}, "setting": {"n_way": 3, "n_query": 5, "n_shot": 2}}


@pytest.fixture
def asked(source, profile):
    return grid("mini-imagenet", profile, source, rows=ROWS)


@pytest.fixture
def computed(monkeypatch):
    """Return a list of what is computed from now on: networks and numbers of tasks."""
    found = []

    def trains(job, *rest):
        found.append(job.label)
        return worker.train_network(job, *rest)

    def solves(job, numbers, out):
        found.append(numbers)
        return worker.solve_tasks(job, numbers, out)

    monkeypatch.setattr(runner, "train_network", trains)
    monkeypatch.setattr(runner, "solve_tasks", solves)
    return found


def clone(out: Path, target: Path) -> Path:
    """Copy what version control keeps."""
    (target / "networks").mkdir(parents=True)
    shutil.copy(out / PORTABLE, target)
    for path in out.glob("networks/*.safetensors"):
        shutil.copy(path, target / "networks")
    return target


def figures_of(out, asked):
    """Return every figure of every job, times included."""
    with Store(out / "results.sqlite") as store:
        return {cell.row: [x.tolist() for x in store.figures(cell.job.key)] for cell in asked}


def test_a_clone_computes_nothing_again(asked, computed, source, profile, tmp_path):
    out = tmp_path / "out"
    run(asked, out, HERE, experiment="mini-imagenet", profile="tiny")
    assert sorted(map(str, computed)) == sorted(
        ["maml-r1-5way", "pn-r1", *[str([0, 1, 2, 3, 4, 5, 6, 7])] * 3]
    )
    computed.clear()
    copy = clone(out, tmp_path / "clone")
    run(asked, copy, HERE)
    assert computed == []
    assert figures_of(copy, asked) == figures_of(out, asked)
    assert (copy / PORTABLE).read_bytes() == (out / PORTABLE).read_bytes()
    first, again = (collect("mini-imagenet", profile, source, asked, at) for at in (out, copy))
    assert again.about == first.about
    assert again.about["networks"]["pn-r1"]["minutes"] > 0
    assert [run["workers"] for run in again.about["runs"]] == ["1 process"]


def test_a_clone_goes_on_with_the_networks_it_has(asked, computed, source, profile, tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    more = grid("mini-imagenet", replace(profile, photo_tasks=10), source, rows=ROWS)
    run(more, whole, HERE)
    run(asked, out, HERE)
    computed.clear()
    copy = clone(out, tmp_path / "clone")
    run(more, copy, HERE)
    assert computed == [[8, 9]] * 3  # and no network
    for row, (numbers, query, support, _) in figures_of(whole, more).items():
        assert figures_of(copy, more)[row][:3] == [numbers, query, support]


def test_what_is_only_in_the_file_needs_no_network(asked, computed, tmp_path):
    run(asked, tmp_path / "out", HERE)
    copy = clone(tmp_path / "out", tmp_path / "clone")
    shutil.rmtree(copy / "networks")
    computed.clear()
    run(asked, copy, HERE)
    assert computed == []


def test_a_head_is_a_job_like_a_network(computed, source, profile, tmp_path):
    frozen = replace(profile, photo_encoder="omniglot-conv4", photo_tasks=2)
    asked = [
        cell for cell in grid("mini-imagenet", frozen, source, rows=["FsPLL"]) if cell.features
    ]
    run(asked, tmp_path / "out", HERE)
    assert computed == ["omniglot-conv4-head-r1", [0, 1], [0, 1]]
    assert asked[1].job.network.is_ready(tmp_path / "out")
    outcome = collect("mini-imagenet", frozen, source, asked, tmp_path / "out")
    assert outcome.missing == 0
    made = outcome.about["networks"]
    assert list(made) == ["omniglot-conv4-head-r1"]
    assert made["omniglot-conv4-head-r1"]["tasks"] == 200
    copy = clone(tmp_path / "out", tmp_path / "clone")
    computed.clear()
    more = [replace(cell, job=replace(cell.job, n_tasks=3)) for cell in asked]
    run(more, copy, HERE)
    assert computed == [[2], [2]]


def test_the_network_of_another_plan_is_not_taken(asked, source, profile, tmp_path):
    run(asked, tmp_path, HERE)
    more = grid("mini-imagenet", replace(profile, photo_tasks=10), source, rows=["PN"])
    job = more[0].job.network
    (maml,) = (path for path in tmp_path.glob("networks/*.safetensors") if "maml" in path.name)
    shutil.copy(maml, job.file(tmp_path))
    with pytest.raises(DataError, match=r"pn-r1-\w+\.safetensors holds another network than its"):
        run(more, tmp_path, HERE)


def test_a_run_stops_when_the_time_is_up_and_goes_on(asked, computed, tmp_path, monkeypatch):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    run(asked, whole, HERE)
    computed.clear()
    with monkeypatch.context() as patched:
        patched.setattr("time.time", iter(range(1000)).__next__)  # every look takes a second
        run(asked, pieces, HERE, until=7)
    (first,) = computed  # the other network was not begun
    steps = next(pieces.glob(f"networks/{first}-*/log.jsonl")).read_text().count("\n")
    assert 0 < steps < 10
    assert str(what_is_left(asked, pieces)) == "2 networks and 24 tasks"
    run(asked, pieces, HERE)
    assert str(what_is_left(asked, pieces)) == "nothing"
    for row, (_, query, support, _) in figures_of(whole, asked).items():
        assert figures_of(pieces, asked)[row][1:3] == [query, support]


def filled(path, query=(0.2, 1.0, 1 / 3)):
    """Return a store with one job of three tasks."""
    store = Store(path)
    figures = Figures(np.array([0, 1, 4]), np.array(query), np.full(3, 0.5), np.full(3, 0.1))
    store.add(key_of(SETTINGS), SETTINGS, {"torch": "2"}, figures)
    store.add_network("untrained-1", SETTINGS["network"], {"torch": "2"}, 7.25)
    store.add_run(Run("2026-01-01", "omniglot", "quick", "2 processes", 9.94))
    return store


def test_counts_are_whole_numbers_and_other_figures_exact(tmp_path):
    odd = 0.1 + 0.2  # no share of 15 queries
    with filled(":memory:", (0.2, 1.0, odd)) as store, Store(":memory:") as other:
        write_portable(store, tmp_path / PORTABLE)
        read_portable(other, tmp_path / PORTABLE)
        read_portable(other, tmp_path / PORTABLE)  # nothing comes in twice
        key = key_of(SETTINGS)
        assert [x.tolist() for x in other.figures(key)] == [x.tolist() for x in store.figures(key)]
        assert (other.networks(), other.runs()) == (store.networks(), store.runs())
        assert other.jobs() == store.jobs()
    line = json.loads((tmp_path / PORTABLE).read_text().splitlines()[2])
    assert line["query"] == [3, 15, odd]
    assert line["tasks"] == [[0, 2], [4, 5]]
    assert line["seconds"] == [[3, 0.1]]


def test_what_a_store_has_is_not_replaced(tmp_path):
    with filled(":memory:") as store, filled(":memory:", (0.0, 0.0, 0.0)) as other:
        write_portable(store, tmp_path / PORTABLE)
        read_portable(other, tmp_path / PORTABLE)
        assert other.figures(key_of(SETTINGS)).query.tolist() == [0, 0, 0]


def resealed(line, **changes):
    """Return a line with other values and the checksum that belongs to them."""
    from fspll.experiments.reproduce.portable import _checked, _json

    values = json.loads(line) | changes
    values.pop("check")
    return _json(_checked(values))


@pytest.mark.parametrize(
    ("number", "change", "sentence"),
    [
        (1, lambda line: '{"a": 1}', r"results.jsonl does not hold results of fspll reproduce; m"),
        (1, lambda line: line.replace(":1}", ":9}"), r"was written in format 9 of the results"),
        (3, lambda line: line[:-20], r"line 3 of .*results.jsonl is damaged \(it is no JSON"),
        (3, lambda line: "<<<<<<< HEAD", r"line 3 of .* is damaged \(it is no JSON object\); rest"),
        (3, lambda line: '{"a": 1}', r"\(it is neither a network nor a job nor a run\)"),
        (3, lambda line: line.replace("[3,15", "[4,15"), r"\(its checksum is another\); restore"),
        (2, lambda line: resealed(line, settings={}), r"line 2 .*not those that its name stands"),
        (3, lambda line: resealed(line, settings=SETTINGS | {"network": None}), "not those that"),
        (3, lambda line: resealed(line, settings=SETTINGS | {"network": "x"}), "network is missi"),
        (3, lambda line: resealed(line, query=[1, 2]), "there are not as many as tasks"),
        (3, lambda line: resealed(line, query=[1, 2, 16]), "must be one per task, between 0 and 1"),
        (3, lambda line: resealed(line, tasks=[[0, 10**15]]), "there are not as many as tasks"),
        (3, lambda line: resealed(line, tasks="all"), "its figures do not fit"),
        (2, lambda line: resealed(line, settings=3), "line 2 of"),
    ],
)
def test_damaged_and_foreign_lines_are_refused(tmp_path, number, change, sentence):
    path = tmp_path / PORTABLE
    with filled(":memory:") as store:
        write_portable(store, path)
    lines = path.read_text().splitlines()
    lines[number - 1] = change(lines[number - 1])
    path.write_text("\n".join(lines))
    with Store(":memory:") as store:
        with pytest.raises(DataError, match=sentence):
            read_portable(store, path)
        assert (store.jobs(), store.networks(), store.runs()) == ([], {}, [])


def test_an_empty_store_writes_no_file(tmp_path):
    with Store(":memory:") as store:
        write_portable(store, tmp_path / PORTABLE)
    assert not (tmp_path / PORTABLE).exists()
