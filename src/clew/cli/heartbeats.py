"""The heartbeat of an agent: its options as the API takes them, and its settings in words."""

from typing import Any

from clew.cli.misuse import Misused, not_together
from clew.cli.times import every as spelled
from clew.cli.times import moment, seconds_of
from clew.protocol.views import Rhythm


def new_heartbeat(
    every: str | None, cron: str | None, zone: str | None, shared: bool, thread: str | None
) -> dict[str, Any] | None:
    if every is None and cron is None:
        if zone is not None or shared or thread is not None:
            raise Misused("--zone, --shared and --thread need a heartbeat.", "Add --every or --cron.")
        return None
    unset: dict[str, Any] = {"every": None, "cron": None, "thread": None}
    return unset | (heartbeat_change(every, cron, zone or "UTC", not shared, thread) or {})


def heartbeat_change(
    every: str | None, cron: str | None, zone: str | None, isolated: bool | None, thread: str | None
) -> dict[str, Any] | None:
    """The settings that were given; None if none were."""
    not_together({"--every": every, "--cron": cron})
    if every == "" or cron == "":
        raise Misused(f"{'--every' if every == '' else '--cron'} is empty.", "Remove a heartbeat with --no-heartbeat.")
    seconds = None if every is None else seconds_of(every)
    change = {"every": seconds, "cron": cron, "zone": zone, "isolated": isolated, "thread": thread}
    return {name: value for name, value in change.items() if value is not None} or None


def heartbeat_words(beat: Rhythm) -> str:
    when = f"{beat.cron} ({beat.zone})" if beat.cron else f"every {spelled(beat.every or 0)}"
    whose = "a new conversation each time" if beat.isolated else "all in one conversation"
    there = f", in {beat.thread}" if beat.thread else ""
    due = f", next {moment(beat.next_at)}" if beat.next_at else ""
    wrong = f"; {beat.fault}" if beat.fault else ""
    return f"{when}, {whose}{there}{due}{wrong}"
