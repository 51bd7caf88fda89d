"""Shared fixtures: where the real data is, when it is there at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Tests in several processes have it set; the console would keep that width, whatever a test says.
os.environ.pop("COLUMNS", None)


def _real_data_folders() -> list[Path]:
    """``$FSPLL_DATA`` first, then a ``shared/data`` folder beside the checkout."""
    chosen = os.environ.get("FSPLL_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return ([Path(chosen)] if chosen else []) + [beside]


_FOLDERS = _real_data_folders()


@pytest.fixture
def real_data():
    """Return a function that finds a real data file by its relative path, or skips the test."""

    def find(relative: str) -> Path:
        for folder in _FOLDERS:
            if (folder / relative).exists():
                return folder / relative
        pytest.skip(f"real data {relative} not found; set FSPLL_DATA to its folder to run this")

    return find


@pytest.fixture(scope="module")
def one_thread():
    """Small tensors gain nothing from threads, which wait for each other on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory, monkeypatch):
    """Keep tests out of the user's cache and data folders."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))  # where macOS keeps its caches
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    monkeypatch.setenv("FSPLL_DATA", str(home / "data"))


@pytest.fixture
def tiny_photos(tmp_path):
    """Write photos in miniImageNet's layout: classes that differ in color, with noise."""
    import numpy as np
    from PIL import Image

    root, size = tmp_path / "tiny_photos", 16
    rng = np.random.default_rng(0)
    (root / "images").mkdir(parents=True)
    label = 0
    for part, n_classes in {"train": 6, "val": 2, "test": 10}.items():
        lines = ["filename,label"]
        for _ in range(n_classes):
            color = rng.integers(0, 256, 3)
            for i in range(12):
                pixels = np.clip(color + rng.normal(0, 25, (size, size, 3)), 0, 255)
                name = f"c{label}_{i}.png"
                Image.fromarray(pixels.astype(np.uint8)).save(root / "images" / name)
                lines.append(f"{name},c{label}")
            label += 1
        (root / f"{part}.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def tiny_profile():
    """Return a profile whose networks are trained for a moment."""
    from fspll.experiments.reproduce.profiles import Profile

    return Profile(
        "tiny",
        "for tests",
        epochs=1,
        n_way=3,
        n_query=1,
        photo_tasks=8,
        photo_size=16,
        photo_ways=(4,),
        photo_shots=(3,),
        photo_rs=(1,),
        maml_steps=1,
    )


@pytest.fixture
def gone():
    """Return the number of a process that has ended."""
    if sys.platform == "win32":
        pytest.skip("whether a process runs is not asked on Windows")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Start Chromium without a window, driven by selenium; tests that use it have a marker.

    What a page downloads is in ``browser.downloads``. Nothing is fetched: the test is skipped where
    selenium, Chromium or its driver is missing.
    """
    how = "`make browser-test` installs it, or says how"
    webdriver = pytest.importorskip("selenium.webdriver", reason=f"selenium is missing; {how}")
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(f"{'chromedriver' if chromium else 'Chromium'} is missing; {how}")
    folder = tmp_path_factory.mktemp("browser")
    (folder / "downloads").mkdir()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # The sandbox takes rights that containers do not have; pages of the tests are our own.
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    for flag in ("no-first-run", "disable-background-networking", "disable-component-update"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={folder / 'profile'}")
    options.add_argument("--window-size=1280,900")
    options.add_experimental_option(
        "prefs",
        {
            "download.default_directory": str(folder / "downloads"),
            "download.prompt_for_download": False,
        },
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With both paths given, selenium looks for neither on the web.
    service = webdriver.ChromeService(executable_path=driver)
    started = webdriver.Chrome(options=options, service=service)
    started.downloads = folder / "downloads"
    yield started
    started.quit()
