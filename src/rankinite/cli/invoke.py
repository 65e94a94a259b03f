"""Run a command and turn every outcome into a sentence and an exit code.

Exit codes: 0 success (also if the reader of the output has read enough), 1 failure (bad data, disk,
memory), 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import _thread
import errno
import io
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from rankinite.cli.pipes import remove_copies
from rankinite.core.errors import RankiniteError, UsageError

FAILURE = 1
BAD_USAGE = 2
SECONDS_BEFORE_REPEAT = 0.05  # by then the finaliser has returned


def run(arguments: Sequence[str] | None) -> int:
    """Run the command line and return its exit code."""
    from rankinite.cli.app import app  # imports every command, so Ctrl-C may arrive here already

    sys.unraisablehook = _repeat_interrupt
    _escape_unprintable()
    try:
        code = app(arguments, prog_name="rankinite", standalone_mode=False)
        # Here, where a broken pipe or a full disk can still be explained.
        sys.stdout.flush()
    except BaseException as problem:
        return _explain(problem)
    finally:
        remove_copies()
    return code if isinstance(code, int) else 0


def _escape_unprintable() -> None:
    """Escape characters that the output encoding lacks, such as a name on an ASCII terminal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _repeat_interrupt(unraisable: Any) -> None:
    """Repeat a Ctrl-C that arrived where Python cannot raise it, such as in a finaliser."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        threading.Timer(SECONDS_BEFORE_REPEAT, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


def _explain(problem: BaseException) -> int:
    # Typer leaves with 1 after a broken pipe.
    if isinstance(problem, SystemExit) and isinstance(problem.__context__, BrokenPipeError):
        problem = problem.__context__
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else FAILURE
    # `rankinite.cli.main` gives it its exit code. Typer makes an Abort of Ctrl-C, and of the end of
    # the input.
    if isinstance(problem, (KeyboardInterrupt, typer.Abort)):
        raise KeyboardInterrupt
    if isinstance(problem, BrokenPipeError):
        # The reader, such as head, has what it wants. Python's own flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(problem, typer.TyperException):
        if not problem.format_message():  # a group without a command: its help has been shown
            return problem.exit_code
        return _report(_usage_sentence(problem), problem.exit_code)
    if isinstance(problem, RankiniteError):
        return _report(str(problem), BAD_USAGE if isinstance(problem, UsageError) else FAILURE)
    if isinstance(problem, OSError):
        return _report(_system_sentence(problem), FAILURE)
    if isinstance(problem, MemoryError):
        return _report(f"there is not enough memory: {problem}", FAILURE)
    if logging.getLogger("rankinite").isEnabledFor(logging.DEBUG):
        traceback.print_exception(problem)
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


def _report(sentence: str, code: int) -> int:
    print(f"Error: {sentence}", file=sys.stderr)
    return code
