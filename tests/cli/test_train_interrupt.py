"""Training that is stopped, by Ctrl-C or by kill -9, and goes on to the same bytes."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rankinite as rk

# A checkpoint after every tree, so that the tests need not wait for one.
HASTY = (
    "import rankinite.rankers.checkpoint as c; c.SECONDS_BETWEEN = 0.0; "
    "from rankinite.cli import main; main()"
)
RUN = [sys.executable, "-c", HASTY, "train", "train.parquet", "--valid", "valid.parquet"]
ARGUMENTS = [*RUN, "--n-trees", "60", "--n-leaves", "8", "--patience", "none"]
CHECKPOINT = Path("m.rk.checkpoint")
SECONDS = 120


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with data, and the model of a training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("finished")
    for part in ("train", "valid"):
        rk.save(rk.polynomials(10, part=part, n_features=5), folder / f"{part}.parquet")
    run(*ARGUMENTS, "--out", "u.rk", cwd=folder)
    return folder


@pytest.fixture
def undisturbed(finished):
    for path in finished.glob("*.parquet"):
        shutil.copy(path, ".")
    return (finished / "u.rk").read_bytes()


def run(*arguments, code=0, cwd="."):
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=cwd
    )
    assert done.returncode == code, done.stderr
    return done


def age():
    return CHECKPOINT.stat().st_mtime_ns if CHECKPOINT.exists() else None


def stop(number, arguments=ARGUMENTS):
    """Send a signal to a training as soon as it has kept another tree."""
    before = age()
    worker = subprocess.Popen([*arguments, "--out", "m.rk"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + SECONDS
    while age() == before and time.monotonic() < deadline and worker.poll() is None:
        time.sleep(0.005)
    worker.send_signal(number)
    _, errors = worker.communicate(timeout=SECONDS)
    return worker.returncode, errors


def test_ctrl_c_keeps_the_trees_and_says_how_to_go_on(undisturbed):
    code, errors = stop(signal.SIGINT)
    assert code == 130
    assert "m.rk.checkpoint keeps the trees, and the same command resumes from there" in errors
    assert "Traceback" not in errors
    assert not Path("m.rk").exists()
    done = run(*ARGUMENTS, "--out", "m.rk")
    assert "resumes from m.rk.checkpoint" in done.stderr
    assert Path("m.rk").read_bytes() == undisturbed
    assert not CHECKPOINT.exists()


def test_ctrl_c_keeps_the_epochs_of_a_net(undisturbed):
    arguments = [*RUN, "--ranker", "LambdaRank", "--n-epochs", "300", "--patience", "none"]
    code, errors = stop(signal.SIGINT, arguments)
    assert code == 130
    assert "m.rk.checkpoint keeps the epochs, and the same command resumes from there" in errors
    done = run(*arguments, "--out", "m.rk")
    assert "resumes from m.rk.checkpoint" in done.stderr
    assert "of 300 epochs" in done.stdout
    train, valid = (rk.load(f"{part}.parquet") for part in ("train", "valid"))
    rk.LambdaRank(n_epochs=300, patience=None).fit(train, valid={"valid": valid}).save("own.rk")
    assert Path("m.rk").read_bytes() == Path("own.rk").read_bytes()


def test_kill_at_any_time_does_not_change_the_model(undisturbed):
    for _ in range(2):
        code, _ = stop(signal.SIGKILL)
        assert code == -signal.SIGKILL
        assert not Path("m.rk").exists()
    shown = run(*ARGUMENTS, "--out", "m.rk").stdout
    assert Path("m.rk").read_bytes() == undisturbed
    assert not CHECKPOINT.exists()
    assert shown.splitlines()[:4] == run(*ARGUMENTS, "--out", "m.rk").stdout.splitlines()[:4]


def test_a_checkpoint_of_other_parameters_is_refused(undisturbed):
    stop(signal.SIGKILL)
    done = run(*ARGUMENTS, "--out", "m.rk", "--n-leaves", "9", code=2)
    assert "m.rk.checkpoint: is the checkpoint of a fit with another n_leaves" in done.stderr


def test_the_bar_shows_the_measure(undisturbed):
    shown, typed = pty.openpty()
    slow = "import rankinite.cli.terminal as t; t.SECONDS_BEFORE_BAR = 0.0; "
    arguments = [sys.executable, "-c", slow + HASTY, *RUN[3:], "--n-trees", "20", "--out", "m.rk"]
    with subprocess.Popen(
        arguments, stderr=typed, stdout=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "100"}
    ) as worker:
        os.close(typed)
        text = read_all(shown)
    assert worker.returncode == 0
    assert "training" in text
    assert "valid NDCG 0." in text


def read_all(stream):
    pieces = []
    while True:
        try:
            piece = os.read(stream, 65536)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(stream)
    return b"".join(pieces).decode()
