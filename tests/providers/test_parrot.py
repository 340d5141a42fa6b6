"""The example of a provider says truly whether it took a prompt, and one bad file of its store hides no other."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.kernel import Cursor, Directory, Evidence, PermissionMode, PromptId, Sent
from clew.ports.events import SessionNamed
from clew.ports.provider import OpenSpec, Provider, Settings
from examples.parrot.clew_parrot import make

ID = PromptId("prompt-1")


async def prompted(provider: Provider, place: Path, through: bool = True) -> Cursor:
    """A session that was given a prompt; it is left in the middle of the turn unless that goes `through`."""
    session = await provider.open(OpenSpec(Directory(str(place)), PermissionMode.READ))
    async for event in session.turn("hello", ID):
        if isinstance(event, SessionNamed) and not through:
            break
    await session.close()
    assert session.cursor is not None
    return session.cursor


def home(place: Path) -> Path:
    return place / "home"


def nothing(_: Path) -> None:
    """The store is as the parrot left it."""


def torn(path: Path) -> None:
    (file,) = path.glob("*.json")
    file.write_text("{", encoding="utf-8")


def emptied(path: Path) -> None:
    (file,) = path.glob("*.json")
    file.unlink()


@pytest.mark.parametrize(
    ("through", "id_", "happens", "expected"),
    [
        (True, ID, nothing, Evidence.FINISHED),
        (False, ID, nothing, Evidence.TAKEN),
        (True, PromptId("another"), nothing, Evidence.UNSENT),
        (True, ID, emptied, Evidence.UNSENT),
        (True, ID, torn, Evidence.UNKNOWN),
        (True, ID, shutil.rmtree, Evidence.UNKNOWN),
    ],
)
def test_whether_it_took_a_prompt_is_read_from_its_store(
    tmp_path: Path, through: bool, id_: PromptId, happens: Callable[[Path], None], expected: Evidence
) -> None:
    async def ask() -> tuple[Evidence, str]:
        provider = make(Settings(home={"PARROT_HOME": str(home(tmp_path))}))
        cursor = await prompted(provider, tmp_path, through)
        happens(home(tmp_path))
        heard = await provider.heard(cursor, Directory(str(tmp_path)), Sent(id_, ""))
        await provider.close()
        return heard.evidence, heard.reply

    assert asyncio.run(ask()) == (expected, "hello" if expected is Evidence.FINISHED else "")


def test_one_bad_file_hides_no_other_session(tmp_path: Path) -> None:
    async def listed() -> list[str]:
        provider = make(Settings(home={"PARROT_HOME": str(home(tmp_path))}))
        cursor = await prompted(provider, tmp_path)
        (home(tmp_path) / "parrot-000000000000.json").write_text("[]", encoding="utf-8")
        found = [each.cursor.native_id for each in await provider.sessions()]
        assert found == [cursor.native_id]
        return [each.title for each in await provider.sessions()]

    assert asyncio.run(listed()) == ["hello"]
