"""The cache of encoded samples: found by content, rebuilt when damaged, never an error."""

from __future__ import annotations

import sqlite3
import threading

import numpy as np
import pytest
from PIL import Image
from torch import nn

from fspll._common.errors import DataError, InputError
from fspll._common.files import user_cache_dir
from fspll.embeddings import (
    CustomEncoder,
    InputSpec,
    NetworkEncoder,
    build_network,
    encode_cached,
    store,
)

SPEC = InputSpec(16, 1, "bright-ink")


class Counting(NetworkEncoder):
    """A small network that counts the samples it was given."""

    def __init__(self, seed=0):
        super().__init__(build_network("conv4", width=4, size=16, seed=seed), SPEC, device="cpu")
        self.seen = 0

    def encode(self, X, *args, **kwargs):
        self.seen += len(X)
        return super().encode(X, *args, **kwargs)


@pytest.fixture
def files(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 20, 20), dtype=np.uint8)
    paths = [tmp_path / f"{i}.png" for i in range(40)]
    for path, picture in zip(paths, pixels, strict=True):
        Image.fromarray(picture).save(path)
    return paths


def cache_files():
    return sorted((user_cache_dir() / "features").glob("*.sqlite"))


def test_a_second_run_encodes_nothing_and_ten_more_encode_ten(files):
    encoder = Counting()
    first = encode_cached(encoder, files[:30])
    np.testing.assert_allclose(
        first.features, NetworkEncoder.encode(encoder, files[:30]), atol=1e-5
    )
    assert (encoder.seen, first.n_cached) == (30, 0)
    seen = []
    again = encode_cached(Counting(), files[:30], progress=lambda *at: seen.append(at))
    assert np.array_equal(again.features, first.features)
    assert (again.n_cached, seen) == (30, [(30, 30)])
    other = Counting()
    more = encode_cached(other, files)
    assert (other.seen, more.n_cached) == (10, 30)
    assert np.array_equal(more.features[:30], first.features)


def test_content_counts_not_the_name(files):
    encode_cached(Counting(), files[:3])
    files[1].write_bytes(files[0].read_bytes())
    files[0].rename(files[0].with_name("other.png"))
    encoder = Counting()
    found = encode_cached(encoder, [files[0].with_name("other.png"), files[1], files[2]])
    assert encoder.seen == 0
    assert np.array_equal(found.features[0], found.features[1])


def test_other_weights_are_another_encoder(files):
    one = encode_cached(Counting(seed=0), files[:3]).features
    encoder = Counting(seed=1)
    two = encode_cached(encoder, files[:3]).features
    assert encoder.seen == 3
    assert not np.allclose(one, two)
    assert len(cache_files()) == 2


def test_arrays_are_told_apart_by_shape_and_type():
    encoder = Counting()
    flat = np.zeros((16, 16), dtype=np.uint8)
    encode_cached(encoder, [flat, flat.astype(np.float32), np.zeros((8, 32), dtype=np.uint8)])
    assert encoder.seen == 3
    encode_cached(encoder, [flat])
    assert encoder.seen == 3


@pytest.mark.parametrize("damage", ["text", "cut", "other table"])
def test_a_damaged_file_is_made_anew(files, damage):
    first = encode_cached(Counting(), files[:5]).features
    (path,) = cache_files()
    if damage == "text":
        path.write_text("this is no database, and it is long enough to be read as one " * 50)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE features (something TEXT)")
        connection.close()
    encoder = Counting()
    np.testing.assert_allclose(encode_cached(encoder, files[:5]).features, first, atol=1e-6)
    assert encoder.seen == 5
    # Broken only in the middle of a run: the next one starts a new file.
    encode_cached(Counting(), files[:5])
    last = Counting()
    encode_cached(last, files[:5])
    assert last.seen == 0


def test_a_changed_byte_is_noticed(files):
    first = encode_cached(Counting(), files[:4]).features
    (path,) = cache_files()
    with sqlite3.connect(path) as connection:
        key, vector = connection.execute("SELECT key, vector FROM features").fetchone()
        connection.execute(
            "UPDATE features SET vector = ? WHERE key = ?", (b"\1" + vector[1:], key)
        )
    connection.close()
    encoder = Counting()
    np.testing.assert_allclose(encode_cached(encoder, files[:4]).features, first, atol=1e-6)
    assert encoder.seen == 1


def test_zeros_anywhere_in_the_file_change_no_feature(files):
    first = encode_cached(Counting(), files[:30]).features
    (path,) = cache_files()
    whole = path.read_bytes()
    for start in range(0, len(whole), 1024):
        for end in (start + 1024, len(whole)):
            damaged = whole[:start] + bytes(len(whole[start:end])) + whole[end:]
            for name in (path, *path.parent.glob("*-wal"), *path.parent.glob("*-shm")):
                name.unlink(missing_ok=True)
            path.write_bytes(damaged)
            np.testing.assert_allclose(
                encode_cached(Counting(), files[:30]).features, first, atol=1e-6
            )


def test_a_date_that_became_text_is_no_reason_to_fail(files):
    encode_cached(Counting(), files[:4])
    (path,) = cache_files()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE features SET used = 'long ago'")
    connection.close()
    encoder = Counting()
    encode_cached(encoder, files[:4])
    assert encoder.seen == 0


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(files, monkeypatch):
    blocked = user_cache_dir() / "features"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where the folder should be")
    encoder = Counting()
    for seen in (2, 4):
        assert encode_cached(encoder, files[:2]).features.shape == (2, 4)
        assert encoder.seen == seen
    assert encode_cached(encoder, files[:2], cache=False).n_cached == 0


def test_runs_at_the_same_time(files):
    results, errors = [], []

    def run(encoder):
        try:
            results.append(encode_cached(encoder, files).features)
        except Exception as error:
            errors.append(error)

    # Made one after the other: random weights come from torch's one generator.
    threads = [threading.Thread(target=run, args=(Counting(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], atol=1e-5)
    last = Counting()
    encode_cached(last, files)
    assert last.seen == 0


def test_it_is_bounded(files, monkeypatch):
    monkeypatch.setattr(store, "MAX_BYTES", 10 * 4 * 4)
    encode_cached(Counting(), files[:20])
    (path,) = cache_files()
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM features").fetchone()
    connection.close()
    assert count == 8
    monkeypatch.setattr(store, "MAX_FILES", 2)
    for seed in (1, 2, 3):
        encode_cached(Counting(seed), files[:2])
    assert len(cache_files()) == 2


# -------------------------------------------------------------------- what cannot be read


def test_all_unreadable_samples_are_named(files, tmp_path):
    files[3].write_bytes(files[3].read_bytes()[:60])
    files[7].write_text("no picture")
    files[9] = tmp_path / "missing.png"
    with pytest.raises(DataError) as raised:
        encode_cached(Counting(), files)
    message = str(raised.value)
    assert message.startswith("3 of 40 samples cannot be read: ")
    assert f"{files[3]} cannot be decoded, so it is damaged or cut short" in message
    assert f"{files[7]} is not a picture file" in message
    assert f"{files[9]} does not exist" in message
    assert message.endswith("leave them out with skip_bad=True")
    found = encode_cached(Counting(), files, skip_bad=True)
    assert [one.index for one in found.unreadable] == [3, 7, 9]
    assert found.kept.tolist() == [i for i in range(40) if i not in (3, 7, 9)]
    assert len(found.features) == 37


def test_names_and_the_end_of_a_long_list(tmp_path):
    paths = [tmp_path / str(i) for i in range(7)]
    with pytest.raises(
        DataError, match=r"7 of 7 .*: n0 does not exist; .*and 2 more; none is left"
    ):
        encode_cached(Counting(), paths, names=[f"n{i}" for i in range(7)], skip_bad=True)
    with pytest.raises(InputError, match="nothing to encode"):
        encode_cached(Counting(), [])


def test_a_users_own_code_is_called_with_everything_and_not_cached():
    calls = []

    def embed(samples):
        calls.append(len(samples))
        return np.ones((len(samples), 2))

    for _ in range(2):
        found = encode_cached(CustomEncoder(embed), ["a"] * 50)
        assert found.features.shape == (50, 2)
    assert calls == [50, 50]
    own = NetworkEncoder(nn.Flatten(), None, device="cpu")
    assert encode_cached(own, [np.zeros((2, 2))]).features.shape == (1, 4)
    assert not cache_files()


def test_what_is_used_again_is_kept_longest(files, monkeypatch):
    encode_cached(Counting(), files[:20])
    (path,) = cache_files()
    connection = sqlite3.connect(path)
    with connection:  # as if it were two days ago
        connection.execute("UPDATE features SET used = used - 2 * 86400")
    connection.close()
    encode_cached(Counting(), files[:8])
    monkeypatch.setattr(store, "MAX_BYTES", 10 * 4 * 4)
    encode_cached(Counting(), files[:8])
    encoder = Counting()
    assert encode_cached(encoder, files[:8]).n_cached == 8
