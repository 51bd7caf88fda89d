"""The report in a browser: answers from clicks to labels, and the map under pointer and keys."""

from __future__ import annotations

import csv
import sys
import time

import numpy as np
import pytest
from PIL import Image

from fspll.annotations import read_answers
from fspll.annotations.answers import COLUMNS
from fspll.annotations.writing import write_table
from fspll.cli.main import main
from fspll.labeling import label
from fspll.labeling.report import write_report

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("one_thread")]

X = np.random.default_rng(0).normal(size=(30, 2)).round(3)  # nothing to tell two labels apart by
NASTY = [
    "=1+1",
    "a,b",
    'q"u"o',
    "'=x",
    "cat;=x",
    "-0.5",
    "-x",
    "'tis",
    "a; \"'=x;;@y",
    "two\n=lines",
    "\u00e9\U0001f98a",
    "<img src=x onerror=alert(1)>",
]


class Page:
    """A report that is open, as a person meets it."""

    def __init__(self, browser, path, *, forget=True):
        self.browser, self.downloads = browser, browser.downloads
        browser.get("about:blank")
        browser.get_log("browser")  # of pages before
        browser.get(path.as_uri())
        if forget:  # equal results have the same answers
            self.run("try { localStorage.clear(); } catch (error) {}")
            browser.refresh()

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def run(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def button(self, row, label, where="#ask"):
        """The button of a label in the list of a row, scrolled to."""
        if where == "#ask":
            self.run("document.querySelectorAll('#ask details').forEach(d => { d.open = true; })")
        (list_,) = self.all(f'{where} .bars[data-row="{row}"]')[:1]
        for one in list_.find_elements("css selector", "button"):
            self.run("arguments[0].scrollIntoView({block: 'center'})", one)
            first = one.find_elements("css selector", "span")
            if (first[0].text if first else one.text) == label:
                return one
        raise AssertionError(f"row {row} has no button {label!r}")

    def type(self, row, label):
        """Give another label than those that are offered."""
        self.button(row, "another label …").click()
        self.browser.switch_to.active_element.send_keys(label, "\n")

    def pressed(self):
        """What is pressed, in any list: {row: labels}."""
        found = {}
        for button in self.all('.bars button[aria-pressed="true"]'):
            row, words = self.run(
                "return [arguments[0].closest('.bars').dataset.row,"
                " (arguments[0].querySelector('span') || arguments[0]).textContent]",
                button,
            )
            found.setdefault(int(row), set()).add(words)
        return found

    @property
    def count(self):
        return self.find(".answered output").text

    def download(self):
        """Return the file, once it is whole."""
        for old in self.downloads.iterdir():
            old.unlink()
        self.find(".answered .download").click()
        path = self.downloads / "answers.csv"
        end = time.monotonic() + 20
        while not path.exists():
            assert time.monotonic() < end, [one.name for one in self.downloads.iterdir()]
            time.sleep(0.02)
        return path

    def complaints(self):
        """What the browser complained of, such as breaches of the page's policy."""
        return self.browser.get_log("browser")


@pytest.fixture
def fspll(monkeypatch, capsys):
    """Return a function that runs the command."""

    def fspll(*arguments):
        monkeypatch.setattr(sys, "argv", ["fspll", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        assert ended.value.code == 0, errors
        return output

    return fspll


def test_answers_go_from_clicks_to_labels(browser, fspll, tmp_path):
    np.save(tmp_path / "X.npy", X)
    lines = ["sample,candidates", *(f"s{row},a|b" for row in range(30))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    command = ("label", tmp_path / "table.csv", "--features", tmp_path / "X.npy", "--out", out)
    fspll(*command)
    page = Page(browser, out / "report.html")
    assert not page.find(".answered").is_displayed()
    first, second, third, fourth, last = page.run(
        "return [0, 1, 2, 3, 29].map(i => +document.querySelectorAll('#ask .bars')[i].dataset.row)"
    )
    # By mouse, and changed; by keys; of the last question, too; another label; and one taken back.
    page.button(first, "b").click()
    page.button(first, "a").click()
    assert page.pressed() == {first: {"a"}}
    page.run("arguments[0].focus()", page.button(second, "b"))
    page.browser.switch_to.active_element.send_keys(" ")
    assert page.button(second, "b").get_attribute("aria-pressed") == "true"
    page.button(last, "b").click()
    page.type(third, "=new, label")
    page.button(fourth, "a").click()
    assert page.count == "5 answers"
    page.find(".answered .undo").click()
    assert page.count == "4 answers"
    expected = {first: {"a"}, second: {"b"}, third: {"=new, label"}, last: {"b"}}
    assert page.pressed() == expected
    browser.refresh()
    assert page.count == "4 answers"
    assert page.pressed() == expected
    page.button(last, "b").click()  # pressed again: taken back
    assert page.count == "3 answers"
    assert "fspll label … --answers answers.csv" in page.find(".answered").text
    path = page.download()
    assert page.complaints() == []
    assert path.read_text(encoding="utf-8").startswith("sample,answer,content_hash\n")
    given = {f"s{first}": "a", f"s{second}": "b", f"s{third}": "=new, label"}
    assert read_answers(path) == given
    assert all(one.content.startswith("sha256-") for one in read_answers(path).records)
    assert "3 answered by a person" in fspll(*command, "--answers", path)
    with (out / "labels.csv").open(encoding="utf-8", newline="") as file:
        found = {row["sample"]: row for row in csv.DictReader(file)}
    for name, answer in given.items():
        assert found[name]["label"].removeprefix("'") == answer
        assert found[name]["confidence"] == "1.0000"
    # The report of another result begins without answers.
    page = Page(browser, out / "report.html", forget=False)
    assert page.pressed() == {}
    assert not page.find(".answered").is_displayed()


def test_any_name_and_label_comes_back(browser, annotate, tmp_path):
    names = [*NASTY, *(f"s{row}" for row in range(30 - len(NASTY)))]
    data = annotate([NASTY] * 30, names=names, features=X)
    found = label(data)
    write_report(found, tmp_path / "report.html")
    page = Page(browser, tmp_path / "report.html")
    wanted, typed = {}, "<b>'\"=typed"
    for one in found.review:
        answer = NASTY[one.index % len(NASTY)]
        wanted[one.index] = answer
        column = found.classes.tolist().index(answer)
        list_ = f'#ask .bars[data-row="{one.index}"]'
        page.run(f"document.querySelector('{list_} [data-label=\"{column}\"]').click()")
    assert set(wanted.values()) == set(NASTY)
    page.type(one.index, typed)
    wanted[one.index] = typed
    assert page.count == f"{len(wanted)} answers"
    path = page.download()
    assert page.complaints() == []
    assert page.all("img") == []
    given = {names[row]: answer for row, answer in wanted.items()}
    assert read_answers(path) == given
    # To the letter what labeling writes into its own file.
    rows = [(names[row], wanted[row], found.contents[row]) for row in sorted(wanted)]
    write_table(tmp_path / "answers.csv", COLUMNS, rows)
    assert path.read_bytes() == (tmp_path / "answers.csv").read_bytes()
    assert label(data, answers=[read_answers(path)]).answers == given


def test_a_browser_that_keeps_nothing(browser, annotate, tmp_path):
    write_report(label(annotate(["ab"] * 30, features=X)), tmp_path / "report.html")
    forbid = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
    made = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": forbid})
    try:
        page = Page(browser, tmp_path / "report.html")
        page.run("document.querySelector('#ask .bars button').click()")
        assert page.count == "1 answer"
        assert "download them before you leave" in page.find(".answered").text
        assert len(read_answers(page.download())) == 1
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)


def test_another_label_can_be_left_and_emptied(browser, annotate, tmp_path):
    from selenium.webdriver.common.keys import Keys

    found = label(annotate(["ab"] * 30, features=X))
    write_report(found, tmp_path / "report.html")
    page, row = Page(browser, tmp_path / "report.html"), found.review[0].index
    page.button(row, "b").click()
    page.button(row, "another label …").click()
    page.browser.switch_to.active_element.send_keys("c", Keys.ESCAPE)
    assert page.pressed() == {row: {"b"}}
    page.type(row, "  ")
    assert page.pressed() == {row: {"b"}}
    page.type(row, "b")  # which is pressed already
    assert page.pressed() == {row: {"b"}}
    page.type(row, " c ")
    assert page.pressed() == {row: {"c"}}
    page.button(row, "c").click()
    page.browser.switch_to.active_element.send_keys(Keys.BACKSPACE, Keys.ENTER)
    assert page.pressed() == {}
    # Focus is back on the button, and what was taken back can be had again.
    assert page.browser.switch_to.active_element.text == "another label …"
    page.find(".answered .undo").click()
    assert page.pressed() == {row: {"c"}}


def test_the_map_shows_samples(browser, annotate, tmp_path):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    paths = []
    for row in range(30):
        paths.append(tmp_path / f"{row}.png")
        Image.new("L", (20, 20), 8 * row).save(paths[-1])
    found = label(annotate(["ab"] * 30, features=X))
    write_report(found, tmp_path / "report.html", paths)
    page = Page(browser, tmp_path / "report.html")
    tip, marks = page.find(".map .tip"), page.all(".map .points use")
    assert not tip.is_displayed()
    page.run("document.querySelector('.map').scrollIntoView({block: 'center'})")
    for row in (3, 17):
        ActionChains(browser).move_to_element(marks[row]).perform()
        shown = int(page.find(".tip use").get_attribute("href")[2:])  # it may lie under another
        sure = f"{found.confidence[shown]:.0%}"
        assert tip.text == f"s{shown}\n{found.labels[shown]}, {sure} sure"
        assert page.find(".tip .frame").size == {"width": 96, "height": 96}
    ActionChains(browser).move_to_element(page.find("h1")).perform()
    assert not tip.is_displayed()
    # One stop for keys, and from there from sample to sample.
    page.run("document.querySelector('.map svg').focus()")
    page.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith("s0\n")
    page.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert tip.is_displayed()
    assert not tip.text.startswith("s0\n")
    page.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    assert page.complaints() == []
