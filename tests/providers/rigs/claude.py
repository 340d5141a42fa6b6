"""Claude Code on trial."""

from dataclasses import replace

from clew.ports.provider import Provider, Settings
from clew.providers.claude import make
from tests.providers.agents import claude_home
from tests.providers.rig import SECRET, Rig


class ClaudeRig(Rig):
    name = "claude"
    real = True
    brief = True
    other_model = "loopback-2"

    def settings(self, home: str) -> Settings:
        settings = claude_home(self.root / home, self.loopback, self.agents)
        return replace(settings, environment={**settings.environment, **SECRET})

    def make(self, settings: Settings) -> Provider:
        return make(settings)


RIGS = (ClaudeRig,)
