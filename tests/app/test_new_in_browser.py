"""A new data set in a real browser, from files to downloads; and the pad of *Try it*."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fspll.cli.main import main
from fspll.datasets.glyphs.drawing import load_glyphs

from .conftest import wait_for
from .test_in_browser import labels_shown, name_shown, no_complaints, press, text
from .test_killed import app

pytestmark = pytest.mark.browser
NAMES = ("<i>ka", "mi", "tu")


@pytest.fixture
def data(tmp_path):
    """Write 18 drawings, zipped too, and a table in which the wrong column looks like labels."""
    drawn = load_glyphs(3, 6, split="test")
    folder = tmp_path / "mine"
    (folder / "pictures").mkdir(parents=True)
    lines = ["file;label;perhaps"]
    for row, label in enumerate(drawn.labels.tolist()):
        path = folder / "pictures" / f"{row:02}.png"
        Image.fromarray(255 - drawn.images[row].squeeze()).save(path)
        sets = {0, 1} if label < 2 else {2, row % 2}  # ka and mi are never told apart
        lines.append(f"{path.name};draft {row % 2};{' / '.join(NAMES[c] for c in sorted(sets))}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    with zipfile.ZipFile(folder / "pictures.zip", "w") as archive:
        for path in sorted((folder / "pictures").iterdir()):
            archive.write(path, path.name)
    return folder


def shown(browser, element):
    return wait_for(lambda: browser.find_element("id", element).is_displayed())


def downloaded(browser, name):
    path = Path(browser.downloads, name)
    path.unlink(missing_ok=True)
    browser.find_element("css selector", f'#files a[href$="{name}"]').click()
    wait_for(lambda: path.exists() and not list(path.parent.glob("*.crdownload")))
    return path


def test_files_in_labels_out_as_the_command_gives_them(browser, data, tmp_path, monkeypatch):
    with app() as (_, address):
        browser.get(f"{address}new")
        browser.get_log("browser")
        choose = browser.find_element("id", "choose")
        choose.send_keys(f"{data / 'table.csv'}\n{data / 'pictures.zip'}")
        shown(browser, "read")
        wait_for(lambda: "labels from 'label'" in text(browser, "summary"))
        # The labels are in another column, and separated by something else.
        browser.find_element("css selector", '#candidates input[value="perhaps"]').click()
        wait_for(lambda: "labels from 'perhaps'" in text(browser, "summary"))
        browser.find_element("css selector", '#delimiter option[value="/"]').click()
        wait_for(lambda: "3 labels (<i>ka, mi, tu)" in text(browser, "summary"))
        assert "<i>ka" in text(browser, "first")  # as text
        browser.find_element("id", "run").click()
        wait_for(lambda: "/review" in browser.current_url and name_shown(browser))
        wait_for(lambda: "updating" not in text(browser, "progress"))
        press(browser, str(len(labels_shown(browser))))
        wait_for(lambda: text(browser, "progress").startswith("1 answered"))
        browser.get(re.sub(r"/review.*", "/files", browser.current_url))
        wait_for(lambda: browser.find_element("id", "save").is_enabled())
        browser.find_element("id", "save").click()
        shown(browser, "files")
        names = ("labels.csv", "review.csv", "model.fspll", "report.html", "answers.csv")
        found = {name: downloaded(browser, name).read_bytes() for name in names}
        no_complaints(browser)
    monkeypatch.chdir(data)
    options = ["--candidates", "perhaps", "--encoder", "omniglot-conv4", "--out", "out"]
    options += ["--delimiter", "/", "--answers", str(browser.downloads / "answers.csv")]
    words = ["fspll", "label", "table.csv", "--images", "pictures", *options]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    for name, content in found.items():
        assert content == (data / "out" / name).read_bytes(), name


def test_a_bad_upload_is_refused_with_its_sentence(browser, tmp_path):
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 this is no zip")
    (tmp_path / "table.csv").write_text("file,candidates\na.png,cat|dog\nb.png\n")
    with app() as (_, address):
        browser.get(f"{address}new")
        choose = browser.find_element("id", "choose")
        choose.send_keys(f"{tmp_path / 'broken.zip'}\n{tmp_path / 'table.csv'}")
        wait_for(lambda: "broken.zip" in text(browser, "refused"))
        wait_for(lambda: "row 3 has 1 field where the header has 2" in text(browser, "problem"))
        assert not browser.find_element("id", "go").is_displayed()


def test_a_character_drawn_on_the_pad_is_recognized(browser):
    from selenium.webdriver import ActionChains

    with app() as (_, address):
        browser.set_window_size(1280, 1400)
        browser.get(f"{address}try")
        browser.get_log("browser")
        shown(browser, "all")
        pad = browser.find_element("id", "pad")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", pad)
        drag = ActionChains(browser, duration=20).move_to_element_with_offset(pad, -80, -80)
        drag = drag.click_and_hold()
        for angle in np.linspace(0, 2 * np.pi, 12):
            drag = drag.move_by_offset(int(30 * np.cos(angle)), int(30 * np.sin(angle)))
        drag.release().perform()
        shown(browser, "classified")
        best = wait_for(lambda: browser.find_elements("css selector", "#best li"))
        assert len(best) == 3
        browser.find_element("id", "clear").click()
        wait_for(lambda: not browser.find_element("id", "classified").is_displayed())
        browser.find_element("id", "use").click()
        shown(browser, "classified")
        no_complaints(browser)
