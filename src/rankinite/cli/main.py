"""Run a command and turn whatever happens into a sentence and an exit code.

0 is well, 1 is wrong data, 2 is wrong use, 130 is Ctrl-C.
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

from rankinite.core.errors import RankiniteError, UsageError

WRONG_DATA = 1
WRONG_USE = 2
SECONDS_TO_REPEAT = 0.05


def run(arguments: Sequence[str] | None) -> int:
    """Run the command line and return its exit code."""
    from rankinite.cli.app import app

    sys.unraisablehook = _keep_interrupts
    _print_whatever_comes()
    try:
        code = app(arguments, prog_name="rankinite", standalone_mode=False)
        sys.stdout.flush()
    except BaseException as problem:
        return _explain(problem)
    return code if isinstance(code, int) else 0


def _print_whatever_comes() -> None:
    """Let output show as an escape what its encoding lacks, such as a name in ASCII."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _keep_interrupts(lost: Any) -> None:
    """Repeat a Ctrl-C that came while Python could not raise it, such as in a finaliser."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        threading.Timer(SECONDS_TO_REPEAT, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(lost)


def _explain(problem: BaseException) -> int:
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else WRONG_DATA
    if isinstance(problem, (KeyboardInterrupt, typer.Abort)):
        raise KeyboardInterrupt
    if isinstance(problem, BrokenPipeError):
        # Whoever read our output has gone; nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG_DATA
    if isinstance(problem, typer.TyperException):
        if not problem.format_message():  # a group without a command: its help has been shown
            return problem.exit_code
        return _say(_usage_sentence(problem), problem.exit_code)
    if isinstance(problem, RankiniteError):
        return _say(str(problem), WRONG_USE if isinstance(problem, UsageError) else WRONG_DATA)
    if isinstance(problem, OSError):
        return _say(_system_sentence(problem), WRONG_DATA)
    if isinstance(problem, MemoryError):
        return _say(f"there is not enough memory: {problem}", WRONG_DATA)
    if logging.getLogger("rankinite").isEnabledFor(logging.DEBUG):
        traceback.print_exception(problem)
    return _say(
        f"this should not happen ({type(problem).__name__}: {problem}); "
        "please report it with the output of the same command with --verbose",
        WRONG_DATA,
    )


def _usage_sentence(problem: typer.TyperException) -> str:
    context = getattr(problem, "ctx", None)
    if context is None:
        return problem.format_message().rstrip(".")
    # Only an option that does not exist has possibilities.
    if context.info_name == "train" and hasattr(problem, "possibilities"):
        ours = _our_flag(getattr(problem, "option_name", ""))
        if ours:
            return f"{problem.message}; {ours}"
    words = problem.format_message().rstrip(".")
    return f"{words}{' See' if words.endswith('?') else '; see'} {context.command_path} --help"


def _our_flag(flag: str) -> str:
    """Return the words for what a flag of another tool is called here."""
    from rankinite.rankers.aliases import explain_alias
    from rankinite.rankers.parameters import file_parameters

    hint = explain_alias("train", flag.lstrip("-").replace("-", "_"), file_parameters()) or ""
    return re.sub(r"'(\w+)'", lambda name: "--" + name[1].replace("_", "-"), hint)


def _system_sentence(problem: OSError) -> str:
    what = problem.strerror or str(problem)
    if problem.errno == errno.ENOSPC:
        what = "no space is left on the disk"
    if problem.errno == errno.EEXIST:  # only folders are made where something may be already
        what = "this is a file; expected a folder"
    return f"{problem.filename}: {what}" if problem.filename else what


def _say(sentence: str, code: int) -> int:
    print(f"Error: {sentence}", file=sys.stderr)
    return code
