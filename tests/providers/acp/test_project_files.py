"""What a project tells an agent of a preset gives it no more than its mode does."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import PermissionMode
from clew.ports.events import ApprovalAsked
from clew.ports.provider import Provider, Settings
from clew.programs.faults import CannotStart, Refused
from clew.programs.project_files import directories, main_worktree
from clew.providers.acp import make
from tests.providers.kit import QUICK, opened, run, spec, turn

AGENT = Path(__file__).with_name("odd_agent.py")
ID = "ses_0123456789abcdefghijklmn"
READ, ASK, EDIT, FULL = PermissionMode
OPTIONS = [{"kind": "allow_once", "optionId": "yes"}, {"kind": "reject_once", "optionId": "no"}]
FILES = [
    ("claude", ".claude/settings.json"),
    ("claude", ".claude/settings.local.json"),
    ("claude", ".claude/agents/wide.md"),
    ("codex", ".codex/config.toml"),
    ("codex", ".codex/rules/default.rules"),
    ("opencode", "opencode.json"),
    ("opencode", "opencode.jsonc"),
    ("opencode", ".opencode/opencode.json"),
    ("opencode", ".opencode/agents/wide.md"),
    ("opencode", ".opencode/plugin/own.js"),
    ("gemini", ".gemini/settings.json"),
    ("qwen", ".qwen/settings.json"),
]


def preset(agent: str, home: Path, program: tuple[str, ...] = ("/nowhere/agent",), **told: str) -> Provider:
    return make(Settings(program=program, home={"HOME": str(home)}, options={"agent": agent, **told}, deadlines=QUICK))


def put(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")


@pytest.mark.case("A01")
@pytest.mark.parametrize(("agent", "file"), FILES)
def test_a_file_that_the_agent_obeys_leaves_full_only(tmp_path: Path, agent: str, file: str) -> None:
    project = tmp_path / "project" / "below"
    project.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()

    async def scene() -> None:
        provider = preset(agent, tmp_path / "home")
        for where in (project, project.parent):
            put(where / file)
            for mode in (READ, ASK, EDIT):
                with pytest.raises(Refused, match="cannot be kept") as told:
                    await provider.open(spec(project, mode))
                assert str(where / file) in told.value.words
                assert agent in told.value.remedy or agent in ("gemini", "qwen")
            (where / file).unlink()
        # Beyond the repository nothing is the project's; and in full nothing can be widened.
        put(tmp_path / file)
        with pytest.raises(CannotStart):
            await provider.open(spec(project, ASK))
        put(project / file)
        with pytest.raises(CannotStart):
            await provider.open(spec(project, FULL))
        await provider.close()

    run(scene())


@pytest.mark.case("A01")
def test_opencode_looks_above_a_directory_that_is_in_no_repository(tmp_path: Path) -> None:
    put(tmp_path / "opencode.json")

    async def scene() -> None:
        with pytest.raises(Refused, match=r"opencode\.json"):
            await preset("opencode", tmp_path / "home").open(spec(tmp_path / "project", READ))

    run(scene())


@pytest.mark.case("A01")
def test_a_narrower_mode_is_not_set_where_it_could_not_be_kept(tmp_path: Path) -> None:
    program = (sys.executable, str(AGENT), json.dumps({"new_id": ID}))
    put(tmp_path / "w" / "opencode.json")

    async def scene() -> None:
        async with opened(preset("opencode", tmp_path, program), spec(tmp_path / "w", FULL)) as session:
            with pytest.raises(Refused, match=r"opencode\.json"):
                await session.set_mode(READ)

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ({"locations": [{"path": "notes.txt"}]}, False),
        ({"locations": [{"path": "/x/opencode.json"}]}, True),
        ({"locations": [{"path": "/x/.opencode/agent/a.md"}]}, True),
        ({"locations": [{"path": "LINK/agent.md"}]}, True),
        ({"rawInput": {"patch": "Add File: .opencode/agent/a.md"}}, True),
    ],
)
def test_edit_does_not_let_the_agent_write_what_it_obeys(tmp_path: Path, call: Any, asked: bool) -> None:
    (tmp_path / "link").symlink_to(tmp_path / ".opencode")
    text = json.dumps({"new_id": ID, "options": OPTIONS, "call": call}).replace("LINK", str(tmp_path / "link"))
    program = (sys.executable, str(AGENT), text)

    async def scene() -> None:
        async with opened(preset("opencode", tmp_path, program), spec(tmp_path / "w", EDIT)) as session:
            turned = await turn(session, "write")
            assert bool(turned.of(ApprovalAsked)) is asked
            assert ("no" if asked else "yes") in turned.reply

    run(scene())


def test_outside_of_a_repository_a_project_is_its_directory(tmp_path: Path) -> None:
    here = (tmp_path / "project").resolve()
    assert directories(here, ("no-such-marker",)) == [here]
    assert directories(here, ("no-such-marker",), alone=False) == [here, *here.parents]


def test_a_worktree_knows_its_repository(tmp_path: Path) -> None:
    (tmp_path / "main" / ".git" / "worktrees" / "w").mkdir(parents=True)
    (tmp_path / "w" / "below").mkdir(parents=True)
    (tmp_path / "w" / ".git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/w\n")
    assert main_worktree(tmp_path / "w" / "below") == tmp_path / "main"
    assert main_worktree(tmp_path / "main") is None
