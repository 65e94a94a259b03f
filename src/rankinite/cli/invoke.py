"""Run a command and turn every outcome into a sentence and an exit code.

Exit codes: 0 success (also if the reader of the output has read enough), 1 failure (bad data, disk,
memory), 2 wrong usage, 130 Ctrl-C (and 128 + its number of another signal, ``cli/signals.py``).
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import re
import sys
import traceback
from collections.abc import Sequence

import typer

from rankinite.cli.pipes import remove_copies
from rankinite.core.errors import RankiniteError, UsageError
from rankinite.core.format import visible

FAILURE = 1
BAD_USAGE = 2
INTERRUPTED = 130  # as Typer has it


def run(arguments: Sequence[str] | None) -> int:
    """Run the command line and return its exit code."""
    _open_streams()
    try:
        from rankinite.cli.app import app

        code = app(arguments, prog_name="rankinite", standalone_mode=False)
        # Here, where a broken pipe or a full disk can still be explained.
        sys.stdout.flush()
    except BaseException as problem:
        code = _explain(problem)
    finally:
        remove_copies()
        _give_up_unwritable()
    if code == INTERRUPTED:  # what Typer makes of Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _open_streams() -> None:
    """Let closed streams lead nowhere, and others escape what their encoding lacks.

    The number of a closed stream would be that of the next file that is opened, and get what is
    meant for the stream.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is taken.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_unwritable() -> None:
    """Drop what a stream cannot write: Python would try it again at exit, and fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


def _explain(problem: BaseException) -> int:
    # Typer leaves with 1 after a broken pipe, and makes an Abort of the end of an input.
    if isinstance(problem, (SystemExit, typer.Abort)):
        cause = problem.__context__
        problem = cause if isinstance(cause, (BrokenPipeError, EOFError)) else problem
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else FAILURE
    if isinstance(problem, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED
    if isinstance(problem, BrokenPipeError):  # the reader, such as head, has what it wants
        return 0
    if isinstance(problem, typer.TyperException):
        if not problem.format_message():  # a group without a command: its help has been shown
            return problem.exit_code
        return _report(_usage_sentence(problem), problem.exit_code)
    if isinstance(problem, UsageError):
        # It may list mistakes, each in a line.
        return _report(str(problem), BAD_USAGE, keep="\n")
    if isinstance(problem, RankiniteError):
        return _report(str(problem), FAILURE)
    if isinstance(problem, OSError):
        return _report(_system_sentence(problem), FAILURE)
    if isinstance(problem, MemoryError):
        return _report(f"there is not enough memory: {problem}".removesuffix(": "), FAILURE)
    if logging.getLogger("rankinite").isEnabledFor(logging.DEBUG):
        print(visible("".join(traceback.format_exception(problem)), keep="\n"), file=sys.stderr)
    return _report(
        f"this should not happen ({type(problem).__name__}: {problem}); "
        "please report it with the output of the same command with --verbose",
        FAILURE,
    )


def _usage_sentence(problem: typer.TyperException) -> str:
    context = getattr(problem, "ctx", None)
    if context is None:
        return problem.format_message().rstrip(".")
    # Other tools' names are known for parameters of rankers only, which are flags of train. Only
    # the exception of an unknown option has possibilities.
    if context.info_name == "train" and hasattr(problem, "possibilities"):
        hint = _alias_hint(getattr(problem, "option_name", ""))
        if hint:
            return f"{problem.message}; {hint}"
    message = problem.format_message().rstrip(".")
    link = " See" if message.endswith("?") else "; see"
    return f"{message}{link} {context.command_path} --help"


def _alias_hint(flag: str) -> str:
    """Return a hint to our flag for a flag of another tool; empty if there is none."""
    from rankinite.rankers.aliases import explain_alias
    from rankinite.rankers.parameters import file_parameters

    hint = explain_alias("train", flag.lstrip("-").replace("-", "_"), file_parameters()) or ""
    # The hint names Python's parameters; here they are flags.
    return re.sub(r"'(\w+)'", lambda name: "--" + name[1].replace("_", "-"), hint)


def _system_sentence(problem: OSError) -> str:
    cause = problem.strerror or str(problem)
    if problem.errno == errno.ENOSPC:
        cause = "no space is left on the disk"
    if problem.errno == errno.EEXIST:  # only folders are made where something may be already
        cause = "this is a file; expected a folder"
    return f"{problem.filename}: {cause}" if problem.filename else cause


def _report(sentence: str, code: int, keep: str = "") -> int:
    with contextlib.suppress(OSError):  # nobody can be told
        print(f"Error: {visible(sentence, keep)}", file=sys.stderr, flush=True)
    return code
