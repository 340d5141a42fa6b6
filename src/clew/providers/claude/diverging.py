"""Whether an archive goes on from what is there: a session that has gone on by itself is never written over."""

from collections.abc import Mapping
from pathlib import Path

from clew.programs.faults import Refused
from clew.providers.claude.beside import is_thread
from clew.providers.claude.transcript import lines_of


def goes_on(copy: Path, data: bytes) -> bool:
    """Whether the archive says more than the transcript that is there. It must say all of it, but for notes that the
    program makes when it ends."""
    there, carried = copy.read_bytes().splitlines(keepends=True), data.splitlines(keepends=True)
    pairs = zip(there, carried, strict=False)
    shared = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(there), len(carried)))
    if _says(there[shared:]):
        raise Refused(
            f"Session {copy.stem} has gone on in {copy.parent} by itself; the archive does not have all of it.",
            "Go on with that one, or move it out of the way first.",
        )
    return _says(carried[shared:])


def beside(there: Mapping[str, bytes], carried: Mapping[str, bytes], more: bool) -> dict[str, bytes]:
    """What is to lie beside the transcript. Of a thread that one of them has further, that one.

    What is rewritten and not added to, such as the list of tasks, tells of no order; it is the archive's where the
    archive says `more`.
    """
    return {name: _chosen(name, there.get(name), data, more) for name, data in carried.items()}


def _chosen(name: str, there: bytes | None, carried: bytes, more: bool) -> bytes:
    if there is None or there == carried:
        return carried
    if not is_thread(name):
        if more:
            return carried
        raise _differs(name)
    # A last line without its end was never said.
    whole = there[: there.rfind(b"\n") + 1]
    if carried.startswith(whole):
        return carried
    if whole.startswith(carried):
        return there
    raise _differs(name)


def _says(lines: list[bytes]) -> bool:
    return any(line is not None and "uuid" in line for line in lines_of(b"".join(lines)))


def _differs(name: str) -> Refused:
    words = f"{name} of the session has gone on here by itself; the archive has another."
    return Refused(words, "Go on with the session that is here, or move it out of the way first.")
