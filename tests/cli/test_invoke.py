"""Exit codes and sentences: 2 for wrong use, 1 for wrong data, 130 for Ctrl-C, no tracebacks."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.cli import main
from tests import processes

RUN = [sys.executable, "-m", "rankinite"]


def run(*arguments, **options):
    return subprocess.run(
        [*RUN, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture
def small():
    rk.save(rk.polynomials(3, n_features=2), "small.txt")
    Path("bad.txt").write_text("1 qid:1 1:1\n2 qid:1 1:x\n")
    Path("scores").write_text("1\n2\n")
    Path("folder").mkdir()


WRONG_USE = [
    (["nonsense"], "No such command 'nonsense'; see rankinite --help"),
    (["data", "normalize"], "Did you mean 'normalise'? See rankinite data --help"),
    (["data", "describe"], "Missing argument"),
    (["data", "describe", "small.txt", "--nope"], "No such option"),
    (["data", "split", "small.txt", "--out", "o"], "--parts, --proportions and --folds"),
    (
        ["data", "split", "small.txt", "--out", "o", "--proportions", "a,b"],
        "expected numbers such as 0.6,",
    ),
    (["data", "split", "small.txt", "--out", "o", "--parts", "9"], "too few"),
    (["data", "simulate", "challenge", "--out", "o", "--market", "3"], "less than or equal to 2"),
    (["data", "simulate", "clicks", "small.txt", "--out", "o", "--feature", "9"], "called '9'"),
    (["evaluate", "small.txt"], "--feature"),
    (["evaluate", "small.txt", "--feature", "1", "-m", "NGCD"], "no measure 'NGCD'"),
    (["evaluate", "small.txt", "--feature", "9"], "no feature called '9'"),
    (["evaluate", "small.txt", "--feature", "1", "-m", "NDCG[x]"], "no label source 'x'"),
    (
        ["evaluate", "small.txt", "--feature", "1", "--per-query", "small.txt"],
        "evaluate: this would overwrite small.txt",
    ),
    (
        ["evaluate", "small.txt", "scores", "--per-query", "scores"],
        "evaluate: this would overwrite scores",
    ),
]
WRONG_DATA = [
    (["data", "describe", "bad.txt"], "bad.txt:2:11: 'x' is not a value of feature 1"),
    (["data", "describe", "folder"], "folder: this is a directory"),
    (["data", "describe", "absent.txt"], "absent.txt: there is no such file"),
    (["data", "convert", "small.txt", "absent/out.txt"], "absent: there is no such folder"),
    (["evaluate", "small.txt", "scores"], "2 scores for 150 documents"),
    (["evaluate", "small.txt", "--feature", "1", "-m", "CNDCG"], "click rates lie in [0, 1]"),
    (["evaluate", "bad.txt", "--feature", "1", "--per-query", "no/x"], "no: there is no such fold"),
    (["data", "describe", "small.txt", "--figures", "scores"], "scores: this is a file; expected"),
    (["compare", ".", "scores", "--data", "small.txt"], ".: this is a directory"),
    (["train", "small.txt", "--valid", ".", "--out", "m.rk"], ".: this is a directory"),
    (["train", "small.txt", "--valid", "/", "--out", "m.rk"], "/: this is a directory"),
]


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [(*case, 2) for case in WRONG_USE] + [(*case, 1) for case in WRONG_DATA],
)
def test_one_sentence_and_the_right_code(small, capsys, arguments, words, code):
    with pytest.raises(SystemExit) as leaving:
        main(arguments if arguments == ["nonsense"] else [*arguments, "--quiet"])
    printed = capsys.readouterr()
    assert leaving.value.code == code
    assert words in printed.err
    assert printed.err.startswith("Error: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize(("arguments", "words", "code"), [(*WRONG_USE[0], 2), (*WRONG_DATA[0], 1)])
def test_the_code_is_that_of_the_process(small, arguments, words, code):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("Error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_nothing_that_is_read_is_overwritten(small, call):
    Path("scores").write_text("1\n" * 150)
    before = [Path(name).read_bytes() for name in ("small.txt", "scores")]
    for target in ("small.txt", "./scores", Path("scores").absolute()):
        call("evaluate", "small.txt", "scores", "--per-query", target, code=2)
    assert [Path(name).read_bytes() for name in ("small.txt", "scores")] == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_an_encoding_lacks_is_escaped(small, encoding):
    Path("small.txt").rename("模型.txt")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = run("data", "describe", "模型.txt", "-q", env=environment, encoding=encoding)
    assert done.returncode == 0
    shown = "模型.txt" if encoding == "utf-8" else r"\u6a21\u578b.txt"
    assert shown in done.stdout
    if encoding == "ascii":
        done = run("data", "describe", "absent模", env=environment, encoding=encoding)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: absent")


def test_nothing_is_left_behind_by_a_failure(small, call):
    before = sorted(path.name for path in Path().iterdir())
    call("data", "convert", "bad.txt", "out.parquet", code=1)
    assert sorted(path.name for path in Path().iterdir()) == before


WRITING = """
import os
from rankinite.cli import main

# Flushing is the last thing that is done to a file before it gets its name.
os.fsync = lambda handle: pause("writing")
main(sys.argv[1:])
"""


def test_ctrl_c_leaves_with_130_and_no_half_file():
    command = ["data", "simulate", "polynomials", "--size", "0.0005", "--out", "o", "--quiet"]
    with processes.start(WRITING, *command) as worker:
        processes.wait_for("writing", worker)
        assert list(Path("o").iterdir())
        code, _, errors = processes.signal_and_end(worker, signal.SIGINT)
    assert code == 130
    assert "Traceback" not in errors
    assert not list(Path("o").iterdir())


def test_a_closed_pipe_is_no_drama(small):
    shell = " ".join([*RUN, "data", "describe", "small.txt", "--json", "2>err", "|", "true"])
    subprocess.run(shell, shell=True, check=True)
    assert "Traceback" not in Path("err").read_text()


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        ("<&- >&- 2>&-", 0),
        (">/dev/full", 1),
        (">/dev/full 2>/dev/full", 1),
    ],
)
def test_streams_that_are_closed_or_full(small, streams, code):
    script = 'from rankinite.cli import main; main(["data", "describe", "small.txt"])'
    done = subprocess.run(
        f"{sys.executable} -c '{script}' {streams}", shell=True, capture_output=True, text=True
    )
    assert done.returncode == code
    assert "Exception" not in done.stderr
    assert "Traceback" not in done.stderr
    if streams == ">/dev/full":
        assert "Error: no space is left on the disk\n" in done.stderr


def test_the_end_of_an_input_is_not_taken_for_ctrl_c(monkeypatch, capsys):
    import rankinite.data.describe

    def ended(*_arguments):
        raise EOFError("nothing is left")

    rk.save(rk.polynomials(2, n_docs=3, n_features=2), "small.txt")
    monkeypatch.setattr(rankinite.data.describe, "describe", ended)
    with pytest.raises(SystemExit) as leaving:
        main(["data", "describe", "small.txt"])
    assert leaving.value.code == 1
    assert "EOFError: nothing is left" in capsys.readouterr().err


def test_names_do_nothing_to_a_terminal(small, capsys):
    with pytest.raises(SystemExit):
        main(["data", "describe", "a\x1b]0;owned\x07\n[red]\udcff"])
    printed = capsys.readouterr()
    assert printed.err == "Error: a\\x1b]0;owned\\x07\\n[red]\\xff: there is no such file\n"


def test_a_file_whose_name_is_not_utf_8(small, call):
    Path("small.txt").rename("caf\udce9.txt")
    call("data", "convert", "caf\udce9.txt", "caf\udce9.parquet")
    assert "caf\\xe9.parquet" in call("data", "describe", "caf\udce9.parquet")
    train = ["train", "caf\udce9.parquet", "--n-trees", 10**6, "--out", "m.rk"]
    assert "caf\\xe9.parquet: this name is not UTF-8" in call(*train, code=2)


def test_notes_go_to_the_error_stream_unless_quiet(small, capsys):
    outputs = []
    for options in ([], ["-q"]):
        with pytest.raises(SystemExit):
            main(["data", "describe", "small.txt", *options])
        outputs.append(capsys.readouterr())
    spoken, silent = outputs
    assert spoken.err == "note: the top grade is taken to be 4, the largest label seen\n"
    assert silent.err == ""
    assert spoken.out == silent.out


def on_a_terminal(*arguments):
    """Return what a command prints on a terminal."""
    shown, typed = pty.openpty()
    subprocess.run([*RUN, *arguments], stdout=typed, check=True)
    os.close(typed)
    text = b""
    while True:
        try:
            piece = os.read(shown, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(shown)
    return text.decode()


def test_a_narrow_terminal_cuts_no_number(small, monkeypatch):
    names = [f"copy-number-{k}.txt" for k in range(3)]
    for name in names:
        Path(name).write_bytes(Path("small.txt").read_bytes())
    monkeypatch.setenv("COLUMNS", "60")
    text = on_a_terminal("data", "describe", *names, "-q")
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 60
    # Beside 35 letters of text a column of 17 has room, and beside 11 two have.
    assert text.count("Statistics, continued\r\n") == 2
    assert text.count("Distribution of grades, continued\r\n") == 1
    assert [text.count(name) for name in names] == [2, 2, 2]
    assert text.count(" 150\r\n") == 3


def test_a_terminal_gets_rich_tables(small, call):
    assert "┃" in on_a_terminal("data", "describe", "small.txt", "-q")
    assert "┃" not in call("data", "describe", "small.txt", "-q")


def test_brackets_are_shown_and_no_markup(call):
    Path("clicks.txt").write_text("1 qid:1 1:1 #c = 1\n0 qid:1 1:2 #c = 0\n")
    arguments = [
        "evaluate",
        "clicks.txt",
        "--feature",
        "1",
        "--labels",
        "c",
        "-m",
        "CNDCG@3[c]",
        "-q",
    ]
    assert "CNDCG@3[c]" in on_a_terminal(*arguments)
    assert "NAME(option=value)@depth[source]" in call("evaluate", "--help")


def test_version(call):
    assert call("--version") == f"rankinite {rk.__version__}\n"


def test_completion_script_is_offered():
    done = run(
        env={
            **os.environ,
            "_RANKINITE_COMPLETE": "complete_bash",
            "COMP_WORDS": "rankinite da",
            "COMP_CWORD": "1",
        }
    )
    assert done.stdout.split() == ["data"]
