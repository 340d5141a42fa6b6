"""Evidence: an agent's own store is asked what became of a prompt, after a failed turn and for lost runs."""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from clew.daemon.limits import Limits
from clew.daemon.machine import LocalMachine
from clew.daemon.run_end import TurnResult
from clew.daemon.settings import program_of
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
    """The store's answer. While it cannot tell, it is asked again for a moment. Nothing is raised."""
    if not provider.capabilities.hears:
        return Attestation(Evidence.UNKNOWN, f"{provider.name} has no store that could be asked", able=False)
    if cursor is None or directory is None:
        return Attestation(Evidence.UNKNOWN, "the agent had not named its session yet", able=False)
    until = time.monotonic() + limits.ask_store_again
    while True:
        said = await _ask_once(provider.heard(cursor, directory, sent), limits.ask_store)
        if said.evidence is not Evidence.UNKNOWN or not said.able or time.monotonic() > until:
            return said
        await asyncio.sleep(_PAUSE)


async def _ask_once(asking: Coroutine[Any, Any, Attestation], seconds: float) -> Attestation:
    task = asyncio.ensure_future(asking)
    try:
        await asyncio.wait((task,), timeout=seconds)
    finally:
        task.cancel()
    if not task.done():
        return Attestation(Evidence.UNKNOWN, f"the agent's store did not answer within {seconds:g} s")
    try:
        return task.result()
    except Exception as fault:  # noqa: BLE001 - a failed question tells nothing about the prompt
        return Attestation(Evidence.UNKNOWN, str(fault) or repr(fault))


async def answer_to(question: StoreQuestion, order: Order, machine: LocalMachine, limits: Limits) -> StoreAnswer:
    """Ask the store of an earlier run. The store is in the runtime's home, so any program offered there can read it."""

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


def observed(result: TurnResult) -> Attestation:
    """For a provider without a store: whether the program had the prompt, by what this daemon did and saw."""
    if result.failed is not None and not result.failed.handed:
        return Attestation(Evidence.UNSENT, "the program was not started with it")
    if result.said:
        return Attestation(Evidence.CUT_OFF, "the program had begun to answer it")
    if result.failed is not None or result.done is not None:
        return Attestation(Evidence.TAKEN, "the program was started with it, and said nothing")
    return Attestation(Evidence.UNKNOWN, "it is not known how far the program got", able=False)


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
