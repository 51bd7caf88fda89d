"""The trainer: it learns, it is deterministic, and it resumes to the bit after any kind of stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fspll._common.errors import CheckpointError, DataError, InputError, TaskError
from fspll._common.locks import LOCK
from fspll.datasets import ImageSet, load_glyphs
from fspll.embeddings import (
    NetworkEncoder,
    checkpoints,
    image_tensor,
    load_checkpoint,
    untrained_encoder,
)
from fspll.experiments.methods import Samples, find_method
from fspll.metalearning import TrainingPlan, state, train, trainer
from fspll.metalearning.episodes import Episodes
from fspll.metalearning.prototypes import PrototypeLearner
from fspll.metalearning.trainer import LOG, MODEL, STATE
from fspll.tasks import TaskSettings, TaskSource

TURNS = ("", "/rot090", "/rot180", "/rot270")
PLAN = TrainingPlan(
    regime="leave-one-out", n_way=4, n_shot=2, n_query=1, n_tasks=6, epochs=2, learning_rate=0.01
)


def patterns(n_characters=6, turns=TURNS, n_samples=6):
    """Noisy pictures of random patterns, in the order and with the names of Omniglot."""
    rng = np.random.default_rng(0)
    shapes = np.kron(rng.random((n_characters, 4, 4)) > 0.5, np.ones((4, 4)))
    shapes = np.concatenate(
        [np.rot90(shapes, quarter, axes=(1, 2)) for quarter in range(len(turns))]
    )
    noisy = 200 * shapes[:, None] + 55 * rng.random((len(shapes), n_samples, 16, 16))
    return ImageSet(
        name="patterns",
        images=noisy.reshape(-1, 16, 16).astype(np.uint8),
        labels=np.repeat(np.arange(len(shapes)), n_samples),
        class_names=tuple(f"Signs/character{c:02d}{t}" for t in turns for c in range(n_characters)),
        families=tuple(f"Signs/character{c:02d}" for _ in turns for c in range(n_characters)),
    )


DATA = patterns()


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny networks gain nothing from a second one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class CrashError(Exception):
    """What stops a run the hard way."""


def crash_at(step):
    def observe(report):
        if report.step == step:
            raise CrashError

    return observe


def log_of(folder):
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


def assert_same_run(one, other):
    """Same tensors to the bit, same log to the byte, same metadata in the files."""
    for name, form in ((MODEL, checkpoints.FORMAT), (STATE, state.FORMAT)):
        (a, metadata), (b, other_metadata) = form.read(one / name), form.read(other / name)
        assert metadata == other_metadata
        assert set(a) == set(b)
        assert [key for key in a if not torch.equal(a[key], b[key])] == []
    assert (one / LOG).read_bytes() == (other / LOG).read_bytes()


def differs(one, other):
    a, b = load_file(one / MODEL), load_file(other / MODEL)
    return any(not torch.equal(a[name], b[name]) for name in a)


# -------------------------------------------------------------------- learning


def accuracy(encoder, data):
    tasks = TaskSource(data.labels, TaskSettings(5, 3, 5, r=1), seed=1).batch(range(60))
    features = torch.from_numpy(encoder.encode(data.images, polarity="bright-ink"))
    return find_method("FsPLL").score(Samples(features=features), tasks).query_accuracy.mean()


def test_it_learns_from_candidate_sets_alone(tmp_path):
    """On characters that it never saw."""
    known, new = load_glyphs(40, 10, size=16), load_glyphs(20, 10, size=16, first_class=40)
    plan = TrainingPlan(
        regime="leave-one-out", n_way=10, n_shot=3, n_query=1, n_tasks=80, epochs=1, fresh=True
    )
    trained = train(known, plan, tmp_path)
    assert trained.finished
    found = load_checkpoint(trained.model)
    before = accuracy(untrained_encoder("conv4", known.images, found.input_spec, size=16), new)
    after = accuracy(NetworkEncoder(found.network, found.input_spec), new)
    assert before < 0.75
    assert after > before + 0.1


def test_what_the_model_file_says(tmp_path):
    trained = train(DATA, PLAN, tmp_path)
    assert trained == trainer.Trained(tmp_path / MODEL, 12, True, -1, -1.0)
    found = load_checkpoint(tmp_path / MODEL)
    training = found.metadata["training"]
    assert TrainingPlan.from_dict(training["plan"]) == PLAN
    assert (training["data"], training["steps"]) == ("patterns", 12)
    assert found.input_spec.to_dict() == {"size": 16, "channels": 1, "polarity": "bright-ink"}


def test_color_photos(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 16, 16, 3), dtype=np.uint8)
    photos = ImageSet("photos", images, np.repeat(np.arange(6), 4), tuple("abcdef"))
    train(photos, replace(PLAN, n_tasks=2, epochs=1), tmp_path)
    found = load_checkpoint(tmp_path / MODEL)
    assert found.input_spec.to_dict() == {"size": 16, "channels": 3, "polarity": None}


# -------------------------------------------------------------------- determinism


def test_same_seed_same_bits_other_seed_others(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.manual_seed(len(name) + seed)  # no global generator may matter
        train(DATA, replace(PLAN, seed=seed), tmp_path / name)
    assert_same_run(tmp_path / "a", tmp_path / "b")
    assert differs(tmp_path / "a", tmp_path / "c")


def test_the_global_generator_is_left_alone(tmp_path):
    torch.manual_seed(3)
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(DATA, replace(PLAN, epochs=1, held_out=1), tmp_path)
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002


# -------------------------------------------------------------------- resuming


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"optimizer": "sgd"},
        {"tasks_per_step": 3, "r": (0, 1, 2)},
        {"fresh": True, "halve_every": 1},
        {"regime": "fspll", "held_out": 1},
        {"regime": "maml", "inner_steps": 2, "n_tasks": 4},
    ],
    ids=str,
)
def test_a_crash_in_the_middle_changes_nothing(tmp_path, changes):
    plan = replace(PLAN, **changes)
    train(DATA, plan, tmp_path / "whole", save_every=50)
    stop = plan.total_steps - 1
    with pytest.raises(CrashError):
        train(DATA, plan, tmp_path / "cut", save_every=2, observers=(crash_at(stop),))
    assert not (tmp_path / "cut" / MODEL).exists()
    seen = []
    trained = train(DATA, plan, tmp_path / "cut", observers=(seen.append,))
    assert trained.finished
    assert 1 < seen[0].step <= stop  # it went on; it did not start over
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


def test_lines_written_after_the_state_are_dropped(tmp_path):
    train(DATA, PLAN, tmp_path / "whole")
    with pytest.raises(CrashError):
        train(DATA, PLAN, tmp_path / "cut", save_every=5, observers=(crash_at(8),))
    with (tmp_path / "cut" / LOG).open("a") as file:  # flushed, but killed before the state
        file.write((tmp_path / "whole" / LOG).read_text().splitlines(keepends=True)[5])
        file.write('{"step": 7, "total_st')
    train(DATA, PLAN, tmp_path / "cut")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


SCRIPT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("settings", sys.argv[1])
settings = importlib.util.module_from_spec(spec)
spec.loader.exec_module(settings)
from fspll.cli import progress
from fspll.cli.main import app, main
from fspll.datasets.glyphs import GLYPHS

GLYPHS.load = lambda split, **options: settings.DATA
wait_at = int(sys.argv[2])
show = progress.TrainingBar.observe

def observe(bar, report):
    show(bar, report)
    if report.step == wait_at:
        print("waiting", flush=True)
        sys.stdin.readline()

progress.TrainingBar.observe = observe
options = ("--regime leave-one-out --n-way 4 --n-shot 2 --n-query 1 --tasks 6 --epochs 2 "
           "--learning-rate 0.01 --save-every 3 --device cpu").split()
*folders, last = sys.argv[3:]
for folder in folders:
    app(["train", *options, "--out", folder], standalone_mode=False)
sys.argv = ["fspll", "train", *options, "--out", last]
main()
"""


def start(wait_at, *folders):
    """Start a process that trains into the folders, and waits for a line at a step."""
    # One thread, so that the bits cannot depend on how busy the machine is.
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, __file__, str(wait_at), *map(str, folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_and_interrupted_processes_resume_to_the_bit(tmp_path):
    killed, interrupted, whole = (tmp_path / name for name in ("killed", "interrupted", "whole"))
    victim, polite = start(8, killed), start(7, interrupted)

    assert victim.stdout.readline() == "waiting\n"
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=60)
    assert victim.returncode == -signal.SIGKILL
    assert log_of(killed)[-1]["step"] == 6  # the last save

    assert polite.stdout.readline() == "waiting\n"
    polite.send_signal(signal.SIGINT)
    _, message = polite.communicate("\n", timeout=60)
    assert polite.returncode == 130
    assert message.strip() == "stopped at step 7 of 12; run it again to go on"
    assert log_of(interrupted)[-1]["step"] == 7
    assert not (interrupted / MODEL).exists()
    assert not (killed / MODEL).exists()

    rest = start(-1, killed, interrupted, whole)
    output, complaints = rest.communicate(timeout=120)
    assert rest.returncode == 0, complaints
    assert output.count("trained for 12 steps") == 3
    assert [line["step"] for line in log_of(whole)] == list(range(1, 13))
    assert_same_run(whole, killed)
    assert_same_run(whole, interrupted)


def test_ctrl_c_stops_after_the_step_and_a_second_one_at_once(tmp_path):
    def interrupt(report):
        if report.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    stopped = train(DATA, PLAN, tmp_path, observers=(interrupt,))
    assert stopped == trainer.Trained(None, 3, False, -1, -1.0)

    def interrupt_twice(report):
        if report.step == 5:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(DATA, PLAN, tmp_path, observers=(interrupt_twice,))
    assert signal.getsignal(signal.SIGINT) is before
    assert len(log_of(tmp_path)) == 3  # what the first stop saved


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_second_run_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "_ENDING", 0.0)
    first = start(8, tmp_path / "shared")
    try:
        assert first.stdout.readline() == "waiting\n"
        for restart in (False, True):
            with pytest.raises(DataError, match="shared is in use: another fspll process writes"):
                train(DATA, PLAN, tmp_path / "shared", restart=restart)
    finally:
        first.communicate("\n", timeout=60)
    assert first.returncode == 0
    train(DATA, PLAN, tmp_path / "alone")
    assert_same_run(tmp_path / "alone", tmp_path / "shared")


def test_what_a_killed_run_left_is_removed(tmp_path, gone):
    for name in (STATE, MODEL, LOG):
        (tmp_path / f".{name}.{gone}.part").touch()
    train(DATA, PLAN, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {STATE, MODEL, LOG}


def test_training_in_another_thread(tmp_path):
    """Signals cannot be handled there; everything else goes on as usual."""
    results = []
    plan = replace(PLAN, n_tasks=2, epochs=1)
    thread = threading.Thread(target=lambda: results.append(train(DATA, plan, tmp_path)))
    thread.start()
    thread.join(timeout=60)
    assert [trained.step for trained in results] == [2]


def test_a_finished_run_returns_at_once(tmp_path):
    train(DATA, PLAN, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")

    def never(report):
        pytest.fail("a step was taken")

    trained = train(DATA, PLAN, tmp_path / "b", observers=(never,))
    assert (trained.finished, trained.step) == (True, 12)
    assert_same_run(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, r"belongs to a run with seed = 0, not 4; choose another folder"),
        ({"r": (1, 2)}, r"belongs to a run with r = \[1\], not r = \[1, 2\]"),
        ({"fresh": True}, r"a run with fresh = False, not fresh = True; choose another folder"),
        ({"regime": "pn"}, r"a run with regime = 'leave-one-out', not 'pn'"),
        ({"epochs": 3}, r"a run with epochs = 2, not 3; .* or start over with restart=True"),
    ],
)
def test_the_state_of_another_plan_is_refused(tmp_path, changes, message):
    train(DATA, PLAN, tmp_path)
    with pytest.raises(CheckpointError, match=message):
        train(DATA, replace(PLAN, **changes), tmp_path)


def test_the_state_of_other_data_is_refused(tmp_path):
    train(DATA, PLAN, tmp_path)
    with pytest.raises(
        CheckpointError,
        match=r"a run on patterns \(144 images.*\), not on patterns \(168 images.*\); ",
    ):
        train(patterns(7), PLAN, tmp_path)


@pytest.mark.parametrize("cut", [0, 5, 300, -100], ids=["empty", "5 bytes", "header", "tail"])
def test_a_damaged_state(tmp_path, cut):
    train(DATA, replace(PLAN, n_tasks=2), tmp_path)
    whole = (tmp_path / STATE).read_bytes()
    (tmp_path / STATE).write_bytes(whole[:cut])
    with pytest.raises(CheckpointError, match=r"state\.safetensors is (empty|not a|damaged)"):
        train(DATA, replace(PLAN, n_tasks=2), tmp_path)


@pytest.mark.parametrize("damage", ["weights", "step"])
def test_a_state_that_changed_is_noticed(tmp_path, damage):
    """It would go on to another network, and say nothing."""
    plan = replace(PLAN, n_tasks=2)
    train(DATA, plan, tmp_path)
    whole = (tmp_path / STATE).read_bytes()
    half = len(whole) // 2
    changed = whole[:half] + bytes(len(whole) - half)
    if damage == "step":
        assert whole.count(b'\\"step\\": 4') == 1
        changed = whole.replace(b'\\"step\\": 4', b'\\"step\\": 2')
    (tmp_path / STATE).write_bytes(changed)
    with pytest.raises(CheckpointError, match=r"damaged: its contents do not match their checksum"):
        train(DATA, plan, tmp_path)
    assert train(DATA, plan, tmp_path, restart=True).finished
    assert (tmp_path / STATE).read_bytes() == whole


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("step", None, "is damaged: 'step'"),
        ("plan", None, "is damaged: it does not say which plan it belongs to"),
        ("network.blocks.0.0.weight", "network.blocks.9.0.weight", "is damaged: Error"),
        ("optimizer.0.exp_avg", "optimizer.x.exp_avg", "is damaged: invalid literal"),
    ],
)
def test_a_state_with_something_missing(tmp_path, old, new, message):
    plan = replace(PLAN, n_tasks=2)
    train(DATA, plan, tmp_path)
    tensors, metadata = state.FORMAT.read(tmp_path / STATE)
    del metadata["sha256"]  # as in states of earlier versions
    if new is None:
        del metadata[old]
    else:
        tensors[new] = tensors.pop(old)
    state.FORMAT.write(tmp_path / STATE, tensors, metadata)
    with pytest.raises(CheckpointError, match=message):
        train(DATA, plan, tmp_path)


def test_a_state_written_by_an_earlier_version(tmp_path):
    """A regime in capitals, and without a setting that came later, is the same plan."""
    plan = replace(PLAN, regime="leave-one-out")
    train(DATA, plan, tmp_path / "whole")
    with pytest.raises(CrashError):
        train(DATA, plan, tmp_path / "cut", save_every=2, observers=(crash_at(7),))
    tensors, metadata = state.FORMAT.read(tmp_path / "cut" / STATE)
    metadata["plan"]["regime"] = "Leave-One-Out"
    del metadata["plan"]["first_order"]
    del metadata["sha256"]
    state.FORMAT.write(tmp_path / "cut" / STATE, tensors, metadata)
    train(DATA, plan, tmp_path / "cut")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    metadata["plan"]["regime"] = "of-another-package"
    state.FORMAT.write(tmp_path / "cut" / STATE, tensors, metadata)
    with pytest.raises(CheckpointError, match="a plan that cannot be used: there is no regime 'of"):
        train(DATA, plan, tmp_path / "cut")


def test_restart_forgets(tmp_path):
    train(DATA, replace(PLAN, seed=4), tmp_path / "old")
    train(DATA, PLAN, tmp_path / "new")
    seen = []
    train(DATA, PLAN, tmp_path / "old", restart=True, observers=(seen.append,))
    assert seen[0].step == 1
    assert_same_run(tmp_path / "new", tmp_path / "old")


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"device": "cuda"}, "device='cuda' was asked for, but this machine"),
        ({"n_way": 99}, {}, "n_way = 99 but the data set has 24 classes"),
    ],
    ids=["device", "classes"],
)
def test_a_restart_that_is_refused_changes_nothing(
    tmp_path, monkeypatch, changes, options, message
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    train(DATA, PLAN, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=message):
        train(DATA, replace(PLAN, **changes), tmp_path, restart=True, **options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert set(before) == {MODEL, STATE, LOG}


def test_a_restart_keeps_the_old_model_until_the_new_one_is_complete(tmp_path):
    train(DATA, replace(PLAN, seed=4), tmp_path / "run")
    old = (tmp_path / "run" / MODEL).read_bytes()
    with pytest.raises(CrashError):
        train(DATA, PLAN, tmp_path / "run", restart=True, observers=(crash_at(1),))
    assert (tmp_path / "run" / MODEL).read_bytes() == old
    assert log_of(tmp_path / "run") == []
    train(DATA, PLAN, tmp_path / "run")  # the new plan, without restart: it goes on
    train(DATA, PLAN, tmp_path / "whole")
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_model_of_another_origin_is_not_replaced(tmp_path):
    (tmp_path / MODEL).write_bytes(b"of somebody else")
    with pytest.raises(
        DataError, match=r"model\.safetensors is there without the state of its tra"
    ):
        train(DATA, PLAN, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MODEL]
    assert (tmp_path / MODEL).read_bytes() == b"of somebody else"
    assert train(DATA, PLAN, tmp_path, restart=True).finished


def test_a_read_only_folder_is_a_sentence_and_keeps_its_run(tmp_path, monkeypatch):
    train(DATA, PLAN, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def read_only(path, *rest, **more):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only)
        patch.setattr(Path, "open", read_only)
        patch.setattr(Path, "write_text", read_only)
        with pytest.raises(
            DataError, match=r"cannot write .*state\.safetensors: Permission denied"
        ):
            train(DATA, PLAN, tmp_path, restart=True)
    # The lock of the process stays where nothing can be removed.
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != LOCK}
    assert left == before


# -------------------------------------------------------------------- the log


def test_a_full_disk_while_the_log_is_flushed(tmp_path, monkeypatch):
    train(DATA, PLAN, tmp_path / "whole")
    real = Path.open

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def writelines(self, lines):
            self.file.write(next(iter(lines))[:20])
            raise OSError(28, "No space left on device")

    def fill(path, mode="r", *rest, **more):
        file = real(path, mode, *rest, **more)
        return Full(file) if (path.name, mode) == (LOG, "a") else file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fill)
        with pytest.raises(DataError, match=r"cannot write .*log\.jsonl: No space left on device"):
            train(DATA, PLAN, tmp_path / "cut", save_every=5)
    train(DATA, PLAN, tmp_path / "cut")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


DAMAGED_LINES = {
    "no text": b"\xff\xfe\x00",
    "no figures": b'{"step": 1, "total_steps": 12, "epoch": 0, "loss": "x", "query_accuracy": [], '
    b'"learning_rate": 1}',
    "no number": b'{"step": "1", "total_steps": 12, "epoch": 0, "loss": 1, "query_accuracy": 1, '
    b'"learning_rate": 1}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("line", DAMAGED_LINES.values(), ids=DAMAGED_LINES)
def test_damaged_lines_of_the_log_are_dropped(tmp_path, line):
    with pytest.raises(CrashError):
        train(DATA, PLAN, tmp_path, save_every=5, observers=(crash_at(6),))
    whole = (tmp_path / LOG).read_bytes()
    (tmp_path / LOG).write_bytes(line + b"\n" + whole + line)
    assert train(DATA, PLAN, tmp_path).finished
    assert (tmp_path / LOG).read_bytes().startswith(whole)
    assert [one["step"] for one in log_of(tmp_path)] == list(range(1, 13))


def test_a_file_that_is_no_log_is_left_alone(tmp_path):
    (tmp_path / LOG).write_text("monday: nothing\ntuesday: rain\n")
    with pytest.raises(DataError, match=r"log\.jsonl is not the log of a training run; choose ano"):
        train(DATA, PLAN, tmp_path)
    assert (tmp_path / LOG).read_text() == "monday: nothing\ntuesday: rain\n"
    (tmp_path / "folder" / LOG).mkdir(parents=True)
    with pytest.raises(DataError, match=r"cannot read .*log\.jsonl: Is a directory"):
        train(DATA, PLAN, tmp_path / "folder")


# -------------------------------------------------------------------- steps and tasks


def by_hand(plan, numbers_of_steps):
    """Train in a plain loop; each step names the numbers of its tasks."""
    network = PrototypeLearner(plan, in_channels=1, size=16)
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[plan.optimizer]
    optimizer = kind(network.network.parameters(), lr=plan.learning_rate)
    for numbers in numbers_of_steps:
        losses = []
        for number in numbers:
            task = TaskSource(DATA.labels, plan.task_settings(number), plan.seed).task(number)
            images = image_tensor(DATA.images[np.concatenate([task.support, task.query])])
            losses.append(network.episode(images, task).loss)
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
    return network.network.state_dict()


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({}, [[0], [1], [2], [3], [0], [1], [2], [3]]),
        ({"fresh": True}, [[0], [1], [2], [3], [4], [5], [6], [7]]),
        ({"tasks_per_step": 2}, [[0, 1], [2, 3], [0, 1], [2, 3]]),
        ({"tasks_per_step": 2, "fresh": True}, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ({"tasks_per_step": 4, "optimizer": "sgd"}, [[0, 1, 2, 3], [0, 1, 2, 3]]),
        ({"r": (0, 2, 1), "optimizer": "sgd"}, [[0], [1], [2], [3], [0], [1], [2], [3]]),
    ],
    ids=str,
)
def test_steps_against_a_plain_loop(tmp_path, changes, numbers):
    """One step per task, per several tasks (their mean) or per epoch; the same or new tasks."""
    plan = replace(PLAN, n_tasks=4, n_way=4, learning_rate=0.005, **changes)
    train(DATA, plan, tmp_path)
    expected = by_hand(plan, numbers)
    for name, found in load_checkpoint(tmp_path / MODEL).network.state_dict().items():
        torch.testing.assert_close(found, expected[name], rtol=1e-3, atol=1e-5, msg=name)


def test_observers_are_called_after_every_step_and_the_log_agrees(tmp_path):
    one, two = [], []
    plan = replace(PLAN, halve_every=1, held_out=1)
    train(DATA, plan, tmp_path, observers=(one.append, two.append))
    assert one == two
    assert [report._asdict() for report in one] == log_of(tmp_path)
    assert [report.step for report in one] == list(range(1, 13))
    assert {report.total_steps for report in one} == {12}
    assert [report.epoch for report in one] == [0] * 6 + [1] * 6
    assert [report.learning_rate for report in one] == [0.01] * 6 + [0.005] * 6
    assert [report.step for report in one if report.held_out is not None] == [6, 12]


def test_reports_are_running_means(tmp_path):
    raw = []
    step = trainer._step

    def remember(*arguments):
        raw.append(step(*arguments))
        return raw[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "_step", remember)
        train(DATA, PLAN, tmp_path)
    loss, accuracy = raw[0]
    for (new_loss, new_accuracy), line in zip(raw, log_of(tmp_path), strict=True):
        loss = 0.9 * loss + 0.1 * new_loss
        accuracy = 0.9 * accuracy + 0.1 * new_accuracy
        assert line["loss"] == pytest.approx(loss)
        assert line["query_accuracy"] == pytest.approx(accuracy)


# -------------------------------------------------------------------- held-out characters


def test_held_out_characters_are_never_trained_on_in_any_rotation():
    plan = replace(PLAN, held_out=2, n_tasks=40, n_way=8, fresh=True)
    episodes = Episodes(DATA, plan, torch.device("cpu"))

    def characters(rows):
        return {DATA.class_names[label].split("/rot")[0] for label in DATA.labels[rows]}

    held = set(np.unique(DATA.labels[episodes.held_rows]))
    assert len(held) == 2 * len(TURNS)
    assert len(characters(episodes.held_rows)) == 2
    trained_on = set()
    for number in range(200):
        images, task = episodes.get(number)
        rows = episodes.rows[np.concatenate([task.support, task.query])]
        torch.testing.assert_close(images, image_tensor(DATA.images[rows]), rtol=0, atol=0)
        trained_on |= set(DATA.labels[rows])
    assert len(trained_on) == 4 * len(TURNS)  # everything else
    assert not characters(np.flatnonzero(np.isin(DATA.labels, list(trained_on)))) & characters(
        episodes.held_rows
    )
    other = Episodes(DATA, replace(plan, seed=1), torch.device("cpu"))
    assert set(other.held_rows) != set(episodes.held_rows)


class Figures:
    """Stand in for the scores on held-out classes: fixed ones, one per epoch."""

    def __init__(self, monkeypatch, figures):
        self.networks, waiting = [], iter(figures)

        def score(episodes, learner):
            weights = learner.network.state_dict()
            self.networks.append({name: tensor.clone() for name, tensor in weights.items()})
            return next(waiting)

        monkeypatch.setattr(Episodes, "held_out_score", score)


def test_patience_stops_and_the_best_epoch_is_kept(tmp_path, monkeypatch):
    scored = Figures(monkeypatch, [0.2, 0.5, 0.5, 0.4, 0.9])
    plan = replace(PLAN, n_tasks=2, epochs=9, held_out=1, patience=2)
    trained = train(DATA, plan, tmp_path)
    assert trained == trainer.Trained(tmp_path / MODEL, 8, True, 1, 0.5)
    found = load_checkpoint(tmp_path / MODEL)
    weights = found.network.state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in scored.networks[1].items())
    assert not all(torch.equal(weights[name], t) for name, t in scored.networks[3].items())
    training = found.metadata["training"]
    assert (training["steps"], training["best_epoch"], training["best_figure"]) == (8, 1, 0.5)
    assert [line["held_out"] for line in log_of(tmp_path)][1::2] == [0.2, 0.5, 0.5, 0.4]


def test_patience_survives_a_crash(tmp_path, monkeypatch):
    plan = replace(PLAN, n_tasks=2, epochs=9, held_out=1, patience=2)
    Figures(monkeypatch, [0.2, 0.5, 0.5, 0.4])
    train(DATA, plan, tmp_path / "whole")
    Figures(monkeypatch, [0.2, 0.5, 0.5])
    with pytest.raises(CrashError):
        train(DATA, plan, tmp_path / "cut", save_every=5, observers=(crash_at(6),))
    Figures(monkeypatch, [0.5, 0.4])
    train(DATA, plan, tmp_path / "cut")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.parametrize("regime", ["leave-one-out", "pn-average", "fspll", "maml"])
def test_the_held_out_score_does_not_read_true_labels(monkeypatch, regime):
    """Candidate sets are drawn as ever, then the truth is taken away."""
    plan = replace(PLAN, regime=regime, held_out=2, n_way=8)
    figures = []
    task = TaskSource.task

    def blind(source, index):
        honest = task(source, index)
        return replace(honest, support_labels=np.zeros_like(honest.support_labels))

    for drawn in (task, blind):
        monkeypatch.setattr(TaskSource, "task", drawn)
        learner = trainer._make_learner(plan, DATA)
        episodes = Episodes(DATA, plan, torch.device("cpu"))
        figures.append(episodes.held_out_score(learner))
    assert figures[0] == figures[1]
    assert 0 < figures[0] < 1


def test_the_held_out_score_counts_hits_among_visible_labels():
    """Leave-one-out nearest class, by hand, with precise labels."""
    plan = replace(PLAN, regime="precise", n_way=8, n_shot=3)
    learner = PrototypeLearner(plan, in_channels=1, size=16)
    learner.network.eval()
    task = TaskSource(DATA.labels, TaskSettings(8, 3, 0, r=1), seed=2).task(0)
    images = 0.1 * image_tensor(DATA.images[task.support])
    images = images + torch.rand(images.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        features = learner.network(images).double().numpy()
    hits = 0
    for i, x in enumerate(features):
        others = np.arange(len(features)) != i
        means = [features[others & (task.support_labels == c)].mean(axis=0) for c in range(8)]
        hits += np.argmin(np.linalg.norm(x - np.array(means), axis=1)) == task.support_labels[i]
    assert 0 < hits < 24
    assert learner.held_out_score(images, task) == pytest.approx(hits / 24)


# -------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"held_out": 6},
            "held_out = 6 leaves nothing to train on: there are 6 classes, each",
        ),
        (
            {"held_out": 1, "r": (1, 3)},
            "held_out = 1 keeps 4 classes aside, but a score on tasks of r = 3 takes at least 5",
        ),
        ({"held_out": 5, "n_way": 5}, "n_way = 5 but the data set has 4 classes"),
        ({"n_query": 5}, "n_shot . n_query = 7 but class 'Signs/character00' has 6 samples"),
    ],
)
def test_plans_that_the_data_cannot_serve(tmp_path, changes, message):
    with pytest.raises(TaskError, match=message):
        train(DATA, replace(PLAN, **changes), tmp_path)


def test_refused_calls(tmp_path):
    (tmp_path / "file").write_text("mine")
    for restart in (False, True):
        with pytest.raises(DataError, match="file is a file; training needs a folder"):
            train(DATA, PLAN, tmp_path / "file", restart=restart)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(InputError, match="save_every must be a whole number of 1 or more, not 0"):
        train(DATA, PLAN, tmp_path, save_every=0)
    with pytest.raises(InputError, match="there is no architecture 'conv5'"):
        train(DATA, replace(PLAN, architecture="conv5"), tmp_path)


def test_a_diverged_run_says_so(tmp_path):
    plan = replace(PLAN, regime="precise", optimizer="sgd", learning_rate=1e38)
    with pytest.raises(
        InputError, match=r"the loss of step \d+ is (nan|inf): training has diverged"
    ):
        train(DATA, plan, tmp_path)
    assert not (tmp_path / MODEL).exists()
