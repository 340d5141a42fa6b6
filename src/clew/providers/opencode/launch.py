"""How OpenCode is started: its command line, its environment, and what Clew adds to that."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from clew.ports.provider import Deadlines, Settings
from clew.programs.environment import environment_for
from clew.programs.faults import BadArguments, CannotStart
from clew.programs.ledger import Ledger
from clew.programs.program import Program, start
from clew.programs.scratch import Scratch
from clew.programs.secrets import Redactor

PLUGIN = Path(__file__).with_name("plugin.js")
PASSWORD = "OPENCODE_SERVER_PASSWORD"
USER = "opencode"
AGENT = "agent"
"""The option that names which of OpenCode's own agents answers."""
PROJECT_CONFIG = "project-config"
"""The option by which a project's own configuration is read. That can make every mode wider, and run programs."""


@dataclass(frozen=True, slots=True)
class Launch:
    command: tuple[str, ...]
    environment: Mapping[str, str]
    password: str = field(repr=False)
    """The server's. With it an agent could lift its own permissions, so no event may show it."""
    deadlines: Deadlines
    ledger: Ledger | None
    scratch: Scratch

    def redactor(self, environment: Mapping[str, str] | None = None) -> Redactor:
        """Hides what is secret here, and in that environment."""
        return Redactor({**self.environment, **(environment or {}), PASSWORD: self.password})

    async def start(self, *arguments: str, directory: Path, extra: Mapping[str, str] | None = None) -> Program:
        return await start((*self.command, *arguments), directory, {**self.environment, **(extra or {})}, self.ledger)


def launch(settings: Settings, password: str, ledger: Ledger | None, scratch: Scratch) -> Launch:
    """It must not replace its own program while we rely on it."""
    own = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    without = {"OPENCODE_DISABLE_PROJECT_CONFIG": "0" if _reads_project(settings) else "1"}
    environment = environment_for(own, settings.home, settings.environment, without)
    program = _program(settings, environment.get("PATH"))
    return Launch(program, environment, password, settings.deadlines, ledger, scratch)


def for_server(launch: Launch, scratch: Path) -> dict[str, str]:
    """What the server gets besides: who may call it, and our plugin with the directory where that looks."""
    return {
        PASSWORD: launch.password,
        "OPENCODE_SERVER_USERNAME": USER,
        "CLEW_OPENCODE_SESSIONS": str(scratch),
        # It unpacks a library of some megabytes there every time it starts, and never removes it.
        "BUN_TMPDIR": launch.environment.get("BUN_TMPDIR", str(scratch)),
        **_with_plugin(launch.environment),
    }


def _with_plugin(environment: Mapping[str, str]) -> dict[str, str]:
    """What makes the server load our plugin, beside whatever the environment had it load."""
    if environment.get("OPENCODE_PURE", "").lower() in ("1", "true"):
        words = "OPENCODE_PURE keeps out Clew's plugin, which keeps the server's password from shells."
        raise CannotStart(words, "Take it out of the settings.")
    try:
        content = orjson.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
        content["plugin"] = [*content.get("plugin", ()), PLUGIN.as_uri()]
    except (orjson.JSONDecodeError, TypeError, AttributeError) as fault:
        raise CannotStart("OPENCODE_CONFIG_CONTENT is not a JSON object.", "Mend it in the settings.") from fault
    return {"OPENCODE_CONFIG_CONTENT": orjson.dumps(content).decode()}


def _reads_project(settings: Settings) -> bool:
    told = settings.options.get(PROJECT_CONFIG, "no")
    if told not in ("yes", "no"):
        raise BadArguments(f"The option {PROJECT_CONFIG} is {told!r}.", "Write yes or no.")
    return told == "yes"


def _program(settings: Settings, path: str | None) -> tuple[str, ...]:
    if settings.program:
        return settings.program
    found = shutil.which("opencode", path=path)
    if found is None:
        raise CannotStart(
            "OpenCode is not on the PATH.", "Install it (npm install -g opencode-ai), or name its program."
        )
    return (found,)
