"""The guide on trial: an agent of our own, without a model."""

from clew.kernel import Cursor
from clew.ports.provider import Provider, Settings
from clew.providers.guide import make
from tests.providers.rig import SECRET, Rig


class GuideRig(Rig):
    name = "guide"

    def settings(self, home: str) -> Settings:
        return Settings(home={"GUIDE_HOME": str(self.root / home)}, environment=SECRET)

    def make(self, settings: Settings) -> Provider:
        return make(settings)

    def heard(self) -> str:
        sessions = sorted((self.root / "a" / "sessions").glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        return sessions[-1].read_text(encoding="utf-8")

    def rules(self, cursor: Cursor) -> int | None:
        return (self.root / "a" / "sessions" / f"{cursor.native_id}.json").read_text().count('"mode"')


RIGS = (GuideRig,)
