"""Where a data directory lies: what is in it is known by its path, so one that was moved is not used unseen."""

import json
import os

from clew.app.holding import write_whole
from clew.server.datadir import CannotUse, DataDirectory, DataFault


class Moved(DataFault):
    code = "data:moved"


def keep_place(data: DataDirectory) -> None:
    """Every path under which it was used must still lead to it: homes and worktrees are known by any of them."""
    known, here = _known(data), os.path.realpath(data.root)
    for path in known:
        if os.path.realpath(path) != here:
            raise Moved(
                f"This data directory was at {path} and is now at {data.root}; "
                "homes and worktrees in it are known by their old paths.",
                f"Move it back, or put a symbolic link to {here} at {path}, or start with a new one with --data.",
            )
    every = list(dict.fromkeys((*known, str(data.root), here)))
    if every != known:
        write_whole(data.place, f"{json.dumps(every)}\n")


def _known(data: DataDirectory) -> list[str]:
    try:
        said = json.loads(data.place.read_bytes())
    except FileNotFoundError:
        return []
    except OSError as fault:
        raise CannotUse(f"{data.place} cannot be read: {fault.strerror}.", "Make it readable for you.") from fault
    except ValueError:
        said = None
    if not isinstance(said, list) or not all(isinstance(path, str) and "\0" not in path for path in said):
        raise CannotUse(
            f"{data.place} does not say where this directory was.", "Remove it, if the directory was not moved."
        )
    return said
