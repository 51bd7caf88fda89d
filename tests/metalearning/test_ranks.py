"""Training on several processes: real ones, started by torchrun, and what they refuse."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import distributed as dist

from fspll._common.errors import DataError, InputError
from fspll._common.locks import lock_folder
from fspll.cli.main import app
from fspll.datasets import load_glyphs
from fspll.datasets.glyphs import GLYPHS
from fspll.embeddings import load_checkpoint
from fspll.metalearning import state
from fspll.metalearning.ranks import Ranks, join_ranks
from fspll.metalearning.step_tasks import OneProcess, StepTasks
from fspll.metalearning.trainer import LOG, MODEL, STATE

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
    pytest.mark.skipif(not dist.is_available(), reason="this build of torch has no distributed"),
]

FOUR = "--n-way 4 --n-shot 2 --n-query 1 --tasks 8 --meta-batch 4 --device cpu"
LONG = f"{FOUR} --epochs 8 --save-every 3"  # 16 steps
ENDED = (
    r"(one of the {n} processes of this run has ended|torchrun ended this run, because another of "
    r"its {n} processes has ended or it was told to stop); the same command goes on from the last "
    r"save, with any number of processes"
)

# Every process leaves its number in the folder. At a step, rank 0 waits for a file, so that a test
# knows where the run is when it interferes.
SCRIPT = """
import os, sys, time
from pathlib import Path

folder, wait_at, *commands = sys.argv[1:]
folder = Path(folder)
(folder / ("rank" + os.environ["RANK"])).write_text(str(os.getpid()))
from fspll.cli import progress
from fspll.cli.main import main
from fspll.datasets import load_glyphs
from fspll.datasets.glyphs import GLYPHS
from fspll.metalearning.prototypes import PrototypeLearner

GLYPHS.load = lambda split, **options: load_glyphs(12, 8, split=split, size=16)
make = PrototypeLearner.__init__

def without_momentum(learner, *arguments):
    make(learner, *arguments)
    for module in learner.network.modules():
        module.momentum = None

def observe(bar, report):
    if report.step == int(wait_at):
        (folder / "waiting").touch()
        while not (folder / "go").exists():
            time.sleep(0.02)

progress.TrainingBar.observe = observe
codes = []
for command in commands:
    sys.argv = ["fspll", *command.split()]
    PrototypeLearner.__init__ = without_momentum if "momentum" in command else make
    try:
        main()
    except SystemExit as ended:
        codes.append(ended.code or 0)
sys.exit(max(codes))
"""


@pytest.fixture(autouse=True)
def _small_data(monkeypatch):
    monkeypatch.setattr(GLYPHS, "load", lambda split, **o: load_glyphs(12, 8, split=split, size=16))


@contextmanager
def started(folder, n_ranks, *commands, wait_at=-1):
    """Start commands, one after the other, with torchrun; whatever happens, nothing stays."""
    for name in ("waiting", "go"):
        (folder / name).unlink(missing_ok=True)
    (folder / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(n_ranks), folder / "script.py", folder, str(wait_at)),
            *commands,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()  # which ends its ranks
        process.communicate(timeout=60)


def finish(process):
    """Return exit code, output, and of the errors what is not torchrun's."""
    output, errors = process.communicate(timeout=120)
    ours = [line for line in errors.splitlines() if re.match("error: |stopped|note: ", line)]
    return process.returncode, output, ours


def wait_for(folder, process):
    until = time.monotonic() + 120
    while not (folder / "waiting").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def send(folder, rank, number):
    os.kill(int((folder / f"rank{rank}").read_text()), number)


def alone(folder, options):
    """Train in this process."""
    app(["train", *options.split(), "--out", str(folder)], standalone_mode=False)


def assert_same_files(one, other):
    assert {path.name for path in one.iterdir()} == {MODEL, STATE, LOG}
    names = [path.name for path in one.iterdir()]
    different = [name for name in names if (one / name).read_bytes() != (other / name).read_bytes()]
    assert different == []


def test_torchrun_passes_on_the_options_of_the_documented_commands():
    """Its own parser would take ``--r`` for an abbreviation; ``--`` in front keeps it from that."""
    from torch.distributed.run import parse_args  # not in every build of torch

    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    lines = re.findall(r"^torchrun (.*)$", page, re.MULTILINE)
    assert any("--r " in line for line in lines)
    for line in lines:
        own, ours = line.split(" -- ")
        found = parse_args([*own.split(), "--", *ours.split()])
        assert [found.training_script, *found.training_script_args] == ours.split()


# -------------------------------------------------------------------- the same end


def test_two_ranks_end_at_the_same_bytes_as_one(tmp_path):
    """Weights, batch norm's statistics, the optimizer's, the log and the best epoch.

    The first of the runs is stopped by Ctrl-C and goes on in the end.
    """
    runs = {
        "long": LONG,
        "candidates": f"{FOUR} --epochs 3 --fresh --halve-every 1 --held-out 4 --r 0,1,2",
        "queries": f"{FOUR} --epochs 2 --regime fspll --optimizer sgd",
        "maml": f"{FOUR} --epochs 2 --regime maml --inner-steps 2",
        "epoch": "--n-way 3 --n-shot 2 --tasks 2 --epochs 1 --update epoch --architecture resnet12",
    }
    commands = [f"train {options} --out {tmp_path / name}" for name, options in runs.items()]
    with started(tmp_path, 2, *commands, commands[0], wait_at=8) as process:
        for name, options in runs.items():
            alone(tmp_path / f"{name}-alone", options)
        wait_for(tmp_path, process)
        for rank in (0, 1):  # as torchrun passes it on
            send(tmp_path, rank, signal.SIGINT)
        (tmp_path / "go").touch()
        code, output, errors = finish(process)
    assert (code != 0, errors) == (True, ["stopped at step 8 of 16; run it again to go on"])
    steps = {"candidates": 6, "queries": 4, "maml": 4, "epoch": 1, "long": 16}
    trained = [line for line in output.splitlines() if not line.startswith("best epoch")]
    for (name, n), line in zip(steps.items(), trained, strict=True):
        assert line == f"trained for {n} step{'s' * (n > 1)}: {tmp_path / name / MODEL}"
        assert_same_files(tmp_path / name, tmp_path / f"{name}-alone")


def test_a_rank_is_killed_and_one_process_goes_on(tmp_path):
    """With shares of 1, 1 and 2 tasks."""
    run = tmp_path / "run"
    with started(tmp_path, 3, f"train {LONG} --out {run}", wait_at=7) as process:
        alone(tmp_path / "whole", LONG)
        wait_for(tmp_path, process)
        in_use = pytest.raises(DataError, match="run is in use: another fspll process writes")
        with in_use, lock_folder(run):
            pass
        send(tmp_path, 2, signal.SIGKILL)
        code, output, errors = finish(process)
    assert (code != 0, output, len(errors)) == (True, "", 1)
    assert re.fullmatch("error: " + ENDED.format(n=3), errors[0])
    assert state.FORMAT.read(run / STATE)[1]["step"] == 6
    assert not (run / MODEL).exists()
    alone(run, LONG)
    assert_same_files(tmp_path / "whole", run)


def test_rank_0_is_killed_and_another_says_it(tmp_path):
    run = tmp_path / "run"
    with started(tmp_path, 2, f"train {LONG} --out {run}", wait_at=5) as process:
        wait_for(tmp_path, process)
        send(tmp_path, 0, signal.SIGKILL)
        code, output, errors = finish(process)
    assert (code != 0, output, len(errors)) == (True, "", 1)
    assert re.fullmatch("error: " + ENDED.format(n=2), errors[0])
    assert state.FORMAT.read(run / STATE)[1]["step"] == 3
    alone(run, LONG)
    assert load_checkpoint(run / MODEL).metadata["training"]["steps"] == 16


# -------------------------------------------------------------------- refused


def test_each_refusal_is_said_once(tmp_path):
    locked = tmp_path / "locked"
    commands = [
        f"train {FOUR} --meta-batch 1 --out {tmp_path / 'many'}",
        f"train {FOUR} --meta-batch 3 --out {tmp_path / 'uneven'}",
        f"train --encoder photos --out {tmp_path / 'head'}",
        f"train {FOUR} --epochs 1 --out {tmp_path / 'momentum'}",
        f"train {FOUR} --out {locked}",
        f"train {FOUR} --epochs 1 --out {tmp_path / 'fine'}",
    ]
    with lock_folder(locked), started(tmp_path, 2, *commands) as process:
        code, output, errors = finish(process)
        assert {path.name for path in locked.iterdir()} == {".fspll.lock"}
    assert code != 0
    assert output == f"trained for 2 steps: {tmp_path / 'fine' / MODEL}\n"
    assert errors == [
        "error: --meta-batch 1 is too few for 2 processes, which need a task each in every step; "
        "start fewer, or give a step more tasks",
        "error: --meta-batch 3 does not divide --tasks 8",
        "error: --encoder takes one process: its head is computed in one step",
        "error: training changes the buffer blocks.0.1.num_batches_tracked of the network, which "
        "is no running statistic of a batch norm with momentum; train it in one process",
        f"error: {locked} is in use: another fspll process writes into it; wait until that has "
        "ended, or name another folder",
    ]


def test_processes_with_other_settings_are_refused():
    store = dist.HashStore()
    there = dist.PrefixStore("connection 1", store)
    there.set("about 1", '{"seed": 4, "data": "glyphs"}')
    ranks, tasks = Ranks(store, 0, 2), StepTasks.__new__(StepTasks)
    tasks.count = 4
    message = "rank 1 was started with seed = 4, but rank 0 with 0; all processes need the same"
    here = {"seed": 0, "data": "glyphs"}
    with pytest.raises(InputError, match=message), ranks.connected(tasks, here):
        pass


@pytest.mark.parametrize(
    ("patched", "message"),
    [
        ("is_available", "this build of torch comes without torch.distributed or without gloo"),
        ("is_gloo_available", "or without gloo; start one process, or install another build"),
        (None, "they cannot find each other: .*MASTER_ADDR expected.*; start them with torchrun"),
    ],
)
def test_what_several_processes_need(monkeypatch, patched, message):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    if patched:
        monkeypatch.setattr(dist, patched, lambda: False)
    with pytest.raises(InputError, match=message), join_ranks():
        pass


@pytest.mark.parametrize("values", [{}, {"WORLD_SIZE": "4"}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_one_process_needs_nothing(monkeypatch, values):
    """A cluster may set a size for other programs."""
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with join_ranks() as ranks:
        assert type(ranks) is OneProcess
        assert (ranks.leads, ranks.count) == (True, 1)
        ranks.check(1)


def test_one_gpu_per_process(monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    ranks = Ranks(dist.HashStore(), 3, 4)
    assert ranks.choose_device("auto") == torch.device("cuda", 1)
    assert ranks.choose_device("cpu") == torch.device("cpu")
    assert chosen == [torch.device("cuda", 1)]
    with pytest.raises(InputError, match=r"device='cuda:1' has 1 GPU\(s\) for the 2 processes of"):
        ranks.choose_device("cuda:1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    with pytest.raises(InputError, match=r"'cuda' has 2 GPU\(s\) for the 3 processes of this mac"):
        ranks.choose_device("cuda")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert ranks.choose_device("cuda:0") == torch.device("cuda", 0)


@pytest.mark.parametrize("n_ranks", range(1, 6))
def test_shares_are_in_order_and_even(n_ranks):
    """Rank 0, which also takes the steps, never has more than another."""
    tasks = StepTasks.__new__(StepTasks)
    tasks.count = 5
    ranks = Ranks(dist.HashStore(), 0, n_ranks)
    shares = [ranks._share(tasks, rank) for rank in range(n_ranks)]
    assert [place for share in shares for place in share] == list(range(5))
    sizes = [len(share) for share in shares]
    assert min(sizes) == sizes[0] >= max(sizes) - 1
