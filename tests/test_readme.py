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


NUMBER = re.compile(r"\d[\d,]*\.?\d*")
TOLERANCE = 0.03


def words_of(text):
    return re.sub(r" +", " ", NUMBER.sub("0", text))


def assert_alike(seen, shown):
    """The same words; shares and means of trained rankers may differ between kinds of processors.

    Which features matter, and how many splits they have, may then differ as well.
    """
    assert words_of(seen) == words_of(shown)
    for actual, expected in zip(NUMBER.findall(seen), NUMBER.findall(shown), strict=True):
        if "0." in actual:
            assert abs(float(actual) - float(expected)) < TOLERANCE


def test_transcripts_and_the_python_example():
    steps = list(transcripts())
    assert len(steps) >= 12
    trained = False
    for command, output in steps:
        trained |= command.startswith("rankinite train")
        if trained:
            assert_alike(run(command), output)
        else:
            assert run(command) == output, command
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert re.match(
        r"0\.\d+ \[[0-9. ]+\]\n\d+ \['\d+', '\d+', '\d+'\]\nNDCG@10 0\.\d+\n"
        r"Means over 20 queries\n.*\nb  LambdaMART +0\.\d+\*ᵃ\n.*\n"
        r"<RankingData: 20 queries, 1,000 documents, 50 features, top grade 4>\n"
        r"\d+ NDCG@10 0\.\d+\n.*\d+ directions .*\n"
        r"0\.\d+ 0\.\d+ \d+\nNDCG@10 0\.\d+\n$",
        done.stdout,
        re.DOTALL,
    )
    assert {"test.parquet", "background.rk", "adapted.rk", "ranks.rk", "both.rk"} <= {
        p.name for p in Path().iterdir()
    }


def test_demo_output_is_the_one_shown():
    (shown,) = re.findall(r"```\n(Members on.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [str(BIN / "rankinite"), "demo", "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    tables = done.stdout.split("\n\n")
    seen = "\n\n".join(part for part in tables if not part.startswith("p-values by"))
    # On another kind of processor another model may be the best one, but not another table.
    assert [line.split()[:1] for line in seen.splitlines()] == [
        line.split()[:1] for line in shown.splitlines()
    ]
    means = re.compile(r"0\.\d{4}")
    for actual, expected in zip(means.findall(seen), means.findall(shown), strict=True):
        assert abs(float(actual) - float(expected)) < TOLERANCE
    for line in seen.splitlines():
        if line.startswith("wrote "):
            assert Path(line.removeprefix("wrote ")).stat().st_size > 0


def test_both_commands_are_named():
    assert "make demo" in README
    assert "make test" in README
