"""In edit the mode approves what stays in the directory, and nothing that others are told by."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Answer, PermissionMode
from clew.ports.events import ApprovalAsked
from clew.ports.provider import Settings
from clew.providers.acp import make
from tests.providers.agents import Agents, claude_home, opencode_home
from tests.providers.kit import QUICK, opened, run, spec, turn
from tests.providers.loopback.server import Model

AGENT = Path(__file__).with_name("odd_agent.py")
READ, ASK, EDIT, FULL = PermissionMode
OPTIONS = [{"kind": "allow_once", "optionId": "yes"}, {"kind": "reject_once", "optionId": "no"}]


def at(*paths: str) -> dict[str, Any]:
    return {"locations": [{"path": path} for path in paths]}


@pytest.mark.case("A01")
@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (at("notes.txt"), False),
        (at("HERE/notes.txt", "HERE/new/deep.txt"), False),
        ({"rawInput": {"file_path": "HERE/notes.txt"}}, False),
        ({"content": [{"type": "diff", "path": "HERE/notes.txt", "newText": ""}]}, False),
        ({}, True),
        (at("HERE/notes.txt", "/etc/motd"), True),
        (at("HERE/../beside.txt"), True),
        (at("~/.profile"), True),
        (at("HERE"), True),
        (at("HERE/link/x"), True),
        (at("HERE/.git/hooks/pre-commit"), True),
        (at("HERE/below/.GIT/config"), True),
        (at("HERE/kept/hooks/x"), True),
        (at("HERE/.vscode/tasks.json"), True),
        (at("notes.txt, .mcp.json"), True),
        ({**at("notes.txt"), "rawInput": {"files": [{"movePath": "HERE/.git/x"}]}}, True),
        ({**at("notes.txt"), "rawInput": {"changes": {"/etc/motd": {}}}}, True),
        ({**at("HERE/a"), "kind": "move"}, True),
        ({**at("HERE/a", "HERE/b"), "kind": "move"}, False),
        ({**at("HERE/a"), "kind": "delete"}, False),
        ({**at("HERE/a"), "kind": "fetch"}, True),
    ],
)
def test_edit_approves_what_is_known_to_stay_inside(tmp_path: Path, call: Any, asked: bool) -> None:
    here = tmp_path / "w"
    (here / "kept").mkdir(parents=True)
    (here / "link").symlink_to(tmp_path)
    (here / ".git").write_text("gitdir: kept\n")
    text = json.dumps({"options": OPTIONS, "call": call}).replace("HERE", str(here))
    settings = Settings(program=(sys.executable, str(AGENT), text), options={"asks": "yes"}, deadlines=QUICK)

    async def scene() -> None:
        async with opened(make(settings), spec(here, EDIT)) as session:
            turned = await turn(session, "write")
            assert bool(turned.of(ApprovalAsked)) is asked
            assert ("no" if asked else "yes") in turned.reply
        async with opened(make(settings), spec(here, FULL)) as session:
            assert "yes" in (await turn(session, "write")).reply

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.parametrize(("mode", "asked"), [(READ, False), (ASK, True)])
def test_what_fetches_is_not_reading(tmp_path: Path, mode: PermissionMode, asked: bool) -> None:
    how = json.dumps({"options": OPTIONS, "call": {"kind": "fetch", "rawInput": {"url": "http://x"}}})
    settings = Settings(program=(sys.executable, str(AGENT), how), options={"asks": "yes"}, deadlines=QUICK)

    async def scene() -> None:
        async with opened(make(settings), spec(tmp_path, mode)) as session:
            turned = await turn(session, "look")
            assert bool(turned.of(ApprovalAsked)) is asked
            assert "no" in turned.reply

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.parametrize("agent", ["claude", "opencode"])
def test_real_agents_write_unasked_only_what_is_theirs(
    tmp_path: Path, agents: Agents, model: Model, agent: str
) -> None:
    if agent == "claude":
        settings = replace(claude_home(tmp_path, model, agents), program=agents.claude_acp.command)
    else:
        settings = opencode_home(tmp_path, model, agents)
        settings = replace(settings, program=(*settings.program, "acp"))
    here = tmp_path / "w"
    (here / ".git").mkdir(parents=True)

    async def scene() -> None:
        async with opened(make(replace(settings, options={"agent": agent})), spec(here, EDIT)) as session:
            for file in (tmp_path / "outside.txt", here / ".git" / "hook"):
                assert (await turn(session, f"WRITE: {file} hello", Answer.DENY)).of(ApprovalAsked)
                assert not file.exists()
            assert not (await turn(session, f"WRITE: {here / 'mine.txt'} hello")).of(ApprovalAsked)
            assert (here / "mine.txt").exists()

    run(scene())


@pytest.mark.case("A01")
def test_claude_does_not_get_out_of_its_mode_by_planning(tmp_path: Path, agents: Agents, model: Model) -> None:
    settings = replace(claude_home(tmp_path, model, agents), program=agents.claude_acp.command)
    out = tmp_path / "outside"

    async def scene() -> None:
        async with opened(make(replace(settings, options={"agent": "claude"})), spec(tmp_path / "w", READ)) as session:
            await turn(session, f"CALL: EnterPlanMode {{}}\nRUN: touch {out}")
            await turn(session, f"RUN: touch {out}")
            assert not out.exists()

    run(scene())
