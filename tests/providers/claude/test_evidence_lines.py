"""What a transcript says of a prompt: lines as Claude Code 2.1.197 writes them, whole, damaged and strange."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from clew import kernel
from clew.kernel import Cursor, Directory, Evidence, NativeId, PromptId, Sent, digest_of
from clew.ports.provider import Settings
from clew.programs.process_tag import Owner
from clew.providers.claude import make
from clew.providers.claude.home import Home
from clew.providers.claude.locks import is_at_terminal

ID = "0bcad7cc-50ff-49fe-91e3-de643c3f86dd"
PROMPT = PromptId("01920000-0000-7000-8000-00000000000a")


def line(kind: str, uuid: str | None, parent: str | None, **rest: object) -> dict[str, Any]:
    return {"parentUuid": parent, "isSidechain": False, "type": kind, "uuid": uuid, "sessionId": ID, **rest}


def user(uuid: str, parent: str | None, text: object = "words", **rest: object) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": text}, **rest)


def assistant(uuid: str, parent: str, *blocks: Any, stop: str | None = "end_turn", **rest: object) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
    message = {"role": "assistant", "model": "loopback-1", "content": content, "stop_reason": stop, **rest}
    return line("assistant", uuid, parent, message=message)


def result(uuid: str, parent: str) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]
    return user(uuid, parent, content, toolUseResult={"stdout": "x"}, sourceToolAssistantUUID=parent)


def steered(uuid: str, parent: str, id_: str = PROMPT) -> dict[str, Any]:
    told = {"type": "queued_command", "prompt": [{"type": "text", "text": "words"}], "source_uuid": id_}
    return line("attachment", uuid, parent, attachment=told)


TOOL = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "hm"}
BEFORE = (user("u0", None), assistant("a0", "u0", "an earlier answer"))
INTERRUPTED = [{"type": "text", "text": "[Request interrupted by user]"}]


def text_of(*lines: dict[str, Any] | str) -> bytes:
    """Lines end themselves; a text is laid in as it is."""
    parts = (each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) + "\n" for each in lines)
    return "".join(parts).encode()


def put(root: Path, data: bytes, project: str = "-w-a") -> Path:
    path = root / "projects" / project / f"{ID}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def heard(root: Path, id_: str = PROMPT, native_id: str = ID, version: int = 1) -> kernel.Attestation:
    provider = make(Settings(home={"CLAUDE_CONFIG_DIR": str(root)}))
    cursor = Cursor(version, NativeId(native_id))
    return asyncio.run(provider.heard(cursor, Directory("/w/a"), Sent(PromptId(id_), digest_of("words"))))


@pytest.mark.case("P19", "C35")
@pytest.mark.parametrize(
    ("lines", "evidence", "reply"),
    [
        ((), Evidence.UNSENT, ""),
        # Only its id counts: the same words, or its id in a text, are not it.
        ((user("other", "a0", f'as I said in "{PROMPT}"'),), Evidence.UNSENT, ""),
        (({"type": "queue-operation", "operation": "enqueue", "content": "words"},), Evidence.UNSENT, ""),
        ((line("system", "s", "a0", content=f"blocked by hook. Original prompt: {PROMPT}"),), Evidence.UNSENT, ""),
        ((user(PROMPT, "a0"),), Evidence.TAKEN, ""),
        ((user(PROMPT, "a0"), line("attachment", "b", PROMPT, attachment={"type": "skills"})), Evidence.TAKEN, ""),
        # What the program says in the model's place is no reply.
        (
            (
                user(PROMPT, "a0"),
                {**assistant("a", PROMPT, "API Error", stop="stop_sequence"), "isApiErrorMessage": True},
            ),
            Evidence.TAKEN,
            "",
        ),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, "No response", model="<synthetic>")), Evidence.TAKEN, ""),
        # Another's answer, on another branch or in a side thread.
        ((user(PROMPT, "a0"), user("v", "a0"), assistant("a", "v", "to another")), Evidence.TAKEN, ""),
        ((user(PROMPT, "a0"), user("v", PROMPT), assistant("a", "v", "to the next")), Evidence.TAKEN, ""),
        ((user(PROMPT, "a0"), {**assistant("a", PROMPT, "aside"), "isSidechain": True}), Evidence.TAKEN, ""),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, TOOL, stop="tool_use")), Evidence.CUT_OFF, ""),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, "half", stop=None)), Evidence.CUT_OFF, ""),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, "long", stop="max_tokens")), Evidence.CUT_OFF, ""),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, TOOL, stop="tool_use"), result("r", "a")), Evidence.CUT_OFF, ""),
        ((user(PROMPT, "a0"), user("i", PROMPT, INTERRUPTED)), Evidence.CUT_OFF, ""),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, "well"), user("i", "a", INTERRUPTED)), Evidence.CUT_OFF, ""),
        ((user(PROMPT, "a0"), assistant("a", PROMPT, "well")), Evidence.FINISHED, "well"),
        (
            (
                user(PROMPT, "a0"),
                assistant("a", PROMPT, "first", stop="tool_use"),
                assistant("b", "a", TOOL, stop="tool_use"),
                result("r", "b"),
                assistant("c", "r", THOUGHT),
                assistant("d", "c", "well"),
            ),
            Evidence.FINISHED,
            "well",
        ),
        # A hook of the user's does not let it end, and then does.
        (
            (
                user(PROMPT, "a0"),
                assistant("a", PROMPT, "well"),
                user("m", "a", "Stop hook feedback:\nno", isMeta=True),
            ),
            Evidence.CUT_OFF,
            "",
        ),
        # What the agent begins by itself afterwards is another turn.
        (
            (
                user(PROMPT, "a0"),
                assistant("a", PROMPT, "well"),
                user("n", "a", "<task-notification>", origin={"kind": "task-notification"}),
                assistant("b", "n", TOOL, stop="tool_use"),
            ),
            Evidence.FINISHED,
            "well",
        ),
        # Through a compaction in the middle of the turn.
        (
            (
                user(PROMPT, "a0"),
                assistant("a", PROMPT, TOOL, stop="tool_use"),
                result("r", "a"),
                line("system", "c", None, subtype="compact_boundary", logicalParentUuid="r"),
                user("s", "c", "This session is being continued", isCompactSummary=True),
                assistant("b", "s", "well"),
            ),
            Evidence.FINISHED,
            "well",
        ),
        # Words within a turn.
        ((user("u", "a0"), steered("q", "u")), Evidence.TAKEN, ""),
        ((user("u", "a0"), steered("q", "u"), assistant("a", "q", TOOL, stop="tool_use")), Evidence.CUT_OFF, ""),
        ((user("u", "a0"), steered("q", "u"), assistant("a", "q", "well")), Evidence.FINISHED, "well"),
        ((user("u", "a0"), steered("q", "u", "another"), assistant("a", "q", "well")), Evidence.UNSENT, ""),
    ],
)
def test_how_far_a_prompt_came(
    tmp_path: Path, lines: tuple[dict[str, Any], ...], evidence: Evidence, reply: str
) -> None:
    put(tmp_path, text_of(*BEFORE, *lines, {"type": "last-prompt", "leafUuid": "a0"}))
    told = heard(tmp_path)
    assert (told.evidence, told.reply, told.able) == (evidence, reply, True)
    assert told.detail


WHOLE = json.dumps(user(PROMPT, "a0"), separators=(",", ":"))
QUEUED = json.dumps({"type": "queue-operation", "operation": "enqueue"}, separators=(",", ":")) + "\n"


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("lines", "evidence"),
    [
        # The program passes over a part of a line. On a full disk it asks its model all the same: nothing is certain.
        ((WHOLE[:5],), Evidence.UNKNOWN),
        ((WHOLE[:-1],), Evidence.UNKNOWN),
        ((WHOLE[:-1], QUEUED), Evidence.UNKNOWN),
        (("\0\0\0",), Evidence.UNKNOWN),
        # It reads one that lacks only its end, also when it has written on behind it.
        ((WHOLE,), Evidence.TAKEN),
        ((WHOLE, QUEUED), Evidence.TAKEN),
        ((WHOLE, json.dumps(assistant("a", PROMPT, "well")) + "\n"), Evidence.FINISHED),
        # Once the prompt is there, what is cut off behind it does not make it untaken.
        ((WHOLE + "\n", '{"parentUuid":"'), Evidence.TAKEN),
        ((WHOLE + "\n", json.dumps(assistant("a", PROMPT, THOUGHT)) + "\n", '{"parentUuid":"a'), Evidence.CUT_OFF),
        ((WHOLE + "\n", json.dumps(assistant("a", PROMPT, "well")) + "\n", '{"type":"last'), Evidence.FINISHED),
        # The prompt's own line is gone, and an answer to it is there.
        ((json.dumps(assistant("a", PROMPT, "well")) + "\n",), Evidence.UNKNOWN),
        # Damage from before it, behind which the program went on.
        (('{"par', QUEUED), Evidence.UNSENT),
        (('{"par', QUEUED, WHOLE + "\n"), Evidence.TAKEN),
        (("[1]\n7\n\n" + "null\n", WHOLE + "\n"), Evidence.TAKEN),
    ],
)
def test_a_damaged_transcript_says_no_more_than_it_has(
    tmp_path: Path, lines: tuple[str, ...], evidence: Evidence
) -> None:
    put(tmp_path, text_of(*BEFORE, *lines))
    assert heard(tmp_path).evidence is evidence


@pytest.mark.case("P19", "S09")
def test_lines_of_a_strange_shape_stop_nothing(tmp_path: Path) -> None:
    strange: list[dict[str, Any]] = [
        line("attachment", None, PROMPT, attachment=7),
        line("assistant", "x1", PROMPT, message="text"),
        line("user", "x2", PROMPT, message={"content": [3, {"type": "text"}]}),
        {"type": "assistant", "parentUuid": PROMPT, "uuid": 7},
        {"parentUuid": [PROMPT]},
    ]
    put(tmp_path, text_of(user(PROMPT, None), *strange[:-1], assistant("a", PROMPT, "well")))
    assert heard(tmp_path).reply == "well"
    put(tmp_path, text_of(user(PROMPT, None), *strange))
    assert heard(tmp_path).evidence is Evidence.CUT_OFF


@pytest.mark.case("P19", "C14")
def test_a_home_that_is_not_there_says_nothing_and_an_absent_session_holds_nothing(tmp_path: Path) -> None:
    assert heard(tmp_path / "not-there").evidence is Evidence.UNKNOWN
    # Where it should have been mounted.
    assert heard(tmp_path).evidence is Evidence.UNKNOWN
    (tmp_path / ".claude.json").write_text("{}")
    assert heard(tmp_path).evidence is Evidence.UNSENT
    (tmp_path / "projects").write_text("this is no directory")
    told = heard(tmp_path)
    assert (told.evidence, told.able) == (Evidence.UNKNOWN, True)
    assert "projects" in told.detail
    # What is no session's id will never be one; a cursor that a later Clew wrote may be read by that.
    assert heard(tmp_path, native_id="../../etc/passwd") == kernel.Attestation(
        Evidence.UNKNOWN, "'../../etc/passwd' is not a session id of Claude Code.", able=False
    )
    assert heard(tmp_path, version=2).able


@pytest.mark.case("P19")
def test_of_several_copies_the_one_that_tells_most_counts(tmp_path: Path) -> None:
    put(tmp_path, text_of(*BEFORE), "-w-a")
    put(tmp_path, text_of(*BEFORE, user(PROMPT, "a0")), "-w-b")
    assert heard(tmp_path).evidence is Evidence.TAKEN
    put(tmp_path, text_of(*BEFORE, user(PROMPT, "a0"), assistant("a", PROMPT, "well")), "-w-c")
    assert heard(tmp_path).evidence is Evidence.FINISHED


@pytest.mark.case("R14")
def test_a_person_at_a_terminal_is_told_from_a_program(tmp_path: Path) -> None:
    home, ours = Home(tmp_path, tmp_path / ".claude.json"), Owner.ourselves()
    note = tmp_path / "sessions" / "1.json"
    note.parent.mkdir()
    found = []
    for entrypoint, started in (("sdk-cli", ours.started), ("cli", ours.started), ("cli", ours.started + 1)):
        who = {"pid": ours.pid, "sessionId": ID, "procStart": str(started), "entrypoint": entrypoint}
        note.write_text(json.dumps(who))
        found.append(is_at_terminal(home, ID))
    assert found == [False, True, False]
    assert not is_at_terminal(home, "another")


@pytest.mark.case("P19")
def test_while_a_program_has_the_session_only_a_finished_turn_is_certain(tmp_path: Path) -> None:
    note, ours = tmp_path / "sessions" / "1.json", Owner.ourselves()
    note.parent.mkdir()

    def noted(entrypoint: str, started: int) -> None:
        who = {"pid": ours.pid, "sessionId": ID, "procStart": str(started), "entrypoint": entrypoint}
        note.write_text(json.dumps(who))

    turn = (user(PROMPT, "a0"), assistant("a", PROMPT, "well"))
    found = {}
    for entrypoint, started in (("sdk-cli", ours.started), ("cli", ours.started), ("sdk-cli", ours.started + 1)):
        noted(entrypoint, started)
        for count in range(3):
            put(tmp_path, text_of(*BEFORE, *turn[:count]))
            found[entrypoint, started - ours.started, count] = heard(tmp_path).evidence
    whole = [Evidence.UNSENT, Evidence.TAKEN, Evidence.FINISHED]
    assert [found["sdk-cli", 0, count] for count in range(3)] == [Evidence.UNKNOWN, Evidence.UNKNOWN, Evidence.FINISHED]
    # One at a person's terminal was handed nothing of ours; a dead one writes nothing any more.
    assert [found["cli", 0, count] for count in range(3)] == whole
    assert [found["sdk-cli", 1, count] for count in range(3)] == whole


@pytest.mark.case("P19")
def test_a_transcript_that_changes_while_it_is_read_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, text_of(*BEFORE))
    read = Path.read_bytes

    def read_late(self: Path) -> bytes:
        data = read(self)
        if self == path:
            with path.open("ab") as file:
                file.write(text_of(user(PROMPT, "a0")))
        return data

    monkeypatch.setattr(Path, "read_bytes", read_late)
    assert heard(tmp_path).evidence is Evidence.UNKNOWN
    monkeypatch.undo()
    assert heard(tmp_path).evidence is Evidence.TAKEN


@pytest.mark.case("P19")
def test_a_long_transcript_is_read_in_time(tmp_path: Path) -> None:
    long = text_of(assistant("a", "b", "x" * 1000)) * 50_000
    path = put(tmp_path, long + text_of(user(PROMPT, "a0"), assistant("a9", PROMPT, "well")))
    assert path.stat().st_size > 50_000_000
    os.sync()
    began = time.monotonic()
    assert heard(tmp_path).reply == "well"
    assert heard(tmp_path, "another").evidence is Evidence.UNSENT
    assert time.monotonic() - began < 2.0
