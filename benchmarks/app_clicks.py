"""Somebody who clicks and types at random, on all pages of the app, for some minutes.

    python benchmarks/app_clicks.py [--minutes 10] [--seed 0]

Characters are drawn and labeled, ``fspll app`` is started as a process of its own, and Chromium is
driven through its pages: visible buttons, links, fields and sliders are used in random order, keys
are pressed, the page is reloaded, its window resized. A finding is an answer of the server with
status 500, a traceback in its log, an error of a script, a request to another machine, or its end.
The script prints what was done and found, and ends with 1 if anything was. It needs the extras
``app`` and ``browser``, and Chromium with its driver.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import WebDriverException

from fspll.candidates import corrupt
from fspll.datasets import load_glyphs
from fspll.labeling import Run

PAGES = ("w/result/review", "w/result/audit", "w/result/look", "w/result/files", "new", "try")
USABLE = "button, a[href], input, select, summary, canvas, [role=tab], [tabindex]"
KEYS = "123456789sudo\ue00c\ue007\ue004 "  # with Escape, Enter and Tab
WORDS = ("sign A", "<b>x</b>", "=1+1", "", "a" * 300, "é\u202e", "0", "-1")


def make(folder: Path) -> Path:
    """Draw, label and save."""
    drawn = load_glyphs(10, 6, split="test", size=56)
    names = [f"sign {'ABCDEFGHIJ'[c]}" for c in drawn.labels.tolist()]
    sets = corrupt(names, p=1, r=6, rng=np.random.default_rng(0))
    (folder / "pictures").mkdir()
    lines = ["file,candidates"]
    for row, picture in enumerate(drawn.images):
        Image.fromarray(255 - picture.squeeze()).save(folder / "pictures" / f"{row}.png")
        lines.append(f"{row}.png,{'|'.join(sets.names(row))}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    how = {"images": folder / "pictures", "encoder": "omniglot-conv4"}
    run = Run(folder / "labels.csv", labeling=how)
    run.save(run.label(run.read(), audit=10), folder / "out")
    return folder / "out"


def start_browser(folder: Path) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    for flag in ("no-first-run", "disable-background-networking", "disable-component-update"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_page_load_timeout(60)
    return browser


class Clicker:
    """What was done and found."""

    def __init__(self, browser: webdriver.Chrome, base: str, seed: int) -> None:
        self.browser, self.base, self.random = browser, base, random.Random(seed)
        self.origin = re.match(r"http://[^/]+/", base)[0]
        self.done: Counter[str] = Counter()
        self.answers: Counter[int] = Counter()
        self.found: list[str] = []

    def step(self) -> None:
        """Do one thing."""
        what = self.random.choices(
            ("use", "key", "go", "reload", "resize", "back"), (70, 20, 5, 2, 2, 1)
        )[0]
        self.done[what] += 1
        try:
            getattr(self, what)()
        except WebDriverException as error:  # an element that went, or is covered
            self.done[type(error).__name__] += 1
        self.look()

    def use(self) -> None:
        elements = self.browser.find_elements("css selector", USABLE)
        elements = [one for one in elements if one.is_displayed() and one.is_enabled()]
        if not elements:
            self.go()
            return
        element = self.random.choice(elements)
        kind = element.get_attribute("type")
        if kind == "file":
            return
        if element.tag_name == "input" and kind in ("text", "search", "number", None):
            element.clear()
            element.send_keys(self.random.choice(WORDS) + self.random.choice(("", "\n")))
        elif element.tag_name == "input" and kind == "range":
            element.send_keys(self.random.choice("\ue012\ue014") * self.random.randint(1, 4))
        elif element.tag_name == "select":
            options = element.find_elements("tag name", "option")
            self.random.choice(options).click()
        else:
            element.click()

    def key(self) -> None:
        self.browser.switch_to.active_element.send_keys(self.random.choice(KEYS))

    def go(self) -> None:
        self.browser.get(self.base + self.random.choice(PAGES))

    def reload(self) -> None:
        self.browser.refresh()

    def resize(self) -> None:
        self.browser.set_window_size(self.random.choice((390, 800, 1400)), 900)

    def back(self) -> None:
        self.browser.back()

    def look(self) -> None:
        """Read what the browser noted since."""
        for one in self.browser.get_log("browser"):
            # A refusal (400, 404 ...) is the page's to show; anything else is a mistake.
            refused = re.search(r"status of 4\d\d", one["message"])
            if one["level"] == "SEVERE" and not refused:
                self.found.append(f"console: {one['message']}")
        for one in self.browser.get_log("performance"):
            message = json.loads(one["message"])["message"]
            parameters = message["params"]
            if message["method"] == "Network.responseReceived":
                status = parameters["response"]["status"]
                self.answers[status] += 1
                if status >= 500:
                    self.found.append(f"status {status}: {parameters['response']['url']}")
            elif message["method"] == "Network.requestWillBeSent":
                address = parameters["request"]["url"]
                if not address.startswith((self.origin, "data:", "blob:", "chrome")):
                    self.found.append(f"request to {address}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        result = make(folder)
        log = (folder / "server.log").open("w+")
        server = subprocess.Popen(
            [sys.executable, "-m", "fspll", "app", str(result), "--no-open"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        browser = start_browser(folder)
        try:
            base = re.search(r"http://\S+/", server.stdout.readline())[0]
            clicker = Clicker(browser, base, options.seed)
            clicker.go()
            end = time.monotonic() + 60 * options.minutes
            while time.monotonic() < end and server.poll() is None:
                clicker.step()
            if server.poll() is not None:
                clicker.found.append(f"the server ended with {server.returncode}")
        finally:
            browser.quit()
            server.terminate()
            server.wait(timeout=20)
        log.seek(0)
        text = log.read()
        if "Traceback" in text:
            clicker.found.append(text[-2000:])
        logged = (result / "answers.log").read_text().count("\n")
    print("done:", dict(clicker.done))
    print("answers of the server:", dict(clicker.answers), "; lines in answers.log:", logged)
    print(f"{len(clicker.found)} findings", *clicker.found[:20], sep="\n")
    sys.exit(bool(clicker.found))


if __name__ == "__main__":
    main()
