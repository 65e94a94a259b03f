"""Training that is stopped, by Ctrl-C or by kill -9, and goes on to the same bytes."""

import contextlib
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.cli import main
from tests import processes

# Writes a checkpoint after every round, and pauses after some of them.
HASTY = """
import rankinite.rankers.checkpoint as checkpoint
from rankinite.cli import main

checkpoint.SECONDS_BETWEEN = 0.0
write, last = checkpoint.Checkpoint.write, int(sys.argv.pop(1))

def write_and_pause(self, n_rounds, content):
    write(self, n_rounds, content)
    if n_rounds == last:
        pause("kept")

checkpoint.Checkpoint.write = write_and_pause
main()
"""
TRAIN = ["train", "train.parquet", "--valid", "valid.parquet"]
TREES = [*TRAIN, "--n-trees", "12", "--n-leaves", "4", "--patience", "none"]
CHECKPOINT = Path("m.rk.checkpoint")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with data, and the model of a training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("finished")
    for part in ("train", "valid"):
        rk.save(rk.polynomials(10, part=part, n_features=5), folder / f"{part}.parquet")
    with contextlib.chdir(folder), pytest.raises(SystemExit):
        main([*TREES, "--quiet", "--out", "u.rk"])
    return folder


@pytest.fixture
def undisturbed(finished):
    for path in finished.glob("*.parquet"):
        shutil.copy(path, ".")
    return (finished / "u.rk").read_bytes()


def stop(number, n_rounds, arguments=TREES):
    """Send a signal to a training that has just kept a round; how it ended, and its errors."""
    with processes.start(HASTY, n_rounds, *arguments, "--out", "m.rk") as worker:
        processes.wait_for("kept", worker)
        code, _, errors = processes.signal_and_end(worker, number)
    return code, errors


def resume(capsys, arguments=TREES):
    """Run the command again to its end; what it printed, and its notes."""
    with pytest.raises(SystemExit) as leaving:
        main([*arguments, "--out", "m.rk"])
    printed = capsys.readouterr()
    assert not leaving.value.code, printed.err
    return printed


def test_ctrl_c_keeps_the_trees_and_says_how_to_go_on(undisturbed, capsys):
    code, errors = stop(signal.SIGINT, 3)
    assert code == 130
    assert "m.rk.checkpoint keeps the trees, and the same command resumes from there" in errors
    assert "Traceback" not in errors
    assert not Path("m.rk").exists()
    assert "resumes from m.rk.checkpoint" in resume(capsys).err
    assert Path("m.rk").read_bytes() == undisturbed
    assert not CHECKPOINT.exists()


def test_ctrl_c_keeps_the_epochs_of_a_net(undisturbed, capsys):
    arguments = [*TRAIN, "--ranker", "LambdaRank", "--n-epochs", "8", "--patience", "none"]
    code, errors = stop(signal.SIGINT, 3, arguments)
    assert code == 130
    assert "m.rk.checkpoint keeps the epochs, and the same command resumes from there" in errors
    done = resume(capsys, arguments)
    assert "resumes from m.rk.checkpoint" in done.err
    assert "of 8 epochs" in done.out
    train, valid = (rk.load(f"{part}.parquet") for part in ("train", "valid"))
    rk.LambdaRank(n_epochs=8, patience=None).fit(train, valid={"valid": valid}).save("own.rk")
    assert Path("m.rk").read_bytes() == Path("own.rk").read_bytes()


def test_kill_does_not_change_the_model(undisturbed, capsys):
    for n_rounds in (2, 7):
        code, _ = stop(signal.SIGKILL, n_rounds)
        assert code == -signal.SIGKILL
        assert not Path("m.rk").exists()
    shown = resume(capsys).out
    assert Path("m.rk").read_bytes() == undisturbed
    assert not CHECKPOINT.exists()
    assert shown.splitlines()[:4] == resume(capsys).out.splitlines()[:4]


def test_a_checkpoint_of_other_parameters_is_refused(undisturbed, call):
    stop(signal.SIGKILL, 1)
    said = call(*TREES, "--out", "m.rk", "--n-leaves", "9", code=2)
    assert "m.rk.checkpoint: is the checkpoint of a fit with another n_leaves" in said


def test_the_bar_shows_the_measure(undisturbed):
    shown, typed = pty.openpty()
    at_once = (
        "import rankinite.core.progress as t; t.SECONDS_BEFORE_BAR = 0.0; "
        "from rankinite.cli import main; main()"
    )
    arguments = [sys.executable, "-c", at_once, *TRAIN, "--n-trees", "20", "--out", "m.rk"]
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
