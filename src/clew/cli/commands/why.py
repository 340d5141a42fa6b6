"""`clew why` and `clew replay`: how runs were decided, why a wake did not run, and past decisions under another
policy."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from clew.cli.answers import print_view
from clew.cli.client import Server, thread_part
from clew.cli.commands.runs import state_of
from clew.cli.input import OPTIONS, Options
from clew.cli.misuse import not_together
from clew.cli.output import counted, short_ids, table, tell
from clew.cli.policy_file import read_policy
from clew.cli.safe_text import one_line
from clew.cli.times import moment, seconds_of
from clew.protocol.replay import Changed, ReplayView
from clew.protocol.views import WakeView
from clew.protocol.why_views import ConsideredView, DecisionView, StepView, WhyView

FIT = "fit"


def why(subject: str, /, *, full: bool = False, options: Options = OPTIONS) -> None:
    """Explain how a run was decided, or why a wake did not run.

    Shows the outcome in a sentence, then every session that was considered with the rules for and against it, then what
    the agent itself confirmed.

    For example:

        clew why issue-3

        clew why run-17 --full

    Parameters
    ----------
    subject
        A run (run-17), a thread (its latest run), or a wake; each also by its id or a unique prefix.
    full
        Also explain the rules that matched.
    """
    said = Server(options.data).get(f"/why/{thread_part(subject)}")

    def show(found: WhyView) -> None:
        tell(short_ids("\n".join(explained(found, full))))

    print_view(options, said, WhyView, show, long=True)


def explained(found: WhyView, full: bool) -> list[str]:
    lines = [one_line(found.headline), *(f"  note     {one_line(notice)}" for notice in found.notices)]
    for wake in found.wakes:
        lines += _wake(wake)
    for number, alike in _folded(found.decisions):
        lines += ["", *_decision(alike, number, len(found.decisions), full)]
    if found.landing:
        lines += ["", "Confirmed by the agent"]
        margin = max(map(len, found.landing)) + 2
        lines += [f"  {name:<{margin}}{one_line(str(value))}" for name, value in found.landing.items()]
    elif found.decisions:
        lines += ["", "The agent has not confirmed anything yet."]
    if found.refused:
        lines += ["", "Refused before the prompt was sent"]
        lines += [f"  {one_line(words)}" for words in found.refused]
    if found.steered:
        lines += ["", "Sent during the turn"]
        for steer in found.steered:
            taken = "" if steer.taken else f" (not received; see `clew why {steer.wakes[0]}`)"
            lines.append(f"  {moment(steer.at)}  {one_line(steer.text, 200)}{taken}")
    if found.evidence is not None:
        lines += ["", one_line(found.evidence.words)]
    run = found.run
    if run is not None and run.words:
        code = f" [{run.code}]" if run.code else ""
        lines += ["", f"{run.ref}, {state_of(run)}: {one_line(run.words)}{code}"]
    return lines


def _wake(wake: WakeView) -> list[str]:
    lines = [f"  wake     {wake.id}, by {wake.reason} from {wake.origin}, {moment(wake.accepted_at)}: {wake.state}"]
    if wake.words:
        lines.append(f"           {one_line(wake.words)} [{wake.code}]")
    if wake.not_before is not None and wake.ended_at is None:
        lines.append(f"           not before {moment(wake.not_before)}")
    return lines


def place_of(decision: DecisionView | Changed) -> str:
    """Attempt and step of a decision within its run."""
    if decision.step < 0:
        # Not claimed yet, so there is no attempt.
        return "while it waits"
    return f"attempt {decision.attempt}, step {decision.step}"


def _folded(decisions: Sequence[DecisionView]) -> Iterator[tuple[int, list[DecisionView]]]:
    """Decisions in a row that say the same, with the number of the first."""
    number = 1
    for _, alike in groupby(decisions, key=lambda each: replace(each, attempt=0, step=min(each.step, 0), at=0.0)):
        same = list(alike)
        yield number, same
        number += len(same)


def _decision(alike: list[DecisionView], number: int, of: int, full: bool) -> list[str]:
    decision, last = alike[0], alike[-1]
    which = f"Decision {number} of {of}" if of > 1 else "Decision"
    when = f"{which} ({place_of(decision)}), {moment(decision.at)}"
    if len(alike) > 1:
        when = f"Decisions {number} to {number + len(alike) - 1} of {of}, all alike, from {moment(decision.at)}"
        when += f" to {moment(last.at)} (the last: {place_of(last)})"
    lines = [
        when,
        f"  {decision.outcome}: {one_line(decision.words)} [{decision.code}]",
        f"  directory  {decision.directory or 'none'}  ({one_line(decision.place_words)})",
        f"  mode       {decision.mode or 'none'}  ({one_line(decision.mode_words)})",
        f"  catch-up   {one_line(decision.catch_up)}",
    ]
    lines += [f"  note       {one_line(notice)}" for notice in decision.notices]
    for session in decision.considered:
        lines += _considered(session, full)
    if not decision.considered:
        lines.append("  no session was considered")
    lines += [f"  asked      {_step(step)}" for step in decision.probes]
    return lines


def _considered(session: ConsideredView, full: bool) -> list[str]:
    """Rules against the session first; those that match in one line, unless `full`."""
    lines = [f"  session {session.session}, generation {session.generation}: {one_line(session.words)}"]
    lines += [f"    {_step(step)}" for step in session.steps if full or step.outcome != FIT]
    fits = [step.rule for step in session.steps if step.outcome == FIT]
    if fits and not full:
        lines.append(f"    {FIT:<11} {', '.join(fits)}")
    return lines


def _step(step: StepView) -> str:
    return f"{step.outcome:<11} {step.rule:<13} {one_line(step.words)}"


DEADLINE = 600.0
"""Every recorded decision in that time is made again."""


def replay(
    *,
    policy: Path,
    since: str = "7d",
    agent: str | None = None,
    project: str | None = None,
    options: Options = OPTIONS,
) -> None:
    """Show which past decisions another policy would change. Read-only.

    One line is one decision. A run has one when it is claimed (step 0), and another each time its agent's answer
    changes the plan; `clew why` shows them all.

    For example:

        clew replay --since 7d --policy stricter.json

    where stricter.json contains, for example, `{"limits": {"turns": 50}}`. Settings that it leaves out keep their
    defaults.

    Parameters
    ----------
    policy
        A JSON file with the policy.
    since
        How far to look back, such as 12h, 7d or 4w.
    agent
        Only decisions of this agent, as if the policy were set for it with `clew policy set`.
    project
        Only decisions in this project, as if the policy were set for it.
    """
    not_together({"--agent": agent, "--project": project}, "a policy is an agent's or a project's")
    asked = {"since": time.time() - seconds_of(since), "policy": read_policy(policy)}
    whose = {"agent": agent} if agent else {"project": project} if project else {}
    said = Server(options.data).post("/replay", {**asked, **whose}, DEADLINE)
    print_view(options, said, ReplayView, _show_replay)


def _show_replay(found: ReplayView) -> None:
    table(list(map(_row, found.changed)), "No decision would change.")
    unreadable = f"; {found.unreadable} could not be read" if found.unreadable else ""
    tell(f"{len(found.changed)} of {counted(found.looked_at, 'decision')} would change{unreadable}.")


def _row(changed: Changed) -> dict[str, str]:
    return {
        "run": changed.ref,
        "decision": place_of(changed),
        "thread": changed.thread,
        "when": moment(changed.at),
        "was": changed.was,
        "would be": changed.now,
        "reason": changed.words,
    }
