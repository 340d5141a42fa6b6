"""The guide: Clew's own agent, which follows a script. It needs no account and no network."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.ports.provider import Provider, Settings


def make(settings: "Settings") -> "Provider":
    # The agent is below this package, and starts ten times as fast without these imports.
    from clew.providers.guide.provider import GuideProvider  # noqa: PLC0415

    return GuideProvider(settings)
