"""A command on trial: a small program of which everything is said that can be said."""

import sys
from pathlib import Path

from clew.ports.provider import Provider, Settings
from clew.providers.command import make
from tests.providers.rig import SECRET, Rig

AGENT = Path(__file__).parents[1] / "command" / "agent.py"


class CommandRig(Rig):
    name = "command"
    other_model = "another"
    tells_tools = False

    def settings(self, home: str) -> Settings:
        return Settings(
            program=(sys.executable, str(AGENT)),
            home={"COMMAND_HOME": str(self.root / home), "HOME": str(self.root / home / "user")},
            environment=SECRET,
            options={
                "start": "turn",
                "resume": "turn --session {session}",
                "session": "session: (.+)",
                "probe": "show {session}",
                "missing": "44",
                "model": "--model {model}",
                "version": "--version",
                "mode.read": "--mode read",
                "mode.full": "--mode full",
            },
        )

    def make(self, settings: Settings) -> Provider:
        return make(settings)

    def heard(self) -> str:
        files = sorted((self.root / "a").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return files[-1].read_text(encoding="utf-8")


RIGS = (CommandRig,)
