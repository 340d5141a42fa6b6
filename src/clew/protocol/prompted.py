"""Prompts that were about to go out, as JSON: kept with their run until it is known what became of them."""

import json
import secrets
import time
import uuid
from dataclasses import dataclass

from clew.kernel import EntrySeq, PromptId, Sent, WakeId, value_from_record, value_to_record
from clew.protocol.reports import Prompted


@dataclass(frozen=True, slots=True)
class SteerSent:
    """What an agent is being told within its turn: how it is recognised, for which wakes, and how far it tells."""

    id: PromptId
    wakes: tuple[WakeId, ...]
    through: EntrySeq

    @property
    def sent(self) -> Sent:
        """Only by its id: the text is the daemon's."""
        return Sent(self.id, "")


def new_prompt_id() -> PromptId:
    """A UUID of version 7: the time in milliseconds, then chance, so that later prompts sort behind earlier ones."""
    bits = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    return PromptId(str(uuid.UUID(int=bits)))


TELLS_REMADE = '"remade": "'
"""Stands in what is kept of a prompt that tells of a directory that was made again."""


def write_prompted(prompted: Prompted) -> str:
    return json.dumps(value_to_record(Prompted, prompted))


def read_prompted(text: str) -> Prompted:
    """Raises ValueError where it cannot be read."""
    return value_from_record(Prompted, json.loads(text))


def write_steer(steer: SteerSent) -> str:
    return json.dumps(value_to_record(SteerSent, steer))


def read_steer(text: str) -> SteerSent:
    """Raises ValueError where it cannot be read."""
    return value_from_record(SteerSent, json.loads(text))
