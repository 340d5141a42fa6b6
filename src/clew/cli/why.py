"""`clew why`: how a run was decided, or why a wake did not run."""

from clew.cli.client import Server, part
from clew.cli.harmless import one_line
from clew.cli.options import OPTIONS, Options
from clew.cli.reading import read
from clew.cli.runs import state_of
from clew.cli.telling import tell, tell_as_is
from clew.cli.times import moment
from clew.protocol.views import Changed, ConsideredView, DecisionView, StepView, WakeView, WhyView

FIT = "fit"


def why(subject: str, /, *, full: bool = False, options: Options = OPTIONS) -> None:
    """Say how a run was decided, or why a wake did not run.

    First the outcome, in a sentence; then every session that was considered, and what spoke for or against it; then
    what the agent itself confirmed.

    For example:

        clew why rn_01a1

        clew why wk_01a1 --full

    Parameters
    ----------
    subject
        A run or a wake: its id, or a beginning of it that no other has.
    full
        Say of every rule why it fits, too.
    """
    said = Server(options.data).get(f"/why/{part(subject)}")
    if options.json:
        return tell_as_is(said)
    for line in explained(read(WhyView, said), full):
        tell(line)
    return None


def explained(found: WhyView, full: bool) -> list[str]:
    lines = [one_line(found.headline)]
    for wake in found.wakes:
        lines += _wake(wake)
    for number, decision in enumerate(found.decisions, 1):
        lines += ["", *_decision(decision, number, len(found.decisions), full)]
    if found.landing:
        lines += ["", "The agent itself confirmed"]
        margin = max(map(len, found.landing)) + 2
        lines += [f"  {name:<{margin}}{one_line(str(value))}" for name, value in found.landing.items()]
    elif found.decisions:
        lines += ["", "The agent has confirmed nothing."]
    if found.refused:
        lines += ["", "Refused before the prompt went out"]
        lines += [f"  {one_line(words)}" for words in found.refused]
    if found.steered:
        lines += ["", "Within its turn the agent was told"]
        for steer in found.steered:
            taken = "" if steer.taken else f" (it did not take it; see `clew why {steer.wakes[0]}`)"
            lines.append(f"  {moment(steer.at)}  {one_line(steer.text, 200)}{taken}")
    if found.evidence is not None:
        lines += ["", one_line(found.evidence.words)]
    run = found.run
    if run is not None and run.words:
        code = f" [{run.code}]" if run.code else ""
        lines += ["", f"The run is {state_of(run)}: {one_line(run.words)}{code}"]
    return lines


def _wake(wake: WakeView) -> list[str]:
    lines = [f"  wake     {wake.id}, by {wake.reason} from {wake.origin}, {moment(wake.accepted_at)}: {wake.state}"]
    if wake.words:
        lines.append(f"           {one_line(wake.words)} [{wake.code}]")
    if wake.not_before is not None and wake.ended_at is None:
        lines.append(f"           not before {moment(wake.not_before)}")
    return lines


def place_of(decision: DecisionView | Changed) -> str:
    """Which of a run's decisions it is."""
    if decision.step < 0:
        # Nobody has taken it: there is no attempt to count.
        return "while it waits"
    return f"attempt {decision.attempt}, step {decision.step}"


def _decision(decision: DecisionView, number: int, of: int, full: bool) -> list[str]:
    which = f"Decision {number} of {of}" if of > 1 else "Decision"
    lines = [
        f"{which} ({place_of(decision)}), {moment(decision.at)}",
        f"  {decision.outcome}: {one_line(decision.words)} [{decision.code}]",
        f"  directory  {decision.directory or 'none'}  ({one_line(decision.place_words)})",
        f"  mode       {decision.mode or 'none'}  ({one_line(decision.mode_words)})",
        f"  told       {one_line(decision.catch_up)}",
    ]
    lines += [f"  note       {one_line(notice)}" for notice in decision.notices]
    for session in decision.considered:
        lines += _considered(session, full)
    if not decision.considered:
        lines.append("  No session was considered.")
    lines += [f"  asked      {_step(step)}" for step in decision.probes]
    return lines


def _considered(session: ConsideredView, full: bool) -> list[str]:
    """What speaks against it comes first; what fits is named in one line, unless it is asked for in full."""
    lines = [f"  session {session.session}, generation {session.generation}: {one_line(session.words)}"]
    lines += [f"    {_step(step)}" for step in session.steps if full or step.outcome != FIT]
    fits = [step.rule for step in session.steps if step.outcome == FIT]
    if fits and not full:
        lines.append(f"    {FIT:<11} {', '.join(fits)}")
    return lines


def _step(step: StepView) -> str:
    return f"{step.outcome:<11} {step.rule:<13} {one_line(step.words)}"
