"""Encoding on a real Dask cluster: the same features to the bit, and nothing done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fspll import label
from fspll._common import cluster
from fspll._common.errors import InputError
from fspll.datasets import load_glyphs
from fspll.embeddings import ENCODERS, encode_cached, load_embedding, save_encoder
from fspll.embeddings.batches import SHARD, Batch, _check_seen, encode_batch
from fspll.embeddings.features import BATCH

pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("one_thread")

# Features that depend on what is encoded together, and a line per sample that was encoded.
TRACED = """
import os, time, zlib

class TracedEncoder:
    modality, fingerprint = "text", "1"

    def encode(self, texts):
        time.sleep(0.02)
        with open(os.environ["TRACE"], "a") as log:
            log.writelines(f"{os.getpid()} {text}\\n" for text in texts)
        marks = [zlib.crc32(text.encode()) % 65536 for text in texts]
        return [[mark, sum(marks) % 65536, place] for place, mark in enumerate(marks)]
"""
TEXTS = [f"text-{number}" for number in range(16 * SHARD * BATCH + 7)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Write a package with an encoder that both sides find by its name."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "traced.py").write_text(TRACED)
    about = folder / "traced-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: traced\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fspll.encoders]\ntraced = traced:TracedEncoder\n")
    return folder


@pytest.fixture
def trace(packages, tmp_path, monkeypatch):
    """Let this process and its workers see the package; return what they encoded so far."""
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.setenv("TRACE", str(tmp_path / "trace.txt"))
    things = dict(ENCODERS._things)
    vars(ENCODERS).pop("_found", None)

    def read() -> list[tuple[int, str]]:
        path = tmp_path / "trace.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(pid), text) for pid, text in map(str.split, lines)]

    yield read
    ENCODERS._things.clear()
    ENCODERS._things.update(things)
    vars(ENCODERS).pop("_found", None)


def start(*words: str, paths=()) -> subprocess.Popen:
    known = [str(path) for path in paths] + [path for path in sys.path if path]
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(known), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Start a scheduler of its own process."""
    file = tmp_path_factory.mktemp("scheduler") / "scheduler.json"
    scheduler = start(
        *("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
        *("--scheduler-file", str(file)),
    )
    while not file.exists() or not file.read_text().strip().endswith("}"):
        assert scheduler.poll() is None
        time.sleep(0.1)
    yield json.loads(file.read_text())["address"]
    scheduler.kill()
    scheduler.wait()


@contextmanager
def workers(address, folder, count=2, paths=()):
    """Start worker processes and wait until they are there."""
    from distributed import Client

    words = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    where = ("--local-directory", str(folder))
    started = [start(*words, *where, paths=paths) for _ in range(count)]
    try:
        with Client(address) as client:
            client.wait_for_workers(count, timeout=60)
        yield started
    finally:
        for one in started:
            one.kill()
            one.wait()
        with Client(address) as client:
            while client.nthreads():  # until the scheduler knows that they are gone
                time.sleep(0.1)


def test_a_killed_worker_costs_what_it_was_doing_and_nothing_else(address, trace, tmp_path):
    expected = encode_cached("traced", TEXTS, cache=False).features
    here = len(trace())
    assert here == len(TEXTS)
    killed = []

    def encoded_by() -> dict[int, list[str]]:
        found = defaultdict(list)
        for pid, text in trace()[here:]:
            found[pid].append(text)
        return found

    def kill_once(done: int, total: int) -> None:
        busiest, own = max(encoded_by().items(), key=lambda one: len(one[1]), default=(0, []))
        if not killed and done > total // 4 and len(own) > 2 * SHARD * BATCH:
            killed.append(busiest)
            os.kill(busiest, signal.SIGKILL)

    with workers(address, tmp_path) as started:
        found = encode_cached("traced", TEXTS, scheduler=address, progress=kill_once)
        assert [one.poll() for one in started].count(-signal.SIGKILL) == 1
        assert np.array_equal(found.features, expected)
        everyone = encoded_by()
        assert set(everyone) == {one.pid for one in started}
        by_victim = everyone.pop(killed[0])
        (by_survivor,) = everyone.values()
        assert set(by_victim) | set(by_survivor) == set(TEXTS)
        assert len(set(by_survivor)) == len(by_survivor)
        assert len(set(by_victim)) == len(by_victim)
        # Only the shards that the worker had in hand: one under way, perhaps one not fetched yet.
        twice = set(by_victim) & set(by_survivor)
        assert len(twice) <= 2 * SHARD * BATCH < len(by_victim)

    # All of it is in the cache: neither workers nor a scheduler are asked again.
    before = len(trace())
    again = encode_cached("traced", TEXTS, scheduler="tcp://127.0.0.1:9")
    assert np.array_equal(again.features, expected)
    assert (again.n_cached, len(trace())) == (len(TEXTS), before)


def test_an_interrupted_run_goes_on_where_it_stopped(address, trace, tmp_path):
    expected = encode_cached("traced", TEXTS, cache=False).features
    here = len(trace())

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with workers(address, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            encode_cached("traced", TEXTS, scheduler=address, progress=stop)
        found = encode_cached("traced", TEXTS, scheduler=address)
    assert found.n_cached > len(TEXTS) // 2
    assert np.array_equal(found.features, expected)
    # What was in the cache was not encoded again; what was under way may have been.
    counts = Counter(text for _, text in trace()[here:])
    assert len(counts) == len(TEXTS)
    assert sum(count > 1 for count in counts.values()) <= len(TEXTS) - found.n_cached


def test_networks_and_pictures_are_the_same_on_workers(address, tmp_path):
    drawings = load_glyphs(6, 10, split="test")
    paths = []
    for number, image in enumerate(drawings.images):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(image.reshape(28, 28)).save(paths[-1])
    paths[7].write_bytes(b"no picture")
    network = tmp_path / "network.safetensors"
    save_encoder(network, load_embedding("omniglot-conv4"))
    here = encode_cached(network, paths, skip_bad=True, cache=False)
    sets = [{"a", "b"} if number % 2 else {"b", "c"} for number in range(len(paths))]
    plain = label((drawings.images, sets), encoder="omniglot-conv4", cache=False)
    with workers(address, tmp_path):
        there = encode_cached(network, paths, skip_bad=True, cache=False, scheduler=address)
        options = {"encoder": "omniglot-conv4", "cache": False, "scheduler": address}
        spread = label((drawings.images, sets), **options)
    assert np.array_equal(here.features, there.features)
    assert np.array_equal(here.kept, there.kept)
    assert here.unreadable == there.unreadable
    assert [one.index for one in there.unreadable] == [7]
    assert np.array_equal(plain.features, spread.features)
    assert plain.labels.tolist() == spread.labels.tolist()


def test_what_workers_cannot_do_is_said(address, tmp_path, monkeypatch):
    pictures = load_glyphs(2, 2, split="test").images
    with pytest.raises(InputError, match="an encoder of your own, which workers of a cluster"):
        encode_cached(lambda X: np.zeros((len(X), 2)), pictures, scheduler=address)
    with pytest.raises(InputError, match="address of a Dask scheduler, tcp://HOST:PORT, not 'x'"):
        encode_cached("omniglot-conv4", pictures, cache=False, scheduler="x")
    monkeypatch.setattr(cluster, "CONNECTING", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers at tcp://127"):
        encode_cached("omniglot-conv4", pictures, cache=False, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="has no workers; start one on each machine with: dask w"):
        encode_cached("omniglot-conv4", pictures, cache=False, scheduler=address)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, r"Dask worker tcp://\S+ lacks the package fspll: No module named 'fspll._common'"),
        ("0.0.1", r"Dask worker tcp://\S+ has fspll 0.0.1, but this is .*install the same version"),
    ],
)
def test_a_worker_with_another_package_is_named(address, tmp_path, version, message):
    other = tmp_path / "other" / "fspll"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    if version is not None:
        (other / "_common").mkdir()
        (other / "_common" / "__init__.py").touch()
        (other / "_common" / "version.py").write_text(f"__version__ = {version!r}\n")
    pictures = load_glyphs(2, 2, split="test").images
    with (
        workers(address, tmp_path, count=1, paths=[other.parent]),
        pytest.raises(InputError, match=message),
    ):
        encode_cached("omniglot-conv4", pictures, cache=False, scheduler=address)


def test_a_picture_that_only_workers_do_not_see_is_told_from_a_missing_one(tmp_path):
    here, nowhere = tmp_path / "here.png", tmp_path / "nowhere.png"
    here.write_bytes(b"")
    missing = encode_batch(load_embedding("omniglot-conv4"), [nowhere])
    assert missing == Batch({}, {0: "does not exist"})
    _check_seen([nowhere], missing)
    with pytest.raises(InputError, match=r"does not see .*here\.png; pictures must be on a disk"):
        _check_seen([Path(here)], missing)
