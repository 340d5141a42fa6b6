"""ACP agents on trial: the guide by its command line, and the real ones where they are installed."""

import json
import sys
from pathlib import Path

from clew.ports.provider import Provider, Settings
from clew.providers.acp import make
from tests.providers.agents import MODEL, claude_home, codex_home, opencode_home
from tests.providers.rig import SECRET, Rig

OTHER = "loopback-2"


class AcpRig(Rig):
    """The guide as if nothing were known of it but its command line and what its user says of it. The client is the
    guide's own, which is tried in full."""

    name = "acp"
    brief = True

    def settings(self, home: str) -> Settings:
        return Settings(
            program=(sys.executable, "-P", "-m", "clew.providers.guide.agent"),
            home={"GUIDE_HOME": str(self.root / home), "HOME": str(self.root / home / "user")},
            environment=SECRET,
            options={f"mode.{mode}": mode for mode in ("read", "ask", "edit", "full")},
        )

    def make(self, settings: Settings) -> Provider:
        return make(settings)

    def heard(self) -> str:
        if self.model is not None:
            return super().heard()
        sessions = sorted((self.root / "a" / "sessions").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return sessions[-1].read_text(encoding="utf-8")


class RealAcpRig(AcpRig):
    """They take seconds to start, and each has a provider of its own that is tried in full."""

    real = True
    patience = 180.0
    tells_failures = False

    def _told(self, settings: Settings, agent: str, program: tuple[str, ...]) -> Settings:
        environment = {**settings.environment, **SECRET}
        return Settings(program=program, home=settings.home, environment=environment, options={"agent": agent})


class OpenCodeAcpRig(RealAcpRig):
    name = "acp:opencode"
    long = True
    takes_back = False
    other_model = f"loopback/{OTHER}"

    def settings(self, home: str) -> Settings:
        settings = opencode_home(self.root / home, self.loopback, self.agents)
        config = Path(settings.home["XDG_CONFIG_HOME"]) / "opencode" / "opencode.json"
        content = json.loads(config.read_text(encoding="utf-8"))
        models = content["provider"]["loopback"]["models"]
        models[OTHER] = {**models[MODEL], "name": OTHER}
        config.write_text(json.dumps(content), encoding="utf-8")
        return self._told(settings, "opencode", (*settings.program, "acp"))


class ClaudeAcpRig(RealAcpRig):
    name = "acp:claude"
    long = True
    other_model = "haiku"

    def settings(self, home: str) -> Settings:
        settings = claude_home(self.root / home, self.loopback, self.agents)
        return self._told(settings, "claude", self.agents.claude_acp.command)


class CodexAcpRig(RealAcpRig):
    name = "acp:codex"
    other_model = "gpt-5.4"

    def settings(self, home: str) -> Settings:
        settings = codex_home(self.root / home, self.loopback, self.agents)
        config = Path(settings.home["CODEX_HOME"]) / "config.toml"
        # Of a model that it does not know it says so, in the words of the agent.
        config.write_text(config.read_text(encoding="utf-8").replace(MODEL, "gpt-5.2"), encoding="utf-8")
        return self._told(settings, "codex", self.agents.codex_acp.command)

    def asking(self, command: str) -> str:
        """It asks only to leave its sandbox."""
        return f"ESCALATE: {command}"


RIGS = (AcpRig, OpenCodeAcpRig, ClaudeAcpRig, CodexAcpRig)
