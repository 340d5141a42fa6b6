"""What tests of evidence share: prompts with ids, and what the session says of them afterwards."""

import os
import time
import uuid
from dataclasses import dataclass, field, replace

from clew.kernel import Attestation, Cursor, PromptId, Sent, digest_of
from clew.ports.provider import LiveSession
from clew.providers.opencode.session import OpenCodeSession
from tests.providers.contract.stage import Turned
from tests.providers.opencode.kit import Lab


def new_id(at: float | None = None) -> PromptId:
    """A UUID of version 7, of now or of that second since 1970."""
    milliseconds = int((time.time() if at is None else at) * 1000)
    random = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | 7 << 76 | (random >> 62 & 0xFFF) << 64 | 2 << 62 | random & (1 << 62) - 1
    return PromptId(str(uuid.UUID(int=value)))


@dataclass(frozen=True)
class Prompt:
    text: str
    id: PromptId = field(default_factory=new_id)

    @property
    def sent(self) -> Sent:
        return Sent(self.id, digest_of(self.text))


async def told(session: LiveSession, prompt: Prompt) -> Turned:
    return Turned(tuple([event async for event in session.turn(prompt.text, prompt.id)]))


async def heard(lab: Lab, cursor: Cursor | None, prompt: Prompt, home: str = "a") -> Attestation:
    assert cursor is not None
    return await lab.at(home).heard(cursor, lab.directory(), prompt.sent)


def seen_by_model(lab: Lab, text: str) -> int:
    """In how many requests of work the prompt was the last one."""
    return sum(request.prompts[-1:] == (text,) for request in lab.model.work)


def answer_within(session: LiveSession, seconds: float) -> None:
    """From now on each call of its server may take so long."""
    assert isinstance(session, OpenCodeSession)
    session._deadlines = replace(session._deadlines, answer=seconds)  # noqa: SLF001 - for this session alone
    server = session._server  # noqa: SLF001
    assert server is not None
    server._launch = replace(server._launch, deadlines=replace(server._launch.deadlines, answer=seconds))  # noqa: SLF001
