"""How OpenCode is started: its command line and its environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from clew.ports.provider import Settings
from clew.programs.faults import BadArguments, CannotStart
from clew.programs.program import Launch, environment_for, find_program
from clew.programs.secrets import Redactor
from clew.programs.state import Ledger, Scratch

PLUGIN = Path(__file__).with_name("plugin.js")
PASSWORD = "OPENCODE_SERVER_PASSWORD"
USER = "opencode"
AGENT = "agent"
"""The option that names the agent of OpenCode that answers prompts."""
PROJECT_CONFIG = "project-config"
"""The option that makes OpenCode read a project's own configuration. That can widen every mode, and run programs."""


@dataclass(frozen=True, slots=True)
class OpenCodeLaunch(Launch):
    password: str = field(repr=False)
    """Of the server. An agent could use it to widen its own permissions, so no event may show it."""
    scratch: Scratch

    def redactor(self, environment: Mapping[str, str] | None = None) -> Redactor:
        """Hides the secrets of this environment and of the given one."""
        return Redactor({**self.environment, **(environment or {}), PASSWORD: self.password})


def launch_of(settings: Settings, password: str, ledger: Ledger | None, scratch: Scratch) -> OpenCodeLaunch:
    # OpenCode must not replace its own program while it runs.
    own = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    without = {"OPENCODE_DISABLE_PROJECT_CONFIG": "0" if _reads_project(settings) else "1"}
    environment = environment_for(own, settings.home, settings.environment, without)
    remedy = "Install it (npm install -g opencode-ai), or name the program: `clew agent edit NAME -- PROGRAM`."
    program = find_program(settings.program, "opencode", environment.get("PATH"), remedy)
    return OpenCodeLaunch(program, environment, settings.deadlines, ledger, password, scratch)


def for_server(launch: OpenCodeLaunch, scratch: Path) -> dict[str, str]:
    """The server's extra variables: its password, and Clew's plugin with the directory that the plugin uses."""
    return {
        PASSWORD: launch.password,
        "OPENCODE_SERVER_USERNAME": USER,
        "CLEW_OPENCODE_SESSIONS": str(scratch),
        # Every start unpacks a library of some megabytes there, and OpenCode never removes it.
        "BUN_TMPDIR": launch.environment.get("BUN_TMPDIR", str(scratch)),
        **_with_plugin(launch.environment),
    }


def _with_plugin(environment: Mapping[str, str]) -> dict[str, str]:
    """Add Clew's plugin to those that the environment makes the server load."""
    if environment.get("OPENCODE_PURE", "").lower() in ("1", "true"):
        words = "OPENCODE_PURE disables Clew's plugin, which keeps the server's password from shells."
        raise CannotStart(words, "Remove it from the settings.")
    try:
        content = orjson.loads(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
        content["plugin"] = [*content.get("plugin", ()), PLUGIN.as_uri()]
    except (orjson.JSONDecodeError, TypeError, AttributeError) as fault:
        remedy = "Correct it: `clew agent edit NAME --add-env OPENCODE_CONFIG_CONTENT=JSON`."
        raise CannotStart("OPENCODE_CONFIG_CONTENT is not a JSON object.", remedy) from fault
    return {"OPENCODE_CONFIG_CONTENT": orjson.dumps(content).decode()}


def _reads_project(settings: Settings) -> bool:
    value = settings.options.get(PROJECT_CONFIG, "no")
    if value not in ("yes", "no"):
        raise BadArguments(f"The option {PROJECT_CONFIG} is {value!r}.", "Write yes or no.")
    return value == "yes"
