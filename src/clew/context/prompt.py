"""The prompt: what the session has not seen, in order, by whom it was said, and what of it is to be acted on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context.engine import ContextEngine, Listing, brief_by
from clew.context.fence import Fence, fence_for
from clew.context.measure import size_in_prompt
from clew.context.opening import is_handed_over, opening_lines
from clew.kernel import AuthorKind, Budget, BudgetReason, EntrySeq, Plan, select, voice
from clew.ports.fault import Fault
from clew.protocol.orders import Entry, Order
from clew.protocol.prompts import Prompt, PromptMaker

BUDGET = Budget(total=48_000, brief=4_000, entry_cap=16_000)


_LINE = re.compile("^", re.MULTILINE)


class PromptTooLong(Fault):
    code = BudgetReason.OVER.code


@dataclass(frozen=True, slots=True)
class _Told:
    """The entries by how they are told; `withheld` are not."""

    verbatim: tuple[Entry, ...]
    brief: str
    words: str
    withheld: tuple[EntrySeq, ...] = ()


def prompts_of(engine: ContextEngine | None = None, budget: Budget = BUDGET) -> PromptMaker:
    """What a daemon is handed."""

    async def make(order: Order, plan: Plan) -> Prompt:
        return await prompt_for(order, plan, engine, budget)

    return make


async def prompt_for(order: Order, plan: Plan, engine: ContextEngine | None = None, budget: Budget = BUDGET) -> Prompt:
    """Within the budget or not at all. The entries to act on are always there, unless the session has them already."""
    told = await _told(order, plan, engine or Listing(), budget)
    opening = opening_lines(order, plan)
    plain = not plan.already_told and _is_plain(order, opening, told)
    text = told.verbatim[0].body if plain else _laid_out(order, plan, opening, told)
    return Prompt(text or "Go on.", plan.catch_up.through, told.words)


async def _told(order: Order, plan: Plan, engine: ContextEngine, budget: Budget) -> _Told:
    entries = {entry.seq: entry for entry in _as_told(order, plan)}
    act_on = [seq for seq in plan.act_on if seq in entries]
    sized = (replace(each.facts, size=size_in_prompt(each.body, each.facts.size)) for each in entries.values())
    chosen = select(sized, budget, plan.reader, act_on)
    if not chosen.fits:
        raise PromptTooLong(chosen.words, "Say it in fewer words, or put it into a file of the project.")
    compacted = [entries[seq] for seq in chosen.compacted]
    brief, words = "", "" if chosen.reason is BudgetReason.ALL and not chosen.withheld else chosen.words
    if compacted:
        brief, failed = await brief_by(engine, compacted, budget.brief, order.agent.id)
        words = f"{words} {failed}".strip()
    return _Told(tuple(entries[seq] for seq in chosen.verbatim), brief, words, chosen.withheld)


def _as_told(order: Order, plan: Plan) -> Sequence[Entry]:
    """A history that is handed over is quoted, so that nothing in it can be taken for what is asked now."""
    if not is_handed_over(order, plan):
        return order.entries
    asked = frozenset(plan.act_on)
    return [
        entry if entry.seq in asked else replace(entry, body=_LINE.sub("> ", entry.body)) for entry in order.entries
    ]


def _is_plain(order: Order, opening: Sequence[str], told: _Told) -> bool:
    """One message of a person to the agent itself, and nothing beside it: that is said as it was written."""
    if opening or told.brief or len(told.verbatim) != 1 or order.thread.kind == "issue":
        return False
    entry = told.verbatim[0]
    return entry.facts.author.kind is AuthorKind.HUMAN and bool(entry.body.strip())


def _laid_out(order: Order, plan: Plan, opening: Sequence[str], told: _Told) -> str:
    fence = fence_for([told.brief, order.thread.title, *(entry.body for entry in told.verbatim)])
    parts = [_thread(order, fence), *opening]
    if told.withheld and is_handed_over(order, plan):
        # Or it would take for undone what another has done.
        parts.append(f"What agents wrote under another account is left out ({_listed(told.withheld)}).")
    if told.verbatim or told.brief:
        parts.append(fence.words)
    if told.brief:
        parts.append(f"Earlier in this thread, in short:\n{fence.around(told.brief)}")
    asked = frozenset(plan.act_on)
    parts += [_entry(order, entry, asked, fence) for entry in told.verbatim]
    parts.append(_demand(order, plan, [entry.seq for entry in told.verbatim if entry.seq in asked]))
    return "\n\n".join(part for part in parts if part)


def _thread(order: Order, fence: Fence) -> str:
    thread = order.thread
    if thread.kind != "issue" and not thread.title:
        return ""
    name = thread.kind if thread.number is None else f"{thread.kind} {thread.number}"
    # On one line, so that a title cannot pass for anything else.
    title = " ".join(thread.title.split()).replace(fence.mark, "")
    if thread.kind == "subject":
        return f'This is about "{title}", which is somewhere outside.'
    return f'This is {name}, called "{title}".' if title else f"This is {name}."


def _entry(order: Order, entry: Entry, asked: frozenset[EntrySeq], fence: Fence) -> str:
    spoken = voice(entry.facts, order.agent.id).words
    now = " (you are asked for this now)" if entry.seq in asked else ""
    return f"[{entry.seq}] {spoken}{now}\n{fence.around(entry.body)}"


def _demand(order: Order, plan: Plan, asked: Sequence[EntrySeq]) -> str:
    parts = []
    if plan.already_told:
        # A person who asks for it again has seen its end; a turn that was cut off has not come to one.
        once_more = any(wake.resume_run is not None for wake in order.wakes)
        cut_off = plan.session is not None and plan.session.cut_off
        how = ", and your work on it was cut off" if cut_off and not once_more else ""
        if once_more:
            then = "You are asked to do it once more."
        else:
            then = "Look at how far it came, and go on."
            then = then if cut_off else f"No answer to it has arrived. {then}"
        parts.append(f"You were told before what is wanted of you ({_listed(plan.already_told)}){how}. {then}")
    if asked:
        parts.append(f"Act on {_listed(asked)} now; all else is there for you to know.")
    return "\n".join(parts)


def _listed(entries: Sequence[EntrySeq]) -> str:
    return ", ".join(f"[{entry}]" for entry in entries)
