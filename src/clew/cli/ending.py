"""How a command ends: with a status for programs and, where it failed, words for people."""

import os
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum

from cyclopts import CycloptsError

from clew.cli.telling import warn
from clew.ports.fault import Fault


class Ending(IntEnum):
    DONE = 0
    FAILED = 1
    MISUSED = 2
    BUG = 70
    STOPPED = 130


def ending_of(command: Callable[[], object]) -> Ending:
    """Run it. A fault is told in its own words; anything else that is raised is a mistake of ours, and says so."""
    try:
        result = command()
        sys.stdout.flush()
    except Fault as fault:
        warn(f"{fault} [{fault.code}]")
        return Ending.FAILED
    except CycloptsError as fault:
        warn(f"{fault} Try --help. [usage]")
        return Ending.MISUSED
    except BrokenPipeError:
        # Whoever read this has heard enough; Python must not try once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Ending.DONE
    except KeyboardInterrupt:
        warn("Stopped. [stopped]")
        return Ending.STOPPED
    except Exception as fault:  # noqa: BLE001 - the last door: what comes here was expected nowhere
        traceback.print_exc()
        warn(f"This is a bug in Clew: {type(fault).__name__}. Please report it with the lines above. [bug]")
        return Ending.BUG
    return result if isinstance(result, Ending) else Ending.DONE
