"""Visitors: programs that a person started for a session, seen by their command line, where the system has /proc."""

from pathlib import Path

_PROCESSES = Path("/proc")


def opened_by_command(program: str, native_id: str) -> bool:
    """Whether a process of that program was started with this session's id as an argument. Clew passes ids in other
    ways, so such a process is not Clew's own."""
    wanted, name = native_id.encode(), program.encode()
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            # It has ended meanwhile, or is another user's.
            continue
        # The second word is the program where an interpreter runs it.
        if wanted in words and any(word.rpartition(b"/")[2].startswith(name) for word in words[:2]):
            return True
    return False
