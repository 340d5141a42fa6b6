"""`clew say --file` on a real server: the agent finds the files; what cannot be sent is said before anything is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER
from tests.cli.kit import Said, clew
from tests.up.kit import Up, up


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("files") / "data") as started:
        started.guide()
        started.ask("PATCH", "/agents/guide", {"mode": "full"})
        started.ask("POST", "/chats", {"agent": "guide"})
        yield started
        assert started.stop() == 0


def say(at: Up, text: str, *words: object) -> Said:
    return clew("say", "chat-1", text, *words, "--data", at.data)


@pytest.mark.case("U10")
def test_the_agent_finds_the_files(at: Up, tmp_path: Path) -> None:
    (tmp_path / "build.log").write_bytes(b"it broke\n")
    (tmp_path / "empty").write_bytes(b"")
    said = say(
        at, "RUN: cat .clew-files/*/build.log", "--file", tmp_path / "build.log", "--file", tmp_path / "empty", "-w"
    )
    assert said.status == 0, said
    assert "it broke" in said.out
    entries = at.ask("GET", "/threads/chat-1")["entries"]
    assert [[each["name"] for each in entry["files"]] for entry in entries] == [["build.log", "empty"], []]


def test_what_cannot_be_sent_is_said_and_nothing_is_sent(at: Up, tmp_path: Path) -> None:
    before = len(at.ask("GET", "/threads/chat-1")["entries"])
    (tmp_path / "large").write_bytes(bytes(LARGEST_FILE + 1))
    (tmp_path / "third").write_bytes(bytes(LARGEST_TOGETHER // 3 + 1))
    for files, why in (
        ([tmp_path / "none"], "none cannot be read: No such file or directory."),
        ([tmp_path], "cannot be read: Is a directory."),
        ([tmp_path / "large"], "large is larger than 10 MB."),
        ([tmp_path / "third"] * 3, "a message has up to 25 MB."),
        ([tmp_path / "third"] * 11, "11 files were given; a message has up to 10."),
    ):
        said = say(at, "Look.", *(word for file in files for word in ("--file", file)))
        assert said.status != 0
        assert why in " ".join(said.err.split()), said
    assert len(at.ask("GET", "/threads/chat-1")["entries"]) == before
