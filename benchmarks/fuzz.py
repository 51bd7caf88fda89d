"""Damaged and hostile files for every reader: make fuzz MINUTES=n.

    python benchmarks/fuzz.py --minutes 10              # all readers in turn
    python benchmarks/fuzz.py --readers npz,mat --cases 20000
    python benchmarks/fuzz.py --readers npz --case 1234 # one case again, with its traceback

Case i of seed s is always the same file: a sample of what the reader takes, with some bytes or
parts changed. A reader may return, or raise an FsPLLError. Anything else is a finding: another
exception, the end of the process, more than 5 seconds of processor time, or a peak memory above
what the process had before, 64 MB, and 20 times what the file unpacks to. Readers run in a forked
process, which is replaced when it dies. The files of findings are kept in --keep, and the exit
code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fspll._common.errors import FsPLLError

SECONDS, WAIT = 5, 60  # of the processor; on the clock, for what sleeps
SPARE, TIMES = 64 << 20, 20
ADDRESSES = 4 << 30  # that a process may take beyond what it has
LARGEST = 1 << 17  # bytes of a case
TURN = 1000  # cases of a reader in one process
NUMBERS = (
    0,
    1,
    127,
    128,
    255,
    256,
    32767,
    65535,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
)
DIGITS = ("0", "-1", "1", "2147483648", "9" * 20, "1e999", "nan", "9" * 5000, "0x" + "f" * 5000)
VALUES = (
    *(None, True, False, -1, 0, 1, 2**31, 2**63, 10**400, 1.5, 1e308, float("nan"), "", "a", "cpu"),
    *([], {}, [[]], [1, 2], ["a", "b"], {"a": 1}, {"choices": ["a"]}, "\ud800", "\0", "[1]", "U"),
)


class Sample(NamedTuple):
    """What a file is made of, and how: check sums are made after parts were changed."""

    parts: tuple[bytes, ...]
    pack: Callable[[Sequence[bytes]], bytes] = lambda parts: parts[0]


class Reader(NamedTuple):
    """A reader, samples of what it takes, and words that mean something to it."""

    samples: list[Sample]
    read: Callable[[bytes, Path], object]
    words: tuple[bytes, ...] = ()
    unpacked: Callable[[bytes], int] = len


class Finding(NamedTuple):
    """What a reader did with a case that it must not do."""

    case: int
    what: str


# -------------------------------------------------------------------- cases


def make_case(name: str, reader: Reader, seed: int, number: int) -> bytes:
    """Return a case by its number; one in 50 is a sample as it is."""
    rng = random.Random(f"{name} {seed} {number}")
    sample = rng.choice(reader.samples)
    parts, inside = list(sample.parts), rng.random() < 0.6
    whole = rng.random() < 0.02
    if inside and not whole:
        for _ in range(1 + int(rng.expovariate(1))):
            part = rng.randrange(len(parts))
            parts[part] = change(parts[part], rng, reader)
    case = sample.pack(parts)
    if not inside and not whole:
        for _ in range(1 + int(rng.expovariate(0.5))):
            case = change(case, rng, reader)
    return case[:LARGEST]


def change(data: bytes, rng: random.Random, reader: Reader) -> bytes:
    """Return data with one change."""
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + 1 + int(rng.expovariate(0.1)))
    kind = rng.randrange(9)
    if data[:1] in (b"{", b"[") and rng.random() < 0.6:
        with contextlib.suppress(ValueError, RecursionError):
            return json.dumps(change_value(json.loads(data), rng)).encode()
    if kind == 0 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if kind == 1:
        size = rng.choice((1, 2, 4, 8))
        number = rng.choice(NUMBERS) % (1 << 8 * size)
        new = number.to_bytes(size, rng.choice(("little", "big")))
        return data[:at] + new + data[at + size :]
    if kind == 2:
        return data[:at] + data[end:]
    if kind == 3:
        times = rng.choice((2, 3, 10, 1000))
        return data[:at] + data[at:end] * times + data[end:]
    if kind == 4:
        return data[:at] + rng.randbytes(end - at) + data[end:]
    if kind == 5:
        return data[:at] if rng.random() < 0.5 else data[:at] + bytes(len(data) - at)
    if kind == 6 and reader.words:
        return data[:at] + rng.choice(reader.words) + data[at if rng.random() < 0.5 else end :]
    if kind == 7:
        found = list(re.finditer(rb"\d+", data))
        if found:
            one = rng.choice(found)
            return data[: one.start()] + rng.choice(DIGITS).encode() + data[one.end() :]
    other = rng.choice(rng.choice(reader.samples).parts)
    begin = rng.randrange(len(other) + 1)
    return data[:at] + other[begin : begin + end - at] + data[end:]


def change_value(value: Any, rng: random.Random) -> Any:
    """Return a JSON value with one change, somewhere within it; texts may be JSON themselves."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.dumps(change_value(json.loads(value), rng))
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return rng.choice(VALUES)
    value = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    key = rng.choice(list(value))
    if rng.random() < 0.15:
        del value[key]
    elif rng.random() < 0.1:
        value[key] = value[rng.choice(list(value))]
    else:
        value[key] = change_value(value[key], rng)
    return list(value.values()) if all(isinstance(one, int) for one in value) else value


# -------------------------------------------------------------------- one process


def memory(what: str) -> int:
    """Return VmRSS, VmHWM (its peak) or VmSize in bytes; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        found = re.search(rf"{what}:\s+(\d+)", Path("/proc/self/status").read_text())
        return int(found[1]) << 10 if found else 0
    return 0


def forget_peak() -> None:
    """Let VmHWM begin anew."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def try_case(reader: Reader, case: bytes, folder: Path, base: int) -> str | None:
    """Have a case read; return what is wrong about it, if anything."""
    forget_peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # which ends the process
    try:
        reader.read(case, folder)
    except FsPLLError as error:
        reason: BaseException | None = error
        while reason is not None:
            if isinstance(reason, MemoryError):
                return f"MemoryError behind: {error}"
            reason = reason.__cause__ or reason.__context__
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    used = memory("VmHWM") - base
    if used > SPARE and used > SPARE + TIMES * reader.unpacked(case):
        return f"memory: {used >> 20} MB for a file that unpacks to {reader.unpacked(case):,} bytes"
    return None


def serve(
    name: str, reader: Reader, seed: int, cases: range, folder: Path, at: Any, findings: Any
) -> None:
    """Try cases until one ends the process."""
    # A forked process has none of its parent's threads, and OpenMP would wait for them for ever.
    torch.set_num_threads(1)
    faulthandler.disable()  # the parent reports crashes
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries write there
    warnings.simplefilter("ignore")
    for sample in reader.samples:  # what is imported or kept once belongs to the base
        with contextlib.suppress(FsPLLError):
            reader.read(sample.pack(sample.parts), folder)
    limit = memory("VmSize") + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    base = memory("VmRSS")
    for number in cases:
        at.value = number
        wrong = try_case(reader, make_case(name, reader, seed, number), folder, base)
        if wrong is not None:
            findings.send(Finding(number, wrong))
    findings.send(None)


def fast_folder() -> str | None:
    """Return a folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# -------------------------------------------------------------------- many processes


def fuzz(
    name: str, reader: Reader, seed: int, cases: range, until: float
) -> tuple[int, list[Finding]]:
    """Return how many cases were tried before the time was over, and what was found."""
    context = multiprocessing.get_context("fork")
    found: list[Finding] = []
    start = cases.start
    # Of this process, which is not killed and removes it.
    with tempfile.TemporaryDirectory(dir=fast_folder()) as folder:
        while start < cases.stop and time.monotonic() < until:
            at = context.Value("q", start, lock=False)
            ours, theirs = context.Pipe(duplex=False)
            part = range(start, min(start + TURN, cases.stop))
            work = (name, reader, seed, part, Path(folder), at, theirs)
            process = context.Process(target=serve, args=work)
            process.start()
            theirs.close()
            start = wait_for(process, ours, at, part, found)
    return start - cases.start, found


def wait_for(process: Any, findings: Any, at: Any, part: range, found: list[Finding]) -> int:
    """Gather findings until a process ends; return the case that comes next."""
    last, since = at.value, time.monotonic()
    with contextlib.suppress(EOFError):
        while True:
            if findings.poll(0.5):
                message = findings.recv()
                if message is None:
                    process.join()
                    return part.stop
                found.append(message)
            if at.value != last:
                last, since = at.value, time.monotonic()
            elif time.monotonic() - since > WAIT:
                process.kill()
                since = float("inf")
    process.join()
    ended = signal.Signals(-process.exitcode).name if process.exitcode < 0 else process.exitcode
    found.append(Finding(at.value, f"the process ended: {ended}"))
    return at.value + 1


def keep(folder: Path, name: str, reader: Reader, seed: int, found: list[Finding]) -> None:
    """Write the files of the findings, one of each kind."""
    seen = Counter(re.sub(r"\d+", "N", one.what)[:120] for one in found)
    for one in found:
        kind = re.sub(r"\d+", "N", one.what)[:120]
        if seen[kind]:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}-{seed}-{one.case}"
            path.write_bytes(make_case(name, reader, seed, one.case))
            print(f"  {name} case {one.case} ({seen[kind]} alike): {one.what}", flush=True)
            seen[kind] = 0


def main() -> None:
    from fuzz_readers import readers

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="for all readers together")
    parser.add_argument("--cases", type=int, default=1_000_000, help="of each reader")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", help="their names, with commas between")
    parser.add_argument("--case", type=int, help="try one case in this process")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    asked = parser.parse_args()
    if asked.minutes is None and asked.cases == parser.get_default("cases"):
        asked.minutes = 1.0
    known = readers()
    names = asked.readers.split(",") if asked.readers else list(known)
    if asked.case is not None:
        with tempfile.TemporaryDirectory(dir=fast_folder()) as folder:
            case = make_case(names[0], known[names[0]], asked.seed, asked.case)
            print(known[names[0]].read(case, Path(folder)))
        return
    cases = range(asked.first, asked.first + asked.cases)
    any_found = False
    for name in names:
        start = time.monotonic()
        share = float("inf") if asked.minutes is None else asked.minutes * 60 / len(names)
        tried, found = fuzz(name, known[name], asked.seed, cases, start + share)
        took = time.monotonic() - start
        print(f"{name}: {tried} cases in {took:.0f} s, {len(found)} findings", flush=True)
        keep(asked.keep, name, known[name], asked.seed, found)
        any_found |= bool(found)
    sys.exit(any_found)


if __name__ == "__main__":
    main()
