"""The real agents: where they are, homes for them that talk to a loopback model, and how to run one to its end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from clew.ports.provider import Settings
from tests import skipped
from tests.providers.loopback.server import Model
from tools.agents import SOURCES, Program, pins, place, programs

KEY = "dummy"
MODEL = "loopback-1"

# What goes out by any other way than to the model ends here at once, where nobody listens.
NOWHERE = "http://127.0.0.1:9"
NO_OUTSIDE = {
    **dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), NOWHERE),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


@dataclass(frozen=True)
class Agents:
    """A test that asks for a program which has no build for this platform is skipped."""

    programs: Mapping[str, Program]

    @property
    def claude(self) -> Program:
        return self._program("claude")

    @property
    def codex(self) -> Program:
        return self._program("codex")

    @property
    def opencode(self) -> Program:
        return self._program("opencode")

    @property
    def claude_acp(self) -> Program:
        return self._program("claude-acp")

    @property
    def codex_acp(self) -> Program:
        return self._program("codex-acp")

    def _program(self, name: str) -> Program:
        if name not in self.programs:
            if SOURCES[name].script and shutil.which("node") is None:
                skip(f"node is not here, and {name} needs it: install Node.js 18 or newer")
            skip(f"{name} {pins()[name]} has no build for this platform in agents/package-lock.json")
        return self.programs[name]


def installed() -> Agents | None:
    """The agents at their pinned versions; None when `make agents` has not run."""
    where = place()
    return Agents(programs(where)) if where.is_dir() else None


def skip(reason: str) -> NoReturn:
    """Skip so that the summary tells it. CLEW_NEED_AGENTS=1 makes it a failure."""
    skipped.skip(skipped.AGENT, reason)


# ---------------------------------------------------------------- homes


def claude_home(tmp: Path, model: Model, agents: Agents) -> Settings:
    home = _made(tmp / "claude")
    environment = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        **NO_OUTSIDE,
    }
    if os.geteuid() == 0:
        environment["IS_SANDBOX"] = "1"  # As root it refuses the bypass mode without.
    where = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(_made(home / ".claude"))}
    return Settings(program=agents.claude.command, home=where, environment=environment)


CODEX_CONFIG = """\
model = "{name}"
model_provider = "loopback"
check_for_update_on_startup = false

[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "LOOPBACK_KEY"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false
"""


def codex_home(tmp: Path, model: Model, agents: Agents) -> Settings:
    home = _made(tmp / "codex")
    store = _made(home / ".codex")
    (store / "config.toml").write_text(CODEX_CONFIG.format(name=MODEL, url=model.url), encoding="utf-8")
    where = {"HOME": str(home), "CODEX_HOME": str(store)}
    return Settings(program=agents.codex.command, home=where, environment={"LOOPBACK_KEY": KEY, **NO_OUTSIDE})


def opencode_home(tmp: Path, model: Model, agents: Agents) -> Settings:
    home = _made(tmp / "opencode")
    where = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
    }
    config = _made(home / ".config" / "opencode")
    known = {"name": MODEL, "limit": {"context": 200_000, "output": 8_192}, "cost": {"input": 1, "output": 2}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "loopback",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": KEY},
        "models": {MODEL: known},
    }
    chosen = {"model": f"loopback/{MODEL}", "small_model": f"loopback/{MODEL}"}
    _write(config / "opencode.json", {"provider": {"loopback": provider}, **chosen, "share": "disabled"})
    # It fetches its plugin package into every home where these files do not say that it has done so.
    plugin = {"dependencies": {"@opencode-ai/plugin": agents.opencode.version}}
    _made(config / "node_modules")
    _write(config / "package.json", plugin)
    _write(config / "package-lock.json", {"lockfileVersion": 3, "packages": {"": plugin}})
    # Its own list of every model there is takes it seconds to read, in every directory anew.
    models = config / "models.json"
    _write(models, {})
    environment = {
        "OPENCODE_MODELS_PATH": str(models),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        **NO_OUTSIDE,
    }
    return Settings(program=agents.opencode.command, home=where, environment=environment)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")


# ---------------------------------------------------------------- running


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


def run(settings: Settings, *arguments: str, cwd: Path, stdin: str = "", seconds: float = 90.0) -> Ended:
    """Run a program to its end. Past the deadline it raises `TimeoutExpired`; in any case nothing of it runs on."""
    mark = f"CLEW_TEST_RUN={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", name: value, **settings.home, **settings.environment}
    program = subprocess.Popen(
        [*settings.program, *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with program:
        try:
            out, err = program.communicate(stdin, timeout=seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            end_marked(mark)
    return Ended(program.returncode, out, err)


def marked(mark: str) -> list[int]:
    """The processes whose environment began with this `NAME=value`, whoever is their parent or group by now."""
    if sys.platform != "linux":
        return []
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (directory / "environ").read_bytes().split(b"\0"):
                found.append(int(directory.name))
    return found


def end_marked(mark: str) -> None:
    for process in marked(mark):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
