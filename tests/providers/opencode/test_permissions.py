"""Permissions of the real OpenCode: what is forbidden is really refused, by whatever way an agent tries it."""

import asyncio
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from clew.kernel import Answer, PermissionMode
from clew.ports.events import ApprovalAsked, Ending, ToolFinished
from clew.providers.opencode.http import Http
from clew.providers.opencode.modes import as_json, parse_rules
from tests.providers.contract.stage import Turned
from tests.providers.opencode.kit import (
    ASK,
    EDIT,
    FULL,
    READ,
    SILENCE,
    Lab,
    call,
    hurry,
    path,
    rest,
    subagent,
    trusting,
    turn,
    upto,
)


@pytest.mark.case("A01", "S13")
@pytest.mark.parametrize("mode", [READ, ASK, EDIT], ids=str)
def test_no_subagent_does_what_its_session_may_not(lab: Lab, mode: PermissionMode) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(mode=mode, directory=here)
        for kind in ("general", "explore"):
            prompt = f"RUN: touch {path(here, kind)}\nWRITE: {path(here, kind + '-written')} text"
            turned = await turn(session, subagent(kind, prompt))
            assert turned.done.ending is Ending.COMPLETED
        assert list(Path(here.path).iterdir()) == []
        assert session.cursor is not None
        children = await (await lab.api()).children(session.cursor.native_id)
        assert [child["agent"] for child in children] == ([] if mode is READ else ["explore"])
        assert session.cursor.native_id not in {child["id"] for child in children}

    lab.play(scene())


@pytest.mark.case("A01", "S13")
def test_a_subagent_of_a_session_that_may_do_all_may_too(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(mode=FULL, directory=here, environment={"OF_THE_RUN": "42"})
        told = subagent("general", f"RUN: echo $OF_THE_RUN > {path(here, 'ran')}")
        turned = await turn(session, told)
        assert path(here, "ran").read_text() == "42\n"
        assert turned.used is not None
        assert turned.used.output > 2 * 7, "what the subagent used is of the turn"

    lab.play(scene())


@pytest.mark.case("A01")
def test_a_command_is_asked_for_and_denied_in_both_modes_that_ask(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(mode=ASK, directory=here)
        for mode in (ASK, EDIT):
            assert await session.set_mode(mode) is mode
            turned = await turn(session, f"RUN: touch {path(here, 'ran')}", Answer.DENY)
            (asked,) = turned.of(ApprovalAsked)
            assert asked.command == f"touch {path(here, 'ran')}"
            (finished,) = turned.of(ToolFinished)
            assert not finished.ok
            assert turned.done.ending is Ending.COMPLETED, "the agent goes on and may find another way"
        assert not path(here, "ran").exists()
        # A file beyond the directory is not among those that may be edited.
        beyond = path(lab.directory("beyond"), "written")
        turned = await turn(session, f"WRITE: {beyond} text", Answer.DENY)
        assert turned.of(ApprovalAsked)
        assert not beyond.exists()

    lab.play(scene())


@pytest.mark.case("A03")
def test_nobody_is_hurried_by_the_silence_that_ends_a_turn(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(mode=ASK, directory=here)
        await turn(session, "first")
        hurry(session)
        events = session.turn(f"RUN: touch {path(here, 'ran')}")
        asked = await upto(events, ApprovalAsked)
        following = asyncio.create_task(rest(events))
        await asyncio.sleep(SILENCE + 1.0)
        assert not following.done()
        assert await session.answer(asked.id, Answer.APPROVE)
        assert (await following).done.ending is Ending.COMPLETED
        assert path(here, "ran").exists()

    lab.play(scene())


@pytest.mark.case("P03", "P04")
def test_rules_that_others_left_are_replaced(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first")
        api = await lab.api()
        foreign = parse_rules([{"permission": "bash", "pattern": "touch *", "action": "allow"}] * 40)
        await api.add_rules(cursor.native_id, as_json(foreign))
        session = await lab.open(cursor, mode=READ)
        assert session.landing.mode is READ
        kept = parse_rules((await lab.stored(cursor)).get("permission"))
        assert len(kept) < 30
        assert not any(rule.pattern == "touch *" for rule in kept)
        assert len(await lab.messages(cursor)) == 2, "nothing of it is left in the history"
        assert (await turn(session, "next")).seen.users == 2

    lab.play(scene())


@pytest.mark.case("P03")
def test_rules_changed_behind_our_back_are_put_right_before_the_prompt(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(mode=READ, directory=here)
        assert session.cursor is not None
        widest = parse_rules([{"permission": "*", "pattern": "*", "action": "allow"}])
        await (await lab.api()).add_rules(session.cursor.native_id, as_json(widest))
        await turn(session, f"RUN: touch {path(here, 'ran')}")
        assert not path(here, "ran").exists()

    lab.play(scene())


@pytest.mark.case("A05", "S07")
def test_a_shell_gets_its_session_s_variables_and_no_password(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        one = await lab.open(directory=here, environment={"RUN_TOKEN": "token-of-one"})
        two = await lab.open(directory=here, environment={"RUN_TOKEN": "token-of-two"})
        bare = await lab.open(directory=here)
        command = 'RUN: echo "[$RUN_TOKEN][$OPENCODE_SERVER_PASSWORD][$BUN_TMPDIR]" > {}'
        for session, name in ((one, "one"), (two, "two"), (bare, "bare")):
            turned = await turn(session, command.format(path(here, name)))
            assert "token-of" not in repr(turned.events)
        written = [path(here, name).read_text().strip() for name in ("one", "two", "bare")]
        usual = tempfile.gettempdir()
        assert written == [f"[token-of-one][][{usual}]", f"[token-of-two][][{usual}]", f"[][][{usual}]"]

    lab.play(scene())


@pytest.mark.case("A05")
def test_the_server_s_password_is_shown_nowhere_and_needed_for_everything(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        provider = lab.at()
        password, server = provider._password, await provider._shared.running()  # noqa: SLF001 - to look for it
        turned = await turn(session, "RUN: tr '\\0' '\\n' < /proc/$PPID/environ | grep ^OPENCODE")
        assert f"OPENCODE_SERVER_PASSWORD={'-' * len(password)}" in repr(turned.events)
        assert password not in json.dumps([asdict(event) for event in turned.events])
        assert not any(password.encode() in line for line in lab.rig.command_lines("a"))
        kept = [*(lab.rig.root / "a").rglob("*"), *(lab.rig.root / "state").rglob("*")]
        showing = [file for file in kept if file.is_file() and password.encode() in file.read_bytes()]
        assert showing == []
        for path_ in ("/global/health", "/session", "/doc", "/global/event"):
            answer = await Http(server._http.port, "opencode", "x").call("GET", path_, None, 5.0)  # noqa: SLF001
            assert answer.status == 401

    lab.play(scene())


@pytest.mark.case("P03", "C22")
def test_a_change_of_mode_changes_nothing_else(lab: Lab) -> None:
    """A list of rules is replaced by way of a message, of which nothing is left."""

    async def scene() -> None:
        session = await lab.open(mode=FULL, model="loopback/loopback-2")
        await turn(session, "first")
        cursor = session.cursor
        assert cursor is not None
        await session.close()
        before, said = await lab.stored(cursor), await lab.messages(cursor)
        for mode in (READ, FULL, ASK):
            session = await lab.open(cursor, mode=mode)
            assert session.landing.model == "loopback/loopback-2"
            await session.close()
        after = await lab.stored(cursor)
        changes = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        # OpenCode gives a session its title some time after the first turn.
        assert changes <= {"permission", "time", "title"}
        assert await lab.messages(cursor) == said
        await lab.goes_on(cursor)
        assert lab.model.work[-1].body["model"] == "loopback-2"

    lab.play(scene())


@pytest.mark.case("A02", "P03")
def test_modes_set_while_turns_begin_do_not_get_mixed_up(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(mode=FULL, directory=here)
        for mode in (READ, FULL, READ):
            setting = asyncio.create_task(session.set_mode(mode))
            turned = await turn(session, "SAY: hi")
            assert turned.done.ending is Ending.COMPLETED, turned.events
            assert await setting is mode
        await turn(session, f"RUN: touch {path(here, 'ran')}")
        assert not path(here, "ran").exists()

    lab.play(scene())


@pytest.mark.case("A01")
@pytest.mark.parametrize("answer", list(Answer), ids=str)
def test_a_link_out_of_the_directory_is_asked_for_as_what_it_leads_to(lab: Lab, answer: Answer) -> None:
    """OpenCode goes by the text of a path, and follows the link."""

    async def scene() -> None:
        here, beyond = lab.new_directory(), Path(lab.new_directory().path)
        (beyond / "there").write_text("before")
        path(here, "file").symlink_to(beyond / "there")
        path(here, "not-yet").symlink_to(beyond / "new")
        path(here, "deep").symlink_to(beyond)
        path(here, "again").symlink_to("deep")
        path(here, "inner").symlink_to("plain")
        session = await lab.open(mode=EDIT, directory=here)
        edit = {"oldString": "before", "newString": "after"}
        for told, leads_to in (
            (call("edit", filePath=str(path(here, "file")), **edit), "there"),
            (f"WRITE: {path(here, 'not-yet')} text", "new"),
            (call("write", filePath="again/relative", content="text"), "relative"),
            (f"WRITE: {path(here, 'deep/a/b')} text", "a/b"),
            (call("read", filePath=str(path(here, "file"))), "there"),
        ):
            turned = await turn(session, told, answer)
            (asked,) = turned.of(ApprovalAsked)
            assert (asked.tool, asked.file) == ("external_directory", str(beyond / leads_to))
        written = {str(file.relative_to(beyond)): file.read_text() for file in beyond.rglob("*") if file.is_file()}
        all_of_it = {"there": "after", "new": "text", "relative": "text", "a/b": "text"}
        assert written == (all_of_it if answer is Answer.APPROVE else {"there": "before"})
        assert path(here, "file").is_symlink()
        # What stays in the directory is not asked for, by whatever way it is named.
        for name in ("plain", "inner", "new/one"):
            await turn(session, f"WRITE: {path(here, name)} {name}")
        assert path(here, "plain").read_text() == "inner"

    lab.play(scene())


@pytest.mark.case("A01")
def test_a_link_out_of_the_directory_is_not_read_where_nothing_beyond_is(lab: Lab) -> None:
    async def scene() -> None:
        here, beyond = lab.new_directory(), path(lab.new_directory(), "there")
        beyond.write_text("only-beyond")
        path(here, "link").symlink_to(beyond)
        path(here, "plain").write_text("only-here")
        session = await lab.open(mode=READ, directory=here)
        for name, said in (("link", ""), ("plain", "only-here")):
            (finished,) = (await turn(session, call("read", filePath=str(path(here, name))))).of(ToolFinished)
            assert (finished.ok, said in finished.output, "only-beyond" in finished.output) == (bool(said), True, False)
        await session.set_mode(FULL)
        (finished,) = (await turn(session, call("read", filePath=str(path(here, "link"))))).of(ToolFinished)
        assert "only-beyond" in finished.output

    lab.play(scene())


@pytest.mark.case("A01")
def test_a_patch_is_asked_for_by_where_it_leads(lab: Lab) -> None:
    async def scene() -> None:
        here, beyond = lab.new_directory(), Path(lab.new_directory().path)
        for name in ("one", "two", "three"):
            (beyond / name).write_text("before\n")
            path(here, name).symlink_to(beyond / name)
        path(here, "deep").symlink_to(beyond)
        # It gives its tool for patches to these models alone.
        named = {"models": {"gpt-9": {"name": "gpt-9", "tool_call": True}}}
        path(here, "opencode.json").write_text(json.dumps({"provider": {"loopback": named}}))
        lab.at("trusting", trusting)
        session = await lab.open(mode=EDIT, directory=here, model="loopback/gpt-9", home="trusting")
        change = "@@\n-before\n+after\n"

        async def patched(body: str, answer: Answer | None) -> Turned:
            return await turn(session, call("apply_patch", patchText=f"*** Begin Patch\n{body}*** End Patch"), answer)

        for body in (
            f"*** Update File: one\n{change}",
            "*** Add File: deep/new\n+text\n",
            "*** Add File:two\n+text\n",
            "*** Delete File: deep/one\n",
            f"*** Add File: inside\n+text\n*** Update File: {path(here, 'two')}\n{change}",
        ):
            turned = await patched(body, Answer.DENY)
            assert {asked.tool for asked in turned.of(ApprovalAsked)} == {"external_directory"}, turned.events
        # What would carry it into the directory is refused, and what removes a link touches nothing else.
        turned = await patched(f"*** Update File: one\n*** Move to: taken\n{change}", None)
        assert [each.ok for each in turned.of(ToolFinished)] == [False]
        assert [file.read_text() for file in sorted(beyond.iterdir())] == ["before\n"] * 3
        assert not path(here, "taken").exists()
        await patched("*** Delete File: three\n*** Add File: plain\n+text\n", None)
        assert not path(here, "three").is_symlink()
        assert path(here, "plain").read_text() == "text\n"
        await patched(f"*** Update File: one\n{change}", Answer.APPROVE)
        assert (beyond / "one").read_text() == "after\n"
        assert (beyond / "three").exists()

    lab.play(scene())
