"""Whether the guide took a prompt, and what became of it: read from its own memory by the prompt's id."""

from pathlib import Path

from clew.kernel import Attestation, Evidence, NativeId, Sent
from clew.providers.guide.memory import BEGUN, FINISHED, Busy, Damaged, Memory, Missing, Turn


def attestation(home: Path, native_id: NativeId, sent: Sent) -> Attestation:
    """The session is held while it is read, so that no process of the guide writes it meanwhile."""
    memory = Memory(home)
    if not memory.is_there:
        return Attestation(Evidence.UNKNOWN, f"The guide's memory is not where it was: {home}.")
    try:
        if not memory.path(native_id).exists():
            raise Missing(native_id)
        memory.hold(native_id)
        try:
            turns = memory.load(native_id).turns
        finally:
            memory.release(native_id)
    except Missing:
        return Attestation(Evidence.UNSENT, f"The guide has no session {native_id}.")
    except Busy:
        return Attestation(Evidence.UNKNOWN, f"Session {native_id} is still open in a process of the guide.")
    except Damaged as fault:
        return Attestation(Evidence.UNKNOWN, f"Session {native_id} cannot be read: {fault}.")
    except OSError as fault:
        return Attestation(Evidence.UNKNOWN, f"The guide's memory cannot be read: {fault}.")
    found = next((turn for turn in turns if sent.id in turn.ids), None)
    if found is None:
        return Attestation(Evidence.UNSENT, "The guide's memory does not hold the prompt.")
    return _became_of(found)


def _became_of(turn: Turn) -> Attestation:
    match turn.ending:
        case "":
            return Attestation(Evidence.TAKEN, "The guide's memory holds the prompt, and nothing was done about it.")
        case _ if turn.ending == FINISHED:
            return Attestation(Evidence.FINISHED, "The guide's memory holds the prompt and its reply.", turn.reply)
        case _ if turn.ending == BEGUN:
            return Attestation(Evidence.CUT_OFF, "The guide had begun to act on the prompt when it ended.")
        case _:
            return Attestation(Evidence.CUT_OFF, f"The guide's turn about the prompt ended as {turn.ending}.")
