"""The real OpenCode on trial."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from clew.kernel import Cursor
from clew.ports.provider import Provider, Settings
from clew.providers.opencode import make
from tests.providers.agents import MODEL, opencode_home
from tests.providers.rig import SECRET, Rig

OTHER = "loopback-2"


class OpenCodeRig(Rig):
    name = "opencode"
    real = True
    brief = True
    warm = True
    patience = 120.0
    other_model = f"loopback/{OTHER}"
    tells_reset = True

    def settings(self, home: str) -> Settings:
        settings = opencode_home(self.root / home, self.loopback, self.agents)
        config = Path(settings.home["XDG_CONFIG_HOME"]) / "opencode" / "opencode.json"
        content = json.loads(config.read_text(encoding="utf-8"))
        models = content["provider"]["loopback"]["models"]
        models[OTHER] = {**models[MODEL], "name": OTHER}
        config.write_text(json.dumps(content), encoding="utf-8")
        # Its own list of every model there is takes it seconds to read, in every directory anew.
        known = config.with_name("models.json")
        known.write_text("{}", encoding="utf-8")
        return replace(settings, environment={**settings.environment, **SECRET, "OPENCODE_MODELS_PATH": str(known)})

    def make(self, settings: Settings) -> Provider:
        return make(settings)

    def rules(self, cursor: Cursor) -> int | None:
        data = Path(self.settings("a").home["XDG_DATA_HOME"]) / "opencode" / "opencode.db"
        with closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as store:
            query = "SELECT permission FROM session WHERE id = ?"
            (kept,) = store.execute(query, (cursor.native_id,)).fetchone()
        return len(json.loads(kept or "[]"))


RIGS = (OpenCodeRig,)
