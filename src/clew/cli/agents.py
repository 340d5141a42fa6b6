"""An agent's settings, as the command line takes and shows them."""

import os
from typing import Any

from clew.cli.table import facts
from clew.cli.texts import BadText, pairs
from clew.cli.times import every as spelled
from clew.cli.times import moment, seconds_of
from clew.protocol.views import AgentView, Rhythm


def environment(words: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, or a name alone: a secret need not be typed where others can read it."""
    full: list[str] = []
    for each in words:
        if "=" in each:
            full.append(each)
        elif each in os.environ:
            full.append(f"{each}={os.environ[each]}")
        else:
            raise BadText(f"{each} has no value here.", f"Set it first, or write --env {each}=VALUE.")
    return pairs(tuple(full), "--env")


def rhythm(
    every: str | None, cron: str | None, zone: str | None, shared: bool, thread: str | None
) -> dict[str, Any] | None:
    if every is None and cron is None:
        if zone is not None or shared or thread is not None:
            words = "There is no heartbeat that --zone, --shared or --thread could be about."
            raise BadText(words, "Add --every or --cron.")
        return None
    if every is not None and cron is not None:
        raise BadText("A heartbeat goes by --every or by --cron, not by both.", "Leave one of them out.")
    return {
        "every": None if every is None else seconds_of(every),
        "cron": cron,
        "zone": zone or "UTC",
        "isolated": not shared,
        "thread": thread,
    }


def changed_rhythm(
    every: str | None, cron: str | None, zone: str | None, isolated: bool | None, thread: str | None
) -> dict[str, Any] | None:
    """What was named of a heartbeat; the rest of it stays."""
    if every is not None and cron is not None:
        raise BadText("A heartbeat goes by --every or by --cron, not by both.", "Leave one of them out.")
    seconds = None if every is None else seconds_of(every)
    change = {"every": seconds, "cron": cron, "zone": zone, "isolated": isolated, "thread": thread}
    return {name: value for name, value in change.items() if value is not None} or None


def show_agent(agent: AgentView) -> None:
    facts(
        [
            ("name", agent.name),
            ("state", agent.state),
            ("provider", agent.provider),
            ("model", agent.model or ""),
            ("mode", agent.mode),
            ("program", " ".join(agent.program)),
            ("options", _listed(agent.options)),
            ("home", agent.home),
            ("variables", _listed(agent.home_variables)),
            ("environment", ", ".join(agent.environment_names)),
            ("at once", str(agent.most)),
            ("going", str(agent.live)),
            ("waiting", str(agent.waiting)),
            ("runtime", agent.runtime or ""),
            ("across accounts", "yes" if agent.across_accounts else "no"),
            ("heartbeat", "" if agent.heartbeat is None else _heartbeat(agent.heartbeat)),
            ("instructions", agent.instructions or ""),
        ]
    )


def _heartbeat(beat: Rhythm) -> str:
    when = f"{beat.cron} ({beat.zone})" if beat.cron else f"every {spelled(beat.every or 0)}"
    whose = "each in a conversation of its own" if beat.isolated else "all in one conversation"
    there = f", in {beat.thread}" if beat.thread else ""
    due = f", next {moment(beat.next_at)}" if beat.next_at else ""
    wrong = f"; {beat.fault}" if beat.fault else ""
    return f"{when}, {whose}{there}{due}{wrong}"


def _listed(values: object) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) if isinstance(values, dict) else ""
