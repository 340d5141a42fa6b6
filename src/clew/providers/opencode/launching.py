"""How OpenCode is started: its command line, its environment, and what Clew adds to that."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from clew.ports.provider import Deadlines, Settings
from clew.programs.environment import environment_for
from clew.programs.faults import CannotStart
from clew.programs.ledger import Ledger
from clew.programs.program import Program, start
from clew.programs.secrets import Redactor
from clew.providers.opencode.scratch import Scratch

PLUGIN = Path(__file__).with_name("plugin.js")


@dataclass(frozen=True, slots=True)
class Launch:
    command: tuple[str, ...]
    environment: Mapping[str, str]
    deadlines: Deadlines
    ledger: Ledger | None
    scratch: Scratch

    @property
    def redactor(self) -> Redactor:
        return Redactor(self.environment)

    async def start(self, *arguments: str, directory: Path, extra: Mapping[str, str] | None = None) -> Program:
        return await start((*self.command, *arguments), directory, {**self.environment, **(extra or {})}, self.ledger)


def launch(settings: Settings, ledger: Ledger | None, scratch: Scratch) -> Launch:
    """It must not replace its own program while we rely on it."""
    own = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    environment = environment_for(own, settings.home, settings.environment)
    return Launch(_program(settings, environment.get("PATH")), environment, settings.deadlines, ledger, scratch)


def with_plugin(environment: Mapping[str, str]) -> dict[str, str]:
    """What makes the server load our plugin, beside whatever the environment had it load."""
    try:
        content = orjson.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
        content["plugin"] = [*content.get("plugin", ()), PLUGIN.as_uri()]
    except (orjson.JSONDecodeError, TypeError) as fault:
        raise CannotStart("OPENCODE_CONFIG_CONTENT is not a JSON object.", "Mend it in the settings.") from fault
    return {"OPENCODE_CONFIG_CONTENT": orjson.dumps(content).decode()}


def _program(settings: Settings, path: str | None) -> tuple[str, ...]:
    if settings.program:
        return settings.program
    found = shutil.which("opencode", path=path)
    if found is None:
        raise CannotStart(
            "OpenCode is not on the PATH.", "Install it (npm install -g opencode-ai), or name its program."
        )
    return (found,)
