"""Peak memory of ``fspll label`` on photos of 12 megapixels.

    python benchmarks/photo_memory.py --photos 1000      # extra "photos"

A few different photos are drawn and linked as many times as needed; every one is decoded and
encoded. The command runs in a process of its own, with no cache to begin with. Prints one line.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from fspll.embeddings.encoders.photos import LITE0

WIDTH, HEIGHT = 4000, 3000
N_CLASSES = 10


def draw(path: Path, label: int, seed: int) -> None:
    """Write a JPEG of noise in the colors of a class, with the detail that a photo has."""
    rng = np.random.default_rng((label, seed))
    coarse = rng.integers(0, 256, (30, 40, 3)) // 2 + np.random.default_rng(label).integers(
        0, 128, 3
    )
    picture = Image.fromarray(coarse.astype(np.uint8)).resize(
        (WIDTH, HEIGHT), Image.Resampling.BICUBIC
    )
    noise = rng.normal(0, 8, (HEIGHT, WIDTH, 1))
    pixels = np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--photos", type=int, default=1000)
    parser.add_argument("--different", type=int, default=20)
    asked = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = ["file,candidates"]
        for n in range(asked.photos):
            label, path = n % N_CLASSES, folder / f"{n}.jpg"
            if n < asked.different:
                draw(path, label, n)
            else:
                # The same class: the number of different photos is a multiple of theirs.
                os.link(folder / f"{n % asked.different}.jpg", path)
            rows.append(f"{path.name},class {label}|class {(label + 1 + n % 3) % N_CLASSES}")
        (folder / "labels.csv").write_text("\n".join(rows))
        size = sum((folder / f"{n}.jpg").stat().st_size for n in range(asked.different))
        command = ["label", "labels.csv", "--images", ".", "--out", "result"]
        command += ["--encoder", LITE0.name]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "fspll", *command],
            cwd=folder,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # KB on Linux
    print(
        f"{asked.photos} photos of {WIDTH} x {HEIGHT} pixels, {size / asked.different / 1e6:.1f} "
        f"MB each: peak {peak / 1e6:.2f} GB, {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
