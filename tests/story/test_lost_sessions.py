"""What an agent's own store has lost between two turns is told it again, and the reason is shown."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.providers.rig import Rig, Seen
from tests.story.kit import PATIENCE, House, hire, repository

MOMENTS = ("warm", "cold") if os.environ.get("CLEW_THOROUGH") == "1" else ("warm",)
"""Whether its program is still open when the session is deleted, or nothing runs."""


@pytest.mark.case("C13", "C26", "X02", "P08")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_session_that_was_deleted_is_told_again_what_was_said(
    rig: Rig, home: House, tmp_path: Path, moment: str
) -> None:
    hire(home, rig, "edit")
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    page = home.post("/issues", {"title": "A door", "body": "FIRST WORD", "project": "maze", "assignee": "ada"})
    ref = page["thread"]["ref"]
    page = home.quiet(ref)
    first, directory = page["runs"][0]["session"], page["lanes"][0]["directory"]
    (kept,) = home.get(f"/sessions?thread={ref}")

    if moment == "cold":
        home.down()
    delete(rig, kept["native_id"])
    if moment == "cold":
        home.up()

    page = home.say(ref, "SECOND WORD\nRUN: pwd")
    reply, run = page["entries"][-1]["text"], page["runs"][0]
    assert directory in reply, page
    assert Seen.in_(reply).users == 1, "it is a new conversation"
    assert "FIRST WORD" in (rig.heard() or "")
    assert (run["state"], run["decision"], run["claim"]) == ("succeeded", "reseed", "started"), run
    assert run["session"] != first
    why = home.get(f"/why/{run['id']}")
    assert why["headline"].startswith(
        "reseed: New conversation with the thread's history, in place of session 1. The"
    ), why
    assert why["headline"].endswith("[session:lost]")
    states = {each["id"]: each["state"] for each in home.get(f"/sessions?thread={ref}")}
    assert states == {first: "lost", run["session"]: "healthy"}

    # The next word goes on in the new one.
    page = home.say(ref, "THIRD WORD")
    heard = rig.heard() or ""
    assert all(word in heard for word in ("FIRST WORD", "SECOND WORD", "THIRD WORD"))
    assert (page["runs"][0]["decision"], page["runs"][0]["session"]) == ("resume", run["session"])


def delete(rig: Rig, native_id: str) -> None:
    """A file where the agent keeps files, a row where it has a database."""
    if rig.name == "opencode":
        store = Path(rig.settings("a").home["XDG_DATA_HOME"]) / "opencode" / "opencode.db"
        with closing(sqlite3.connect(store, timeout=PATIENCE)) as database, database:
            database.execute("PRAGMA foreign_keys = ON")
            assert database.execute("DELETE FROM session WHERE id = ?", (native_id,)).rowcount == 1
        return
    (file,) = (rig.root / "a").rglob(f"*{native_id}.jsonl")
    file.unlink()
