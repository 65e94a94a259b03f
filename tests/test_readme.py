"""The README is what a person types and sees: every transcript in it is run here."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()
BIN = Path(sys.executable).parent


def run(command):
    done = subprocess.run(
        [str(BIN / "rankinite"), *shlex.split(command)[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def transcripts():
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for block in blocks:
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = piece.partition("\n")
            yield command, output


def test_transcripts_and_the_python_example():
    steps = list(transcripts())
    assert len(steps) >= 6
    for command, output in steps:
        assert run(command) == output, command
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert re.match(r"0\.\d+ \[[0-9. ]+\]\n$", done.stdout)
    assert Path("rest.parquet").exists()


def test_demo_output_is_the_one_shown():
    (shown,) = re.findall(r"```\n(Test data.*?)```", README, re.DOTALL)
    assert run("rankinite demo --out demo") == shown
    for line in shown.splitlines():
        if line.startswith("wrote "):
            assert Path(line.removeprefix("wrote ")).stat().st_size > 0


def test_both_commands_are_named():
    assert "make demo" in README
    assert "make test" in README
