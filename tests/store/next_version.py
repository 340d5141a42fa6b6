"""The program of the next schema version, as far as upgrades, backups and restores can tell.

Its steps are those of this program plus a pre and a post step that change no table.
"""

import shutil
from functools import partial
from pathlib import Path

import pytest

from clew.store.schema.version import PROGRAM, STEPS, migrate, require, upgrade

NEXT = PROGRAM + 1

_STEP = """
from alembic import op

revision = "{revision}"
down_revision = "{before}"


def upgrade():
    op.get_bind().exec_driver_sql("UPDATE meta SET value = '{version}' WHERE key = '{key}'")
"""


def become_next_version(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """From now on this process is a program for schema NEXT; its migrations are in `directory`."""
    steps = directory / "migrations"
    shutil.copytree(STEPS, steps, ignore=shutil.ignore_patterns("__pycache__"))
    before = _head()
    for kind, key in (("pre", "schema"), ("post", "oldest-program")):
        revision = f"{NEXT:04d}_{kind}"
        step = _STEP.format(revision=revision, before=before, version=NEXT, key=key)
        (steps / "versions" / f"v{revision}.py").write_text(step, encoding="utf-8")
        before = revision
    upgrades = partial(upgrade, program=NEXT, steps=steps)
    monkeypatch.setattr("clew.store.engine.open.require", partial(require, program=NEXT))
    monkeypatch.setattr("clew.store.engine.open.upgrade", upgrades)
    monkeypatch.setattr("clew.store.backup.backup.PROGRAM", NEXT)
    monkeypatch.setattr("clew.store.backup.backup.migrate", partial(migrate, steps=steps))
    monkeypatch.setattr("clew.store.backup.restore.PROGRAM", NEXT)
    monkeypatch.setattr("clew.store.backup.restore.upgrade", upgrades)


def _head() -> str:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - slow to import

    head = ScriptDirectory(str(STEPS)).get_current_head()
    assert head is not None
    return head
