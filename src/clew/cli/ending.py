"""How a command ends: with a status for programs and, where it failed, words for people."""

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import takewhile

from cyclopts import CycloptsError, UnusedCliTokensError

from clew.cli.problem import tell_fault, tell_problem
from clew.ports.fault import Fault


class Ending(IntEnum):
    DONE = 0
    FAILED = 1
    MISUSED = 2
    BUG = 70
    STOPPED = 130


def asks_for_json(words: Iterable[str]) -> bool:
    """Seen in the words themselves, since those that are not understood may ask for it, too."""
    return "--json" in takewhile(lambda word: word != "--", words)


def ending_of(command: Callable[[], object], *, as_json: bool = False) -> Ending:
    """Run it. A fault is told in its own words; anything else that is raised is a mistake of ours, and says so."""
    try:
        result = command()
        sys.stdout.flush()
    except Fault as fault:
        tell_fault(fault, as_json=as_json)
        return Ending.FAILED
    except CycloptsError as fault:
        tell_problem("usage", _misused(fault), "Try --help.", as_json=as_json)
        return Ending.MISUSED
    except BrokenPipeError:
        # Whoever read this has heard enough; Python must not try once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Ending.DONE
    except KeyboardInterrupt:
        tell_problem("stopped", "Stopped.", as_json=as_json)
        return Ending.STOPPED
    except Exception as fault:  # noqa: BLE001 - the last door: what comes here was expected nowhere
        traceback.print_exc()
        words = f"This is a bug in Clew: {type(fault).__name__}."
        tell_problem("bug", words, "Please report it with the lines above.", as_json=as_json)
        return Ending.BUG
    return result if isinstance(result, Ending) else Ending.DONE


def _misused(fault: CycloptsError) -> str:
    if isinstance(fault, UnusedCliTokensError) and fault.unused_tokens:
        return f"Nothing is meant by {', '.join(map(repr, fault.unused_tokens))} here."
    return str(fault)
