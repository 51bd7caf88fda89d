"""Test the package as users get it: the wheel in an environment of its own, every command once.

``make test-wheel`` and ``make test-lowest`` run it::

    python tests/installed.py            # the newest dependencies, torch as in constraints.txt
    python tests/installed.py --lowest   # the lowest that pyproject.toml allows; core tests

It builds the wheel and the sdist, installs the wheel into a fresh environment, runs every command
on data that the package draws itself, and, with ``--lowest``, the core tests from the unpacked
sdist. ``--python`` tries another interpreter. Nothing of this checkout is imported.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 5_000_000
WEIGHTS = "fspll/embeddings/weights/omniglot-conv4.safetensors"
# Rules, models, files and readers: what dependencies could break.
CORE = [
    "tests/candidates",
    "tests/rectifiers",
    "tests/baselines/test_contract.py",
    "tests/baselines/test_graph_methods.py",
    "tests/embeddings/test_checkpoints.py",
    "tests/embeddings/test_inputs.py",
    "tests/cli/test_label_command.py",
    "tests/test_classifier.py",
    "tests/test_modelfile.py",
    "tests/test_tasks.py",
]
# pytest 9 refuses what scikit-learn's own estimator checks of 2024 do.
# Its checks of estimators take pandas.
TOOLS = ["pytest>=8,<9", "pytest-timeout", "pytest-xdist[psutil]", "hypothesis", "pandas==2.2.2"]
# Labels of another type than the classes are refused by scikit-learn from 1.9 on; before, they
# count as wrong.
NOT_YET = ["--deselect", "tests/test_classifier.py::test_score"]


def main() -> None:
    """Build, install, and run what was asked for; end with a code other than 0 where it fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lowest", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel, sdist = build(place)
        venv = place / "venv"
        run(chosen.python, "-m", "venv", venv)
        python = venv / "bin" / "python"
        constraints = ROOT / "constraints.txt"
        if chosen.lowest:
            constraints = place / "lowest.txt"
            constraints.write_text(lowest(), encoding="utf-8")
            print(constraints.read_text(encoding="utf-8"), flush=True)
        install(python, "-c", constraints, wheel)
        run(python, "-m", "pip", "check")
        smoke(venv / "bin" / "fspll", place / "smoke")
        if chosen.lowest:
            core_tests(python, constraints, sdist)
    print("passed", flush=True)


def build(place: Path) -> tuple[Path, Path]:
    """Return the wheel and the folder of the sdist, which has everything that the wheel has."""
    tools = place / "tools"
    run(sys.executable, "-m", "venv", tools)
    install(tools / "bin" / "python", "build")
    run(tools / "bin" / "python", "-m", "build", "--outdir", place / "dist", ROOT)
    (wheel,), (archive,) = ((place / "dist").glob(end) for end in ("*.whl", "*.tar.gz"))
    with zipfile.ZipFile(wheel) as members:
        assert WEIGHTS in members.namelist(), f"{wheel.name} lacks the packaged network"
        in_wheel = {name for name in members.namelist() if name.startswith("fspll/")}
    size = wheel.stat().st_size
    assert size < MOST_BYTES, f"{wheel.name} has {size:,} bytes, {MOST_BYTES:,} or more"
    with tarfile.open(archive) as members:
        members.extractall(place, filter="data")
    sdist = place / archive.name.removesuffix(".tar.gz")
    lacking = [name for name in sorted(in_wheel) if not (sdist / "src" / name).exists()]
    for name in tracked():
        lacking += [] if (sdist / name).exists() else [name]
    assert not lacking, f"{archive.name} lacks {lacking[:5]}"
    print(f"{wheel.name}: {size / 1e6:.2f} MB; {archive.name}: ", end="")
    print(f"{archive.stat().st_size / 1e6:.2f} MB", flush=True)
    return wheel, sdist


def tracked() -> list[str]:
    """Return the files of the repository that tests may look at; none outside of a checkout.

    Networks of the reproduction are left out of the sdist: one command trains them again.
    """
    places = ["src", "tests", "docs", "benchmarks", "results", "*.md"]
    command = ["git", "ls-files", *places, ":!results/*/networks/*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def lowest() -> str:
    """Return constraints that pin every dependency of pyproject.toml to its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", one) for one in project["dependencies"]]
    assert all(bounds), project["dependencies"]
    return "".join(f"{one[1]}=={one[2]}\n" for one in bounds)


def smoke(fspll: Path, place: Path) -> None:
    """Run every command on drawn data, in an empty folder, with caches of its own."""
    place.mkdir()
    asked: set[str] = set()

    def command(*words: str, code: int = 0) -> str:
        asked.add(words[0])
        done = subprocess.run(
            [fspll, *words], cwd=place, env=environment(place), capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, (
            f"fspll {' '.join(words)} ended with {done.returncode}: {said}"
        )
        assert "Traceback" not in said, said
        return said

    assert "threads: " in command("--version", "--verbose")
    names = re.findall(r"^\W+([a-z]+) {2,}\w", command("--help").partition("Commands")[2], re.M)
    assert "omniglot-conv4" in command("models")
    assert "glyphs" in command("data", "list")
    assert "report.html" in command("demo")
    train = "train --dataset glyphs --tasks 4 --epochs 1 --n-way 3 --out trained"
    assert "model.safetensors" in command(*train.split())
    evaluate = "evaluate trained/model.safetensors --dataset glyphs --tasks 4 --n-way 3 --r 1"
    assert "±" in command(*evaluate.split())
    label = "label demo/labels.csv --images demo/pictures --encoder omniglot-conv4 --out result"
    assert "labels.csv, review.csv" in command(*label.split())
    assert "candidate" in command("diagnose", "demo/labels.csv")
    picture = sorted((place / "demo" / "pictures").iterdir())[0]
    assert "confidence" in command("predict", "result", str(picture))
    # Extras are not installed: each command says which one it needs.
    assert "fspll[onnx]" in command("export", "result", "model.onnx", code=2)
    assert "fspll[app]" in command("app", "result", code=2)
    assert "fspll[plots]" in command("reproduce", "omniglot", "--dataset", "glyphs", code=2)
    assert "features" in command("cache")
    assert len(names) > 10, names
    assert set(names) <= asked, f"not tried: {sorted(set(names) - asked)}"
    print(f"every command runs: {', '.join(names)}", flush=True)


def core_tests(python: Path, constraints: Path, sdist: Path) -> None:
    """Run the core tests from the sdist, against the wheel that is installed."""
    install(python, "-c", constraints, *TOOLS)
    # Old packages warn of each other; only what fails counts here.
    options = ["-q", "-n", "logical", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    tests = [python, "-m", "pytest", *options, "--disable-warnings", *NOT_YET, *CORE]
    subprocess.run(tests, cwd=sdist, env=environment(sdist), check=True)


def environment(home: Path) -> dict[str, str]:
    """Return variables under which nothing of this user or checkout is read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FSPLL_")}
    kept.pop("PYTHONPATH", None)
    folders = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return kept | folders | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def install(python: Path, *what: object) -> None:
    """Install packages into the environment of an interpreter."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def run(*words: object) -> None:
    """Run a program; stop where it fails."""
    subprocess.run([str(word) for word in words], check=True)


if __name__ == "__main__":
    main()
