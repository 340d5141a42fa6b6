"""The provider of the guide: the ACP client with an agent of our own, whose sessions can also be carried."""

import sys
from dataclasses import replace
from pathlib import Path

from clew.kernel import Capabilities, Cursor, Directory, LandingField, PermissionMode
from clew.ports.provider import ArchiveFile, Settings
from clew.programs.acp.agent import AcpAgent, ModeRule
from clew.programs.acp.listing import CURSOR_VERSION
from clew.programs.acp.provider import AcpProvider
from clew.programs.environment import environment_for
from clew.programs.faults import Refused
from clew.providers.guide.carrying import FORMAT, carry_in, carry_out
from clew.providers.guide.home import VARIABLE, home_of
from clew.providers.guide.memory import SHAPE

# Its modes are Clew's own, and it asks by itself; -P keeps what lies in its directory from being imported.
GUIDE = AcpAgent(
    name="guide",
    command=(sys.executable, "-P", "-m", "clew.providers.guide.agent"),
    modes={
        PermissionMode.READ: ModeRule("read"),
        PermissionMode.ASK: ModeRule("ask", asks=True),
        PermissionMode.EDIT: ModeRule("edit", asks=True),
        PermissionMode.FULL: ModeRule("full"),
    },
    fork_into=True,
    list_is_whole=True,
    reports=frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY, LandingField.MODE, LandingField.TURNS}),
    id_shape=SHAPE,
    hint="It comes with Clew: install Clew again.",
)


class GuideProvider(AcpProvider):
    def __init__(self, settings: Settings) -> None:
        self._store = home_of(environment_for(settings.home)).resolve()
        named = replace(settings, home={**settings.home, VARIABLE: str(self._store)})
        super().__init__("guide", GUIDE, named, str(self._store))

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, archive=True, restore_keeps_id=True, archive_formats=frozenset({FORMAT}))

    async def archive(self, cursor: Cursor, directory: Directory, into: Path) -> ArchiveFile:  # noqa: ARG002
        self._check(cursor)
        return carry_out(self._store, cursor.native_id, into)

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        if not Path(directory.path).is_dir():
            raise Refused(f"{directory} is no directory.", "Make it first.")
        return Cursor(CURSOR_VERSION, carry_in(self._store, archive, directory))
