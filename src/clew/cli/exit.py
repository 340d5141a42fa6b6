"""Exit statuses, and the error messages of a command that failed."""

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import takewhile

from cyclopts import CycloptsError, UnusedCliTokensError

from clew.cli.output import tell_fault, tell_problem
from clew.ports.fault import Fault


class ExitStatus(IntEnum):
    DONE = 0
    FAILED = 1
    MISUSED = 2
    BUG = 70
    STOPPED = 130


def asks_for_json(words: Iterable[str]) -> bool:
    """Scans the raw arguments: a command line that cannot be parsed may ask for JSON too."""
    return "--json" in takewhile(lambda word: word != "--", words)


def run_command(command: Callable[[], object], *, as_json: bool = False) -> ExitStatus:
    """Runs it and reports any exception. Whatever is not a `Fault` is reported as a bug in Clew."""
    try:
        result = command()
        sys.stdout.flush()
    except Fault as fault:
        tell_fault(fault, as_json=as_json)
        return ExitStatus.FAILED
    except CycloptsError as fault:
        tell_problem("usage", _misused(fault), "Try --help.", as_json=as_json)
        return ExitStatus.MISUSED
    except BrokenPipeError:
        # The reader closed the pipe. Python must not flush stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.DONE
    except KeyboardInterrupt:
        tell_problem("stopped", "Stopped.", as_json=as_json)
        return ExitStatus.STOPPED
    except Exception as fault:  # noqa: BLE001 - last resort
        traceback.print_exc()
        words = f"This is a bug in Clew: {type(fault).__name__}."
        tell_problem("bug", words, "Please report it with the lines above.", as_json=as_json)
        return ExitStatus.BUG
    return result if isinstance(result, ExitStatus) else ExitStatus.DONE


def _misused(fault: CycloptsError) -> str:
    if isinstance(fault, UnusedCliTokensError) and fault.unused_tokens:
        return f"Unexpected argument: {', '.join(map(repr, fault.unused_tokens))}."
    return str(fault)
