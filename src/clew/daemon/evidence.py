"""Asking an agent's own store what became of a prompt: after a turn that did not end well, and for lost runs."""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from clew.daemon.ending import Turned
from clew.daemon.limits import Limits
from clew.daemon.machine import LocalMachine
from clew.daemon.orders import program_of
from clew.kernel import Attestation, Cursor, Directory, Evidence, Sent
from clew.ports.fault import Fault
from clew.ports.provider import Provider
from clew.protocol.orders import Order, StoreQuestion
from clew.protocol.reports import StoreAnswer

_PAUSE = 0.1
"""Seconds between questions while the store is still being written."""


async def ask_store(
    provider: Provider, cursor: Cursor | None, directory: Directory | None, sent: Sent, limits: Limits
) -> Attestation:
    """What the store says of it; asked again for a moment while it cannot tell. Nothing is raised."""
    if not provider.capabilities.hears:
        return Attestation(Evidence.UNKNOWN, f"{provider.name} keeps nothing that could be asked", able=False)
    if cursor is None or directory is None:
        return Attestation(Evidence.UNKNOWN, "the agent had not named its session yet", able=False)
    until = time.monotonic() + limits.hear_again
    while True:
        said = await _asked_once(provider.heard(cursor, directory, sent), limits.hear)
        if said.evidence is not Evidence.UNKNOWN or not said.able or time.monotonic() > until:
            return said
        await asyncio.sleep(_PAUSE)


async def _asked_once(asking: Coroutine[Any, Any, Attestation], seconds: float) -> Attestation:
    task = asyncio.ensure_future(asking)
    try:
        await asyncio.wait((task,), timeout=seconds)
    finally:
        # Nobody waits for it any more, whatever comes of it.
        task.cancel()
    if not task.done():
        return Attestation(Evidence.UNKNOWN, f"the agent's store did not answer within {seconds:g} s")
    try:
        return task.result()
    except Exception as fault:  # noqa: BLE001 - whatever went wrong, it is no word about the prompt
        return Attestation(Evidence.UNKNOWN, str(fault) or repr(fault))


async def answer_to(question: StoreQuestion, order: Order, machine: LocalMachine, limits: Limits) -> StoreAnswer:
    """What the store of an earlier run says. The home is what counts: any program that is offered there can read it."""

    async def ask(sent: Sent | None) -> Attestation | None:
        if sent is None:
            return None
        try:
            program = program_of(order) if question.runtime == order.runtime else None
            provider = machine.provider(program or machine.offered_as(question.runtime))
        except Fault as fault:
            return Attestation(Evidence.UNKNOWN, fault.words)
        return await ask_store(provider, question.cursor, question.directory, sent, limits)

    return StoreAnswer(question.run, await ask(question.prompt), await ask(question.steered))


def observed(turned: Turned) -> Attestation:
    """For a provider whose store tells nothing, while we still know what we did: whether the program had the prompt."""
    if turned.failed is not None and not turned.failed.handed:
        return Attestation(Evidence.UNSENT, "the program was not started with it")
    if turned.said or turned.tool_ran:
        return Attestation(Evidence.CUT_OFF, "the program had begun to answer it")
    if turned.failed is not None or turned.done is not None:
        return Attestation(Evidence.TAKEN, "the program was started with it, and said nothing")
    return Attestation(Evidence.UNKNOWN, "it is not known how far the program came", able=False)


_IN_WORDS: Mapping[Evidence, str] = {
    Evidence.UNSENT: "The agent's own store does not have the prompt",
    Evidence.TAKEN: "The agent's own store has the prompt, and nothing that follows it",
    Evidence.CUT_OFF: "The agent's own store has the prompt and part of a turn",
    Evidence.FINISHED: "The agent's own store has the prompt and a finished reply",
    Evidence.UNKNOWN: "The agent's own store does not tell whether the prompt was taken",
}


def in_words(heard: Attestation) -> str:
    detail = heard.detail.strip().removesuffix(".")
    return f"{_IN_WORDS[heard.evidence]}: {detail}." if detail else f"{_IN_WORDS[heard.evidence]}."
