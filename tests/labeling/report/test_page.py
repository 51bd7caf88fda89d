"""The page of a labeling: whole, escaped, bounded, and true to the result."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from scipy import sparse

from fspll._common.errors import InputError
from fspll._common.words import percent
from fspll.annotations.samples import Annotations
from fspll.labeling import label
from fspll.labeling.report import cards, gallery, map2d, write_report
from fspll.labeling.report.plane import find_plane
from fspll.labeling.report.thumbnails import thumbnail

EVIL = "<script>alert('x')</script>\"&"
VOID = {"meta", "img", "input"}

pytestmark = pytest.mark.usefixtures("one_thread")


class Page(HTMLParser):
    """Elements, attributes and words; complains about elements left open."""

    def __init__(self, path):
        super().__init__()
        self.open, self.elements, self.said = [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.said.append(data)

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.said))

    def all(self, tag, **wanted):
        found = [attributes for name, attributes in self.elements if name == tag]
        return [a for a in found if all(a.get(key) == value for key, value in wanted.items())]

    @property
    def pictures(self):
        """The copies that the page holds, by row."""
        rows = [a["id"] for a in self.all("symbol")]
        assert len(set(rows)) == len(rows)
        copies = [a["href"].split(",", 1) for a in self.all("image")]
        return {int(row[1:]): copy for row, copy in zip(rows, copies, strict=True)}

    @property
    def shown(self):
        """The rows whose pictures are shown, as often as they are."""
        return [int(a["href"][2:]) for a in self.all("use") if a.get("href", "").startswith("#p")]


def annotate(sets, **parts):
    classes = tuple(sorted({one for labels in sets for one in labels}))
    votes = np.array([[float(c in labels) for c in classes] for labels in sets])
    names = parts.pop("names", tuple(f"s{row}" for row in range(len(sets))))
    origins = tuple(f"labels.csv, row {row + 2}" for row in range(len(sets)))
    return Annotations(names, classes, sparse.csr_array(votes), origins, **parts)


def clouds(n=60, n_classes=3, m=4, seed=0, apart=6.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = apart * rng.normal(size=(n_classes, m))[y] + rng.normal(size=(n, m))
    extra = (y + rng.integers(1, n_classes, size=n)) % n_classes
    return X, [{f"c{a}", f"c{b}"} for a, b in zip(y, extra, strict=True)]


@pytest.fixture(scope="module")
def found():
    X, sets = clouds(apart=2.0)
    X[0] = X[::3].mean(axis=0) + 1.5 * (X[::3].mean(axis=0) - X.mean(axis=0))
    sets[0] = {"c1", "c2"}  # lies with c0, far from the others
    return label(annotate(sets, features=X, source="l.csv", understood=("separator '|'",)))


def written(result, tmp_path, pictures=None):
    write_report(result, tmp_path / "report.html", pictures)
    return Page(tmp_path / "report.html")


def test_the_page_says_what_was_found(found, tmp_path):
    page = written(found, tmp_path)
    assert "60 samples got one label each, out of 3 labels in all." in page.words
    right = float(found.confidence.sum())
    assert f"Expect about {right:,.1f} of the 60 labels to be right (about 2% of the" in page.words
    assert "Check without true labels: of 60 held-out samples 95% had their most" in page.words
    read = "How the labels were read: l.csv: 60 samples, 3 labels (c0, c1, c2), separator '|'."
    assert read in page.words
    assert not page.all("p", **{"class": "warn"})
    assert "1 contradicts its candidates" in page.words
    assert "Lies among samples of c0, which is not among its candidates (c1, c2)" in page.words
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    for number, one in enumerate(found.classes):
        sure = found.confidence[found.labels == one]
        offered = int(found.candidates.mask[:, number].sum())
        line = f"{one} {len(sure)} {offered} {percent(sure.mean())} {percent(sure.min())}"
        assert line in page.words
    assert "Pictures" not in page.words


def test_labels_that_are_sure_are_said_to_be(tmp_path):
    X, sets = clouds(30, apart=20.0)
    words = written(label(annotate(sets, features=X)), tmp_path).words
    expected = r"Expect (practically )?all of the 30 labels to be right if every candidate set"
    assert re.search(expected + r" contains its true label\. No sample", words)


def test_features_that_tell_nothing_are_warned_of(tmp_path):
    X, sets = clouds(60)
    noise = np.random.default_rng(1).normal(size=X.shape)
    result = label(annotate(sets, features=noise))
    page = written(result, tmp_path)
    assert page.all("p", **{"class": "warn"}) == [{"class": "warn"}]
    assert "do not separate your labels: are these the right features?" in page.words
    result = label(annotate(sets, texts=("word",) * 60), encoder=Drawn(noise))
    words = written(result, tmp_path).words
    assert "do not separate your labels: is `Drawn` the right encoder?" in words


class Drawn:
    """An encoder that looks at nothing."""

    def __init__(self, features):
        self.features = features

    def encode(self, texts):
        return self.features[: len(texts)]


def test_nothing_is_asked_of_the_web(found, tmp_path):
    page = written(found, tmp_path)
    addresses = [a[key] for _, a in page.elements for key in ("href", "src") if key in a]
    assert len(addresses) > 60
    assert all(one.startswith(("#", "data:")) for one in addresses)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp|import\(|https?:", page.source)
    assert not page.all("link")
    assert not page.all("iframe")
    (policy,) = [one["content"] for one in page.all("meta") if "http-equiv" in one]
    assert policy.startswith("default-src 'none'; img-src data:; ")
    scripts = re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL)
    digests = [hashlib.sha256(code.encode()).digest() for code in scripts]
    allowed = {f"'sha256-{base64.b64encode(one).decode()}'" for one in digests}
    (given,) = re.findall(r"script-src ([^;]*);", policy)
    assert set(given.split()) == allowed
    assert len(allowed) == 3
    assert not [a for _, a in page.elements if any(key.startswith("on") for key in a)]


def test_what_a_user_wrote_stays_text(tmp_path):
    X, sets = clouds(12)
    sets = [{one.replace("c0", EVIL) for one in labels} for labels in sets]
    names = (EVIL, "\udcff\x00\u202ename", *(f"s{row}" for row in range(10)))
    data = annotate(sets, names=names, texts=(EVIL,) * 11 + ("</script><b>",))
    result = label(data, encoder=lambda texts: X)
    result = dataclasses.replace(result, notes=[EVIL], encoder=EVIL)
    page = written(result, tmp_path)
    scripts = page.all("script")
    data = [{"type": "application/json", "id": f"{one}-data"} for one in ("map", "answer")]
    assert scripts == [{}, data[0], {}, data[1], {}]
    assert EVIL in page.words
    assert not page.all("b", class_=None)[len(page.all("div", **{"class": "tile"})) :]
    assert "?\x00\u202ename" in "".join(page.said) or "?\ufffd\u202ename" in "".join(page.said)


# -------------------------------------------------------------------- pictures and texts


def save_pictures(folder, n, size=(300, 200), seed=0):
    rng = np.random.default_rng(seed)
    paths = []
    for row in range(n):
        path = folder / f"{row}.jpg"
        noise = rng.integers(0, 255, size=(20, 30, 3), dtype=np.uint8)
        Image.fromarray(noise).resize(size).save(path)
        paths.append(path)
    return tuple(paths)


def test_pictures_are_small_copies_and_the_least_sure_come_first(found, tmp_path):
    (tmp_path / "in").mkdir()
    paths = save_pictures(tmp_path / "in", len(found))
    paths[7].write_bytes(b"not a picture")
    page = written(found, tmp_path, paths)
    assert set(page.pictures) == set(range(len(found))) - {7}  # each of them once
    for kind, code in list(page.pictures.values())[:3]:
        assert kind == "data:image/jpeg;base64"
        assert max(Image.open(io.BytesIO(base64.b64decode(code))).size) == 96
    assert "no picture" in page.words
    start = page.words.rindex("Framed ones need a look")
    order = re.findall(r"\bs\d+\b", page.words[start:])
    assert order[0] == "s0"  # the contradiction
    sure = [found.confidence[found.names.index(name)] for name in order[1:]]
    assert len(order) == len(found)
    assert sure == sorted(sure)
    card_rows = [found.names.index(name) for name in order if name != "s7"]
    assert page.shown[-len(card_rows) :] == card_rows
    with pytest.raises(InputError, match="3 pictures do not fit 60 samples"):
        write_report(found, tmp_path / "report.html", paths[:3])


def test_two_thousand_pictures_stay_small(tmp_path):
    X, sets = clouds(2000)
    result = label(annotate(sets, features=X), rectifier="none")
    (tmp_path / "in").mkdir()
    paths = save_pictures(tmp_path / "in", 10)
    page = written(result, tmp_path, [paths[row % 10] for row in range(2000)])
    assert (tmp_path / "report.html").stat().st_size < 10_000_000
    assert f"{cards.MOST_CARDS} of 2,000 are shown." in page.words
    assert len(page.pictures) == 2000  # all points of the map have one
    sizes = {
        row: max(Image.open(io.BytesIO(base64.b64decode(code))).size)
        for row, (_, code) in page.pictures.items()
    }
    large = {row for row, size in sizes.items() if size == 96}
    assert large == {*cards.least_sure(result), *(one.index for one in result.review[:10])}
    assert {sizes[row] for row in sizes if row not in large} == {64}


def test_pictures_end_where_there_is_no_more_room(found, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    paths = save_pictures(tmp_path / "in", len(found))
    whole = written(found, tmp_path, paths)
    monkeypatch.setattr(gallery, "MOST_BYTES", 60_000)
    page = written(found, tmp_path, paths)
    count = len(page.pictures)
    assert 3 < count < len(found)
    assert sum(map(len, re.findall(r'href="data:([^"]*)"', page.source))) < 60_000
    assert list(page.pictures) == list(whole.pictures)[:count]  # what is asked about comes first
    assert f"There was room for the pictures of {count} of them." in page.words
    assert "There was room" not in whole.words


def test_copies_hold_pixels_only_and_drawings_stay_exact(tmp_path):
    path = tmp_path / "drawing.png"
    drawing = np.zeros((28, 28), dtype=np.uint8)
    drawing[5:20, 9] = 255
    Image.fromarray(drawing).save(path)
    small = thumbnail(path)
    decoded = Image.open(io.BytesIO(base64.b64decode(small.address.partition(",")[2])))
    assert decoded.format == "PNG"
    assert np.array_equal(np.asarray(decoded), drawing)
    photo = Image.new("RGB", (400, 100), "red")
    exif = Image.Exif()
    exif[0x010E] = "a secret place"
    exif[0x0112] = 6  # lies on its side
    photo.save(tmp_path / "photo.jpg", exif=exif)
    small = thumbnail(tmp_path / "photo.jpg")
    data = base64.b64decode(small.address.partition(",")[2])
    assert (small.width, small.height) == (24, 96)
    assert b"secret" not in data
    Image.new("RGBA", (50, 50), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    small = thumbnail(tmp_path / "clear.png")
    decoded = Image.open(io.BytesIO(base64.b64decode(small.address.partition(",")[2])))
    assert decoded.convert("L").getpixel((20, 20)) == 255
    assert thumbnail(tmp_path / "nothing.png") is None


def test_texts_are_shortened(tmp_path):
    X, sets = clouds(9)
    data = annotate(sets, texts=("word " * 200,) * 9)
    page = written(label(data, encoder=lambda texts: X), tmp_path)
    assert len(page.all("ol", **{"class": "cards texts"})) == 1
    assert max(len(said) for said in page.said if said.startswith("word")) <= 222


def test_lists_of_texts_say_more_than_rows(tmp_path):
    names = [f"row {row}" for row in range(2, 32)]
    texts = tuple(f"ticket about {row} <b>" for row in range(2, 32))
    data = annotate([["a", "b"]] * 30, names=names, texts=texts)
    result = label(data, encoder=Drawn(np.random.default_rng(0).normal(size=(30, 2))))
    page = written(result, tmp_path)
    later = result.names[result.review[20].index]  # below the questions that show the sample whole
    assert f"{later}: ticket about {later[4:]} <b>" in page.words
    (line,) = re.findall(r"<summary>.*?</summary>", page.source, re.DOTALL)[-1:]
    (first,) = re.findall(r"ticket about \d+ &lt;b&gt;", line)[:1]
    assert f">{first}</blockquote>" in page.source.split(line)[1]


# -------------------------------------------------------------------- the map


def map_data(page):
    (code,) = re.findall(r'id="map-data">(.*?)</script>', page.source)
    return json.loads(code)


def test_the_map_ends_where_the_result_is(found, tmp_path):
    page = written(found, tmp_path)
    data = map_data(page)
    assert data["steps"][0] == "start"
    assert data["steps"][-1] == "result"
    assert len(data["prototypes"]) == len(data["steps"]) == len(found.rounds.labels) + 1
    now = list(data["first"])
    assert now == found.rounds.labels[0].tolist()
    for step in data["changes"]:
        for at, column in step:
            now[at] = column
    assert [f"c{column}" for column in now] == found.labels.tolist()
    marks = [a for a in page.all("use") if "x" in a]
    assert [a["href"] for a in marks] == [f"#m{column}" for column in now]
    hollow = [row for row, a in enumerate(marks) if "open" in a["class"]]
    assert hollow == sorted(one.index for one in found.undecided)
    # What a point shows when it is pointed at.
    said = re.findall(r'data-row="(\d+)"><title>(.*)\n(.*)</title>', page.source)
    assert said == [
        (str(row), name, html.escape(f"{one}, {percent(sure, 0)} sure"))
        for row, (name, one, sure) in enumerate(
            zip(found.names, found.labels, found.confidence, strict=True)
        )
    ]
    # What a reader without scripts sees: the last state, and no slider.
    x, y = data["prototypes"][-1][0]
    assert page.all("g", style=f"transform:translate({x:g}px,{y:g}px)")
    assert "hidden" in page.all("div", **{"class": "steps"})[0]
    share = found.probabilities.toarray()
    points = np.array([[float(one["x"]), float(one["y"])] for one in marks])
    means = share.T @ points / share.sum(axis=0)[:, None]
    assert np.abs(means - data["prototypes"][-1]).max() < 0.11


def test_many_samples_are_drawn_in_part(tmp_path, monkeypatch):
    X, sets = clouds(200)
    result = label(annotate(sets, features=X))
    monkeypatch.setattr(map2d, "MOST_POINTS", 50)
    page = written(dataclasses.replace(result, rounds=None), tmp_path)
    assert len([a for a in page.all("use") if "x" in a]) == 50
    assert "Only 50 of 200 samples are drawn" in page.words
    assert "How prototypes moved was not kept." in page.words
    assert not page.all("input")


@pytest.mark.parametrize("rectifier", ["fspll", "none"])
def test_scores_are_not_called_probabilities(rectifier, tmp_path):
    X, sets = clouds(30)
    page = written(label(annotate(sets, features=X), rectifier=rectifier), tmp_path)
    assert "gives scores, not probabilities" in page.words
    assert "expected to be right" not in page.words.split("What to ask")[0]


@pytest.mark.parametrize("X", [np.zeros((6, 3)), np.arange(6.0)[:, None], 1e100 * np.eye(6)])
def test_flat_data_have_a_map_too(X, tmp_path):
    page = written(label(annotate([["a"], ["b"], ["a", "b"]] * 2, features=X)), tmp_path)
    places = [float(a[key]) for a in page.all("use") if "x" in a for key in ("x", "y")]
    assert len(places) == 12
    assert np.isfinite(places).all()
    assert 0 <= min(places) <= max(places) <= 900


def test_one_class_and_nothing_to_ask(tmp_path):
    page = written(label(annotate([["a"]] * 4, features=np.arange(8.0).reshape(4, 2))), tmp_path)
    assert "4 samples and one label: there was nothing to decide." in page.words
    assert "No sample needs a look." in page.words
    assert "no answer is expected to change a label" in page.words


def test_class_means_give_the_view_only_when_that_is_clearly_better():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = rng.normal(size=(120, 30)) * ([6.0, 6.0] + [1.0] * 28)
    X[:, 5] += 8 * y
    seen = find_plane(X, y)
    assert seen.by_classes
    assert abs(seen.directions[5, 0]) > 0.5
    assert np.allclose(seen.directions.T @ seen.directions, np.eye(2))
    noise = rng.normal(size=(60, 500))  # with many features, chance seems to tell classes apart
    assert not find_plane(noise, y[:60]).by_classes
