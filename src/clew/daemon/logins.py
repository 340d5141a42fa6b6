"""Failures for want of a login: they say which login the agent's program used, or how it gets one."""

from dataclasses import replace

from clew.daemon.machine import LocalMachine
from clew.daemon.run_end import TurnResult
from clew.daemon.settings import program_of
from clew.ports.events import ErrorCode
from clew.ports.logins import with_login
from clew.programs.faults import NotLoggedIn
from clew.protocol.orders import Order


async def explain_refused_turn(result: TurnResult, order: Order, machine: LocalMachine) -> TurnResult:
    failed = result.failed
    if failed is None or failed.code is not ErrorCode.NOT_ALLOWED:
        return result
    return replace(result, failed=replace(failed, words=await _explained(failed.words, order, machine)))


async def explain_refused_open(fault: Exception, order: Order, machine: LocalMachine) -> Exception:
    if not isinstance(fault, NotLoggedIn):
        return fault
    return NotLoggedIn(await _explained(fault.words, order, machine), "")


async def _explained(words: str, order: Order, machine: LocalMachine) -> str:
    known = await machine.logins(program_of(order) or machine.offered_as(order.runtime))
    return words if known is None else with_login(words, known, order.plan.situation.here.agent)
