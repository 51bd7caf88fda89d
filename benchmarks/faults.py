"""Faults: what is left when a command is killed, runs out of disk, may not write, or meets another.

    python benchmarks/faults.py                      # all scenarios
    python benchmarks/faults.py label-killed --runs 10

A scenario runs real commands in processes of their own, and after each fault checks three things:
every answer is there that was acknowledged (a command exited with 0, or a person had saved it in
the folder); every output is whole or absent; and the next run works. It is a function from a folder
to work in, a number of runs and a generator to an :class:`Outcome`. Results go to
results/faults.json and .md; scenarios that were not asked for stay there as they are.

What a scenario needs and the machine does not allow is said in the table instead of a figure.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import numpy as np

from fspll._common.files import write_beside
from fspll.annotations import read_answers
from fspll.cli.main import main as main_of_fspll
from fspll.labeling import load_model, read_audit

OUT = Path(__file__).parents[1] / "results" / "faults"
CLASSES = ("ash", "birch", "cedar", "dogwood")
N_SAMPLES = 40
PATIENCE = 300.0  # seconds after which a command hangs


class NotPossibleError(Exception):
    """The machine does not allow what a scenario needs."""


@dataclass
class Outcome:
    """What a scenario came to.

    Attributes
    ----------
    runs : int
        How often the fault was brought about, or tried to be.
    hit : int
        In how many runs it stopped a command; in the others that had ended before.
    acknowledged : int
        Answers that have to be there, counted after every run.
    failures : list of str
        What did not hold.
    note : str
        How the fault was made, or why it could not be.
    """

    runs: int = 0
    hit: int = 0
    acknowledged: int = 0
    failures: list[str] = field(default_factory=list)
    note: str = ""


Scenario = Callable[[Path, int, np.random.Generator], Outcome]
SCENARIOS: dict[str, tuple[Scenario, int]] = {}  # by name, with the usual number of runs


def scenario(name: str, runs: int) -> Callable[[Scenario], Scenario]:
    """Register a scenario under a name."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[name] = (function, runs)
        return function

    return register


# -------------------------------------------------------------------- commands and faults


class Command:
    """``fspll`` with arguments, in a process of its own.

    The process is forked off after the imports, which would take most of its time: a fault at any
    moment of it is one at any moment of the work.

    Parameters
    ----------
    *arguments : object
        Of the command line.
    largest : int, optional
        Bytes that a file may have, as if the disk were full then.
    """

    def __init__(self, *arguments: object, largest: int | None = None) -> None:
        self.complaints = TemporaryFile()  # noqa: SIM115 - closed once it has been read
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._run([str(one) for one in arguments], largest)

    def _run(self, arguments: list[str], largest: int | None) -> None:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(self.complaints.fileno(), 2)
            # Whoever runs this may have put other files in their place.
            sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
            if largest is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
            sys.argv = ["fspll", *arguments]
            main_of_fspll()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:  # as the interpreter would
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def has_ended(self) -> bool:
        """Tell whether the process has ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = None if pid == 0 else os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Return once something happened, or the process has ended."""
        while not self.has_ended() and not happened():
            time.sleep(0.0005)

    def kill(self) -> None:
        """End the process at once, unless it has ended."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and the last line of complaint."""
        until = time.monotonic() + PATIENCE
        self.wait_for(lambda: time.monotonic() > until)
        self.kill()
        self.wait_for(lambda: False)
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        self.complaints.close()
        assert self.code is not None
        return self.code, (lines or [""])[-1]


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system in memory of so many bytes at a folder."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotPossibleError("this machine allows no tmpfs to be mounted") from error
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


# -------------------------------------------------------------------- fspll label


class Labelings:
    """A folder of results of ``fspll label``, and the answers that have to be in it."""

    def __init__(self, folder: Path, rng: np.random.Generator, out: Path | None = None) -> None:
        truth = np.arange(N_SAMPLES) % len(CLASSES)
        centers = 1.5 * rng.normal(size=(len(CLASSES), 6))
        np.save(folder / "X.npy", centers[truth] + rng.normal(size=(N_SAMPLES, 6)))
        lines = ["sample,candidates"]
        for row, right in enumerate(truth):
            others = rng.choice([c for c in range(len(CLASSES)) if c != right], 2, replace=False)
            lines.append(f"s{row},{'|'.join(CLASSES[c] for c in (right, *others))}")
        (folder / "table.csv").write_text("\n".join(lines) + "\n")
        self.folder, self.rng = folder, rng
        self.out = folder / "out" if out is None else out
        self.acknowledged: dict[str, str] = {}
        self.given: dict[str, str] = {}  # not acknowledged yet: may be there or not
        self.asked = 0

    def command(self, *more: object) -> tuple[object, ...]:
        """Return the arguments of the command that makes this folder."""
        table, vectors = self.folder / "table.csv", self.folder / "X.npy"
        return ("label", table, "--features", vectors, "--out", self.out, *more)

    def new_answer(self) -> tuple[str, str]:
        """Return a sample that nobody was asked about lately, and an answer for it."""
        self.asked += 1
        return f"s{self.asked % N_SAMPLES}", CLASSES[self.rng.integers(len(CLASSES))]

    def answer_file(self) -> tuple[Path, dict[str, str]]:
        """Write a file with one new answer; return it and the answer."""
        sample, answer = self.new_answer()
        path = self.folder / f"answers{self.asked}.csv"
        path.write_text(f"sample,answer\n{sample},{answer}\n")
        self.given = {sample: answer}
        return path, self.given

    def fill_in(self) -> None:
        """Answer the first question of the review list, as a person does, and save it."""
        path = self.out / "review.csv"
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if rows:
            rows[0]["answer"] = CLASSES[self.rng.integers(len(CLASSES))]
            self.acknowledged[rows[0]["sample"]] = rows[0]["answer"]
            with write_beside(path) as beside, beside.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)

    def answers_there(self) -> dict[str, str]:
        """Return all answers that the folder holds, whichever file they stand in."""
        found: dict[str, str] = {}
        for name in ("answers.csv", "review.csv"):
            if (self.out / name).exists():
                found |= read_answers(self.out / name, kept=True)
        if (self.out / "audit.csv").exists():
            found |= read_audit(self.out / "audit.csv").given
        return found

    def problems(self) -> list[str]:
        """Return what is lost or not whole."""
        found = []
        try:
            there = self.answers_there()
            found += [
                f"the answer for {sample} is lost"
                for sample, answer in self.acknowledged.items()
                if there.get(sample) not in (answer, self.given.get(sample, answer))
            ]
        except ValueError as error:
            found.append(f"answers cannot be read: {error}")
        if (self.out / "labels.csv").exists():
            lines = (self.out / "labels.csv").read_text(encoding="utf-8").splitlines()
            if len(lines) != N_SAMPLES + 1 or not (self.out / "labels.csv").read_bytes().endswith(
                b"\n"
            ):
                found.append(f"labels.csv has {len(lines)} lines")
        if (self.out / "model.fspll").exists():
            try:
                load_model(self.out).predict(np.zeros((1, 6)))
            except ValueError as error:
                found.append(f"the model is damaged: {error}")
        report = self.out / "report.html"
        if report.exists() and not report.read_text(encoding="utf-8").endswith("</html>"):
            found.append("report.html is not whole")
        return found

    def next_run(self) -> list[str]:
        """Run the command once more without any fault; return what is wrong with that."""
        code, complaint = Command(*self.command()).finish()
        if code != 0:
            return [f"the next run failed with {code}: {complaint}"]
        self.acknowledged |= self.answers_there()  # it used them, and exited with 0
        found = self.problems()
        names = {path.name for path in self.out.iterdir()}
        lacking = {"labels.csv", "review.csv", "model.fspll", "report.html"} - names
        if lacking:
            found.append(f"the next run did not write {', '.join(sorted(lacking))}")
        found += [f"{name} was left behind" for name in names if name.startswith(".")]
        with (self.out / "labels.csv").open(encoding="utf-8", newline="") as file:
            given = {row["sample"]: row["label"] for row in csv.DictReader(file)}
        found += [
            f"the answer for {sample} is not used"
            for sample, answer in self.acknowledged.items()
            if given.get(sample) != answer
        ]
        return found


def judged(work: Labelings, outcome: Outcome, run: int, more: list[str]) -> None:
    """Check a folder after a fault, and once more after the next run."""
    outcome.runs += 1
    problems = [*more, *work.problems()]
    outcome.acknowledged += len(work.acknowledged)
    problems += work.next_run()
    outcome.failures += [f"run {run}: {one}" for one in problems]


def unexpected(code: int, complaint: str, expected: Mapping[int, str]) -> list[str]:
    """Complain about an exit code, or a last line, that is none of those expected."""
    if code in expected and expected[code] in complaint:
        return []
    return [f"the command ended with {code}: {complaint}"]


@scenario("label-killed", 50)
def label_killed(folder: Path, runs: int, rng: np.random.Generator) -> Outcome:
    """Kill ``fspll label --answers``: at any moment of the run, or while it writes its files.

    One run in four is the first into a new folder. In every second of the others a person has
    filled in the review list instead of writing a file of answers.
    """
    outcome = Outcome(note="kill -9; half at any moment of the run, half while files are written")
    work = Labelings(folder, rng)
    Command(*work.command()).finish()
    began = time.perf_counter()
    Command(*work.command()).finish()
    whole = time.perf_counter() - began
    for run in range(runs):
        if run % 4 == 3:
            work.out, work.acknowledged = folder / f"out{run}", {}
        given: dict[str, str] = {}
        options: tuple[object, ...] = ()
        if run % 4 in (0, 3):
            path, given = work.answer_file()
            options = ("--answers", path)
        elif run % 4 == 1:
            work.fill_in()
        else:
            work.fill_in()
            options = ("--answers", work.out / "review.csv")
        command = Command(*work.command(*options))
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0, whole))
        else:
            before = newest(work.out)
            command.wait_for(lambda before=before: newest(work.out) != before)
            time.sleep(rng.uniform(0, 0.15))
        command.kill()
        code, complaint = command.finish()
        outcome.hit += code == -9
        if code == 0:
            work.acknowledged |= given
        judged(work, outcome, run, unexpected(code, complaint, {0: "", -9: ""}))
    return outcome


def newest(folder: Path) -> tuple[str, ...]:
    """Return what is in a folder, with unfinished files but without the lock."""
    try:
        return tuple(sorted(one.name for one in folder.iterdir() if one.suffix != ".lock"))
    except FileNotFoundError:
        return ()


@scenario("label-disk-full", 20)
def label_disk_full(folder: Path, runs: int, rng: np.random.Generator) -> Outcome:
    """Leave less and less space on the disk of the results."""
    try:
        return _full_disk(folder, runs, rng)
    except NotPossibleError as error:
        return _largest_file(folder, runs, rng, str(error))


def _full_disk(folder: Path, runs: int, rng: np.random.Generator) -> Outcome:
    outcome = Outcome(note="a small tmpfs")
    disk = folder / "disk"
    with small_disk(disk, 1 << 20):
        work = Labelings(folder, rng, disk / "out")
        Command(*work.command()).finish()
        used = sum(path.stat().st_size for path in work.out.iterdir())
        ballast = disk / "ballast"
        for run in range(runs):
            path, given = work.answer_file()
            status = os.statvfs(disk)
            room = int(rng.uniform(0, used))
            ballast.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - room)))
            code, complaint = Command(*work.command("--answers", path)).finish()
            ballast.unlink()
            outcome.hit += code == 2
            if code == 0:
                work.acknowledged |= given
            judged(work, outcome, run, unexpected(code, complaint, {0: "", 2: "cannot write"}))
    return outcome


def _largest_file(folder: Path, runs: int, rng: np.random.Generator, why: str) -> Outcome:
    outcome = Outcome(note=f"RLIMIT_FSIZE, as {why}")
    work = Labelings(folder, rng)
    Command(*work.command()).finish()
    largest = max(path.stat().st_size for path in work.out.iterdir())
    for run in range(runs):
        path, given = work.answer_file()
        size = int(rng.uniform(0, largest))
        code, complaint = Command(*work.command("--answers", path), largest=size).finish()
        outcome.hit += code == 2
        if code == 0:
            work.acknowledged |= given
        judged(work, outcome, run, unexpected(code, complaint, {0: "", 2: "cannot write"}))
    return outcome


@scenario("label-read-only", 4)
def label_read_only(folder: Path, runs: int, rng: np.random.Generator) -> Outcome:
    """Run into a folder that may be read and not written."""
    outcome = Outcome()
    disk = folder / "disk"
    with read_only_switch(disk) as (switch, how):
        outcome.note = how
        work = Labelings(folder, rng, disk / "out")
        Command(*work.command()).finish()
        for run in range(runs):
            path, _ = work.answer_file()
            if run % 2:
                work.fill_in()
            before = {one.name: one.read_bytes() for one in work.out.iterdir()}
            switch(True)
            code, complaint = Command(*work.command("--answers", path)).finish()
            switch(False)
            outcome.hit += code == 2
            problems = unexpected(code, complaint, {2: "cannot write into"})
            if before != {one.name: one.read_bytes() for one in work.out.iterdir()}:
                problems.append("the folder has changed")
            judged(work, outcome, run, problems)
    return outcome


@contextmanager
def read_only_switch(disk: Path) -> Iterator[tuple[Callable[[bool], object], str]]:
    """Yield what makes a folder read-only or writable again, and how; the root obeys no mode."""
    if os.geteuid() == 0:

        def remount(read_only: bool) -> None:
            mode = f"remount,{'ro' if read_only else 'rw'}"
            subprocess.run(["mount", "-o", mode, str(disk)], check=True)

        with small_disk(disk, 1 << 22):
            yield remount, "a tmpfs mounted read-only"
        return
    out = disk / "out"
    out.mkdir(parents=True)
    yield lambda read_only: out.chmod(0o555 if read_only else 0o755), "the mode of the folder"


@scenario("label-twice", 10)
def label_twice(folder: Path, runs: int, rng: np.random.Generator) -> Outcome:
    """Start two commands on one folder, at the same moment or a little apart."""
    outcome = Outcome(note="two processes with different answers")
    work = Labelings(folder, rng)
    for run in range(runs):
        if run % 3 == 2:
            work.out, work.acknowledged = folder / f"out{run}", {}
        pairs = [work.answer_file() for _ in range(2)]
        commands = []
        for path, _ in pairs:
            commands.append(Command(*work.command("--answers", path)))
            time.sleep(rng.uniform(0, 0.5) if run % 2 else 0.0)
        problems = []
        ended = [command.finish() for command in commands]
        for (code, complaint), (_, given) in zip(ended, pairs, strict=True):
            problems += unexpected(code, complaint, {0: "", 2: "is in use: another fspll process"})
            if code == 0:
                work.acknowledged |= given
        outcome.hit += any(code == 2 for code, _ in ended)
        if all(code == 2 for code, _ in ended):
            problems.append("both refused")
        judged(work, outcome, run, problems)
    return outcome


# -------------------------------------------------------------------- results


def run_scenario(name: str, runs: int | None = None, seed: int = 0) -> Outcome:
    """Run one scenario in a folder of its own."""
    function, usual = SCENARIOS[name]
    with TemporaryDirectory() as folder:
        try:
            return function(Path(folder), runs or usual, np.random.default_rng(seed))
        except NotPossibleError as error:
            return Outcome(note=f"not run: {error}")


def table(found: Mapping[str, Mapping[str, object]]) -> str:
    """Return the outcomes as a table for people."""
    lines = [
        "| scenario | runs | stopped by the fault | answers to be there | failures | how |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name, one in found.items():
        failures = len(one["failures"])  # type: ignore[arg-type]
        figures = f"{one['runs']} | {one['hit']} | {one['acknowledged']:,} | {failures}"
        lines.append(f"| {name} | {figures} | {one['note']} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], metavar="SCENARIO")
    parser.add_argument("--runs", type=int, help="instead of the usual number")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    path = OUT.with_suffix(".json")
    failed = False
    for name in asked.scenarios or SCENARIOS:
        outcome = run_scenario(name, asked.runs, asked.seed)
        print(f"{name}: {outcome.runs} runs, {len(outcome.failures)} failures", flush=True)
        for failure in outcome.failures:
            print(f"  {failure}")
        failed |= bool(outcome.failures)
        found = json.loads(path.read_text()) if path.exists() else {}
        found[name] = asdict(outcome)
        found = {known: found[known] for known in SCENARIOS if known in found}
        with write_beside(path) as beside:
            beside.write_text(json.dumps(found, indent=1) + "\n")
        with write_beside(OUT.with_suffix(".md")) as beside:
            beside.write_text(table(found))
    sys.exit(failed)


if __name__ == "__main__":
    main()
