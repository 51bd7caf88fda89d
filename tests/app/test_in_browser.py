"""The pages in a real browser: keys, reload, two windows, a killed server, screen readers."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from PIL import Image

from fspll.annotations import read_answers
from fspll.app.running import listen
from fspll.app.server import make_app
from fspll.app.session import Session
from fspll.app.workspaces import MAIN, Workspaces
from fspll.datasets.glyphs.drawing import load_glyphs
from fspll.labeling.run import Run

from .conftest import wait_for
from .test_killed import app

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[2] / ".venv" / "npm" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def drawings(tmp_path):
    """Label 24 drawings of four characters with sets of three; return the folder."""
    drawn = load_glyphs(4, 6, split="test")
    rng = np.random.default_rng(0)
    (tmp_path / "pictures").mkdir()
    lines = ["file,candidates"]
    for row, label in enumerate(drawn.labels.tolist()):
        Image.fromarray(255 - drawn.images[row].squeeze()).save(
            tmp_path / "pictures" / f"{row:02}.png"
        )
        others = rng.choice([c for c in range(4) if c != label], 2, replace=False).tolist()
        names = [f"sign <b>{'ABCD'[c]}</b>" for c in sorted([label, *others])]
        lines.append(f"{row:02}.png,{'|'.join(names)}")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    how = {"images": tmp_path / "pictures", "encoder": "omniglot-conv4"}
    run = Run(tmp_path / "labels.csv", labeling=how)
    run.save(run.label(run.read(), progress=False, audit=3), tmp_path / "out", report=False)
    return tmp_path / "out"


@pytest.fixture
def live(browser, drawings, settled):
    """Serve the result on this machine; return its home, with the session."""
    workspaces = Workspaces()
    session = Session(drawings)
    workspaces.add(MAIN, session)
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(workspaces, "token"), log_level="error", timeout_graceful_shutdown=1
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    settled(session)

    class Live:
        base = f"http://127.0.0.1:{listening.getsockname()[1]}/token/"
        home = f"{base}w/{MAIN}/"
        folder = drawings

    Live.session = session
    yield Live
    browser.get("about:blank")  # which ends its requests
    server.should_exit = True
    thread.join(timeout=30)


def text(browser, element):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).textContent", element
    )


def labels_shown(browser):
    """Return the candidates; at once, as the page draws itself anew whenever the model changes."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#choices span')].map((one) => one.textContent)"
    )


def press(browser, key):
    browser.find_element("tag name", "body").send_keys(key)


def name_shown(browser):
    return browser.execute_script(
        "return document.querySelector('#task:not([hidden]) #name')?.textContent || ''"
    )


def open_review(browser, home, page="review"):
    browser.get(home + page)
    return wait_for(lambda: name_shown(browser))


def answers(folder):
    path = folder / "answers.csv"
    return dict(read_answers(path, kept=True)) if path.exists() else {}


def no_complaints(browser):
    said = [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]
    assert said == []


def test_review_by_keyboard(browser, live):
    browser.get_log("browser")
    first = open_review(browser, live.home)
    labels = labels_shown(browser)
    assert labels[0].startswith("sign <b>")  # markup is text
    press(browser, "2")
    second = wait_for(lambda: name_shown(browser) != first and name_shown(browser))
    assert answers(live.folder) == {first: labels[1]}
    assert text(browser, "progress").startswith("1 answered")
    press(browser, "s")
    third = wait_for(lambda: name_shown(browser) not in (second, "") and name_shown(browser))
    assert third not in (first, second)
    press(browser, "d")
    wait_for(lambda: name_shown(browser) not in (third, ""))
    assert [one.sample for one in read_answers(live.folder / "answers.csv").records][-1] == third
    press(browser, "u")
    wait_for(lambda: name_shown(browser) == third)
    assert answers(live.folder) == {first: labels[1]}
    press(browser, "o")
    field = browser.switch_to.active_element
    assert field.get_attribute("id") == "label"
    field.send_keys("1su\n")  # no keys of the page while somebody types
    wait_for(lambda: name_shown(browser) not in (third, ""))
    assert answers(live.folder) == {first: labels[1], third: "1su"}
    browser.refresh()
    again = wait_for(lambda: name_shown(browser))
    assert again not in (first, third)
    assert wait_for(lambda: text(browser, "progress")).startswith("2 answered")
    no_complaints(browser)


def test_pictures_and_neighbors_are_shown(browser, live):
    open_review(browser, live.home)
    width = "return document.querySelector('#show img')?.naturalWidth"
    wait_for(lambda: browser.execute_script(width))
    alternative = browser.execute_script("return document.querySelector('#show img').alt")
    assert alternative.startswith("picture ")
    name = name_shown(browser)
    press(browser, "1")  # what is answered is settled
    wait_for(lambda: name_shown(browser) != name)
    near = "return document.querySelector('#neighbors li')?.textContent"
    assert wait_for(lambda: browser.execute_script(near)).startswith("sign <b>")


def test_the_audit_hides_what_the_model_thinks(browser, live):
    name = open_review(browser, live.home, "audit")
    assert not browser.find_elements("css selector", "#choices progress")
    assert "%" not in text(browser, "choices")
    press(browser, "1")
    wait_for(lambda: name_shown(browser) != name)
    assert len(live.session.store.audit.given) == 1
    assert answers(live.folder) == {}


def test_two_windows_the_last_one_counts(browser, live):
    name = open_review(browser, live.home)
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    try:
        assert open_review(browser, live.home) == name
        labels = labels_shown(browser)
        press(browser, "1")
        wait_for(lambda: name_shown(browser) != name)
        browser.switch_to.window(first)
        press(browser, "2")
        wait_for(lambda: name_shown(browser) != name)
        assert answers(live.folder) == {name: labels[1]}
        assert len((live.folder / "answers.log").read_text().splitlines()) == 2
    finally:
        browser.switch_to.window(browser.window_handles[-1])
        browser.close()
        browser.switch_to.window(first)


def test_a_killed_server_loses_no_answer(browser, drawings):
    with app(drawings) as (process, address):
        home = f"{address}w/result/"
        name = open_review(browser, home)
        label = labels_shown(browser)[0]
        press(browser, "1")
        wait_for(lambda: name_shown(browser) != name)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        press(browser, "1")
        wait_for(lambda: "The server does not answer" in text(browser, "toast"))
    assert answers(drawings) == {name: label}
    with app(drawings) as (_, address):
        open_review(browser, f"{address}w/result/")
        assert wait_for(lambda: text(browser, "progress")).startswith("1 answered")


def test_files_of_a_full_run(browser, live):
    name = open_review(browser, live.home)
    press(browser, "1")
    wait_for(lambda: name_shown(browser) != name)
    browser.get(f"{live.home}files")
    wait_for(lambda: browser.find_element("id", "save").is_enabled())
    browser.find_element("id", "save").click()
    link = wait_for(lambda: browser.find_elements("css selector", "#files:not([hidden]) a"))[0]
    link.click()
    wait_for(lambda: (browser.downloads / "labels.csv").exists())
    downloaded = (browser.downloads / "labels.csv").read_bytes()
    (browser.downloads / "labels.csv").unlink()
    assert downloaded == (live.folder / "labels.csv").read_bytes()


PAGES = ("w/result/review", "w/result/audit", "w/result/look", "w/result/files", "new", "try")


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_asked_of_other_machines(browser, live, page):
    browser.get_log("browser")
    browser.get(live.base + page)
    wait_for(lambda: browser.execute_script("return document.readyState") == "complete")
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map((one) => one.name)"
    )
    assert asked
    assert all(one.startswith((live.base, "data:", "blob:")) for one in asked)
    no_complaints(browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_people_with_a_screen_reader_or_a_keyboard(browser, live, page, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is missing; `make browser-test` installs it")
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    try:
        browser.get(live.base + page)
        wait_for(
            lambda: browser.execute_script(
                "return document.readyState === 'complete' && performance.now() > 1200"
            )
        )
        browser.execute_script(AXE.read_text(encoding="utf-8"))
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run(document,"
            "{resultTypes: ['violations']}).then((found) => done(found.violations))"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
