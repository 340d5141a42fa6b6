"""The real Codex on trial."""

from dataclasses import replace
from pathlib import Path

from clew.ports.provider import Provider, Settings
from clew.providers.codex import make
from tests.providers.agents import Agents, codex_home
from tests.providers.rig import SECRET, Rig

# Looking for plugins takes a third of every start, and finds none here.
LEAN = "\n[features]\nplugins = false\n"


class CodexRig(Rig):
    name = "codex"
    real = True
    other_model = "loopback-2"
    tells_reset = True

    def __init__(self, root: Path, agents: Agents | None) -> None:
        super().__init__(root, agents)
        self.added: dict[str, str] = {}
        """What a home's settings hold instead of that."""

    def settings(self, home: str) -> Settings:
        settings = codex_home(self.root / home, self.loopback, self.agents)
        with (Path(settings.home["CODEX_HOME"]) / "config.toml").open("a", encoding="utf-8") as config:
            config.write(self.added.get(home, LEAN))
        return replace(settings, environment={**settings.environment, **SECRET})

    def make(self, settings: Settings) -> Provider:
        return make(settings)

    def asking(self, command: str) -> str:
        """As a model does it: it tries, is stopped by the sandbox, and asks to leave it."""
        return f"RUN: {command}\nESCALATE: {command}"


RIGS = (CodexRig,)
