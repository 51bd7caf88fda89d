"""How quickly the review page answers, and whether several windows at once do it any harm.

    python benchmarks/app_load.py [--samples 2000 20000] [--windows 5] [--seconds 60]

For every size: vectors of 20 classes with sets of three are labeled by the command, ``fspll app``
is started as a process of its own, and windows answer, skip, undo and look, each in a thread, over
loopback. Measured: the time from the start to the first page, the time of an answer until the next
sample is there, how long the figures of all samples take to follow one answer, the memory of the
server before and after, and errors, of which there must be none. Results go to results/app.json.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np

OUT = Path(__file__).parents[1] / "results" / "app.json"
FSPLL = [sys.executable, "-m", "fspll"]


def write_data(folder: Path, n: int, n_classes: int = 20, n_features: int = 64) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, n)
    means = rng.normal(size=(n_classes, n_features)) * 0.35
    np.save(folder / "X.npy", (means[truth] + rng.normal(size=(n, n_features))).astype(np.float32))
    lines = ["sample,candidates"]
    for row, one in enumerate(truth.tolist()):
        others = rng.choice(n_classes, 2, replace=False).tolist()
        lines.append(f"s{row},{'|'.join(f'class {c}' for c in sorted({one, *others}))}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def memory(process: int) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


class Window(threading.Thread):
    """A person in a hurry."""

    def __init__(self, home: str, seed: int, until: float) -> None:
        super().__init__()
        self.home, self.until, self.random = home, until, random.Random(seed)
        self.times: dict[str, list[float]] = {"answer": [], "sample": [], "undo": []}
        self.errors: list[str] = []
        self.answered = 0

    def run(self) -> None:
        with httpx.Client(timeout=60) as client:
            found = self.ask(client, "sample", "queue?name=review")
            skipped: list[int] = []
            while found and found.get("next") and time.monotonic() < self.until:
                sample = found["next"]
                what = self.random.random()
                if what < 0.15:
                    skipped.append(sample["id"])
                    found = self.ask(client, "sample", "queue?name=review")
                    left = [one for one in found["queue"] if one not in skipped]
                    if left:
                        found["next"] = self.ask(client, "sample", f"sample/{left[0]}")
                    continue
                label = self.random.choice(sample["candidates"])["label"]
                given = {"id": sample["id"], "label": label, "skipped": skipped[-900:]}
                found = self.ask(client, "answer", "answer", given)
                self.answered += 1
                if found and what > 0.85:
                    found = self.ask(client, "undo", "undo", {"event": found["event"]}) or found

    def ask(self, client, kind, path, given=None):
        start = time.perf_counter()
        if given is None:
            response = client.get(f"{self.home}api/{path}")
        else:
            response = client.post(f"{self.home}api/{path}", json=given)
        self.times[kind].append(time.perf_counter() - start)
        again = kind == "undo" and "answered again since" in response.text  # by another window
        if response.status_code != 200 and not again:
            self.errors.append(f"{path}: {response.status_code} {response.text[:200]}")
        return response.json() if response.status_code == 200 else None


def milliseconds(times: np.ndarray) -> list[int]:
    """Return the median and the 99th percentile."""
    return [round(1000 * float(np.quantile(times, q))) for q in (0.5, 0.99)]


def until_settled(home: str, seconds: float = 600.0) -> float:
    """Wait until the model has followed all answers; return the seconds that took."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        status = httpx.get(f"{home}api/status", timeout=60).json()
        if status["state"] == "ready" and not status["updating"]:
            return time.monotonic() - start
        time.sleep(0.05)
    raise TimeoutError(f"still updating after {seconds} s")


def measure(folder: Path, n: int, n_windows: int, seconds: float) -> dict[str, object]:
    write_data(folder, n)
    given = [folder / "labels.csv", "--features", folder / "X.npy", "--out", folder / "out"]
    subprocess.run([*FSPLL, "label", *map(str, given)], check=True, stdout=subprocess.DEVNULL)
    start = time.monotonic()
    server = subprocess.Popen(
        [*FSPLL, "app", str(folder / "out"), "--no-open"], stdout=subprocess.PIPE, text=True
    )
    try:
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        page = httpx.get(address, follow_redirects=True)
        page.raise_for_status()
        first_page = time.monotonic() - start
        home = f"{address}w/result/"
        while httpx.get(f"{home}api/status").json()["state"] != "ready":
            time.sleep(0.02)
        first_sample = time.monotonic() - start
        until_settled(home)
        fitted = time.monotonic() - start
        before = memory(server.pid)
        one = httpx.get(f"{home}api/queue?name=review", timeout=60).json()["next"]
        begin = time.perf_counter()
        httpx.post(f"{home}api/answer", json={"id": one["id"], "label": one["label"]}, timeout=60)
        alone = time.perf_counter() - begin
        follow = until_settled(home)
        windows = [Window(home, seed, time.monotonic() + seconds) for seed in range(n_windows)]
        for window in windows:
            window.start()
        for window in windows:
            window.join()
        until_settled(home)
        times = {
            kind: np.concatenate([np.array(window.times[kind]) for window in windows])
            for kind in ("answer", "sample", "undo")
        }
        row = {
            "samples": n,
            "windows": n_windows,
            "seconds": seconds,
            "first_page": round(first_page, 2),
            "first_sample": round(first_sample, 2),
            "fitted": round(fitted, 2),
            "answer_alone_ms": round(1000 * alone, 1),
            "follows_s": round(follow, 2),
            "answers": sum(window.answered for window in windows),
            "answer_ms": milliseconds(times["answer"]),
            "sample_ms": milliseconds(times["sample"]),
            "memory_mb": [round(before), round(memory(server.pid))],
            "errors": [error for window in windows for error in window.errors][:5],
            "n_errors": sum(len(window.errors) for window in windows),
        }
        # What was acknowledged is on the disk.
        log = (folder / "out" / "answers.log").read_text().splitlines()
        row["logged"] = len(log)
        return row
    finally:
        server.terminate()
        server.wait(timeout=20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    rows = []
    for n in options.samples:
        with TemporaryDirectory() as folder:
            rows.append(measure(Path(folder), n, options.windows, options.seconds))
        print(json.dumps(rows[-1]), flush=True)
    OUT.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
