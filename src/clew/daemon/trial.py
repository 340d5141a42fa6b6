"""A trial: one prompt to an agent's program, in a new session and a directory of its own, apart from every thread."""

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from clew.kernel import Answer, Directory, PermissionMode, choose_mode
from clew.ports.events import ApprovalAsked, Done, ErrorCode, Failed, QuestionAsked
from clew.ports.fault import Fault
from clew.ports.provider import LiveSession, OpenSpec, Provider
from clew.programs.faults import NotLoggedIn
from clew.protocol.machine import Tried

PROMPT = "This is a test of the connection. Reply with the single word: ready"
_SECONDS = 120.0
_CLOSE = 20.0


async def try_prompt(provider: Provider, model: str | None, mode: PermissionMode, seconds: float = _SECONDS) -> Tried:
    """In the mode read where the program has it, else in the agent's own. What it asks for is denied."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="clew-test-", ignore_cleanup_errors=True) as made:
        path = str(Path(made).resolve())
        chosen = choose_mode(PermissionMode.READ, (), provider.capabilities.modes).mode or mode
        try:
            async with asyncio.timeout(seconds):
                tried = await _asked(provider, OpenSpec(Directory(path, path), chosen, model=model))
        except TimeoutError:
            tried = Tried(failed=f"It did not answer within {seconds:g} s.")
        except Fault as fault:
            tried = Tried(failed=str(fault), login=isinstance(fault, NotLoggedIn))
    return replace(tried, seconds=time.monotonic() - began, mode=chosen.value)


async def _asked(provider: Provider, spec: OpenSpec) -> Tried:
    live = await provider.open(spec)
    try:
        return await _answer(live)
    finally:
        async with asyncio.timeout(_CLOSE):
            await asyncio.shield(live.close())


async def _answer(live: LiveSession) -> Tried:
    failed, login = "", False
    async for event in live.turn(PROMPT):
        match event:
            case ApprovalAsked(id=asked) | QuestionAsked(id=asked):
                await live.answer(asked, Answer.DENY, "This is a test; nothing is to be done.")
            case Failed(code=code, words=words):
                failed, login = words, code is ErrorCode.NOT_ALLOWED
            case Done(reply=reply):
                return Tried(reply, failed or ("" if reply else "It ended its turn without a reply."), login=login)
            case _:
                pass
    return Tried(failed=failed or "It ended its turn without saying so.", login=login)
