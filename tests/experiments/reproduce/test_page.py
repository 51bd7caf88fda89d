"""The page of a reproduction: whole, in part, of other data, of nothing."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from fspll.experiments.reproduce.findings import findings, headline, missing
from fspll.experiments.reproduce.page import write_reproduction
from fspll.experiments.reproduce.published import METHODS, find
from fspll.experiments.reproduce.results import Cell, Condition, Outcome

MANY_SHOT = ("PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF")


def fake_omniglot(conditions, dataset="Omniglot", leave_out=0, seed=0):
    """Return accuracies near the paper's: our default above all, the ceiling above that."""
    rng = np.random.default_rng(seed)

    def cell(row, features, condition, mean, spread=0.03):
        query = np.clip(rng.normal(mean, spread, 20), 0, 1)
        return Cell(row, features, condition, query, query, seconds=30.0)

    cells = []
    for condition in conditions:
        top = 0.84 if (condition.r, condition.n_way, condition.n_shot) == (3, 5, 5) else 1.0
        for row in METHODS:
            mean = find(row, condition.n_way, condition.n_shot, condition.r).mean
            kinds = ("trained", "untrained") if row in MANY_SHOT else ("",)
            cells += [cell(row, features, condition, min(mean, top) - 0.04) for features in kinds]
        cells.append(cell("fspll default", "", condition, top - 0.005, 0.003))
        cells.append(Cell("ceiling", "", condition, np.full(20, top), np.full(20, top)))
    kept = tuple(cells[: len(cells) - leave_out])
    about = {"seed": 3, "profile": {"epochs": 3}, "networks": [{"regime": "pn", "seconds": 9.5}]}
    return Outcome("omniglot", dataset, "quick", kept, about, missing=leave_out)


CONDITIONS = [Condition(3, 5, 5), Condition(3, 10, 5)]


class Words(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.links = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.found.append(data)


def words(page):
    return re.sub(r"\s+", " ", " ".join(Words(page).found))


def test_a_whole_reproduction(tmp_path):
    paths = write_reproduction([fake_omniglot(CONDITIONS)], tmp_path / "out")
    assert [path.name for path in paths] == [
        *("omniglot.csv", "omniglot-tests.csv", "omniglot.md", "omniglot.tex"),
        "omniglot-settings.json",
        *("omniglot-r3.png", "omniglot-r3.pdf"),
        *("omniglot-against-paper.png", "omniglot-against-paper.pdf", "index.html"),
    ]
    assert sorted(tmp_path.glob("out/*")) == sorted(paths)
    assert all(path.stat().st_size > 100 for path in paths)
    with paths[0].open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * 17

    page = paths[-1].read_text(encoding="utf-8")
    shown = words(page)
    pn = next(line for line in lines if (line["row"], line["n_way"]) == ("PN", "5"))
    ours, gap = float(pn["mean"]), float(pn["mean"]) - 0.337
    assert f"{ours:.3f}"[1:] in shown
    assert f".337 −{abs(gap):.3f}".replace("−0", "−") in shown
    assert "FsPLL+ at 5-way 5-shot, r = 3 (.972 in print, at most .840 ± .000 here)" in shown
    assert "fspll reproduce omniglot --profile quick" in shown
    assert "9.5" in shown  # of what made it
    for link in Words(page).links:
        inside = link.startswith(("#", "data:"))
        assert inside or (tmp_path / "out" / link).exists(), link


def test_the_same_outcome_gives_the_same_files(tmp_path):
    kept = {}
    for name in ("one", "two"):
        whole = fake_omniglot([Condition(2, 10, 5)])
        noise = Outcome("noise", whole.dataset, whole.profile, whole.cells, whole.about)
        paths = write_reproduction([noise], tmp_path / name)
        kept[name] = [path.read_bytes() for path in paths]
    assert kept["one"] == kept["two"]


def test_several_outcomes_in_part_and_of_other_data(tmp_path):
    part = fake_omniglot(CONDITIONS, leave_out=3)
    signs = fake_omniglot(CONDITIONS[:1]).cells[:3]
    other = Outcome("omniglot", "signs <drawn> & mirrored", "quick", signs)
    noise = [cell for cell in part.cells if cell.row in ("PN", "FsPLL", "PN+", "FsPLL+")]
    photos = Cell("PN", "", Condition(1, 5, 5), np.array([0.5]), np.array([0.5]))
    paths = write_reproduction(
        [
            part,
            other,
            Outcome("noise", "Omniglot", "quick", tuple(noise)),
            Outcome("mini-imagenet", "photos, a stand-in", "cpu", (photos,), missing=7),
            Outcome("parameters", "photos, a stand-in", "cpu", (), missing=9),
        ],
        tmp_path,
    )
    names = {path.name for path in paths}
    assert {"omniglot.md", "omniglot-2.md", "noise.md", "mini-imagenet.md"} <= names
    assert "parameters.md" in names
    source = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "default-src 'none'; " in source
    assert "script-src 'none'; " in source
    page = words(source)
    assert "3 of 34 cells are still to be measured" in page
    assert "–" in page
    assert "signs <drawn> & mirrored" in page
    assert "These tasks are of photos, a stand-in." in page
    assert "Nothing has been measured yet." in page
    assert "paper" not in (tmp_path / "omniglot-2.csv").read_text().replace("paper_", "")
    table = (tmp_path / "omniglot-2.md").read_text(encoding="utf-8").split("### r = 3")[1]
    assert "(.972)" not in table


def test_nothing_at_all(tmp_path):
    (page,) = write_reproduction([], tmp_path)
    assert "Nothing has been measured yet." in page.read_text(encoding="utf-8")


# ---------------------------------------------------------------- sentences


def test_findings_are_computed():
    outcome = fake_omniglot(CONDITIONS)
    found = " ".join(findings(outcome))
    assert "fspll default, our own method, is above every other one in 2 of 2 settings." in found
    assert "1 printed figure stands above the ceiling" in found
    assert "2 of the paper's 24 settings were run." in found
    assert ("2 of 2", "settings with FsPLL above PN") in headline(outcome)

    def turned(cell):
        return Cell(
            "FsPLL" if cell.row == "PN" else "PN", "", cell.condition, cell.query, cell.support
        )

    pair = tuple(turned(cell) for cell in outcome.cells if cell.row in ("PN", "FsPLL"))
    worse = Outcome("omniglot", "Omniglot", "quick", pair)
    assert "FsPLL is above PN in 0 of 2 settings." in findings(worse)
    assert ("0 of 2", "settings with FsPLL above PN") in headline(worse)
    assert any("MAML, PL-AGGD" in sentence for sentence in missing(worse))


def test_gains_of_the_noise_study():
    condition = Condition(2, 10, 5)

    def cell(row, mean):
        return Cell(row, "", condition, np.array([mean, mean]), np.array([mean, mean]))

    cells = (cell("PN", 0.4), cell("FsPLL", 0.6), cell("FsPLL+", 0.9), cell("FsPLL++", 0.95))
    found = findings(Outcome("noise", "Omniglot", "cpu", cells))
    assert found[:2] == [
        "FsPLL improves on PN by 50% (10-way 5-shot, r = 2); the paper says 88%.",
        'FsPLL+ minus FsPLL++ is −.050; the paper calls the two "similar".',
    ]


@pytest.mark.parametrize(("best", "words"), [(9, "the paper's choice"), (3, "9, gives .500")])
def test_peaks_of_the_parameters(best, words):
    cells = tuple(
        Cell("FsPLL", "", Condition(1, 10, 10, k), np.full(2, mean), np.full(2, mean))
        for k, mean in ((3, 0.6 if best == 3 else 0.4), (9, 0.5))
    )
    found = " ".join(findings(Outcome("parameters", "photos", "cpu", cells)))
    assert f"The best k of FsPLL is {best} for r = 1" in found
    assert words in found


def test_rows_on_a_frozen_encoder_and_networks_are_told_apart(tmp_path):
    raw, adapted = "photo encoder", "adapted photo encoder"
    rows = {
        ("fspll default", ""): 0.5,
        ("fspll default+", ""): 0.51,
        ("PN", ""): 0.3,
        ("fspll default", raw): 0.7,
        ("fspll default", adapted): 0.75,
        ("FsPLL", adapted): 0.6,
    }
    cells = [
        Cell(*row, Condition(1, 5, 5), np.full(4, mean), np.full(4, mean))
        for row, mean in rows.items()
    ]
    made = {"steps": 300, "tasks": 1200, "images": 54_000, "minutes": 7.26}
    about = {"networks": {"maml-r1-20way": made}}
    outcome = Outcome("mini-imagenet", "some photos", "cpu", tuple(cells), about)
    found = " ".join(findings(outcome))
    assert "above every other one in 1 of 1 settings." in found  # of those from pixels
    assert "(fspll default+), on the same tasks: −.010 on average over 1 settings." in found
    assert "adds on average over settings: fspll default +.050." in found
    page = words(write_reproduction([outcome], tmp_path)[-1].read_text(encoding="utf-8"))
    assert "maml-r1-20way 300 1,200 54,000 7.3" in page
    assert "are not to be compared with those that learn from the pixels" in page
    tests = (tmp_path / "mini-imagenet-tests.csv").read_text(encoding="utf-8")
    assert "fspll default (adapted photo encoder),fspll default,photo encoder" in tests
    assert "fspll default,FsPLL,adapted" not in tests
